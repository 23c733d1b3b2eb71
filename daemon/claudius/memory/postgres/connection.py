"""Connect to PostgreSQL, in the shape of `sqlite3.Connection` that the topics of the store use."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from psycopg.adapt import Buffer, Loader
from psycopg.pq import Format, TransactionStatus
from psycopg.rows import DictRow, dict_row
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper

from claudius.errors import StoreError
from claudius.memory.opening import StorePlace
from claudius.memory.postgres.session import CONNECT_S, OURS, check_server
from claudius.memory.ranking import stemmed
from claudius.memory.sql.connection import Cursor, Database, load_queries

T = TypeVar("T")
SILENT_S, LOCK_S = 15.0, 60.0
ON_THE_WAY_S = 1.0
"""How much longer than by the server itself an answer is waited for."""
MOMENT_S = 0.5
"""How long the event loop waits for a connection that is made anew."""
_ALIVE = {
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "tcp_user_timeout": "15000",
}
_SERVER_ALIVE = "".join(
    f"; SET tcp_{name} = {value}"
    for name, value in (
        ("keepalives_idle", 5),
        ("keepalives_interval", 5),
        ("keepalives_count", 2),
        ("user_timeout", 15000),
    )
)
"""The same for the server: a session of whom nobody hears any more ends, and lets go of its locks."""
_PLANNED = "".join(f"; SET {way} = off" for way in ("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"))
"""Rows are found by an index, as SQLite finds them. A plan of another kind suits a table that is still empty, and stays
in use until the server has counted its rows again."""
_STATEMENTS = 512
"""Statements that stay prepared on the server: more than there are queries."""
NUL, INSTEAD = "\0", "\ufffd"
"""PostgreSQL cannot hold U+0000."""
TRANSACTIONS = {
    "BEGIN": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",  # a snapshot
    "BEGIN IMMEDIATE": "BEGIN; SELECT pg_advisory_xact_lock(1131176053, current_schema()::regnamespace::oid::int), "
    "extract(epoch FROM clock_timestamp() - statement_timestamp())::float8 AS waited_s, soul_is_here()",
}
"""A transaction that writes is alone, and where the soul is: so versions, counts and the order of ids mean what they
mean with one writer, and no two batches wait for each other."""
_NAMED = re.compile(r"(--[^\n]*|'(?:[^']|'')*'|\"[^\"]*\"|::)|:([a-z_]\w*)")


@cache
def with_places(sql: str) -> bytes:
    """Return a statement with its named parameters as psycopg has them: `%(name)s` for `:name`. Pure."""
    return _NAMED.sub(lambda found: found[1] or f"%({found[2]})s", sql.replace("%", "%%")).encode()


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


def parameters(place: StorePlace, url: str) -> str:
    """Return what a lasting connection to `url` is made with. Pure."""
    words = OURS | _ALIVE | ({"password": place.password} if place.password else {})
    return psycopg.conninfo.make_conninfo(url, **words)


class TimedConnection(psycopg.Connection[DictRow]):
    """A connection that is given up if an answer does not come, whatever swallows it on the way.

    The system's own limits (messages that keep alive, `tcp_user_timeout`) see only a peer whose packets are lost, not
    a proxy that takes them and passes nothing on.
    """

    answer_s = 0.0
    """How long an answer is waited for; 0 = however long it takes."""

    def limit(self, answer_s: float) -> None:
        """Have the server, and this side a moment later, give a statement up after `answer_s` seconds; 0 = never."""
        self.execute(f"SET statement_timeout = '{answer_s}s'".encode())
        self.answer_s = answer_s and answer_s + ON_THE_WAY_S

    def wait(self, gen: Generator[Any, Any, T], *words: Any, **more: Any) -> T:
        """Wait for what a statement of psycopg waits for. Raises: psycopg.OperationalError if it did not come."""
        return super().wait(self._timed(gen) if self.answer_s else gen, *words, **more)

    def _timed(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        until_s = time.monotonic() + self.answer_s
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > until_s:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer within {self.answer_s:.0f} s")
                wanted = gen.send(ready)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]  # a generator's own


class _MadeBeside:
    """A connection that a thread makes anew, because the event loop must not wait for a server that is away."""

    def __init__(self, connect: Callable[[], TimedConnection]) -> None:
        self._connect = connect
        self._coming: Future[TimedConnection] | None = None

    def take(self) -> TimedConnection:
        """Return a new connection. Raises: psycopg.OperationalError if it is not there yet."""
        wait_s = 0.0
        if self._coming is None:
            self._coming, wait_s = Future(), MOMENT_S
            threading.Thread(target=self._make, args=(self._coming,), name="claudius-connects", daemon=True).start()
        coming = self._coming
        wait([coming], wait_s)
        if not coming.done():
            raise psycopg.OperationalError("the server does not answer")
        self._coming = None
        return coming.result()

    def close(self) -> None:
        """Close what is still to come."""
        if self._coming:
            self._coming.add_done_callback(_close)

    def _make(self, coming: Future[TimedConnection]) -> None:
        try:
            coming.set_result(self._connect())
        except (psycopg.Error, StoreError) as error:
            coming.set_exception(error)


def _close(coming: Future[TimedConnection]) -> None:
    if not coming.exception():
        coming.result().close()


class PostgresConnection:
    """One connection, which is made anew at the next transaction if it was lost. Not thread-safe."""

    Error, OperationalError, IntegrityError = psycopg.Error, psycopg.OperationalError, psycopg.IntegrityError
    total_changes = 0
    """Nothing that is counted by it is to be done here."""

    def __init__(self, place: StorePlace, silent_s: float = SILENT_S) -> None:
        """Connect. Raises: psycopg.OperationalError; StoreError if the server or its database cannot hold a soul.

        The server ends the connection if it is silent for `silent_s` seconds inside a transaction, because its locks
        keep everybody else waiting.
        """
        self._place, self._silent_s = place, silent_s
        self.url = place.url
        self._is_inside = self._writes = False
        """Whether a transaction was begun and not ended, on whatever connection; and whether it writes."""
        self.fenced: set[tuple[str, int]] = set()
        """The lanes, each with its token, that are locked in this transaction."""
        self._answer_s = 0.0
        self._beside: _MadeBeside | None = None
        self._has_new_moments = False
        self.lock_wait_s = 0.0
        """How long transactions waited for one another before they could write, by the server's clock."""
        self._made, self.made = self._connect(), 1
        """The connection; and how often it was made."""

    def limit(self, answer_s: float, *, in_loop: bool = False) -> None:
        """Give a statement up, from now on, if it is not answered within `answer_s` seconds; 0 = never.

        `in_loop`: the event loop waits for it, so a lost connection is made anew in a thread.
        """
        self._answer_s, self._beside = answer_s, _MadeBeside(self._connect) if in_loop else None
        self._made.limit(answer_s)

    @property
    def is_closed(self) -> bool:
        """Whether the connection was lost, or closed."""
        return self._made.closed

    def at_leisure(self, sql: str) -> list[tuple[str, str]]:
        """Run one statement of ours outside of any transaction, however long it takes. Raises: psycopg.Error.

        Returns what the server remarked, each with its severity and its detail.
        """
        remarks = list[tuple[str, str]]()

        def remark(said: psycopg.errors.Diagnostic) -> None:
            remarks.append((said.severity_nonlocalized or "", said.message_detail or ""))

        self._made.limit(0.0)
        self._made.add_notice_handler(remark)
        try:
            self._made.execute(sql.encode())
            return remarks
        finally:
            self._made.remove_notice_handler(remark)
            if not self._made.closed:
                self._made.limit(self._answer_s)

    def _connect(self) -> TimedConnection:
        url = parameters(self._place, self._place.url)
        made = TimedConnection.connect(url, autocommit=True, row_factory=dict_row)
        check_server(made, self._place.shown)
        made.answer_s = CONNECT_S
        silent = f"SET idle_in_transaction_session_timeout = '{self._silent_s}s'; SET lock_timeout = '{LOCK_S}s'"
        made.execute((silent + _SERVER_ALIVE + _PLANNED).encode())
        made.limit(self._answer_s)
        made.prepared_max = _STATEMENTS
        made.adapters.register_dumper(str, _Text)
        made.adapters.register_dumper(int, Int8Dumper)
        made.adapters.register_dumper(bool, _Flag)
        made.adapters.register_loader("bool", _Truth)
        made.adapters.register_loader("numeric", _Number)
        return made

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, failed or not."""
        return self._made.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)

    def execute(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = (), /) -> Cursor:
        """Run one statement. Raises: psycopg.Error."""
        if sql in TRANSACTIONS:
            return self._begin(sql)
        if sql in ENDS:
            return self._end(sql)
        if sql.startswith("SAVEPOINT"):
            self.fenced.clear()  # what follows may be undone by itself
        return self._ready(sql).execute(with_places(sql), values or None)

    def executemany(self, sql: str, rows: Iterable[Any], /) -> object:
        """Run one statement for each row of values. Raises: psycopg.Error."""
        self._ready(sql).cursor().executemany(with_places(sql), list(rows))
        return None

    def _ready(self, sql: str) -> TimedConnection:
        """Return the connection for a statement; one that was lost is made anew, but not inside a transaction."""
        if self._made.closed and not self._is_inside:
            self._made = self._beside.take() if self._beside else self._connect()
            self.made += 1
        self._has_new_moments = self._has_new_moments or sql.startswith(_MOMENTS_COME)
        return self._made

    def _begin(self, sql: str) -> Cursor:
        self._is_inside = self._has_new_moments = False
        self._writes = sql == "BEGIN IMMEDIATE"
        self.fenced.clear()
        made = self._ready(sql)
        try:
            began = made.execute(TRANSACTIONS[sql].encode(), prepare=False)
        except psycopg.Error:  # it did not begin, so nobody is going to end it
            if not made.closed:
                made.rollback()
            raise
        self._is_inside = True
        if began.nextset() and (row := began.fetchone()):
            self.lock_wait_s += row["waited_s"]
        return began

    def _end(self, sql: str) -> Cursor:
        self._is_inside = False
        has_failed = self._made.info.transaction_status == TransactionStatus.INERROR
        if sql == "COMMIT" and not has_failed and self._has_new_moments:
            self._index_moments()
        if sql == "ROLLBACK" and self._made.closed:
            return psycopg.Cursor(self._made)  # nothing is in it
        ended = self._made.execute(sql.encode(), prepare=False)
        if sql == "COMMIT" and has_failed and self._writes:
            raise psycopg.errors.InFailedSqlTransaction("nothing was written: a statement before had failed")
        return ended

    def script(self, sql: str) -> None:
        """Run many statements without values in one transaction. Raises: psycopg.Error."""
        with self._made.transaction():
            self._made.execute(sql.encode())

    def close(self) -> None:
        """Close it."""
        self._made.close()
        if self._beside:
            self._beside.close()

    def _index_moments(self) -> None:
        """Index the moments that came or changed in this transaction, as the triggers of SQLite's schema do."""
        postings = [
            (f"{stem}:{row['audience_number']}", row["id"])
            for row in self._made.execute(_NEW_MOMENTS)
            for stem in stemmed(f"{row['text']} {row['pictures']}", row["name"])
        ]
        if postings:
            stems, moments = map(list, zip(*postings, strict=True))
            self._made.execute(_INDEX, {"stems": stems, "moments": moments})
        self._made.execute(b"DELETE FROM moment_new")


