"""`store.leases` in PostgreSQL: lanes and roles under leases of the server's clock, and what all processes let go of.

What the processes of one soul tell each other at once is a notice. It only saves time: whoever misses one finds the
same at the next look, and a turn that is void is refused when it is committed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import msgspec
import psycopg
from msgspec import Struct
from psycopg.abc import PQGen

from claudius import errors
from claudius.decoding import decoder
from claudius.errors import ProviderError, StaleTurn, TryAgain
from claudius.foreign import unquoted
from claudius.memory.database import (
    Core,
    Cursor,
    Database,
    Row,
    StorePlace,
    Writer,
    dump,
    parse,
    parse_strings,
    struct_of,
)
from claudius.memory.leases import (
    AskedToForget,
    ForgettingStore,
    LeaseStore,
    LeaseTally,
    LeaseTimes,
    RoleStore,
    SoulStore,
)
from claudius.memory.postgres.connection import PostgresDatabase, parameters
from claudius.memory.postgres.schema import too_old
from claudius.memory.store import Store
from claudius.perception import Place
from claudius.prompt import valid
from claudius.provider import Account, Rests
from claudius.soul.source import PushedSoul

T = TypeVar("T")
log = logging.getLogger(__name__)
RESTS = "rests"
"""What has changed when a provider rests."""
UNREAD_S = 40.0
"""Longer than a conversation waits for its history, in case the process that reads it dies."""
DOUBTED_S = 3600.0
"""For how long after a switch to another server an earlier message may have been answered without its knowing."""
TRUSTED = 0.9
"""The part of a lease in which this process trusts its own clock."""
AHEAD_AT_MOST = timedelta(hours=1)
"""A clock that differs by more from the server's was set like that on purpose, as `CLAUDIUS_CLOCK` does."""
WITHDRAWN = "another process withdrew this erasure while it waited; it is resumed when this home's process starts again"
NEWS = "soul"
"""Under this name every process hears of a push."""
FIRST_S, MOST_S = 0.5, 60.0
"""How long to wait before the connection is made anew, at first and at most."""
LONGEST = 7000
"""The longest notice in bytes; the server takes less than 8,000."""
CHANNEL = "SELECT 'claudius_' || current_schema()::regnamespace::oid"
"""The name on which the processes of one soul speak: several souls may share a database."""


class HeldLane(Struct, eq=False):
    """A lane that this process holds."""

    token: int
    until_s: float
    """Until when, by this process's monotonic clock, counted from before it asked."""
    heard: int
    """The lane's mark at the last look for lanes."""
    taken: set[int] = msgspec.field(default_factory=set)
    """The perceptions whose turns were begun under this token."""


class LaneCore(Core):
    """The core of a store as one lane's holder sees it: a write under a token that has moved is refused."""

    def __init__(self, core: Core, conversation: str, held: HeldLane, leases: PostgresLeases) -> None:
        """Write through `core` as long as the lane's token is that of `held`."""
        self.open_core, self.name, self.translate, self._beside = core, core.name, core.translate, core._beside  # noqa: SLF001 - of its own kind
        self.boot, self.leases = core.boot, leases
        self.lane: Mapping[str, Any] = {"conversation": conversation, "token": held.token}
        self.held, self.token = held, held.token

    @property
    def writer(self) -> Writer:
        return _LaneWriter(self.open_core.writer, self)

    @property
    def reader(self) -> Database:
        return self.open_core.reader

    def fenced(self, run: Callable[[Database], T]) -> Callable[[Database], T]:
        """Return a job that is refused if the lane's token has moved."""

        def fenced(db: Database) -> T:
            assert isinstance(db, PostgresDatabase)  # noqa: S101 - it is opened with one
            db.fence(**self.lane)
            self.leases.see_server(db)
            return run(db)

        return fenced


class _LaneWriter(Writer):
    """The writer of a lane: what nobody waits for is fenced as well."""

    def __init__(self, writer: Writer, core: LaneCore) -> None:
        self._writer, self._core = writer, core

    async def write(
        self, run: Callable[[Database], T], *, is_alone: bool = False, covers: Collection[Hashable] = ()
    ) -> T:
        try:
            return await self._writer.write(self._core.fenced(run), is_alone=is_alone, covers=covers)
        except StaleTurn:
            self._core.leases.tally.stale += 1
            raise

    def later(self, run: Callable[[Database], Any], about: Hashable = None, writes: Hashable = None) -> None:
        self._writer.later(self._core.fenced(run), about, writes)

    async def flush(self, *about: Hashable) -> bool:
        return await self._writer.flush(*about)


