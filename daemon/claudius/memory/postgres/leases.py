"""`store.leases` in PostgreSQL: lanes taken, renewed and given back by the server's clock; the store of one lane."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from claudius import errors
from claudius.errors import ProviderError, StaleTurn
from claudius.intent import Call, Intent
from claudius.memory.inbox import Pending
from claudius.memory.leases import ForgettingStore, LeaseTally, LeaseTimes, RoleStore
from claudius.memory.postgres.connection import PostgresDatabase
from claudius.memory.postgres.inbox import PostgresInbox
from claudius.memory.postgres.letting_go import PostgresForgetting
from claudius.memory.postgres.notices import listen, notice
from claudius.memory.postgres.schema import too_old
from claudius.memory.postgres.souls import NEWS, PostgresSouls
from claudius.memory.sql.connection import Database, Row
from claudius.memory.sql.core import Core, Writer
from claudius.memory.sql.rows import dump
from claudius.memory.sql.turns import SqlTurns, spent_since
from claudius.memory.sql.whispers import SqlWhispers
from claudius.memory.turns import RecallLimits, SpendingCap
from claudius.prompt import valid
from claudius.provider import Account, Rests
from claudius.recollection import Recollection

if TYPE_CHECKING:
    from claudius.memory.postgres.store import PostgresStore
    from claudius.memory.store import Store

T = TypeVar("T")
RESTS = "rests"
"""What has changed when a provider rests."""
UNREAD_S = 40.0
"""Longer than a conversation waits for its history, in case the process that reads it dies."""
AHEAD_AT_MOST = timedelta(hours=1)
"""A clock that differs by more from the server's was set like that on purpose, as `CLAUDIUS_CLOCK` does."""
DOUBTED_S = 3600.0
"""For how long after a switch to another server an earlier message may have been answered without its knowing."""
TRUSTED = 0.9
"""The part of a lease in which this process trusts its own clock."""


class HeldLane(Struct, eq=False):
    """A lane that this process holds."""

    token: int
    until_s: float
    """Until when, by this process's monotonic clock, counted from before it asked."""
    heard: int
    """The lane's mark at the last look."""
    taken: set[int] = field(default_factory=set)
    """The perceptions whose turns were begun under this token."""


