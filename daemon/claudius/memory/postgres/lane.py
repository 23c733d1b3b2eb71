"""The store as the holder of one lane writes to it: refused once the lane's token has moved."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from claudius.errors import StaleTurn
from claudius.intent import Call, Intent
from claudius.memory.inbox import Pending
from claudius.memory.outbox import OutboxStore, settle
from claudius.memory.postgres.connection import PostgresDatabase
from claudius.memory.postgres.inbox import PostgresInbox
from claudius.memory.sql.connection import Core, Database, Writer
from claudius.memory.sql.recall import RecallLimits
from claudius.memory.sql.rows import dump
from claudius.memory.turns import SpendingCap, TurnStore, spent_since
from claudius.memory.whispers import WhisperStore
from claudius.recollection import Recollection

if TYPE_CHECKING:
    from claudius.memory.postgres.leases import PostgresLeases

T = TypeVar("T")
AHEAD_AT_MOST = timedelta(hours=1)
"""A clock that differs by more from the server's was set like that on purpose, as `CLAUDIUS_CLOCK` does."""


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
        self.held = held

    def _now(self) -> tuple[Writer, Database]:
        writer, reader = self.open_core._now()  # noqa: SLF001 - likewise
        return _LaneWriter(writer, self), reader

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


class LaneWhispers(WhisperStore):
    """What daimons keep, as the holder of one lane sees it."""

    def release(self, turn: str) -> None:
        if turn in self._claims.held.values():
            self._core.writer.later(lambda db: db.run("whispers_let_go", turn=turn))
        super().release(turn)


class _LaneWriter(Writer):
    """The writer of a lane: what nobody waits for is fenced as well."""

    def __init__(self, writer: Writer, core: LaneCore) -> None:
        self._writer, self._core = writer, core

    async def write(self, run: Callable[[Database], T], *, is_alone: bool = False) -> T:
        try:
            return await self._writer.write(self._core.fenced(run), is_alone=is_alone)
        except StaleTurn:
            self._core.leases.tally.stale += 1
            raise

    def later(self, run: Callable[[Database], Any], about: Hashable = None) -> None:
        self._writer.later(self._core.fenced(run), about)

    async def flush(self, *about: Hashable) -> bool:
        return await self._writer.flush(*about)


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

    async def settle(self, key: str, receipt: str, now: datetime) -> str:
        boot = self._open.boot
        try:
            settled = await self._core.write(lambda db: settle(db, key, receipt, now, boot))
        except StaleTurn:
            settled = await self._open.write(lambda db: settle(db, key, receipt, now, boot, goes_on=False))
        if settled.rowcount:
            return receipt
        kept = self._open.look("receipt_of", key=key)
        return str(kept[0]["receipt"] or receipt) if kept else ""
