"""Connect to PostgreSQL, in the shape of `sqlite3.Connection` that the topics of the store use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.adapt import Buffer, Loader
from psycopg.pq import Format, TransactionStatus
from psycopg.types.numeric import Int8Dumper
from psycopg.types.string import StrDumper

from claudius.errors import StaleTurn, StoreError, StoreFull, StoreMoved, StoreReadOnly
from claudius.foreign import unquoted
from claudius.memory.opening import StorePlace
from claudius.memory.postgres.foresight import Foresight
from claudius.memory.postgres.pipeline import NamedRow, Pipeline, named
from claudius.memory.postgres.remedies import away, check_server
from claudius.memory.postgres.timed import MadeBeside, TimedConnection
from claudius.memory.postgres.translation import for_rows, translated
from claudius.memory.ranking import stemmed
from claudius.memory.sql.connection import Cursor, Database, Row, load_queries

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


class PostgresConnection:
    """One connection, which is made anew at the next transaction if it was lost. Not thread-safe.

    Inside a transaction a statement's failure may show as late as at the next answer, or at the commit. From its first
    savepoint on, each statement is waited for. The end of one that only reads is not: it costs no round trip, and what
    may have failed in it shows with the next answer.
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
        self._trips = 0
        self._ahead: dict[tuple[str, frozenset[tuple[str, Any]]], Cursor] = {}
        self._foresight = Foresight()
        self._texts: dict[str, bytes] = {}
        self.fenced: set[tuple[str, int]] = set()
        """The lanes, each with its token, that are locked in this transaction."""
        self._answer_s = 0.0
        self._beside: MadeBeside[NamedRow] | None = None
        self._has_new_moments = False
        self._new_moments: Cursor | None = None
        """The moments to be indexed, asked for ahead; None if that is to be asked."""
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

        self._leave_pipeline()
        self._made.limit(0.0)
        self._made.add_notice_handler(remark)
        try:
            self._made.execute(sql.encode())
            return remarks
        finally:
            self._made.remove_notice_handler(remark)
            if not self._made.closed:
                self._made.limit(self._answer_s)

    def _connect(self) -> TimedConnection[NamedRow]:
        url = parameters(self._place, self._place.url)
        made = TimedConnection[NamedRow].connect(url, autocommit=True, row_factory=named)
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
    def trips(self) -> int:
        """How often the server's answer was waited for since it was opened."""
        return self._trips + (self._pipeline.trips if self._pipeline else 0)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, failed or not."""
        if self._pipeline is not None:  # it looks idle while its answers are under way
            return self._is_inside
        return self._made.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)

    def execute(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = (), /) -> Cursor:
        """Run one statement that is written for SQLite. Raises: psycopg.Error."""
        if sql.startswith("BEGIN"):
            return self._begin(sql)
        self._be_connected()
        if sql in ENDS:
            self._end(sql)
            return psycopg.Cursor(self._made)  # nothing is in it, and the connection may be lost
        if sql.startswith("SAVEPOINT"):
            self._leave_pipeline()
            self.fenced.clear()
            self._new_moments = None  # what follows may be undone by itself
        if isinstance(values, dict) and (self._ahead or self._foresight.is_noting):
            key = (sql, frozenset(values.items()))
            self._foresight.note(key)
            if found := self._ahead.pop(key, None):
                return found
        answer = self._send(self._text(sql), values or None)
        if sql.startswith(_MOMENTS_COME):
            self._has_new_moments = True
            self._new_moments = self._send(_NEW_MOMENTS, None) if self._pipeline is not None else None
        if self._pipeline is not None and not self._is_inside:
            self._pipeline.wait()
        return answer

    def together(self, asked: Iterable[tuple[str, Mapping[str, Any]]]) -> list[Cursor]:
        """Ask several queries in one round trip, outside of a transaction; none sees less than the one before it.

        Raises: psycopg.Error.
        """
        self._be_connected()
        self._enter_pipeline()
        return [self._send(self._text(sql), dict(values)) for sql, values in asked]

    def ahead(self, *asked: tuple[str, Mapping[str, Any]]) -> None:
        """Ask what is going to be asked in this transaction, all of it at once; each answer serves once."""
        for sql, values in asked:
            self._ahead[sql, frozenset(values.items())] = self._send(self._text(sql), dict(values))

    def foresee(self, kind: str, *names: str) -> None:
        """Ask ahead what reads of this kind asked lately, about these names instead of theirs."""
        self.ahead(*((sql, dict(values)) for sql, values in self._foresight.begin(kind, names)))

    def _begin(self, sql: str) -> Cursor:
        self._is_inside = False  # whatever was lost
        self._be_connected()
        self._has_new_moments, self._is_inside, self.was_undone = False, True, False
        self._new_moments = None
        self._ahead.clear()
        self.fenced.clear()
        try:
            self._enter_pipeline()
            for text in self._text(sql).split(b";"):
                began = self._send(text, None)
        except psycopg.Error:  # it did not begin, so nobody is going to end it
            self._is_inside = False
            self._undo()
            raise
        self._locked = began if sql == "BEGIN IMMEDIATE" else None
        return began

    def _end(self, sql: str) -> None:
        self._is_inside = False
        self._ahead.clear()
        self._foresight.end()
        try:
            if sql == "COMMIT" and self._has_new_moments:
                self._index_moments()
            self._send(sql.encode(), None)
            if self._pipeline is not None and self._locked is None:
                self._pipeline.go_on()
                return
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

    def _be_connected(self) -> None:
        if self._made.closed and not self._is_inside:
            with suppress(psycopg.Error):
                self._leave_pipeline()
            self._made = self._beside.take() if self._beside else self._connect()
            self.made += 1

    def _enter_pipeline(self) -> None:
        if self._pipeline is None and psycopg.Pipeline.is_supported():
            self._pipeline = Pipeline(self._made, self._failed)

    def _failed(self) -> None:
        if self._is_inside:
            return  # whoever began the transaction ends it
        self._undo()
        if not self._made.closed:
            try:  # psycopg may believe in statements whose preparation has failed
                self._made.execute(b"DEALLOCATE ALL", prepare=False)
            except psycopg.Error:
                self._made.close()

    def _leave_pipeline(self) -> None:
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            try:
                pipeline.end()
            finally:
                self._trips += pipeline.trips

    def _send(self, text: bytes, values: Any) -> Cursor:
        if self._pipeline is not None:
            return self._pipeline.execute(text, values)
        self._trips += 1
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
                self._trips += 1
            self._made.cursor().executemany(self._text(sql), left)
        return None

    def script(self, sql: str) -> None:
        """Run many statements without values in one transaction. Raises: psycopg.Error."""
        self._leave_pipeline()
        with self._made.transaction():
            self._made.execute(sql.encode())

    def close(self) -> None:
        """Close it."""
        with suppress(psycopg.Error):
            self._leave_pipeline()
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
            for row in self._new_moments or self._send(_NEW_MOMENTS, None)
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
WHERE EXISTS (SELECT 1 FROM moment_new WHERE moment_new.moment = n.moment) ON CONFLICT DO NOTHING"""


