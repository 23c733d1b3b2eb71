"""Copy a whole soul: from the SQLite file to PostgreSQL or back, compared table by table.

A copy to the server is one transaction, and a copy to a file is a new file: one that is cut off leaves nothing. Unless
`release.migrating` is 0, no process takes turns there or writes: a move to it has not finished, or the soul has left it
(`Closed` in `session`). Only the home that began a move ends it.

A backup of a server is such a file, too. It counts once a schema beside the store's own was filled from it, and
compared; a restore fills one in the same way, and then exchanges the two.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from datetime import UTC, datetime
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import msgspec
import psycopg
from msgspec import Struct

from claudius.errors import ClaudiusError, StoreError, TryAgain
from claudius.home import shipped
from claudius.memory.database import StorePlace
from claudius.memory.postgres.connection import INSTEAD, NUL
from claudius.memory.postgres.schema import CREATING, create_sql, known, migrate_sql, too_old
from claudius.memory.postgres.session import (
    COMING,
    HERE,
    IS_OURS,
    LEFT,
    Closed,
    Made,
    Move,
    check_nobody_works,
    closed_by,
    connected,
    is_unused,
    quoted,
    value_of,
)
from claudius.memory.search import tables
from claudius.memory.sqlite.backups import Backup, keep_verified
from claudius.memory.sqlite.file import open_reader, open_writer, pragma, siblings
from claudius.memory.sqlite.schema import create_database, load_migrations, translate

ROWS = 1000
"""Rows that are read at a time, and after which progress is told."""
NOBODY = Move()

Told = Callable[[str, int], None]
"""Called with a table's name and how many of its rows were copied or compared since the last call."""


class MovedTable(Struct, frozen=True):
    """One table that both databases hold alike."""

    name: str
    rows: int
    sha256: str
    """Of the rows in the order of their key."""


class _Table(Struct, frozen=True):
    name: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    number: str = ""
    """The column that the database numbers; empty = none."""

    @property
    def listed(self) -> str:
        return ", ".join(f'"{one}"' for one in self.columns)

    @property
    def in_order(self) -> str:
        ordered = ", ".join(f'"{one}"' for one in self.keys)
        return f'SELECT {self.listed} FROM "{self.name}" ORDER BY {ordered}'  # noqa: S608 - names of our own schema


def state_of(place: StorePlace) -> str:
    """Return what is at a server: `empty`, `soul`, `unfinished` if a move to it was cut off, or `left`.

    Raises: StoreError if it cannot be reached, or cannot hold a soul.
    """
    with connected(place) as made:
        return _state(made, place, known(shipped("memory")))


def _state(made: Made, place: StorePlace, version: int) -> str:
    if is_unused(made, place.shown):
        return "empty"
    schema, closed = value_of(made, "SELECT schema FROM release") or 0, closed_by(made)
    if schema > version:
        raise too_old(place.shown, schema, version)
    if closed:  # of whatever schema: nobody can start there
        return "left" if closed.is_left else "unfinished"
    if schema != version:
        raise StoreError(
            f"{place.shown} has the schema {schema}, this release has {version}: start it once with this one"
        )
    return "soul"


def rows_at(place: StorePlace) -> int:
    """Return about how many rows a server holds, for showing progress."""
    with connected(place) as made:
        return int(value_of(made, _ABOUT) or 0)


def is_paused(place: StorePlace) -> bool:
    """Return whether the soul is paused there, for every process."""
    with connected(place) as made:
        return bool(value_of(made, "SELECT EXISTS (SELECT 1 FROM unread WHERE network = '*')"))


def finish(place: StorePlace) -> None:
    """Open a server for processes that take turns: the move is done, and `store.url` names it."""
    with connected(place) as made:
        _close(made, HERE, NOBODY)


def _close(made: Made, migrating: int, move: Move) -> None:
    values = (migrating, move.id, move.home)
    made.execute("UPDATE release SET migrating = %s, move = %s, mover = %s", values)


def _refuse(place: StorePlace, closed: Closed) -> None:
    raise TryAgain(closed.line(place.shown, place.url))


