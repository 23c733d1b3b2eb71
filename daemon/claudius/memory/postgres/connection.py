"""Connect to PostgreSQL, in the shape of `sqlite3.Connection` that the topics of the store use."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Loader
from psycopg.pq import Format, TransactionStatus
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper

from claudius.errors import StoreAway, StoreError, StoreFull, StoreReadOnly
from claudius.memory.opening import StorePlace
from claudius.memory.postgres.translation import translated
from claudius.memory.sqlite.connection import Cursor, Database, load_queries
from claudius.memory.stemming import stemmed

CONNECT_S = 10
SILENT_S, LOCK_S = 15.0, 60.0
OURS = {"application_name": "claudius", "connect_timeout": str(CONNECT_S)}
_ALIVE = {"keepalives": "1", "keepalives_idle": "5", "keepalives_interval": "5", "keepalives_count": "2"}
_STATEMENTS = 512
"""Statements that stay prepared on the server: more than there are queries."""
NUL, INSTEAD = "\0", "\ufffd"
"""PostgreSQL cannot hold U+0000."""


class NamedRow(Sequence[Any]):
    """One row: its values by the names of its columns; iterated, the values in order, as a `sqlite3.Row`."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: Mapping[str, int], values: Sequence[Any]) -> None:
        self._places, self._values = places, values

    def __getitem__(self, column: Any, /) -> Any:
        return self._values[self._places[column]]

    def keys(self) -> Iterable[str]:
        """Return the names of the columns."""
        return self._places.keys()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _named(cursor: psycopg.Cursor[Any]) -> Callable[[Sequence[Any]], NamedRow]:
    places = {column.name: place for place, column in enumerate(cursor.description or ())}
    return lambda values: NamedRow(places, values)


