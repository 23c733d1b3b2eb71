"""Rewrite pages of the file, so that what was erased from them is nowhere in their free room."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from claudius.memory.database import Database
from claudius.memory.search import tables

ROWS, BESIDE = 200, 60
"""Rows rewritten at once, and how many more on either side of a page, so that its neighbours are emptied too."""

Step = Callable[[Database], None]
_GUARDS = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ? AND sql LIKE '%RAISE(%'"
"""Triggers that refuse a deletion. A rewrite changes nothing, and sets them aside in its own transaction."""


def steps(db: Database, name: str, rowids: Sequence[int]) -> list[Step]:
    """Return the steps that rewrite an index, or a table's rows around these rowids, each outside a transaction."""
    known = {table: (key, columns) for table, key, columns in tables(db.connection)}
    if not name:
        return []
    if name not in known:
        return [lambda db: _reindex(db, name)]
    key, columns = known[name]
    if key == ("rowid",):
        spans = [_span(db, name, low, high) for low, high in zip(rowids[::2], rowids[1::2], strict=True)]
        columns = ("rowid", *(column for column in columns if not _is_rowid(db, name, column)))
        rewrite = partial(_rewrite, table=name, columns=columns, where='"rowid" BETWEEN ? AND ?')
        return [partial(rewrite, values=span) for span in spans]
    names = ", ".join(f'"{one}"' for one in key)
    rows = db.connection.execute(f'SELECT {names} FROM "{name}" ORDER BY {names}').fetchall()  # noqa: S608 - names of our own schema
    keys = [[row[one] for one in key] for row in rows]
    chunks = [(keys[at], keys[min(at + ROWS, len(keys)) - 1]) for at in range(0, len(keys), ROWS)]
    marks = ", ".join("?" * len(key))
    rewrite = partial(_rewrite, table=name, columns=columns, where=f"({names}) >= ({marks}) AND ({names}) <= ({marks})")
    return [partial(rewrite, values=(*first, *last)) for first, last in chunks]


def _is_rowid(db: Database, table: str, column: str) -> bool:
    sql = "SELECT 1 FROM pragma_table_info(?) WHERE name = ? AND pk = 1 AND upper(type) = 'INTEGER'"
    keys = "SELECT count(*) AS keys FROM pragma_table_info(?) WHERE pk > 0"
    is_only = db.connection.execute(keys, (table,)).fetchone()["keys"] == 1
    return is_only and db.connection.execute(sql, (table, column)).fetchone() is not None


def _span(db: Database, table: str, low: int, high: int) -> tuple[int, int]:
    before = f'SELECT rowid AS place FROM "{table}" WHERE rowid < ? ORDER BY rowid DESC LIMIT {BESIDE}'  # noqa: S608 - names of our own schema
    after = f'SELECT rowid AS place FROM "{table}" WHERE rowid > ? ORDER BY rowid LIMIT {BESIDE}'  # noqa: S608 - names of our own schema
    lower = [row["place"] for row in db.connection.execute(before, (low,))]
    higher = [row["place"] for row in db.connection.execute(after, (high,))]
    return min(lower, default=low), max(higher, default=high)


def _rewrite(db: Database, table: str, columns: Sequence[str], where: str, values: Sequence[Any]) -> None:
    """Delete some rows and insert them again in one transaction, with foreign keys off so that nothing cascades."""
    names, marks = ", ".join(f'"{one}"' for one in columns), ", ".join("?" * len(columns))
    connection = db.connection
    connection.execute("PRAGMA foreign_keys = OFF")
    try:
        connection.execute("BEGIN IMMEDIATE")
        with ExitStack() as undo:
            undo.callback(connection.execute, "ROLLBACK")
            found = connection.execute(f'SELECT {names} FROM "{table}" WHERE {where}', values)  # noqa: S608 - names of our own schema
            rows = [tuple(row) for row in found]
            guards = connection.execute(_GUARDS, (table,)).fetchall()
            for guard in guards:
                connection.execute(f'DROP TRIGGER "{guard["name"]}"')
            connection.execute(f'DELETE FROM "{table}" WHERE {where}', values)  # noqa: S608 - names of our own schema
            connection.executemany(f'INSERT INTO "{table}" ({names}) VALUES ({marks})', rows)  # noqa: S608 - names of our own schema
            for guard in guards:
                connection.execute(guard["sql"])
            connection.execute("COMMIT")
            undo.pop_all()
    finally:
        connection.execute("PRAGMA foreign_keys = ON")


def _reindex(db: Database, name: str) -> None:
    found = db.connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?", (name,)).fetchone()
    if found:
        db.connection.execute(f'REINDEX "{name}"')
