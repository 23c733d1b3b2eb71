"""`store.inbox`: what was heard, and until when it waits. Source: the reliability design, section 3."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from claudius.errors import OverBudget, RowInvalid
from claudius.memory.inbox import (
    UNLIMITED,
    Amended,
    Pending,
    RateLimits,
    Rates,
    RateVerdict,
    Undone,
    in_force,
    is_unanswered,
    unanswered,
)
from claudius.memory.sql.amending import amend, hold, keep, put_shown_right, stop
from claudius.memory.sql.connection import Database, Row
from claudius.memory.sql.core import Core
from claudius.memory.sql.rows import (
    call_of,
    dump,
    instant,
    pending_of,
    stamp,
)
from claudius.memory.sql.unsaying import Unsaying
from claudius.perception import (
    Following,
    Kind,
    MessageExtra,
    Origin,
    Perception,
    Place,
    Thread,
    amended_key,
    is_terminal,
    settled_in,
)
from claudius.prompt import valid

log = logging.getLogger(__name__)
EARLY = 256
"""How many changes of unknown messages are remembered, because an event may overtake the message that it refers to."""

NEVER_CALLED = "~"
"""In place of the position that called us into a thread: after every position."""


class SqlInbox:
    """What was heard and is not answered yet."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._rates = Rates()
        self._early: dict[str, Perception] = {}
        """The latest changes of unknown messages, by the key of the message; oldest first."""
        self._unsaying, self._unsaid = Unsaying(core), asyncio.Event()

    async def accept(
        self, perceptions: Sequence[Perception], now: datetime, limits: RateLimits = UNLIMITED
    ) -> tuple[bool, ...]:
        heard = list(perceptions) if limits is UNLIMITED else [judged(self._rates, one, limits) for one in perceptions]
        found = await self._core.write(lambda db: accept(db, heard, now, self._early))
        if self._early:
            for one in perceptions:
                self._early.pop(one.key, None)
        return found

    async def marks(self, network: str) -> Mapping[str, str]:
        await self._core.writer.flush()
        with self._core.snapshot() as db:
            marks = db.all("marks", adapter=network)
        found = sorted(marks, key=lambda mark: str(mark["position"]), reverse=True)
        return {mark["channel"]: mark["position"] for mark in found}

    async def swept(self, network: str, channel: str, position: str, now: datetime) -> None:
        values = {"adapter": network, "channel": channel, "position": position, "now": stamp(now)}
        await self._core.write(lambda db: db.change("mark_swept", **values))

    async def oldest(self, conversation: str) -> Pending | None:
        found = self._core.look("oldest", conversation=conversation, boot=self._core.boot)
        if not found:
            return None
        pending = pending_of(found[0])
        if await self._core.writer.flush(pending.seq, pending.turn):
            return await self.oldest(conversation)
        calls = tuple(map(call_of, self._core.look("calls", turn=pending.turn))) if pending.attempts else ()
        return replace(pending, calls=calls) if calls else pending

    async def unfinished(self, conversation: str, most: int = 32) -> Sequence[Pending]:
        await self._core.flush()
        with self._core.snapshot() as db:
            return list(_readable(db.all("unfinished", conversation=conversation, boot=self._core.boot, most=most)))

    async def join(self, pendings: Sequence[Pending]) -> Pending:
        first, turn = pendings[0], pendings[-1].turn

        def write(db: Database) -> None:
            for one in pendings:
                db.run("join_turn", seq=one.seq, turn=turn)

        await self._core.write(write)
        with self._core.snapshot() as db:
            calls = tuple(call_of(call) for call in db.all("calls", turn=turn))
        return replace(first, turn=turn, calls=calls, further=tuple(pendings[1:]))

    async def hold(self, pending: Pending) -> None:
        def write(db: Database) -> None:
            for one in pending.perceptions:
                hold(db, one.key)

        await self._core.write(write)

    async def meet(self, pending: Pending) -> None:
        boot, met = self._core.boot, (pending, *pending.further)
        await self._core.write(lambda db: [db.run("met", seq=one.seq, boot=boot) for one in met])

    def take(self, seq: int, inputs: Mapping[str, str], now: datetime) -> None:
        boot = self._core.boot
        self._core.writer.later(
            lambda db: db.run("take", seq=seq, inputs=dump(dict(inputs)), now=stamp(now), boot=boot), seq
        )

    async def postpone(self, seq: int, not_before: datetime, reason: str, attempts: int = 0) -> None:
        values = {"seq": seq, "not_before": stamp(not_before), "reason": reason, "attempts": attempts}
        await self._core.write(lambda db: db.change("postpone", **values))

    def failing(self, turn: str, reason: str) -> None:
        self._core.writer.later(lambda db: db.run("failing", turn=turn, reason=valid(reason)), turn)

    async def withdraw(self, seq: int, reason: str) -> None:
        await self._core.write(lambda db: db.change("withdraw", seq=seq, reason=reason))

    async def give_up(self, seq: int, reason: str) -> None:
        await self._core.write(lambda db: db.change("give_up", seq=seq, reason=reason))

    async def impose(self, perception: Perception, name: str, kept: Mapping[str, Any], now: datetime) -> bool:
        conversation = perception.conversation

        def write(db: Database) -> bool:
            if name:
                db.run("keep_kept", conversation=conversation, name=name, value=dump(dict(kept)))
            return keep(db, replace(perception, position=position(db, conversation, 0)), stamp(now))

        return await self._core.write(write)

    async def amend(self, perception: Perception, now: datetime) -> Amended:
        amended = await self._amend(lambda db: amend(db, perception, stamp(now)))
        if amended.is_early:
            of = amended_key(perception)
            self._early[of] = in_force(self._early.pop(of, None), perception)
            if len(self._early) > EARLY:
                del self._early[next(iter(self._early))]
        return amended

    async def _amend(self, write: Callable[[Database], Amended]) -> Amended:
        amended = await self._core.write(write)
        if amended.is_unsaid:
            self._unsaid.set()
        return amended

    @property
    def is_unsaid(self) -> bool:
        return self._unsaid.is_set()

    async def unsaid(self) -> None:
        await self._unsaid.wait()

    async def undo(self) -> Undone:
        self._unsaid.clear()
        return await self._unsaying.undo()

    async def put_right(self, perception: Perception) -> None:
        of = amended_key(perception)
        await self._core.writer.flush()
        if of and self._core.look("showing", of=f'%"{of}"%'):
            await self._core.write(lambda db: put_shown_right(db, of, perception))

    async def stop(self, perception: Perception, now: datetime, *, by_owner: bool) -> Amended:
        return await self._core.write(lambda db: stop(db, perception, stamp(now), by_owner=by_owner))