class PostgresLeases:
    """The lanes that this process holds."""

    def __init__(
        self,
        store: PostgresStore,
        times: LeaseTimes,
        *,
        clock: Callable[[], float] = time.monotonic,
        home: str = "",
    ) -> None:
        """Hold lanes of `store`; `clock` is monotonic, in seconds; `home` is the path of this process's home."""
        self._store, self._core, self._clock = store, store.core, clock
        self.times, self._lease_s = times, times.lease_s
        self._held: dict[str, HeldLane] = {}
        self.is_draining, self._seen = False, 0
        self.configuration: Callable[[], str] = lambda: times.configuration
        self._tally, self._looked_s = LeaseTally(), 0.0
        self._rests = Rests()
        self._server: datetime | None = None
        """The server's time when the own monotonic clock showed 0."""
        self._seen_made, self._doubts_until_s = 0, 0.0
        self.roles: RoleStore = PostgresRoles(store.core, self._lease_s, clock)
        self.souls = PostgresSouls(store.core)
        self.forgetting: ForgettingStore = PostgresForgetting(
            store.core, times.lease_s, times.look_s, home, store.shelf.clear
        )

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
        values |= {"schema": self._store.schema}
        tokens = dump([one.token for one in before.values()])

        def take(db: Database) -> tuple[list[Row], dict[str, int]]:
            for conversation in wanted:
                db.run("lane_wanted", conversation=conversation)
            taken = db.all("lanes_take", **values, wanted=dump(list(wanted))) if room else []
            for row in taken:
                db.run("lane_void_heard", conversation=row["conversation"])
                db.run("lane_void_said", conversation=row["conversation"])
            held = db.all("lanes_heard", tokens=tokens) if before else []
            return taken, {row["conversation"]: row["heard"] for row in held}

        with self._asking() as asked_s:
            taken, marks = await self._core.write(take)
        if self._clock() - asked_s > TRUSTED * self._lease_s:  # it was paused: they are for whoever looks then
            taken = []
        self._tally.looks += 1
        rung = []
        for conversation, heard in marks.items():
            one = self._held.get(conversation)
            if one and one.heard != heard:
                one.heard = heard
                rung.append(conversation)
        for row in taken:
            if before_it := self._held.get(row["conversation"]):  # its lease was past before it could be renewed
                self._outlive(before_it)
                self._tally.lost += 1
            self._held[row["conversation"]] = HeldLane(row["token"], asked_s + self._lease_s, row["heard"])
        return [*(row["conversation"] for row in taken), *rung]

    async def hold_back(self, networks: Sequence[str], read: Sequence[str] = ()) -> None:
        def write(db: Database) -> None:
            db.run("network_read", networks=dump(list(read)))
            for network in networks:
                db.run("network_unread", network=network, unread_s=UNREAD_S)

        with self._asking():
            await self._core.write(write)

    def is_paused(self) -> bool:
        return bool(self._core.look("soul_paused")[0]["paused"])

    async def pause(self) -> None:
        await self._core.write(lambda db: db.run("soul_pauses"))

    async def resume(self) -> None:
        await self._core.write(lambda db: [db.run(one) for one in ("soul_resumes", "lanes_resumed")])

    async def renew(self, but: Sequence[str] = ()) -> Sequence[str]:
        worker, configuration = self._core.boot, self.configuration()
        before = {conversation: one for conversation, one in self._held.items() if conversation not in but}
        tokens = dump([one.token for one in before.values()])
        rests = list[Row]()

        def renew(db: Database) -> list[str]:
            self.is_draining = bool(db.value("worker_seen", **self._seen_as(worker, configuration)))
            release = db.one("release_shown")
            self.souls.newest_number = release["soul"] if release else None
            if release and release["oldest"] > self._store.schema:
                raise too_old(self._core.name, release["schema"], self._store.schema)
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
        held = self._held[conversation]
        return self._store.of_lane(LaneCore(self._core, conversation, held.token, self), held.taken)

    def _outlive(self, lane: HeldLane) -> None:
        """Say that this process goes on without a lane: what it thought of there has not ended it."""
        values = [{"seq": seq, "worker": self._core.boot} for seq in lane.taken]
        self._core.writer.later(lambda db: [db.run("turn_outlived", **one) for one in values])

    def is_of(self, store: Store, conversation: str) -> bool:
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
        if self._store.place.notices_url:
            payload = notice(self._core.boot, about)
            with self._asking():
                await self._core.alone(lambda db: db.run("notice", payload=payload))

    async def listen(self, told: Callable[[Mapping[str, str]], None]) -> None:
        if self._store.place.notices_url:
            await listen(self._store.place, self._core.boot, told)

    async def heard(self, conversation: str) -> int:
        held = self._held.get(conversation)
        values = {"conversation": conversation, "token": held.token if held else 0}
        rows = self._core.look("lane_heard", **values)
        return int(rows[0]["heard"]) if rows else -1

    async def release(self, conversation: str, heard: int) -> bool:
        held = self._held.get(conversation)
        if held is None:
            return True
        if heard < 0:  # it is looked at again when its lease is past
            self._outlive(self._held.pop(conversation))
            return True
        values = {"conversation": conversation, "token": held.token, "heard": heard}
        is_released = await self._core.write(lambda db: db.change("lane_release", **values)) > 0
        if is_released:
            self._held.pop(conversation, None)
        return is_released


class PostgresRoles:
    """The roles that this process has."""

    def __init__(self, core: Core, lease_s: float, clock: Callable[[], float]) -> None:
        """Take roles in the store of `core` for `lease_s` seconds each; `clock` is monotonic, in seconds."""
        self._core, self._lease_s, self._clock = core, lease_s, clock
        self._held: dict[str, tuple[int, float]] = {}
        """The token of each, and until when it is held by the own clock."""
        self._known: set[str] = set()

    async def take(self, wanted: Sequence[str]) -> Mapping[str, str]:
        asked_s, has_new = self._clock(), not self._known.issuperset(wanted)
        values = {"roles": dump(list(wanted)), "worker": self._core.boot, "lease_s": self._lease_s}

        def take(db: Database) -> list[Row]:
            if has_new:
                db.run("roles_known", roles=values["roles"])
            free = db.all("roles_take", **values)
            taken = {row["role"].rstrip("0123456789"): row for row in reversed(free)}
            more = [(row["role"], row["token"], row["state"]) for row in free if row not in taken.values()]
            db.run("roles_give_back", worker=self._core.boot, roles=dump(more))
            return list(taken.values())

        taken = await self._core.write(take)
        self._known |= set(wanted)
        self._held |= {row["role"]: (row["token"], asked_s + self._lease_s) for row in taken}
        return {row["role"]: row["state"] for row in taken}

    async def renew(self, states: Mapping[str, str]) -> Sequence[str]:
        asked_s = self._clock()
        values = {"worker": self._core.boot, "lease_s": self._lease_s, "roles": dump(self._of(states))}
        kept = await self._core.write(lambda db: db.values("roles_renew", **values))
        for role in kept:
            self._held[role] = self._held[role][0], asked_s + self._lease_s
        lost = [role for role in states if role not in kept]
        for role in lost:
            self._held.pop(role, None)
        return lost

    async def give_back(self, states: Mapping[str, str]) -> None:
        if not states:
            return
        roles = dump(self._of(states))
        await self._core.write(lambda db: db.run("roles_give_back", worker=self._core.boot, roles=roles))
        for role in states:
            self._held.pop(role, None)

    async def others(self, role: str) -> int:
        values = {"role": role, "worker": self._core.boot}
        return int(await self._core.write(lambda db: db.value("role_others", **values)))

    def is_held(self, role: str) -> bool:
        _, until_s = self._held.get(role, (0, 0.0))
        return self._clock() < until_s - (1 - TRUSTED) * self._lease_s

    def _of(self, states: Mapping[str, str]) -> list[tuple[str, int, str]]:
        return [(role, self._held[role][0], state) for role, state in states.items() if role in self._held]