class PostgresLeases(LeaseStore):
    """The lanes that this process holds."""

    is_shared = True

    def __init__(
        self,
        core: Core,
        place: StorePlace,
        times: LeaseTimes,
        schema: int,
        *,
        of_lane: Callable[[LaneCore], Store],
        keep_nothing: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
        home: str = "",
    ) -> None:
        """Hold lanes of the store of `core` at `place`, whose newest `schema` is known here.

        `of_lane` returns the store as a lane's holder writes to it; `keep_nothing` empties what this process has at
        hand; `clock` is monotonic, in seconds; `home` is the path of this process's home.
        """
        self._core, self._place, self._schema, self._clock = core, place, schema, clock
        self._of_lane = of_lane
        self.times, self._lease_s = times, times.lease_s
        self._held: dict[str, HeldLane] = {}
        self.is_draining, self._seen = False, 0
        self._newest_token = 0
        self._is_told, self._marked_s = True, 0.0
        """Whether another process has said something since the marks of the held lanes were read, and when that was."""
        self.configuration: Callable[[], str] = lambda: times.configuration
        self._tally, self._looked_s = LeaseTally(), 0.0
        self._rests = Rests()
        self._server: datetime | None = None
        """The server's time when the own monotonic clock showed 0."""
        self._seen_made, self._doubts_until_s = 0, 0.0
        self.roles: RoleStore = PostgresRoles(core, self._lease_s, clock)
        self.souls: PostgresSouls = PostgresSouls(core)
        self.forgetting: ForgettingStore = PostgresForgetting(core, times.lease_s, times.look_s, home, keep_nothing)

    @property
    def tally(self) -> LeaseTally:
        self._tally.held = len(self._held)
        return self._tally

    def read_clock(self, db: Database) -> None:
        """Read the server's clock, in a job that has waited for an answer already, so that none is before this one."""
        asked_s = self._clock()
        self._server = datetime.fromtimestamp(db.value("server_clock") - asked_s, UTC)

    def wall(self, own: Callable[[], datetime]) -> Callable[[], datetime]:
        def now() -> datetime:
            shown = own()
            if self._server is None:
                return shown
            known = self._server + timedelta(seconds=self._clock())
            return known if abs(shown - known) < AHEAD_AT_MOST else shown

        return now

    @property
    def is_doubtful(self) -> bool:
        return self._clock() < self._doubts_until_s

    def see_server(self, db: Database) -> None:
        """Look, once a connection, whether another server answers than before: one that may have missed something."""
        made = getattr(db.connection, "made", 0)
        if made != self._seen_made:
            switched_s, self._seen_made = db.value("timeline_seen"), made
            if switched_s is not None:
                self._doubts_until_s = self._clock() + DOUBTED_S - switched_s

    def probe(self) -> None:
        with self._core.beside() as db:
            db.connection.execute("BEGIN IMMEDIATE")
            db.run("server_probed").fetchall()
            db.connection.execute("ROLLBACK")

    def round_trip_s(self) -> float:
        began_s = time.perf_counter()
        self._core.look("round_trip")
        return time.perf_counter() - began_s

    @contextmanager
    def _asking(self) -> Iterator[float]:
        """Yield the time; a pause is what passes between two such blocks: waiting for the server is none."""
        asked_s = self._clock()
        if self._looked_s:
            self._tally.pause_s = max(self._tally.pause_s, asked_s - self._looked_s - self.times.look_s)
        try:
            yield asked_s
        finally:
            self._looked_s = self._clock()

    async def take(self, networks: Sequence[str], most: int, wanted: Sequence[str] = ()) -> Sequence[str]:
        worker, before = self._core.boot, dict(self._held)
        room = max(0, min(most, self.times.most - len(before)))
        values = {"worker": worker, "lease_s": self._lease_s, "networks": dump(list(networks)), "most": room}
        values |= {"schema": self._schema}
        tokens = dump([one.token for one in before.values()])
        is_asked = bool(before) and (self._is_told or self._clock() - self._marked_s >= self.times.look_s)
        if is_asked:  # not each time something is heard here: with many lanes that would be most of the work
            self._is_told, self._marked_s = False, self._clock()

        def take(db: Database) -> tuple[list[Row], list[Row]]:
            for conversation in wanted:
                db.run("lane_wanted", conversation=conversation)
            taken = db.all("lanes_take", **values, wanted=dump(list(wanted))) if room else []
            if taken:
                for void in ("lanes_void_heard", "lanes_void_said"):
                    db.run(void, worker=worker, before=self._newest_token)
            return taken, db.all("lanes_heard", worker=worker, tokens=tokens) if is_asked else []

        with self._asking() as asked_s:
            found, held = await self._core.write(take)
        self._tally.looks += 1
        rung = self._rung(held)
        return [*self._hold(found, asked_s), *rung]

    def _rung(self, rows: Sequence[Row]) -> list[str]:
        """Return the conversations whose mark has moved since it was read last."""
        marks = [(row["conversation"], row["heard"]) for row in rows if row["conversation"] in self._held]
        rung = [conversation for conversation, heard in marks if self._held[conversation].heard != heard]
        for conversation, heard in marks:
            self._held[conversation].heard = heard
        return rung

    def _hold(self, taken: Sequence[Row], asked_s: float) -> list[str]:
        """Hold the lanes that were just taken, unless their lease is nearly past; return them."""
        self._newest_token = max([row["token"] for row in taken], default=self._newest_token)
        if self._clock() - asked_s > TRUSTED * self._lease_s:  # it was paused: they are for whoever looks then
            return []
        for row in taken:
            if before_it := self._held.get(row["conversation"]):  # its lease was past before it could be renewed
                self._outlive(before_it)
                self._tally.lost += 1
            self._held[row["conversation"]] = HeldLane(row["token"], asked_s + self._lease_s, row["heard"])
        return [row["conversation"] for row in taken]

    async def hold_back(self, networks: Sequence[str], read: Sequence[str] = ()) -> None:
        def write(db: Database) -> None:
            db.run("network_read", networks=dump(list(read)))
            for network in networks:
                db.run("network_unread", network=network, unread_s=UNREAD_S)

        with self._asking():
            await self._core.write(write)

    def is_paused(self) -> bool:
        return bool(self._core.look("soul_paused")[0]["paused"])

    async def pause(self) -> bool:
        await self._core.write(lambda db: db.run("soul_pauses"))
        return True

    async def resume(self) -> bool:
        await self._core.write(lambda db: [db.run(one) for one in ("soul_resumes", "lanes_resumed")])
        return True

    async def renew(self, but: Sequence[str] = ()) -> Sequence[str]:
        worker, configuration = self._core.boot, self.configuration()
        before = {conversation: one for conversation, one in self._held.items() if conversation not in but}
        tokens = dump([one.token for one in before.values()])
        rests = list[Row]()

        def renew(db: Database) -> list[str]:
            self.is_draining = bool(db.value("worker_seen", **self._seen_as(worker, configuration)))
            release = db.one("release_shown")
            self.souls.newest_number = release["soul"] if release else None
            if release and release["oldest"] > self._schema:
                raise too_old(self._core.name, release["schema"], self._schema)
            rests.extend(db.all("rests"))
            self.read_clock(db)
            return db.values("lanes_renew", worker=worker, lease_s=self._lease_s, tokens=tokens) if before else []

        with self._asking() as asked_s:
            kept = set(await self._core.write(renew))
        self._rest(rests)
        thought_with = self.souls.in_force
        self.souls.look()
        if self.souls.in_force != thought_with:  # the others see it now, not a renewal later
            with self._asking():
                await self._core.write(lambda db: db.value("worker_seen", **self._seen_as(worker, configuration)))
        lost = []
        for conversation, one in before.items():
            if self._held.get(conversation) is not one:
                continue  # given back meanwhile
            if conversation in kept:
                one.until_s = asked_s + self._lease_s
            else:
                del self._held[conversation]
                lost.append(conversation)
                self._outlive(one)
        self._tally.lost += len(lost)
        return lost

    def _seen_as(self, worker: str, configuration: str) -> dict[str, Any]:
        soul, pause_s = self.souls.in_force, self._tally.pause_s
        return {"worker": worker, "pause_s": pause_s, "soul": soul, "configuration": configuration}

    async def drain(self, worker: str) -> bool:
        return await self._core.write(lambda db: db.change("worker_drains", worker=worker)) > 0

    def has_taken(self, conversation: str) -> bool:
        return conversation in self._held

    def is_held(self, conversation: str) -> bool:
        held = self._held.get(conversation)
        return held is not None and self._clock() < held.until_s - (1 - TRUSTED) * self._lease_s

    def store_of(self, conversation: str) -> Store:
        return self._of_lane(LaneCore(self._core, conversation, self._held[conversation], self))

    def _outlive(self, lane: HeldLane) -> None:
        """Say that this process goes on without a lane: what it thought of there has not ended it."""
        values = [{"seq": seq, "worker": self._core.boot} for seq in lane.taken]
        self._core.writer.later(lambda db: [db.run("turn_outlived", **one) for one in values])

    def is_of(self, store: object, conversation: str) -> bool:
        held, core = self._held.get(conversation), getattr(store, "core", None)
        return held is not None and isinstance(core, LaneCore) and core.lane["token"] == held.token

    def changed(self, name: str) -> None:
        self._core.writer.later(lambda db: db.run("changed", name=name))

    def news(self) -> Sequence[str]:
        rows = self._core.look("news", seen=self._seen)
        self._seen = max([row["number"] for row in rows], default=self._seen)
        names = [row["name"] for row in rows]
        if RESTS in names:
            self._rest(self._core.look("rests"))
        if NEWS in names:
            self.souls.pushed()
        return names

    def share(self, rests: Rests) -> None:
        self._rests, rests.tell = rests, self._rests_here

    async def told_elsewhere(self, here: Mapping[str, int]) -> Mapping[str, int]:
        worker, lease_s = self._core.boot, self._lease_s

        def write(db: Database) -> dict[str, int]:
            db.run("told_past", worker=worker, lease_s=lease_s)
            for problem, grade in here.items():
                db.run("told_here", worker=worker, problem=problem, grade=grade)
            return {row["problem"]: row["grade"] for row in db.all("told_elsewhere", worker=worker)}

        return await self._core.write(write)

    def _rests_here(self, account: Account, rest_s: float, error: ProviderError) -> None:
        mark, provider = account
        why = {"kind": type(error).__name__, "why": valid(error.message), "fix": valid(error.fix)}
        self._core.writer.later(lambda db: db.run("rest_begins", mark=mark, provider=provider, rest_s=rest_s, **why))
        self.changed(RESTS)

    def _rest(self, rows: Sequence[Row]) -> None:
        """Take over what rests for all."""
        for row in rows:
            made: type[ProviderError] = getattr(errors, row["kind"], errors.Unavailable)
            error = made(row["why"], provider=row["provider"], fix=row["fix"])
            self._rests.now[row["mark"], row["provider"]] = (time.monotonic() + row["left_s"], error)

    async def tell(self, about: Mapping[str, str]) -> None:
        if self._place.notices_url:
            payload = notice(self._core.boot, about)
            with self._asking():
                await self._core.alone(lambda db: db.run("notice", payload=payload))

    async def listen(self, told: Callable[[Mapping[str, str]], None]) -> None:
        def hear(about: Mapping[str, str]) -> None:
            self._is_told = True
            told(about)

        if self._place.notices_url:
            await listen(self._place, self._core.boot, hear)

    async def heard(self, conversation: str) -> int:
        held = self._held.get(conversation)
        rows = self._core.look("lane_heard", conversation=conversation, token=held.token) if held else []
        return int(rows[0]["heard"]) if rows else -1

    async def release(self, conversation: str, heard: int) -> bool:
        held = self._held.get(conversation)
        if held is None:
            return True
        if heard < 0:  # it is looked at again when its lease is past
            self._outlive(self._held.pop(conversation))
            return True
        values = {"conversation": conversation, "token": held.token, "heard": heard}
        is_of_commands = Place.of(conversation).is_for_commands

        def give_back(db: Database) -> Cursor:
            changed = db.run("lane_release", **values)
            if is_of_commands:
                db.run("lane_of_commands_gone", conversation=conversation)
            return changed

        is_released = (await self._core.write(give_back)).rowcount > 0
        if is_released and self._held.get(conversation) is held:  # not one that was taken meanwhile
            del self._held[conversation]
        return is_released