class _Text(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        return super().dump(obj.replace(NUL, INSTEAD) if NUL in obj else obj)


class _Flag(Int8Dumper):
    def dump(self, obj: Any) -> Buffer | None:
        return b"1" if obj else b"0"


class _Truth(Loader):
    format = Format.TEXT

    def load(self, data: Buffer) -> int:
        return int(bytes(data) == b"t")


class _Number(Loader):
    """A sum of whole numbers is whole, as in SQLite."""

    format = Format.TEXT

    def load(self, data: Buffer) -> float:
        text = bytes(data).decode()
        return float(text) if "." in text else int(text)


class PostgresConnection:
    """One connection, which is made anew at the next transaction if it was lost. Not thread-safe."""

    Error, OperationalError, IntegrityError = psycopg.Error, psycopg.OperationalError, psycopg.IntegrityError
    total_changes = 0
    """Nothing that is counted by it is to be done here."""

    def __init__(self, place: StorePlace, silent_s: float = SILENT_S) -> None:
        """Connect. Raises: psycopg.OperationalError.

        The server ends the connection if it is silent for `silent_s` seconds inside a transaction, because its locks
        keep everybody else waiting.
        """
        self._place, self._silent_s = place, silent_s
        self._is_inside = False
        self._texts: dict[str, bytes] = {}
        self._roles = 0
        """The lock that stands for this process's roles, if it has them."""
        self._has_new_moments = False
        self.lock_wait_s = 0.0
        """How long transactions took to begin: those that write wait for one another."""
        self._made = self._connect()

    def hold(self, lock: int) -> bool:
        """Take a lock of the schema for as long as this is connected, also anew; return whether it was free."""
        row = self._made.execute(_TRY_LOCK, {"lock": lock}).fetchone()
        is_free = row is not None and bool(row["free"])
        self._roles = lock if is_free else 0
        return is_free

    def _connect(self) -> psycopg.Connection[NamedRow]:
        words = OURS | _ALIVE | ({"password": self._place.password} if self._place.password else {})
        url = psycopg.conninfo.make_conninfo(self._place.url, **words)
        made = psycopg.connect(url, autocommit=True, row_factory=_named)
        made.execute(
            f"SET idle_in_transaction_session_timeout = '{self._silent_s}s'; SET lock_timeout = '{LOCK_S}s'".encode()
        )
        made.prepared_max = _STATEMENTS
        made.adapters.register_dumper(str, _Text)
        made.adapters.register_dumper(int, Int8Dumper)
        made.adapters.register_dumper(bool, _Flag)
        made.adapters.register_loader("bool", _Truth)
        made.adapters.register_loader("numeric", _Number)
        return made

    def _reconnect(self) -> None:
        self._made = self._connect()
        if self._roles and not self.hold(self._roles):
            self._made.close()
            raise psycopg.OperationalError("another process has taken this one's roles")

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, failed or not."""
        status = self._made.info.transaction_status
        return status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)

    def execute(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = (), /) -> Cursor:
        """Run one statement that is written for SQLite. Raises: psycopg.Error."""
        begins = sql.startswith("BEGIN")
        if self._made.closed and (begins or not self._is_inside):
            self._reconnect()
        if begins:
            self._has_new_moments, self._is_inside = False, True
            began_s = time.perf_counter()
            begun = self._made.execute(self._text(sql), prepare=False)  # two statements in one round trip
            self.lock_wait_s += time.perf_counter() - began_s
            return begun
        if sql in ("COMMIT", "ROLLBACK"):
            self._is_inside = False
        if sql == "COMMIT" and self._has_new_moments:
            self._index_moments()
        elif sql.startswith(_MOMENTS_COME):
            self._has_new_moments = True
        return self._made.execute(self._text(sql), values or None)

    def executemany(self, sql: str, rows: Iterable[Any], /) -> object:
        """Run one statement for each row of values, in one round trip. Raises: psycopg.Error."""
        with self._made.cursor() as cursor:
            cursor.executemany(self._text(sql), list(rows))
        return None

    def script(self, sql: str) -> None:
        """Run many statements without values in one transaction. Raises: psycopg.Error."""
        with self._made.transaction():
            self._made.execute(sql.encode())

    def close(self) -> None:
        """Close it."""
        self._made.close()

    def _text(self, sql: str) -> bytes:
        text = self._texts.get(sql)
        if text is None:
            text = self._texts[sql] = translated(sql).encode()
        return text

    def _index_moments(self) -> None:
        """Index the moments that came or changed in this transaction, as the triggers of SQLite's schema do."""
        self._has_new_moments = False
        postings = [
            {"stem": f"{stem}:{row['audience_number']}", "moment": row["id"]}
            for row in self._made.execute(_NEW_MOMENTS)
            for stem in stemmed(f"{row['text']} {row['pictures']}", row["name"])
        ]
        if postings:
            self.executemany(_INDEX, postings)
        self._made.execute(b"DELETE FROM moment_new")


ROLES = 0x436C6476
"""The lock of the one process that listens, keeps the clock and the archive."""
_TRY_LOCK = b"SELECT pg_try_advisory_lock(%(lock)s::int, current_schema()::regnamespace::oid::int) AS free"
_MOMENTS_COME = ("INSERT INTO moment ", "UPDATE moment ", 'UPDATE "moment" ')
_NEW_MOMENTS = b"""SELECT m.id, m.text, m.pictures, m.name, m.audience_number
FROM moment_new n JOIN moment_said m ON m.id = n.moment"""
_INDEX = "INSERT INTO moment_index (stem, moment) VALUES (:stem, :moment) ON CONFLICT DO NOTHING"


class PostgresDatabase(Database):
    """One connection with its named queries. Not thread-safe."""

    __slots__ = ()

    def tables(self) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        """Return each table's name, its key columns and all its columns; those that refer to others come first."""
        rows = self.connection.execute(_TABLES).fetchall()
        return [(row["name"], tuple(row["keys"]), tuple(row["columns"])) for row in rows]


_TABLES = """SELECT c.relname AS name,
    (SELECT array_agg(a.attname::text ORDER BY array_position(i.indkey::int[], a.attnum::int)) FROM pg_index i
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
        WHERE i.indrelid = c.oid AND i.indisprimary) AS keys,
    (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns
FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
    AND c.relname NOT IN ('release', 'moment_index', 'moment_new', 'worker', 'unread')
ORDER BY (SELECT count(*) FROM pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f') DESC, c.relname"""


def load_texts(memory: Path) -> dict[str, str]:
    """Read every named query, those with words of their own for PostgreSQL in these."""
    queries, own = load_queries(memory / "queries"), memory / "postgres"
    return {**queries, **load_queries(own, "queries.sql"), **load_queries(own, "leases.sql")}


def translate(error: Exception, name: str) -> StoreError:
    """Translate an error of PostgreSQL or of the way to it into one of ours, with a one-line message."""
    first = re.sub(r"\s+", " ", str(error).strip().split("\n")[0])
    if isinstance(error, psycopg.errors.DiskFull):
        return StoreFull(f"{name}: no space left to write to; free some, nothing was accepted meanwhile")
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return StoreReadOnly(f"{name} takes no writes ({first}): `store.url` must name the primary")
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return StoreAway(f"{name} cannot be reached: {first}")
    return StoreError(f"{name}: {first}")
