"""`PostgresStore`: the store in PostgreSQL, with one writer thread and one reader in the event loop's thread.

Its topics are those of every store, but for what several processes share: rates, early changes and codes are rows, and
a lane's holder is refused once the lane's token has moved. `PostgresRecords` is what commands read.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from copy import copy
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import psycopg
from msgspec.structs import replace

import claudius
from claudius.errors import OverBudget, StaleTurn
from claudius.home import shipped
from claudius.intent import Call, Intent, Utterance
from claudius.memory.calls import CallStore
from claudius.memory.database import (
    Core,
    Database,
    Row,
    StorePlace,
    Writer,
    dump,
    dump_valid,
    in_thread,
    load_queries,
    stamp,
)
from claudius.memory.erasing import Probes
from claudius.memory.erasure import Beyond, ErasureStore
from claudius.memory.inbox import (
    NO_SIGNS,
    SHUT_FOR_NOW,
    UNLIMITED,
    Amended,
    InboxStore,
    Pending,
    RateLimits,
    RateVerdict,
    accept_one,
    amend,
    exceeds,
    in_force,
    over,
    perception_of,
)
from claudius.memory.leases import LeaseStore, LeaseTally, LeaseTimes
from claudius.memory.outbox import OutboxStore, say_held, settle
from claudius.memory.people import Mode, PeopleStore
from claudius.memory.postgres import moving
from claudius.memory.postgres.connection import PostgresConnection, PostgresDatabase, load_texts, ours
from claudius.memory.postgres.leases import AHEAD_AT_MOST, LaneCore, PostgresLeases, newest_soul
from claudius.memory.postgres.schema import check_identity, is_empty, known, prepare
from claudius.memory.postgres.session import translate
from claudius.memory.recall import RecallLimits
from claudius.memory.records import Records
from claudius.memory.search import ROWS, Needles, plain
from claudius.memory.sqlite.schema import empty_database, load_migrations
from claudius.memory.store import Store, Unfinished
from claudius.memory.turns import SpendingCap, TurnStore, spent_since
from claudius.memory.whispers import WhisperStore
from claudius.perception import Perception, amended_key
from claudius.recollection import Recollection
from claudius.soul.source import PushedSoul

log = logging.getLogger(__name__)
MOST_SHUT = 1000
"""Who is refused without asking the server."""
NO_LANES = {"held": 0, "ready": 0, "oldest_wait_s": 0.0, "paused": False}


class PostgresInbox(InboxStore):
    """What was heard by any process of the soul."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._shut_until_s: dict[tuple[str, str], float] = {}
        """By person and conversation, by this process's clock. It only saves writing for one who asks too often."""

    async def accept(
        self,
        perceptions: Sequence[Perception],
        now: datetime,
        limits: RateLimits = UNLIMITED,
        signs: Mapping[str, Utterance] = NO_SIGNS,
    ) -> tuple[bool, ...]:
        at, is_counted = stamp(now), limits.person_per_minute is not None
        places = [(one.person, one.conversation) for one in perceptions]
        if is_counted and any(time.monotonic() < self._shut_until_s.get(place, 0.0) for place in places):
            raise OverBudget(SHUT_FOR_NOW)
        signed = [(one, signs.get(one.key)) for one in perceptions]
        found = await self._core.write(lambda db: [_accept(db, one, at, limits, sign) for one, sign in signed])
        for place, (verdict, shut_s) in zip(places, found, strict=True):
            if verdict is RateVerdict.SHUT:
                if len(self._shut_until_s) >= MOST_SHUT:
                    self._shut_until_s.clear()
                self._shut_until_s[place] = time.monotonic() + shut_s
                raise OverBudget(SHUT_FOR_NOW)
        return tuple(verdict in (RateVerdict.WITHIN, RateVerdict.OVER_NOW) for verdict, _ in found)

    async def amend(self, perception: Perception, now: datetime) -> Amended:
        def write(db: Database) -> Amended:
            amended = amend(db, perception, stamp(now))
            if amended.is_early:
                _wait(db, perception)
            return amended

        return await self._amend(write)