class PostgresRoles(RoleStore):
    """The roles that this process has."""

    def __init__(self, core: Core, lease_s: float, clock: Callable[[], float]) -> None:
        """Take roles in the store of `core` for `lease_s` seconds each; `clock` is monotonic, in seconds."""
        self._core, self._lease_s, self._clock = core, lease_s, clock
        self._held: dict[str, tuple[int, float]] = {}
        """The token of each, and until when it is held by the own clock."""
        self._known: set[str] = set()

    async def take(self, wanted: Sequence[str]) -> Sequence[str]:
        asked_s, has_new = self._clock(), not self._known.issuperset(wanted)
        values = {"roles": dump(list(wanted)), "worker": self._core.boot, "lease_s": self._lease_s}

        def take(db: Database) -> list[Row]:
            if has_new:
                db.run("roles_known", roles=values["roles"])
            free = db.all("roles_take", **values)
            taken = {row["role"].rstrip("0123456789"): row for row in reversed(free)}
            more = [(row["role"], row["token"]) for row in free if row not in taken.values()]
            db.run("roles_give_back", worker=self._core.boot, roles=dump(more))
            return list(taken.values())

        taken = await self._core.write(take)
        self._known |= set(wanted)
        self._held |= {row["role"]: (row["token"], asked_s + self._lease_s) for row in taken}
        return [row["role"] for row in taken]

    async def renew(self, roles: Sequence[str]) -> Sequence[str]:
        asked_s = self._clock()
        values = {"worker": self._core.boot, "lease_s": self._lease_s, "roles": dump(self._of(roles))}
        kept = await self._core.write(lambda db: db.values("roles_renew", **values))
        for role in kept:
            self._held[role] = self._held[role][0], asked_s + self._lease_s
        lost = [role for role in roles if role not in kept]
        for role in lost:
            self._held.pop(role, None)
        return lost

    async def give_back(self, roles: Sequence[str]) -> None:
        if not roles:
            return
        held = dump(self._of(roles))
        await self._core.write(lambda db: db.run("roles_give_back", worker=self._core.boot, roles=held))
        for role in roles:
            self._held.pop(role, None)

    async def others(self, role: str) -> int:
        values = {"role": role, "worker": self._core.boot}
        return int(await self._core.write(lambda db: db.value("role_others", **values)))

    def is_held(self, role: str) -> bool:
        _, until_s = self._held.get(role, (0, 0.0))
        return self._clock() < until_s - (1 - TRUSTED) * self._lease_s

    def _of(self, roles: Sequence[str]) -> list[tuple[str, int]]:
        return [(role, self._held[role][0]) for role in roles if role in self._held]