class LaneCore(Core):
    """The core of a store as one lane's holder sees it: a write under a token that has moved is refused."""

    def __init__(self, core: Core, conversation: str, token: int, leases: PostgresLeases) -> None:
        """Write through `core` as long as the lane's token is `token`."""
        self.open_core, self.name, self.translate, self._beside = core, core.name, core.translate, core._beside  # noqa: SLF001 - of its own kind
        self.boot, self.leases = core.boot, leases
        self.lane: Mapping[str, Any] = {"conversation": conversation, "token": token}

    def _now(self) -> tuple[Writer, Database]:
        writer, reader = self.open_core._now()  # noqa: SLF001 - likewise
        return _LaneWriter(writer, self.fenced, self.leases.tally), reader

    async def write(self, run: Callable[[Database], T]) -> T:
        return await self._now()[0].write(run)

    def fenced(self, run: Callable[[Database], T]) -> Callable[[Database], T]:
        """Return a job that is refused if the lane's token has moved."""

        def fenced(db: Database) -> T:
            assert isinstance(db, PostgresDatabase)  # noqa: S101 - it is opened with one
            db.fence(**self.lane)
            self.leases.see_server(db)
            return run(db)

        return fenced


class LaneInbox(PostgresInbox):
    """The inbox as the holder of one lane sees it, who notes what turns it has begun."""

    def __init__(self, core: LaneCore, taken: set[int]) -> None:
        """Note them in `taken`."""
        super().__init__(core)
        self._taken = taken

    def take(self, seq: int, inputs: Mapping[str, str], now: datetime) -> None:
        super().take(seq, inputs, now)
        self._taken.add(seq)

    async def meet(self, pending: Pending) -> None:
        await super().meet(pending)
        self._taken.update(one.seq for one in (pending, *pending.further))


class LaneTurns(SqlTurns):
    """What a turn recalls and commits as the holder of one lane: no other turn has its whispers."""

    def __init__(self, core: LaneCore, open_turns: SqlTurns) -> None:
        """Share the claims and the cache of the process's own turns."""
        super().__init__(core, open_turns.claims, open_turns.shelf)
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

    async def commit(self, intent: Intent) -> None:
        await super().commit(intent)
        if self._leases.is_doubtful:
            await self._core.write(lambda db: db.run("outbox_doubted", turn=intent.turn))

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


class LaneWhispers(SqlWhispers):
    """What daimons keep, as the holder of one lane sees it."""

    def release(self, turn: str) -> None:
        if turn in self._claims.held.values():
            self._core.writer.later(lambda db: db.run("whispers_let_go", turn=turn))
        super().release(turn)


class _LaneWriter(Writer):
    """The writer of a lane: what nobody waits for is fenced as well."""

    def __init__(
        self,
        writer: Writer,
        fenced: Callable[[Callable[[Database], Any]], Callable[[Database], Any]],
        tally: LeaseTally,
    ) -> None:
        self._writer, self._fenced, self._tally = writer, fenced, tally

    async def write(self, run: Callable[[Database], T], *, is_alone: bool = False) -> T:
        try:
            return await self._writer.write(self._fenced(run), is_alone=is_alone)
        except StaleTurn:
            self._tally.stale += 1
            raise

    def later(self, run: Callable[[Database], Any], about: Hashable = None) -> None:
        self._writer.later(self._fenced(run), about)

    async def flush(self, *about: Hashable) -> bool:
        return await self._writer.flush(*about)