def to_postgres(
    file: Path, place: StorePlace, memory: Path, told: Told, *, is_kept: bool, move: Move = NOBODY
) -> list[MovedTable]:
    """Copy a file to a server that is empty or closed, and compare; without `is_kept` the copy is taken back.

    Nothing else may write to the file. `move`: what closes the server until `finish`. Raises: StoreError if anything
    differs, TryAgain if another home's move there has not finished; then nothing was copied.
    """
    with closing(open_reader(file)) as source, connected(place) as made:
        source.row_factory = None
        source.execute("BEGIN")
        made.execute("SELECT pg_advisory_xact_lock(%s)", (CREATING,))
        _make_room(made, place, memory, move)
        moved = _send(source, made, place.shown, told)
        _close(made, COMING, move)
        if not is_kept:
            made.rollback()
    return moved


def _send(source: sqlite3.Connection, made: Made, where: str, told: Told) -> list[MovedTable]:
    """Fill the tables of the connection's schema from a file, and compare them. Raises: StoreError."""
    both = _tables(made, source)
    made.execute(f"TRUNCATE {', '.join(quoted(name) for name in _every(made) if name != 'release')}".encode())
    moved = []
    for one in both:
        made.execute(f"ALTER TABLE {quoted(one.name)} DISABLE TRIGGER USER".encode())
        sent = _Sum(one.name, told)
        with made.cursor().copy(f'COPY "{one.name}" ({one.listed}) FROM STDIN'.encode()) as sink:
            for row in sent.of(source.execute(one.in_order), _clean):
                sink.write_row(row)
        made.execute(f"ALTER TABLE {quoted(one.name)} ENABLE TRIGGER USER".encode())
        moved.append(sent.done())
    with made.cursor().copy("COPY moment_index (stem, moment) FROM STDIN") as sink:
        for row in source.execute("SELECT DISTINCT term, doc FROM moment_place"):
            sink.write_row(row)
    for one in both:
        if one.number:
            used = source.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (one.name,)).fetchone()
            made.execute(_COUNT_ON.format(one).encode(), {"used": used[0] if used else 0})
    made.execute("ANALYZE")
    _compare(moved, ((one, _rows(made, one)) for one in both), where, told)
    return moved


def _make_room(made: Made, place: StorePlace, memory: Path, move: Move) -> None:
    """Make the tables that are filled next, or this release's of those that are there. Raises: StoreError, TryAgain."""
    if _state(made, place, known(memory)) == "soul":
        raise TryAgain(f"{place.shown} holds a soul already")
    if not value_of(made, IS_OURS):
        made.execute(create_sql(memory, known(memory)).encode())
        return
    closed = closed_by(made)
    if closed and not closed.is_left and closed.move.id and not closed.is_of(move):
        _refuse(place, closed)
    if (found := value_of(made, "SELECT schema FROM release")) < known(memory):
        made.execute(migrate_sql(memory, found).encode())


def to_sqlite(
    place: StorePlace, file: Path, memory: Path, told: Told, *, is_kept: bool, move: Move = NOBODY
) -> list[MovedTable]:
    """Copy a server to a new file, and compare; nobody may write to the server afterwards, if it `is_kept`.

    Raises: TryAgain if a process is at work there, or if the soul is not there and it was not this `move` that took
    it; StoreError if anything differs; then there is no file.
    """
    for one in (file, *siblings(file)):
        one.unlink(missing_ok=True)
    create_database(file, load_migrations(memory / "schema"))
    with ExitStack() as undo:
        undo.callback(_remove, file)
        with connected(place) as made, closing(open_writer(file)) as sink:
            made.execute("SELECT pg_advisory_xact_lock(1131176053, current_schema()::regnamespace::oid::int)")
            _state(made, place, known(memory))
            if (closed := closed_by(made)) and not (closed.is_left and closed.is_of(move)):
                _refuse(place, closed)
            check_nobody_works(made, place)
            _check_drained(made, place)
            moved = _fill(made, sink, told)
            sink.row_factory = None
            there = ((one, sink.execute(one.in_order)) for one in _tables(made, sink))
            _compare(moved, there, str(file), told)
            if is_kept:
                _close(made, LEFT, move)
                sink.execute("PRAGMA journal_mode = WAL")
                sink.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        if is_kept:
            sync(file)
        undo.pop_all()
    if not is_kept:
        _remove(file)
    return moved