class PostgresForgetting(ForgettingStore):
    """Whom this process, or another one, is erasing."""

    def __init__(self, core: Core, lease_s: float, look_s: float, home: str, keep_nothing: Callable[[], None]) -> None:
        """Ask all processes of `core`'s store; `home` is this one's, `keep_nothing` empties what it has at hand."""
        self._core, self._lease_s, self._look_s = core, lease_s, look_s
        self._home, self._keep_nothing = home, keep_nothing
        self._own: set[int] = set()
        """The requests that are under way here."""
        self._beginning = asyncio.Lock()

    @asynccontextmanager
    async def letting_go(self, ids: Sequence[str], aliases: Mapping[str, str]) -> AsyncIterator[Sequence[str]]:
        values = {"worker": self._core.boot, "ids": dump(list(ids)), "aliases": dump(dict(aliases))}
        async with self._beginning:
            number = int(await self._core.write(lambda db: db.value("letting_go_begins", **values)))
            self._own.add(number)
        async with self._waited_for(number):
            at = {"host": socket.gethostname(), "home": self._home, "lease_s": self._lease_s}
            yield [_place(row) for row in self._core.look("homes_at_rest", **at)]

    @asynccontextmanager
    async def left(self) -> AsyncIterator[AskedToForget | None]:
        values = {"worker": self._core.boot, "lease_s": self._lease_s}
        async with self._beginning:
            number = await self._core.write(lambda db: db.value("letting_go_taken_over", **values))
            if number is not None:
                self._own.add(number)
        if number is None:
            yield None
            return
        async with self._waited_for(number):
            yield next((one for one in map(_asked, self._rows()) if one.number == number), None)

    @asynccontextmanager
    async def _waited_for(self, number: int) -> AsyncIterator[None]:
        """Wait for all others, then withdraw the request; what fails in the block leaves it to whoever finishes it."""
        asked = {"number": number, "worker": self._core.boot, "lease_s": self._lease_s}
        try:
            while True:
                row = self._core.look("letting_go_waits", **asked)[0]
                if row["is_withdrawn"]:
                    raise TryAgain(WITHDRAWN)
                if not row["waiting"]:
                    break
                await asyncio.sleep(self._look_s)
            yield
            await self._core.write(lambda db: db.run("letting_go_ends", number=number, lease_s=self._lease_s))
        finally:
            self._own.discard(number)

    def is_alone(self) -> bool:
        return not self._core.look("workers_beside", worker=self._core.boot, lease_s=self._lease_s)[0]["found"]

    async def asked(self) -> Sequence[AskedToForget]:
        rows, worker = self._rows(), self._core.boot
        async with self._beginning:
            failed = [row["number"] for row in rows if row["worker"] == worker and row["number"] not in self._own]
        for number in failed:
            await self._core.write(partial(_give_up, number=number, worker=worker))
        return [_asked(row) for row in rows]

    async def have_let_go(self, number: int) -> None:
        self._keep_nothing()
        await self._core.write(lambda db: db.run("let_go_now", number=number, worker=self._core.boot))

    def _rows(self) -> list[Row]:
        return self._core.look("letting_go_asked", worker=self._core.boot)


