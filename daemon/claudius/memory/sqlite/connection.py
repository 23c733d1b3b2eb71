"""Open the database file with private permissions and durable settings, and run named queries on a connection."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol
from urllib.parse import quote

from claudius.home import FILE_MODE
from claudius.memory.search import tables
from claudius.memory.stemming import stemmed

APPLICATION_ID = 0x436C6475
"""`Cldu` in the file's header marks the database as ours."""

BUSY_MS = 5000
_CACHE_KIB = 4 * 1024
ONCE_KIB = 512
"""Cache size for a reader that reads everything once and rereads nothing."""
_STATEMENTS = 256
_umask = threading.RLock()


@contextmanager
def private_files() -> Iterator[None]:
    """Make every file created in the block private to the owner, whatever the process's umask is."""
    with _umask:
        before = os.umask(0o077)
        try:
            yield
        finally:
            os.umask(before)


def open_writer(path: Path) -> sqlite3.Connection:
    """Open an existing database for writing. Raises: sqlite3.Error."""
    with private_files():
        connection = _connect(path, "rw")
        with ExitStack() as undo:
            undo.callback(connection.close)
            add_functions(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA temp_store = MEMORY")  # else a statement's undo log is a file, made each time
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            connection.execute(
                "BEGIN IMMEDIATE"
            )  # creates -wal and -shm now, under our umask, and shows if it may write
            connection.execute("ROLLBACK")
            undo.pop_all()
    for file in (path, *siblings(path)):
        with suppress(FileNotFoundError):
            if file.stat().st_mode & 0o077:
                file.chmod(FILE_MODE)
    return connection


def add_functions(connection: sqlite3.Connection) -> None:
    """Register the functions that the triggers of the schema call."""
    connection.create_function("stemmed", 3, _indexed, deterministic=True)


def _indexed(text: str, name: str, audience: int) -> str:
    return " ".join([f"{stem}:{audience}" for stem in stemmed(text, name)])


def vacuum(connection: Connection) -> None:
    """Rewrite the whole file through a copy on disk; the current `temp_store` would keep that copy in memory.

    Raises: sqlite3.Error.
    """
    connection.execute("PRAGMA temp_store = FILE")
    try:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # applies from now on, if the file is older
        connection.execute("VACUUM")
    finally:
        connection.execute("PRAGMA temp_store = MEMORY")


def open_reader(path: Path, *, cache_kib: int = _CACHE_KIB, is_alone: bool = False) -> sqlite3.Connection:
    """Open an existing database for reading, beside the writer. Raises: sqlite3.Error.

    Even to read, SQLite makes a write-ahead log and its shared index where there is none. With `is_alone` it makes
    nothing and takes no lock: only for a file that nobody has open, where nothing can be written.
    """
    wal, _ = siblings(path)
    alone = "ro&vfs=unix-none" if wal.exists() and wal.stat().st_size else "ro&immutable=1"
    with private_files():
        connection = _connect(path, alone if is_alone else "ro")
        with ExitStack() as undo:
            undo.callback(connection.close)
            if is_alone:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # its own index of the log, in memory
            connection.execute(f"PRAGMA cache_size = -{cache_kib}")
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
            undo.pop_all()
    return connection


def siblings(path: Path) -> tuple[Path, Path]:
    """Return the paths of the write-ahead log and of its index. Pure."""
    return path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS,
    )
    connection.row_factory = sqlite3.Row
    connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    return connection


def pragma(connection: Connection, name: str) -> Any:
    """Return what a pragma of one value says, or of a check its first finding. Raises: sqlite3.Error."""
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return value


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
    is_far = False
    """Whether each answer is a round trip, so that questions should be asked together."""

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
        if row is None:
            return None
        (value,) = row
        return value

    def values(self, query: str, /, **values: Any) -> list[Any]:
        """Return the values of every row of a named query with a single column."""
        return [value for (value,) in self.connection.execute(self.queries[query], values)]

    def dicts(self, query: str, /, **values: Any) -> list[dict[str, Any]]:
        """Return every row of a named query as a dict by column name."""
        return [dict(row) for row in self.connection.execute(self.queries[query], values)]

    def each(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Execute one named query for each row of values."""
        self.connection.executemany(self.queries[query], rows)

    def ahead(self, **asked: Mapping[str, Any]) -> None:
        """Ask queries, each with its values, before they are needed. Only if it `is_far`."""

    def foresee(self, kind: str, *names: str) -> None:
        """Ask what reads of this kind usually ask about these names. Only if it `is_far`."""

    def tables(self) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        """Return each table's name, its key columns and all its columns; those that refer to others come first."""
        refers = {
            table: self.connection.execute(_REFERS, (table,)).fetchone()["refers"]
            for table, *_ in tables(self.connection)
        }
        return sorted(tables(self.connection), key=lambda one: -refers[one[0]])


_REFERS = "SELECT count(*) AS refers FROM pragma_foreign_key_list(?)"