def _fill(made: Made, sink: sqlite3.Connection, told: Told) -> list[MovedTable]:
    """Fill a new file whose loss would cost nothing yet."""
    both, moved = _tables(made, sink), list[MovedTable]()
    for words in ("foreign_keys = OFF", "journal_mode = MEMORY", "synchronous = OFF", "secure_delete = OFF"):
        sink.execute(f"PRAGMA {words}")
    sink.execute("BEGIN")
    triggers = sink.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        sink.execute(f"DROP TRIGGER {quoted(name)}")
    for one in both:
        places = ", ".join("?" * len(one.columns))
        sink.execute(f"DELETE FROM {quoted(one.name)}")  # noqa: S608 - names of our own schema
        read = _Sum(one.name, told)
        sink.executemany(
            f"INSERT INTO {quoted(one.name)} ({one.listed}) VALUES ({places})",  # noqa: S608 - likewise
            read.of(_rows(made, one)),
        )
        moved.append(read.done())
        if one.number:
            used = value_of(made, _USED.format(one)) or 0
            sink.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = ?", (used, one.name))
    with made.cursor("stems") as stems:
        stems.itersize = ROWS
        stems.execute("SELECT moment, string_agg(stem, ' ') FROM moment_index GROUP BY moment ORDER BY moment")
        sink.executemany("INSERT INTO moment_index (rowid, stems) VALUES (?, ?)", stems)
    for _, sql in triggers:
        sink.execute(sql)
    sink.execute("COMMIT")
    broken = sink.execute("PRAGMA foreign_key_check").fetchone()
    if broken:
        raise StoreError(f"a row of {broken[0]} refers to a row that is not there: nothing was moved")
    return moved


class _Sum:
    """The number and the hash of the rows of a table, as they pass."""

    def __init__(self, name: str, told: Told) -> None:
        self._name, self._told, self._rows, self._hash = name, told, 0, hashlib.sha256()

    def of(self, rows: Iterable[Sequence[Any]], clean: Callable[[Any], Any] | None = None) -> Iterator[Sequence[Any]]:
        told = 0
        for row in rows:
            values = [*map(clean, row)] if clean else row
            self._hash.update(_encode(values))
            self._rows += 1
            if self._rows - told == ROWS:
                told = self._rows
                self._told(self._name, ROWS)
            yield values
        self._told(self._name, self._rows - told)

    def done(self) -> MovedTable:
        return MovedTable(self._name, self._rows, self._hash.hexdigest())


_encode = msgspec.msgpack.Encoder().encode


def _clean(value: Any) -> Any:
    """Return a value as PostgreSQL can hold it: U+0000 of an older message reads U+FFFD, as `accept` makes it now."""
    if isinstance(value, str):
        if NUL in value:
            return value.replace(NUL, INSTEAD)
        if value[:1] in "[{" and "\\u0000" in value and "\\\\u0000" not in value:
            return value.replace("\\u0000", "\\ufffd")
    return value


def _compare(
    moved: Sequence[MovedTable], there: Iterable[tuple[_Table, Iterable[Sequence[Any]]]], where: str, told: Told
) -> None:
    for ours, (table, rows) in zip(moved, there, strict=True):
        read = _Sum(table.name, told)
        for _ in read.of(rows):
            pass
        theirs = read.done()
        if theirs != ours:
            raise StoreError(
                f"{where}: {table.name} holds {theirs.rows} rows, or other ones, for {ours.rows}: nothing was moved"
            )


def _tables(made: Made, file: sqlite3.Connection) -> list[_Table]:
    """Return the tables that both databases have; one comes after those that it refers to. Raises: StoreError."""
    found, wanted = pragma(file, "user_version"), len(load_migrations(shipped("memory") / "schema"))
    if found != wanted:
        raise StoreError(f"the file has the schema {found}, this release has {wanted}: start it once with this one")
    served = {name: _Table(name, tuple(keys), tuple(columns), number or "")
              for name, keys, columns, number in made.execute(_TABLES)}  # fmt: skip
    kept = {name: set(columns) for name, _, columns in tables(file)}
    for name, columns in kept.items():
        if name not in served or columns != set(served[name].columns):
            raise StoreError(f"the table {name} differs between the two databases: nothing was moved")
    order = TopologicalSorter({name: set[str]() for name in kept})
    for name, other in made.execute(_REFERS):
        if name in kept and other in kept:
            order.add(name, other)
    return [served[name] for name in order.static_order()]