def _give_up(db: Database, number: int, worker: str) -> None:
    db.run("letting_go_given_up", number=number, worker=worker)


def _asked(row: Row) -> AskedToForget:
    lists = dict.fromkeys(("ids", "conversations", "audiences"), parse_strings)
    return struct_of(AskedToForget, row, {**lists, "aliases": parse, "is_done": bool})


def _place(row: Row) -> str:
    return f"{row['home']} on {row['host']}" if row["home"] else str(row["host"])


class PostgresSouls(SoulStore):
    """What was pushed last."""

    def __init__(self, core: Core) -> None:
        self._core, self.in_force, self._known = core, "", 0
        self.pushed: Callable[[], bool] = lambda: True
        self.newest_number: int | None = None
        """Of the newest push, as of the last renewal."""

    async def push(self, files: Mapping[str, str], sha256: str) -> int:
        def write(db: Database) -> int:
            number = int(db.value("soul_pushed", sha256=sha256, host=socket.gethostname()))
            db.each("soul_push_file", ({"push": number, "name": name, "content": text} for name, text in files.items()))
            db.run("soul_push_only", number=number)
            db.run("changed", name=NEWS)
            return number

        return await self._core.write(write)

    def newest(self) -> PushedSoul | None:
        with self._core.snapshot() as db:
            return newest_soul(db)

    def look(self) -> None:
        """Have this process look, if what was pushed last is not what it knows."""
        if self.newest_number and self.newest_number != self._known and self.pushed():
            self._known = self.newest_number