ENDS = ("COMMIT", "ROLLBACK")
_MOMENTS_COME = ("INSERT INTO moment ", "UPDATE moment ", 'UPDATE "moment" ')
_NEW_MOMENTS = b"""SELECT m.id, m.text, m.pictures, m.name, m.audience_number
FROM moment_new n JOIN moment_said m ON m.id = n.moment"""
_INDEX = b"""INSERT INTO moment_index (stem, moment)
SELECT n.stem, n.moment FROM unnest(%(stems)s::text[], %(moments)s::bigint[]) AS n (stem, moment)
WHERE EXISTS (SELECT 1 FROM moment_new WHERE moment_new.moment = n.moment) ON CONFLICT DO NOTHING"""


class PostgresDatabase(Database):
    """One connection with its named queries. Not thread-safe."""

    __slots__ = ()

    def fence(self, conversation: str, token: int) -> None:
        """Have this transaction refused if the lane's token has moved, and let it move no more before its end."""
        fenced = ours(self).fenced
        if (conversation, token) not in fenced:
            fenced.add((conversation, token))
            self.run("lane_fence", conversation=conversation, token=token)

    def tables(self) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        """Return each table's name, its key columns and all its columns; those that refer to others come first."""
        rows = self.connection.execute(_TABLES).fetchall()
        return [(row["name"], tuple(row["keys"]), tuple(row["columns"])) for row in rows]