def _check_drained(made: Made, place: StorePlace) -> None:
    if waiting := value_of(made, UNFINISHED):
        raise TryAgain(unfinished(place.shown, waiting))


UNFINISHED = """SELECT (SELECT count(*) FROM inbox WHERE state IN ('pending', 'taken', 'thought', 'committed'))
    + (SELECT count(*) FROM outbox WHERE state IN ('pending', 'taken', 'unknown_after_send')) AS waiting"""


def unfinished(where: str, rows: int) -> str:
    """Return the line that says that something still waits for an answer. Pure."""
    what = "1 message waits" if rows == 1 else f"{rows} messages wait"
    return f"{where}: {what} for an answer: start the daemon, let it finish, stop it, and run this again"


def _rows(made: Made, table: _Table) -> Iterator[tuple[Any, ...]]:
    with made.cursor(f"rows_of_{table.name}") as rows:
        rows.itersize = ROWS
        rows.execute(table.in_order.encode())
        yield from rows


def _remove(file: Path) -> None:
    for one in (file, *siblings(file)):
        with suppress(FileNotFoundError):
            one.unlink()


def sync(file: Path) -> None:
    """Have a file, and its name, outlast a loss of power. Raises: ClaudiusError."""
    for path in (file, file.parent):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise ClaudiusError(f"{path}: {error.strerror}") from error
        finally:
            os.close(descriptor)


_TABLES = b"""SELECT c.relname::text,
    (SELECT array_agg(a.attname::text ORDER BY array_position(i.indkey::int[], a.attnum::int)) FROM pg_index i
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
        WHERE i.indrelid = c.oid AND i.indisprimary),
    (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped),
    (SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attidentity <> '')
FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' ORDER BY c.relname"""
_ABOUT = """SELECT sum(greatest(0, reltuples))::bigint FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' AND relname <> 'moment_index'"""
_REFERS = b"""SELECT DISTINCT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint
WHERE contype = 'f' AND connamespace = current_schema()::regnamespace AND conrelid <> confrelid"""
_COUNT_ON = """SELECT setval(pg_get_serial_sequence('{0.name}', '{0.number}'), greatest(1, %(used)s, max("{0.number}")),
    greatest(%(used)s, max("{0.number}")) >= 1) FROM "{0.name}\""""
_USED = "SELECT pg_sequence_last_value(pg_get_serial_sequence('{0.name}', '{0.number}')::regclass)"


BESIDE = "_restored"
"""Ends the name of the schema in which a copy is restored."""
NAME_CHARS = 36
"""How much of the store's name the schemas beside it bear; a name has 63 bytes."""
_BESIDE = """SELECT nspname::text AS name FROM pg_namespace WHERE nspname <> current_schema()
AND nspname LIKE replace(left(current_schema(), 36), '_', '\\_') || '\\_re%'
"""
LEFT_BESIDE = f"{_BESIDE}AND nspname ~ '_restored$'"
"""The schema that a restore has left beside the store, if it was interrupted."""
_SET_ASIDE = f"{_BESIDE}AND nspname ~ '_replaced_[0-9a-z]+$' ORDER BY nspname"
LACKS = "a copy is restored in a schema beside the store, which this user may not create"
_SERVED = ("soul_push", "soul_file", "early")
"""Tables that no file holds, and whose rows a restore leaves as they are."""
_LANES = """INSERT INTO lane (conversation, heard, ready)
SELECT conversation, 1, true FROM inbox WHERE state IN ('pending', 'taken', 'thought', 'committed') UNION
SELECT conversation, 1, true FROM outbox WHERE state IN ('pending', 'taken', 'unknown_after_send')"""