def newest_soul(db: Database) -> PushedSoul | None:
    """Return what was pushed last; None if nothing ever was."""
    row = db.one("soul_in_force")
    if row is None:
        return None
    files = {one["name"]: one["content"] for one in db.all("soul_files", push=row["number"])}
    at = datetime.fromisoformat(row["at"])
    return PushedSoul(number=row["number"], sha256=row["sha256"], host=row["host"], at=at, files=files)


class _Ear(psycopg.AsyncConnection[Any]):
    """A connection that sleeps until something comes; psycopg looks ten times a second besides."""

    async def wait(self, gen: PQGen[T], interval: float = MOST_S, timeout: float | None = None) -> T:  # noqa: ASYNC109 - psycopg's own word
        """Wait for what psycopg waits for. Raises: psycopg.Error."""
        return await super().wait(gen, interval, timeout)


def notice(worker: str, about: Mapping[str, str]) -> str:
    """Return a notice of a process, which says only that there is something if it would be too long. Pure."""
    text = dump([worker, dict(about)])
    return text if len(text.encode()) <= LONGEST else dump([worker, {}])


async def listen(place: StorePlace, worker: str, told: Callable[[Mapping[str, str]], None]) -> None:
    """Call `told` with what another process than `worker` says, on a connection of its own, until cancelled.

    A connection that is lost is made anew. `told` is then called with nothing, because something may have been missed.
    """
    pause_s = FIRST_S
    while True:
        try:
            words = parameters(place, place.notices_url)
            async with await _Ear.connect(words, autocommit=True) as ear:
                (channel,) = await (await ear.execute(CHANNEL.encode())).fetchone() or ("",)
                await ear.execute(f'LISTEN "{channel}"'.encode())
                pause_s = FIRST_S
                told({})
                async for heard in ear.notifies():
                    who, about = _read(heard.payload)
                    if who != worker:
                        told(about)
        except (psycopg.Error, OSError) as error:
            log.info("no notices are heard", extra={"error": unquoted(error), "again_s": pause_s})
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, MOST_S)


def _read(payload: str) -> tuple[str, Mapping[str, str]]:
    """Return who says what; of what is no notice of ours, that something was said. Pure."""
    try:
        return decoder(tuple[str, dict[str, str]]).decode(payload)
    except msgspec.DecodeError:
        return "", {}