class PostgresDatabase(Database):
    """One connection with its named queries. Not thread-safe."""

    __slots__ = ()
    is_far = True

    def late(self, query: str, /, **values: Any) -> Callable[[], list[Row]]:
        return self.run(query, **values).fetchall

    def together(self, **asked: Mapping[str, Any]) -> list[list[Row]]:
        cursors = self._own.together((self.queries[query], values) for query, values in asked.items())
        return [cursor.fetchall() for cursor in cursors]

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


def translate(error: Exception, name: str) -> StoreError:
    """Translate an error of PostgreSQL or of the way to it into one of ours, with a one-line message.

    The server's own words show the row that it refuses, so that none of them is in it.
    """
    if isinstance(error, psycopg.Error) and error.sqlstate == LOST:
        return StaleTurn()
    if isinstance(error, psycopg.Error) and error.sqlstate == MOVED:
        return StoreMoved(f"{name}: {MOVED_AWAY}")
    if isinstance(error, psycopg.errors.DiskFull):
        return StoreFull(f"{name}: no space left to write to; free some, nothing was accepted meanwhile")
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return StoreReadOnly(f"{name} takes no writes ({unquoted(error)}): `store.url` must name the primary")
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return away(name, error)
    return StoreError(f"{name}: {unquoted(error)}")
