"""Connect to PostgreSQL, in the shape of `sqlite3.Connection` that the topics of the store use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Loader
from psycopg.pq import Format, TransactionStatus
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper

from claudius.errors import StaleTurn, StoreError, StoreFull, StoreMoved, StoreReadOnly
from claudius.memory.opening import StorePlace
from claudius.memory.postgres.foresight import Foresight
from claudius.memory.postgres.remedies import away, check_server
from claudius.memory.postgres.timed import MadeBeside, TimedConnection
from claudius.memory.postgres.translation import for_rows, translated
from claudius.memory.sql.connection import Cursor, Database, load_queries
from claudius.memory.stemming import stemmed

CONNECT_S = 10
SILENT_S, LOCK_S = 15.0, 60.0
OURS = {"application_name": "claudius", "connect_timeout": str(CONNECT_S)}
_ALIVE = {
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "tcp_user_timeout": "15000",
}
_VALUES = 50
"""Values in one statement for several rows: the driver reads a text with more of them anew each time."""
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
    result = cursor.pgresult
    places = _places(tuple([result.fname(n) for n in range(result.nfields)]) if result else ())
    return lambda values: NamedRow(places, values)


@cache
def _places(names: tuple[bytes, ...]) -> Mapping[str, int]:
    return {name.decode(): place for place, name in enumerate(names)}


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


class Answer:
    """The rows of a statement that was sent inside a transaction; they are waited for when they are asked for."""

    __slots__ = ("_cursor", "_number", "_pipeline")

    def __init__(self, pipeline: Pipeline, cursor: psycopg.Cursor[NamedRow]) -> None:
        pipeline.sent += 1
        self._pipeline, self._cursor, self._number = pipeline, cursor, pipeline.sent

    def _waited(self) -> psycopg.Cursor[NamedRow]:
        if self._number > self._pipeline.answered:
            self._pipeline.wait()
        return self._cursor

    @property
    def description(self) -> Sequence[Any] | None:
        """The columns of the rows, as PEP 249 has them."""
        return self._waited().description

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""
        return self._waited().rowcount

    def fetchone(self) -> NamedRow | None:
        """Return the next row; None if there is none."""
        return self._waited().fetchone()

    def fetchall(self) -> list[NamedRow]:
        """Return the rows that are left."""
        return self._waited().fetchall()

    def fetchmany(self, size: int, /) -> list[NamedRow]:
        """Return up to `size` of the rows that are left."""
        return self._waited().fetchmany(size)

    def __iter__(self) -> Iterator[NamedRow]:
        return iter(self._waited())


class Pipeline:
    """Sends the statements of one transaction without waiting for the answers that nobody asked for yet."""

    def __init__(self, made: TimedConnection[NamedRow]) -> None:
        """Begin on a connection that is in no transaction."""
        self.sent = self.answered = self.trips = 0
        """Statements sent; of these, those whose answer is here; and how often one was waited for."""
        self._made, self._open = made, ExitStack()
        self._pipeline = self._open.enter_context(made.pipeline())

    def wait(self) -> None:
        """Wait for the answers to everything that was sent so far. Raises: psycopg.Error, of the first that failed."""
        self.answered = self.sent
        self.trips += 1
        self._pipeline.sync()

    def execute(self, text: bytes, values: Any = None) -> Answer:
        """Send a statement."""
        return Answer(self, self._made.execute(text, values))

    def end(self) -> None:
        """Wait for whatever is not answered. Raises: psycopg.Error, likewise."""
        self.answered = self.sent
        self.trips += 1
        self._open.close()


class PostgresConnection:
    """One connection, which is made anew at the next transaction if it was lost. Not thread-safe.

    Inside a transaction a statement's failure may show as late as at the next answer, or at the commit. From its first
    savepoint on, each statement is waited for.
    """

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
        self._is_inside = False
        self._pipeline: Pipeline | None = None
        self.was_undone = False
        """Whether the last COMMIT undid everything, because a statement before it had failed."""
        self.trips = 0
        """How often the server's answer was waited for since it was opened."""
        self._ahead: dict[tuple[str, frozenset[tuple[str, Any]]], Cursor] = {}
        self._foresight = Foresight()
        self._texts: dict[str, bytes] = {}
        self.fenced: set[tuple[str, int]] = set()
        """The lanes, each with its token, that are locked in this transaction."""
        self._answer_s = 0.0
        self._beside: MadeBeside[NamedRow] | None = None
        self._has_new_moments = False
        self.lock_wait_s = 0.0
        """How long transactions waited for one another before they could write, by the server's clock."""
        self._locked: Cursor | None = None
        self._made, self.made = self._connect(), 1
        """The connection; and how often it was made."""

    def limit(self, answer_s: float, *, in_loop: bool = False) -> None:
        """Give a statement up, from now on, if it is not answered within `answer_s` seconds; 0 = never.

        `in_loop`: the event loop waits for it, so a lost connection is made anew in a thread.
        """
        self._answer_s, self._beside = answer_s, MadeBeside(self._connect) if in_loop else None
        self._made.limit(answer_s)

    def at_leisure(self, sql: str) -> None:
        """Run one statement of ours outside of any transaction, however long it takes. Raises: psycopg.Error."""
        self._made.limit(0.0)
        try:
            self._made.execute(sql.encode())
        finally:
            if not self._made.closed:
                self._made.limit(self._answer_s)

    def _connect(self) -> TimedConnection[NamedRow]:
        url = parameters(self._place, self._place.url)
        made = TimedConnection[NamedRow].connect(url, autocommit=True, row_factory=_named)
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
        status = self._made.info.transaction_status  # a pipeline that has heard of a failure at once looks idle
        return self._pipeline is not None or status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)

    def execute(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = (), /) -> Cursor:
        """Run one statement that is written for SQLite. Raises: psycopg.Error."""
        begins = sql.startswith("BEGIN")
        if self._made.closed and (begins or not self._is_inside):
            self._made = self._beside.take() if self._beside else self._connect()
            self.made += 1
        if begins:
            return self._begin(sql)
        if sql in ENDS:
            self._end(sql)
            return psycopg.Cursor(self._made)  # nothing is in it, and the connection may be lost
        if sql.startswith("SAVEPOINT"):
            self._leave_pipeline()
            self.fenced.clear()
        elif sql.startswith(_MOMENTS_COME):
            self._has_new_moments = True
        if isinstance(values, dict) and (self._ahead or self._foresight.is_noting):
            key = (sql, frozenset(values.items()))
            self._foresight.note(key)
            if found := self._ahead.pop(key, None):
                return found
        return self._send(self._text(sql), values or None)

    def ahead(self, *asked: tuple[str, Mapping[str, Any]]) -> None:
        """Ask what is going to be asked in this transaction, all of it at once; each answer serves once."""
        for sql, values in asked:
            self._ahead[sql, frozenset(values.items())] = self._send(self._text(sql), dict(values))

    def foresee(self, kind: str, *names: str) -> None:
        """Ask ahead what reads of this kind asked lately, about these names instead of theirs."""
        self.ahead(*((sql, dict(values)) for sql, values in self._foresight.begin(kind, names)))

    def _begin(self, sql: str) -> Cursor:
        self._has_new_moments, self._is_inside, self.was_undone = False, True, False
        self._ahead.clear()
        self.fenced.clear()
        try:
            if not psycopg.Pipeline.is_supported():
                return self._send(self._text(sql), None)
            pipeline = self._pipeline = Pipeline(self._made)
            for text in self._text(sql).split(b";"):
                began = pipeline.execute(text)
        except psycopg.Error:  # it did not begin, so nobody is going to end it
            self._is_inside = False
            self._undo()
            raise
        self._locked = began if sql == "BEGIN IMMEDIATE" else None
        return began

    def _end(self, sql: str) -> None:
        self._is_inside = False
        self._foresight.end()
        try:
            if sql == "COMMIT" and self._has_new_moments:
                self._index_moments()
            self._send(sql.encode(), None)
            self._leave_pipeline()
            if self._locked and (row := self._locked.fetchone()):
                self.lock_wait_s += row["waited_s"]
        except psycopg.Error:
            self._undo()
            if sql == "COMMIT":
                raise

    def _undo(self) -> None:
        """End a transaction in which a statement has failed, as far as the server can be reached."""
        with suppress(psycopg.Error):
            self._leave_pipeline()
        if self._made.closed:
            return
        if self.in_transaction:
            self.was_undone = True
            try:
                self._made.execute(b"ROLLBACK", prepare=False)
            except psycopg.Error:  # psycopg may believe in a statement whose preparation was undone: made anew then
                self._made.close()

    def _leave_pipeline(self) -> None:
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            try:
                pipeline.end()
            finally:
                self.trips += pipeline.trips

    def _send(self, text: bytes, values: Any) -> Cursor:
        if self._pipeline is not None:
            return self._pipeline.execute(text, values)
        self.trips += 1
        return self._made.execute(text, values)

    def executemany(self, sql: str, rows: Iterable[Any], /) -> object:
        """Run one statement for each row of values, in one round trip. Raises: psycopg.Error.

        An INSERT takes many rows at once; no two of them may have the same key.
        """
        left = list(rows)
        while left:
            some = left[: max(1, _VALUES // len(left[0]))]
            if not (text := for_rows(sql, len(some))):
                break
            self.execute(text, {f"{name}_{n}": value for n, row in enumerate(some) for name, value in row.items()})
            del left[: len(some)]
        if left:
            if self._pipeline is None:
                self.trips += 1
            self._made.cursor().executemany(self._text(sql), left)
        return None

    def script(self, sql: str) -> None:
        """Run many statements without values in one transaction. Raises: psycopg.Error."""
        with self._made.transaction():
            self._made.execute(sql.encode())

    def close(self) -> None:
        """Close it."""
        self._made.close()
        if self._beside:
            self._beside.close()

    def _text(self, sql: str) -> bytes:
        text = self._texts.get(sql)
        if text is None:
            text = self._texts[sql] = translated(sql).encode()
        return text

    def _index_moments(self) -> None:
        """Index the moments that came or changed in this transaction, as the triggers of SQLite's schema do."""
        self._has_new_moments = False
        postings = [
            (f"{stem}:{row['audience_number']}", row["id"])
            for row in self._send(_NEW_MOMENTS, None)
            for stem in stemmed(f"{row['text']} {row['pictures']}", row["name"])
        ]
        if postings:
            stems, moments = map(list, zip(*postings, strict=True))
            self._send(_INDEX, {"stems": stems, "moments": moments})
        self._send(b"DELETE FROM moment_new", None)


LOST, MOVED = "CL001", "CL002"
"""What `lane_held` and `soul_is_here` raise on the server: the lane's token has moved; the soul is not there."""
MOVED_AWAY = "a move has not finished, or the soul has moved away: `claudius doctor` says what to do"
ENDS = ("COMMIT", "ROLLBACK")
_MOMENTS_COME = ("INSERT INTO moment ", "UPDATE moment ", 'UPDATE "moment" ')
_NEW_MOMENTS = b"""SELECT m.id, m.text, m.pictures, m.name, m.audience_number
FROM moment_new n JOIN moment_said m ON m.id = n.moment"""
_INDEX = b"""INSERT INTO moment_index (stem, moment)
SELECT n.stem, n.moment FROM unnest(%(stems)s::text[], %(moments)s::bigint[]) AS n (stem, moment)
ON CONFLICT DO NOTHING"""


class PostgresDatabase(Database):
    """One connection with its named queries. Not thread-safe."""

    __slots__ = ()
    is_far = True

    def ahead(self, **asked: Mapping[str, Any]) -> None:
        self._own.ahead(*((self.queries[query], values) for query, values in asked.items()))

    def foresee(self, kind: str, *names: str) -> None:
        self._own.foresee(kind, *names)

    def fence(self, conversation: str, token: int) -> None:
        """Have this transaction refused if the lane's token has moved, and let it move no more before its end."""
        if (conversation, token) not in self._own.fenced:
            self._own.fenced.add((conversation, token))
            self.run("lane_fence", conversation=conversation, token=token)

    @property
    def _own(self) -> PostgresConnection:
        assert isinstance(self.connection, PostgresConnection)  # noqa: S101 - it is opened with one
        return self.connection

    def tables(self) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        """Return each table's name, its key columns and all its columns; those that refer to others come first."""
        rows = self.connection.execute(_TABLES).fetchall()
        return [(row["name"], tuple(row["keys"]), tuple(row["columns"])) for row in rows]


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


def translate(error: Exception, name: str) -> StoreError:
    """Translate an error of PostgreSQL or of the way to it into one of ours, with a one-line message."""
    first = re.sub(r"\s+", " ", str(error).strip().split("\n")[0])
    if isinstance(error, psycopg.Error) and error.sqlstate == LOST:
        return StaleTurn(first)
    if isinstance(error, psycopg.Error) and error.sqlstate == MOVED:
        return StoreMoved(f"{name}: {MOVED_AWAY}")
    if isinstance(error, psycopg.errors.DiskFull):
        return StoreFull(f"{name}: no space left to write to; free some, nothing was accepted meanwhile")
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return StoreReadOnly(f"{name} takes no writes ({first}): `store.url` must name the primary")
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return away(name, str(error))
    return StoreError(f"{name}: {first}")