def _accept(
    db: Database, heard: Perception, at: str, limits: RateLimits, sign: Utterance | None
) -> tuple[RateVerdict | None, float]:
    """Store one perception; None if it is known or not to be kept.

    What the rates refuse is deleted again: that is rare. Returns for how many seconds more nothing of its speaker is
    heard, too.
    """
    by = {"person": heard.person, "conversation": heard.conversation}
    is_counted = limits.person_per_minute is not None or (heard.is_bot and limits.bot_turns is not None)
    if not accept_one(db, heard, at):
        return None, 0.0
    if is_counted:
        counts = db.all("rates", **by)[0]
        verdict, shuts = _judge(counts, limits, is_bot=heard.is_bot)
        if verdict in (RateVerdict.SHUT, RateVerdict.DROPPED):
            db.run("not_heard", key=heard.key)
            return verdict, counts["shut_s"]
        if verdict is RateVerdict.OVER_NOW:
            db.run("heard_over_budget", key=heard.key)
        db.run("rate_counts", **by, shuts=shuts)
        db.run("rate_past", person=heard.person)
    if payload := db.value("early", message=heard.key):
        amend(db, perception_of(payload), at)
        db.run("early_applied", message=heard.key)
    say_held(db, sign, at)
    return RateVerdict.WITHIN, 0.0


def _judge(before: Row, limits: RateLimits, *, is_bot: bool) -> tuple[RateVerdict, str]:
    """Judge one message more than these; return also whose rate it is the first over. Pure."""
    if is_bot and exceeds(before["turns"] + 1, limits.bot_turns):
        return RateVerdict.DROPPED, ""
    if limits.person_per_minute is None:
        return RateVerdict.WITHIN, ""
    if before["shut_s"] > 0:
        return RateVerdict.SHUT, ""
    whose = over(limits, *(before[one] + 1 for one in ("in_minute", "in_day", "in_hour")))
    return (RateVerdict.OVER_NOW if whose else RateVerdict.WITHIN), whose


def _wait(db: Database, change: Perception) -> None:
    """Keep a change until its message is accepted."""
    message = amended_key(change)
    kept = db.value("early", message=message)
    holds = in_force(perception_of(kept) if kept else None, change)
    by = {"person": holds.person, "conversation": holds.conversation}
    db.run("early_past")
    db.run("early_waits", message=message, payload=dump_valid(holds), **by)


class PostgresPeople(PeopleStore):
    """People as every process sees them now: nothing of who may talk is kept in memory."""

    def access(self, person: str, place: str) -> tuple[bool, Mode | None]:
        (row,) = self._core.look("access", person=person, place=place)
        return bool(row["paired"]), row["mode"]


class LaneInbox(PostgresInbox):
    """The inbox as the holder of one lane sees it, who notes what turns it has begun."""

    def __init__(self, core: LaneCore) -> None:
        super().__init__(core)
        self._taken = core.held.taken

    def take(self, seq: int, inputs: Mapping[str, str], now: datetime) -> None:
        super().take(seq, inputs, now)
        self._taken.add(seq)

    async def meet(self, pending: Pending) -> None:
        await super().meet(pending)
        self._taken.update(one.seq for one in (pending, *pending.further))


class LaneTurns(TurnStore):
    """What a turn recalls and commits as the holder of one lane: no other turn has its whispers."""

    def __init__(self, core: LaneCore, open_turns: TurnStore) -> None:
        """Share the claims and the cache of the process's own turns."""
        super().__init__(core)
        self.claims, self.shelf = open_turns.claims, open_turns.shelf
        self._lane, self._leases, self._open_core = core.lane, core.leases, core.open_core

    async def recall(self, pending: Pending, *, nonce: str, now: datetime, limits: RecallLimits) -> Recollection:
        known = await super().recall(pending, nonce=nonce, now=now, limits=limits)
        if known.last_at and now < known.last_at < now + AHEAD_AT_MOST:  # another process's clock was ahead
            known = replace(known, now=known.last_at)
        if not known.intuitions:
            return known
        wanted = {"turn": pending.turn, "whispers": dump([one.whisper for one in known.intuitions]), **self._lane}
        claimed = await self._core.write(lambda db: db.values("whispers_claim", **wanted))
        return replace(known, intuitions=tuple(one for one in known.intuitions if one.whisper in claimed))

    def release(self, turn: str) -> None:
        if turn in self.claims.held.values():
            self._core.writer.later(lambda db: db.run("whispers_let_go", turn=turn))
        super().release(turn)

    async def commit(self, intent: Intent) -> Intent:
        intent = await super().commit(intent)
        if self._leases.is_doubtful:
            await self._core.write(lambda db: db.run("outbox_doubted", turn=intent.turn))
        return intent

    async def reserve(self, conversation: str, person: str, caps: Sequence[SpendingCap]) -> bool:
        def write(db: Database) -> bool:
            db.run("booking_ends", conversation=conversation)
            is_open = all(spent_since(db, cap.since, cap.person, cap.channel) < cap.limit_usd for cap in caps)
            if is_open:
                db.run("booking_begins", **self._lane, person=person)
            return is_open

        return await self._core.write(write)

    def call_failed(self, conversation: str) -> None:  # noqa: ARG002 - the lane's
        self._open_core.writer.later(lambda db: db.run("booking_fails", **self._lane))

    def keep_call(self, turn: str, call: Call) -> None:
        super().keep_call(turn, call)
        self._core.writer.later(lambda db: db.run("booking_ends", conversation=self._lane["conversation"]), turn)


