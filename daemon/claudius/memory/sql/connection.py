"""A connection in the shape of `sqlite3.Connection`, whichever database it leads to, and named queries on it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from claudius.memory.search import tables


class Cursor(Protocol):
    """The rows that a statement returned."""

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""

    def fetchone(self) -> Any:
        """Return the next row; None if there is none."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""

    def fetchmany(self, size: int, /) -> list[Any]:
        """Return up to `size` of the rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """An open connection in the shape of `sqlite3.Connection`, as far as the store uses it. Rows have named columns."""

    @property
    def Error(self) -> type[Exception]:  # noqa: N802 - the name of PEP 249
        """What each of its errors is."""

    @property
    def OperationalError(self) -> type[Exception]:  # noqa: N802 - likewise
        """An error of the database, not of a statement."""

    @property
    def IntegrityError(self) -> type[Exception]:  # noqa: N802 - likewise
        """A row that the schema refuses."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""

    @property
    def total_changes(self) -> int:
        """The number of rows changed since it was opened."""

    def execute(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = ..., /) -> Cursor:
        """Run one statement."""

    def executemany(self, sql: str, rows: Iterable[Any], /) -> object:
        """Run one statement for each row of values."""

    def close(self) -> None:
        """Close it."""


LAST = "\U0010ffff"
"""No character sorts after it: what begins with a text sorts before the text with this at its end."""
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


class Row(Protocol):
    """One row of a query: its values by the names of its columns, never by their numbers."""

    def __getitem__(self, column: str, /) -> Any: ...

    def keys(self) -> Iterable[str]:
        """Return the names of the columns."""


@cache
def load_queries(directory: Path, files: str = "*.sql") -> Mapping[str, str]:
    """Read every `-- name: NAME` block of a directory, once a process. Raises: ValueError for a duplicate name."""
    found: dict[str, str] = {}
    for file in sorted(directory.glob(files)):
        _, *blocks = _NAME.split(file.read_text("utf-8"))
        for name, sql in zip(blocks[::2], blocks[1::2], strict=True):
            if name in found:
                raise ValueError(f"{file}: the query {name} stands twice")
            found[name] = sql.strip().rstrip(";")
    return MappingProxyType(found)


class Database:
    """One connection with its named queries. Not thread-safe."""

    __slots__ = ("connection", "queries")

    def __init__(self, connection: Connection, queries: Mapping[str, str]) -> None:
        """Take an open connection; the caller who opened it closes it."""
        self.connection = connection
        self.queries = queries

    def run(self, query: str, /, **values: Any) -> Cursor:
        """Execute one named query."""
        return self.connection.execute(self.queries[query], values)

    def change(self, query: str, /, **values: Any) -> int:
        """Execute one named query and return how many rows it changed."""
        return self.connection.execute(self.queries[query], values).rowcount

    def one(self, query: str, /, **values: Any) -> Row | None:
        """Return the first row of a named query; None if there is none."""
        row: Row | None = self.connection.execute(self.queries[query], values).fetchone()
        return row

    def all(self, query: str, /, **values: Any) -> list[Row]:
        """Return every row of a named query."""
        return self.connection.execute(self.queries[query], values).fetchall()

    def value(self, query: str, /, **values: Any) -> Any:
        """Return the value of a named query with a single column; None if there is no row."""
        row = self.connection.execute(self.queries[query], values).fetchone()
        return None if row is None else _only(row)

    def values(self, query: str, /, **values: Any) -> list[Any]:
        """Return the values of every row of a named query with a single column."""
        return [_only(row) for row in self.connection.execute(self.queries[query], values)]

    def dicts(self, query: str, /, **values: Any) -> list[dict[str, Any]]:
        """Return every row of a named query as a dict by column name."""
        return [dict(row) for row in self.connection.execute(self.queries[query], values)]

    def each(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Execute one named query for each row of values."""
        self.connection.executemany(self.queries[query], rows)

    def tables(self) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        """Return each table's name, its key columns and all its columns; those that refer to others come first."""
        refers = {
            table: self.connection.execute(_REFERS, (table,)).fetchone()["refers"]
            for table, *_ in tables(self.connection)
        }
        return sorted(tables(self.connection), key=lambda one: -refers[one[0]])


def _only(row: Row) -> Any:
    (column,) = row.keys()
    return row[column]


_REFERS = "SELECT count(*) AS refers FROM pragma_foreign_key_list(?)"