def _readable(rows: Iterable[Row]) -> Iterator[Pending]:
    """Yield the rows that decode. A damaged row is given up by its lane once it is the oldest."""
    for row in rows:
        with suppress(RowInvalid):
            yield pending_of(row)


def judged(rates: Rates, heard: Perception, limits: RateLimits) -> Perception | None:
    """Return a perception as the rates let it in; None if it is dropped. Raises: OverBudget."""
    verdict = rates.verdict(heard, limits)
    if verdict is RateVerdict.SHUT:
        raise OverBudget(SHUT_FOR_NOW)
    if verdict is RateVerdict.OVER_NOW:
        return over_budget(heard)
    return None if verdict is RateVerdict.DROPPED else heard


SHUT_FOR_NOW = "too many messages: this is not heard before the hour is over"


def over_budget(heard: Perception) -> Perception:
    """Return a perception as the one that gets the apology. Pure."""
    return replace(heard, extra=replace(heard.extra, is_over_budget=True))


def accept(
    db: Database,
    perceptions: Sequence[Perception | None],
    now: datetime,
    early: Mapping[str, Perception] | None = None,
) -> tuple[bool, ...]:
    """WRITE 1: store what was heard, and apply what changed it `early`; True for each new perception."""
    at, found = stamp(now), []
    for perception in perceptions:
        is_new = perception is not None and accept_one(db, perception, at)
        if is_new and perception and early and (change := early.get(perception.key)):
            amend(db, change, at)
        found.append(is_new)
    return tuple(found)


def accept_one(db: Database, heard: Perception, at: str) -> bool:
    """Store one perception; False if its key is known, or it is not to be kept."""
    perception = _in_thread(db, heard)
    if perception is None:
        return False
    said = perception.origin is Origin.EXTERNAL and not perception.is_bot and not is_unanswered(perception)
    new = keep(db, perception, at, said=said)
    if new and perception.person and perception.origin is Origin.EXTERNAL:
        zone = perception.extra.zone if isinstance(perception.extra, MessageExtra) else ""
        who = {"person": perception.person, "name": valid(perception.name), "is_bot": perception.is_bot}
        db.run("person_heard", **who, zone=valid(zone), now=at)
        if not is_terminal(perception.conversation):
            mark(db, perception)
    return bool(new)


def mark(db: Database, perception: Perception) -> None:
    """Record from where its channel is to be swept, if that channel was never heard before."""
    place = Place.of(perception.conversation)
    workspace, channel = f"{place.workspace}:", f"{place.workspace}:{place.channel}"
    db.run("mark_heard", adapter=place.network, workspace=workspace, channel=channel, position=perception.position)


def _in_thread(db: Database, perception: Perception) -> Perception | None:
    """Decide what a message in a thread is owed; None if it is not to be kept."""
    conversation = perception.conversation
    is_call = perception.kind is Kind.MENTION and bool(Place.of(conversation).thread)
    if perception.following is None and not is_call:
        return perception
    at = stamp(perception.at)
    if is_call and perception.owes:
        db.run("thread_called", conversation=conversation, position=perception.position, at=at)
    before = db.one("thread", conversation=conversation)
    if before is None:
        return settled_in(perception, None)
    if not perception.is_bot and before["since"] != NEVER_CALLED:
        db.run("thread_speaks", conversation=conversation, person=perception.person, key=perception.key)
    row = db.one("thread", conversation=conversation) or before
    thread = Thread(
        since=row["since"], last_at=instant(row["last_at"]), is_quiet=bool(row["is_quiet"]), people=row["people"]
    )
    db.run("thread_spoken", conversation=conversation, at=at)
    if thread.is_quiet and perception.following is Following.KEPT:
        return unanswered(perception)
    return settled_in(perception, thread)


def position(db: Database, conversation: str, schedule_id: int) -> str:
    """Return a position after everything that waits there now."""
    last = db.value("last_position", conversation=conversation)
    return f"{last}~{schedule_id:020d}" if last is not None else f"{schedule_id:020d}"