class LaneOutbox(OutboxStore):
    """The outbox as the holder of one lane writes to it."""

    def __init__(self, core: LaneCore) -> None:
        """Refuse every write once the lane is lost, but one: what was seen to be visible is believed."""
        super().__init__(core)
        self._open = core.open_core

    async def attempt(self, key: str) -> bool:
        boot = self._open.boot

        def take(db: Database) -> bool:
            if db.change("attempt", key=key, boot=boot):
                return True
            found = db.one("part_state", key=key)
            if found and (found["state"], found["boot"]) != ("taken", boot):
                raise StaleTurn(key)  # whoever had the lane meanwhile has sent it, or sends it
            return found is not None

        return await self._core.write(take)

    async def settle(self, key: str, receipt: str, now: datetime, *, is_last: bool = False) -> str:
        boot = self._open.boot
        try:
            settled = await self._core.write(lambda db: settle(db, key, receipt, now, boot, goes_on=not is_last))
        except StaleTurn:
            settled = await self._open.write(lambda db: settle(db, key, receipt, now, boot, goes_on=False))
        if settled.rowcount:
            return receipt
        kept = self._open.look("receipt_of", key=key)
        return str(kept[0]["receipt"] or receipt) if kept else ""


WAITS_S = (0.0, 1.0, 2.0, 4.0, 8.0)
"""How long to wait before each attempt to rewrite what others used during the one before."""
_LSN = "SELECT pg_current_wal_lsn()::text AS lsn"
_EVERY_TABLE = """SELECT quote_ident(relname) AS name FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY relname"""
_MAY_REWRITE_STATISTICS = """SELECT pg_has_role(datdba, 'USAGE') AS may FROM pg_database
WHERE datname = current_database()"""
STATISTICS = "pg_catalog.pg_statistic"
"""Holds common values of every column. It is rewritten last: each table's values are counted anew with it."""
_SERVERS = "replicas, physical backups and the write-ahead log of the database server"
_OTHER_HOMES = "copies of the database in homes of mine on other machines, if there are any"
_NO_STATISTICS = "the database server's statistics of common values, which only the owner of the database can rewrite"
_LOCK = "SET lock_timeout = '2s'"
"""Whoever comes meanwhile waits behind a statement that waits for its table."""
_NONE = re.compile(r"^\D*\b0\b")
"""The first number in a detail, whatever its language."""