def back_up(place: StorePlace, directory: Path, now: datetime, memory: Path, name: str = "") -> Backup:
    """Copy the store at one snapshot to a file, fill a schema beside the store from it, and compare every table.

    That schema has a name of its own, so that several copies can be made at once, and is taken back.

    Raises: StoreError, StoreCorrupt if they differ; OSError. Blocks.
    """

    def copied(aside: Path) -> dict[str, int]:
        create_database(aside, load_migrations(memory / "schema"))
        with connected(place) as made, closing(open_writer(aside)) as sink:
            made.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            if _state(made, place, known(memory)) == "empty":
                raise StoreError(f"{place.shown} holds nothing: there is nothing to copy")
            taken = _fill(made, sink, _untold)
        with connected(place) as made:
            if _send_beside(made, place, aside, memory, f"{BESIDE}_{secrets.token_hex(4)}") != taken:
                raise StoreError(f"{place.shown}: a copy differs from the store: it was not kept")
            made.rollback()
        return {one.name: one.rows for one in taken}

    try:
        return keep_verified(place.shown, directory, now, name, copied)
    except sqlite3.Error as error:
        raise translate(error, directory) from error


def _untold(_: str, __: int) -> None:
    """Show nobody how far it is."""


def _send_beside(made: Made, place: StorePlace, file: Path, memory: Path, end: str = BESIDE) -> list[MovedTable]:
    """Make a schema beside the store's own, whose name ends so, and fill it. It is uncommitted. Raises: StoreError."""
    beside = quoted(f"{value_of(made, 'SELECT current_schema()')[:NAME_CHARS]}{end}")
    try:
        made.execute(f"DROP SCHEMA IF EXISTS {beside} CASCADE; CREATE SCHEMA {beside}".encode())
    except psycopg.errors.InsufficientPrivilege as error:
        made.rollback()
        raise StoreError(f"{place.shown}: {LACKS}: {grant(made)}") from error
    made.execute(f"SET LOCAL search_path = {beside}".encode())
    made.execute(create_sql(memory, known(memory)).encode())
    with closing(open_reader(file)) as source:
        source.row_factory = None
        return _send(source, made, place.shown, _untold)


def put_in_force(place: StorePlace, file: Path, memory: Path, now: datetime) -> str:
    """Exchange the store for a schema that is filled from a file; return the name that the old one has now.

    What waits there finds its lane, and no token is given twice. The soul that was pushed stays.

    Raises: TryAgain if a process is at work there; StoreError.
    """
    with connected(place) as made:
        check_nobody_works(made, place)
        schema = value_of(made, "SELECT current_schema()")
        last = value_of(made, "SELECT pg_sequence_last_value('lane_token'::regclass)") or 0
        _send_beside(made, place, file, memory)
        for name in _SERVED:
            made.execute(f"INSERT INTO {name} SELECT * FROM {quoted(schema)}.{name}".encode())  # noqa: S608 - our own names
        made.execute("SELECT setval(pg_get_serial_sequence('soul_push', 'number'), max(number)) FROM soul_push")
        made.execute(b"SELECT setval('lane_token', %s)", (last + 1,))
        made.execute(_LANES)
        aside = f"{schema[:NAME_CHARS]}_replaced_{now.astimezone(UTC):%y%m%dt%H%M%S}{secrets.token_hex(2)}"
        for old, new in ((schema, aside), (f"{schema[:NAME_CHARS]}{BESIDE}", schema)):
            made.execute(f"ALTER SCHEMA {quoted(old)} RENAME TO {quoted(new)}".encode())
    return aside


def beside_of(place: StorePlace, schema: str) -> StorePlace:
    """Return the place of another schema of the same database. Pure."""
    given = psycopg.conninfo.conninfo_to_dict(place.url)
    given["options"] = f"{given.get('options', '')} -csearch_path={quoted(schema)}".strip()
    return StorePlace(psycopg.conninfo.make_conninfo("", **given), place.password, f"{place.shown} ({schema})")


def set_aside(place: StorePlace) -> list[StorePlace]:
    """Return the place of each schema that a restore has set aside, oldest first."""
    with connected(place) as made:
        return [beside_of(place, name) for (name,) in made.execute(_SET_ASIDE.encode())]


def _every(made: Made) -> list[str]:
    """Return the names of every table of the schema."""
    return [name for (name,) in made.execute(_EVERY)]


def grant(made: Made) -> str:
    """Return what gives this user the right that a copy needs."""
    return f"GRANT CREATE ON DATABASE {quoted(made.info.dbname)} TO {quoted(made.info.user)}"


_EVERY = b"""SELECT relname::text FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY relname"""