def ours(db: Database) -> PostgresConnection:
    """Return the connection of a database that was opened with one of ours."""
    assert isinstance(db.connection, PostgresConnection)  # noqa: S101 - it is opened with one
    return db.connection


_TABLES = """SELECT c.relname AS name,
    (SELECT array_agg(a.attname::text ORDER BY array_position(i.indkey::int[], a.attnum::int)) FROM pg_index i
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (i.indkey)
        WHERE i.indrelid = c.oid AND i.indisprimary) AS keys,
    (SELECT array_agg(a.attname::text ORDER BY a.attnum) FROM pg_attribute a
        WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            AND a.atttypid <> 'timestamptz'::regtype) AS columns
FROM pg_class c WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
    AND c.relname NOT IN ('release', 'moment_index', 'moment_new', 'worker', 'role', 'unread', 'changed',
        'whisper_claim', 'letting_go', 'let_go', 'rest', 'told', 'soul_push', 'soul_file')
ORDER BY (SELECT count(*) FROM pg_constraint f WHERE f.conrelid = c.oid AND f.contype = 'f') DESC, c.relname"""


def load_texts(memory: Path) -> dict[str, str]:
    """Read every named query, those with words of their own for PostgreSQL in these."""
    queries, own = load_queries(memory / "queries"), memory / "postgres"
    return {**queries, **load_queries(own, "queries.sql"), **load_queries(own, "leases.sql")}