class PostgresErasure(ErasureStore):
    """Everything that is kept of one person, found and removed at once; the files go when they are rewritten.

    A row that was deleted or changed stays in the table's file, its indexes and the server's statistics until something
    else is written there. `VACUUM (FULL)` writes a table and its indexes into new files; each is closed to turns then.
    """

    async def rows_with(self, probes: Probes) -> Sequence[Mapping[str, Any]]:
        with self._core.beside() as db:
            return await in_thread(_rows_with, db, Needles(probes.ids, probes.folders, probes.excerpts))

    async def _beside_the_topics(self, ids: Sequence[str]) -> int:
        await self._core.alone(_drop_beside)
        return await self._core.write(lambda db: db.change("lanes_of_commands_gone", ids=dump(list(ids))))

    async def beyond(self) -> Sequence[Beyond]:
        def look(db: Database) -> tuple[str, bool]:
            lsn, may = (db.connection.execute(sql).fetchone() for sql in (_LSN, _MAY_REWRITE_STATISTICS))
            return lsn["lsn"], bool(may["may"])

        lsn, may = await self._core.alone(look)
        found = [Beyond(_SERVERS, f"{_SERVERS} before {lsn}"), Beyond(_OTHER_HOMES)]
        return found if may else [*found, Beyond(_NO_STATISTICS)]

    async def overwrite_later(self) -> None:
        mark = secrets.token_hex(8)
        await self._core.write(lambda db: db.run("overwrite_later", mark=mark))

    async def is_to_be_overwritten(self) -> bool:
        return bool(self._core.look("overwriting"))

    async def overwrite(self) -> Sequence[str]:
        mark = next((row["overwriting"] for row in self._core.look("overwriting")), "")
        left: Sequence[str] | None = None
        for wait_s in WAITS_S:
            await asyncio.sleep(wait_s)
            with self._core.beside() as db:
                left = await in_thread(_rewritten, ours(db), left)
            if not left:  # an erasure that began meanwhile has set another mark
                await self._core.write(lambda db: db.run("overwritten", mark=mark))
                return ()
        log.warning("some tables were in use all the while", extra={"tables": left})
        return left or ()


def _drop_beside(db: Database) -> None:
    """Delete what restores have set aside: it holds everybody whom the store held then."""
    for row in db.connection.execute(moving.LEFT_BESIDE).fetchall():
        db.connection.execute(f'DROP SCHEMA "{row["name"]}" CASCADE')


def _rewritten(connection: PostgresConnection, tables: Sequence[str] | None) -> list[str]:
    """Rewrite these tables (None = every one), one after the other; return those that still hold what was deleted."""
    connection.at_leisure(_LOCK)
    if tables is None:
        tables = [row["name"] for row in connection.execute(_EVERY_TABLE).fetchall()]
        if connection.execute(_MAY_REWRITE_STATISTICS).fetchone()["may"]:
            tables.append(STATISTICS)
    return [one for one in tables if not _is_rewritten(connection, one)]


def _is_rewritten(connection: PostgresConnection, table: str) -> bool:
    """Rewrite a table; False if somebody uses it, or may still read what was deleted from it."""
    try:
        remarks = connection.at_leisure(f"VACUUM (FULL, ANALYZE, VERBOSE) {table}")
    except psycopg.errors.LockNotAvailable:
        return False
    except psycopg.Error as error:
        if connection.is_closed:
            raise
        log.warning("a table was not rewritten", extra={"table": table, "error": error.sqlstate})
        return False
    # a warning: the table is not ours; a detail begins with the number of deleted rows that had to be copied, too
    details = (detail for severity, detail in remarks if severity == "INFO" and detail)
    return not any(severity == "WARNING" for severity, _ in remarks) and all(_NONE.search(one) for one in details)


def _rows_with(db: Database, needles: Needles) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for table, key, columns in db.tables():
        names = ", ".join(f'"{one}"' for one in dict.fromkeys((*key, *columns)))
        cursor = db.connection.execute(f'SELECT {names} FROM "{table}"')  # noqa: S608 - names of our own schema
        while rows := cursor.fetchmany(ROWS):
            for row in rows:
                held = [one for one in columns if needles.are_in(plain(row[one]) or b"")]
                if held:
                    found.append({"table": table, "key": {one: row[one] for one in key}, "columns": held})
    return found


class PostgresWriter(Writer):
    """A writer that counts what `/metrics` shows."""

    tally: LeaseTally | None = None

    def _try(self, batch: list[Any]) -> None:
        super()._try(batch)
        if self.tally:
            self.tally.batches += 1
            self.tally.jobs += len(batch)
            self.tally.lock_wait_s = ours(self._database).lock_wait_s


_ENDS = ("turns_given_back", "lanes_given_back", "roles_left", "worker_ends")
LEAST_SILENT_S = 5.0
"""A shorter silence inside a transaction is that of a busy machine."""


def _lives(pid: int) -> bool:
    """Return whether another process of this machine has this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return pid != os.getpid()


class PostgresStore(Store):
    """The store of a process that takes turns, or of an owner's edit beside it. `open` or `start`, then `close` it."""

    writer: ClassVar[type[Writer]] = PostgresWriter

    def __init__(  # noqa: PLR0913 - all but one have a default
        self,
        place: StorePlace,
        *,
        memory_files: Path = Path(),
        memory: Path | None = None,
        linger_s: float = 0.2,
        relieve: Callable[[], bool] = lambda: False,
        times: LeaseTimes | None = None,
        clock: Callable[[], float] = time.monotonic,
        roles: str = "all",
        home: str = "",
    ) -> None:
        """Set the place; nothing is opened yet.

        `memory_files` is the directory of the archive; `memory`, `linger_s` and `relieve` are those of `SqliteStore`;
        `clock` is monotonic, in seconds; `roles`: what it may do, `home`: the path of its home, for those who look.
        """
        name, times = place.shown, times or LeaseTimes()
        self._silent_s = max(LEAST_SILENT_S, times.lease_s / 4)
        self._connect = partial(PostgresConnection, place, self._silent_s)
        super().__init__(Core(name, self._connect, partial(translate, name=name)))
        self.inbox, self.people = PostgresInbox(self.core), PostgresPeople(self.core)
        self.erasure = PostgresErasure(self.core)
        self._memory_files, self._memory = memory_files, memory or shipped("memory")
        self.schema = known(self._memory)
        """The newest schema that this release knows."""
        leases = partial(PostgresLeases, self.core, place, times, self.schema, clock=clock, home=home)
        self.leases: LeaseStore = leases(of_lane=self.of_lane, keep_nothing=self.turns.shelf.clear)
        self._lease_s, self._home = times.lease_s, home
        self.place, self._roles, self._configuration = place, roles, times.configuration
        self._linger_s = linger_s
        self._relieve = relieve

    async def open(self) -> None:
        """Connect; create the tables if there are none. Raises: StoreCorrupt, StoreTooNew, StoreError."""
        core = self.core
        if core.is_open:
            return
        queries = load_texts(self._memory)
        with ExitStack() as undo:
            try:
                writes = undo.enter_context(closing(self._connect()))
                prepare(writes, self._memory, core.name)
                reads = undo.enter_context(closing(self._connect()))
                writes.limit(2 * self._silent_s)  # it may have to wait for one that fell silent
                reads.limit(self._silent_s, in_loop=True)
            except psycopg.Error as error:
                raise core.translate(error) from error
            undo.pop_all()
        writer, reader = PostgresDatabase(writes, queries), PostgresDatabase(reads, queries)
        counting = self.writer(writer, core.translate, self._linger_s, relieve=self._relieve)
        if isinstance(counting, PostgresWriter):
            counting.tally = self.leases.tally
        core.open(counting, reader)

    async def start(self, boot: str, now: datetime) -> Unfinished:
        """Begin as one worker of perhaps many: what stands under a lease that is not past stays as it is."""
        await self.open()
        waiting = await super().start(boot, now)
        here = {"worker": boot, "host": socket.gethostname(), "home": self._home}

        def begin(db: Database) -> bool:
            set_up = {"schema": self.schema, "configuration": self._configuration, "wall_s": time.time()}
            set_up |= {"soul": self.leases.souls.in_force}
            set_up |= {"pid": os.getpid(), "version": claudius.__version__, "roles": self._roles}
            before = db.one("worker_before", worker=boot, host=here["host"])
            db.run("worker_begins", **here, **set_up)
            db.run("workers_before", **here, lease_s=self._lease_s)
            db.run("rates_past")
            db.run("early_past")
            db.run("rests_void", worker=boot, lease_s=self._lease_s)
            is_fine = bool(db.value("lanes_held")) or before is None or bool(before["clean"]) or _lives(before["pid"])
            if isinstance(self.leases, PostgresLeases):
                self.leases.read_clock(db)
                self.leases.see_server(db)
            return is_fine

        is_fine = await self.core.write(begin)
        return Unfinished(conversations=waiting.conversations, was_clean=waiting.was_clean or is_fine)

    async def close(self, *, clean: bool) -> None:
        """Give every lane back, if `clean`, and close."""
        boot = self.core.boot
        try:
            if self.core.is_open and clean and boot:
                await self.core.write(lambda db: [db.run(one, worker=boot) for one in _ENDS])
                await self.leases.tell({})
        finally:
            await super().close(clean=clean)

    def of_lane(self, core: LaneCore) -> Store:
        """Return this store as the holder of one lane writes to it."""
        lane = copy(self)
        lane.core = core
        lane.inbox, lane.outbox = LaneInbox(core), LaneOutbox(core)
        lane.turns, lane.whispers = LaneTurns(core, self.turns), WhisperStore(core)
        lane.calls = CallStore(core)
        return lane

    async def check(self) -> None:
        """Read every row once in a separate thread. Raises: StoreError."""
        await asyncio.to_thread(self._read_all)

    async def give_back(self, pages: int) -> int:  # noqa: ARG002 - the protocol's
        return 0  # autovacuum is the server's

    def back_up(self, directory: Path, now: datetime) -> Path:
        return moving.back_up(self.place, directory, now, self._memory).path

    def records(self) -> Records:
        return PostgresRecords(self.place, self._memory_files, memory=self._memory)

    def _read_all(self) -> None:
        try:
            with closing(self._connect()) as connection:
                for table, *_ in PostgresDatabase(connection, {}).tables():
                    connection.execute(f'SELECT count(*) AS rows FROM "{table}"')  # noqa: S608 - names of our own schema
        except psycopg.Error as error:
            raise self.core.translate(error) from error


class PostgresRecords(Records):
    """A read-only view of one schema of PostgreSQL."""

    def __init__(self, place: StorePlace, memory_files: Path, *, memory: Path | None = None) -> None:
        """Connect; `memory_files` is the directory of the archive. Raises: StoreCorrupt, StoreTooNew, StoreError."""
        super().__init__(_open(place, memory or shipped("memory")), memory_files, partial(translate, name=place.shown))

    def served(self) -> Mapping[str, Any] | None:
        """Return `{"version", "round_trip_ms", "standby", "lanes", "roles"}`.

        Of the lanes `{"held", "ready", "oldest_wait_s", "paused"}`: whether the soul is paused for every process.
        """
        with self._snapshot() as db:
            if type(db) is Database:  # nobody has begun there yet
                return {"version": "", "round_trip_ms": None, "standby": None, "lanes": NO_LANES, "roles": []}
            began_s = time.perf_counter()
            db.run("round_trip")
            round_trip_s = time.perf_counter() - began_s
            server, lanes = db.dicts("server_shown")[0], db.dicts("lanes_shown")[0]
            roles = db.dicts("roles_shown")
        return {**server, "round_trip_ms": round(1000 * round_trip_s, 2), "lanes": lanes, "roles": roles}

    def pushed_soul(self) -> PushedSoul | None:
        """Return the soul that was pushed last; None if none ever was."""
        with self._snapshot() as db:
            return None if type(db) is Database else newest_soul(db)

    def workers(self) -> Sequence[Mapping[str, Any]]:
        """Return the processes that share the store, oldest first."""
        with self._snapshot() as db:
            rows = [] if type(db) is Database else db.dicts("workers_shown")
        return [row | {"clean": bool(row["clean"]), "holds": row["holds"].split()} for row in rows]

    def marks(self, seen: int) -> tuple[int, str]:
        """Return the next number, and an opaque mark of what the console shows."""
        with self._snapshot() as db:
            return seen + 1, dump(db.dicts("what_changed")[0])

    def size(self) -> Mapping[str, Any]:
        """Return the size of the tables, the number of turns and days; free pages are the server's to return."""
        with self._snapshot() as db:
            row = db.one("turns_span")
            bytes_ = 0 if type(db) is Database else db.connection.execute(_BYTES).fetchone()["bytes"]
        turns = row["turns"] if row else 0  # in how many days does not matter: its disk is not this machine's
        return {"bytes": bytes_, "turns": turns, "days": 0.0, "gives_back": True}

    def integrity(self) -> Sequence[str]:
        """Return nothing: the server holds foreign keys, and its pages have checksums where the operator wants them."""
        return []


_BYTES = """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) AS bytes FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'"""


def _open(place: StorePlace, memory: Path) -> Database:
    try:
        with ExitStack() as undo:
            connection = PostgresConnection(place)
            undo.callback(connection.close)
            if not is_empty(connection):
                check_identity(connection, place.shown, known(memory))
                database = PostgresDatabase(connection, load_texts(memory))
                undo.pop_all()
                return database
    except psycopg.Error as error:
        raise translate(error, place.shown) from error
    return Database(empty_database(load_migrations(memory / "schema")), load_queries(memory / "queries"))
