"""Hearing: who may talk and how often, then WRITE 1, then the conversation's lane is woken."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.errors import OverBudget, StoreError, TryAgain
from claudius.perception import OURSELVES, Kind, Origin, Perception, Place
from claudius.runtime.access import Rates, Verdict, admit
from claudius.runtime.commands.words import is_owner, is_stop
from claudius.runtime.participation import Company
from claudius.runtime.process_resources import Body

log = logging.getLogger("claudius.intake")

T = TypeVar("T")

AFTERWARDS = (Kind.EDIT, Kind.DELETE, Kind.REACTION)
"""What is about something that was said before: put in force at once, ahead of what waits."""


EARLY = 256
"""So many changes of messages that were not heard are kept in mind: an event may overtake the one that it is about."""


class Thinkers(Protocol):
    """Who thinks about what is heard."""

    def wake(self, conversation: str) -> None:
        """Have a conversation look again at what waits."""

    def break_off(self, conversation: str, turn: str) -> None:
        """Let a turn not go on."""

    def forget_members(self, audience: str) -> None:
        """Ask again who can see a shared audience."""


class Intake:
    """The one door through which perceptions come in."""

    def __init__(self, mind: Mind, body: Body, lanes: Thinkers, failed: Callable[[StoreError], None]) -> None:
        """Keep what is heard in `mind.store`, while the `body`'s disk has room for it, then tell the `lanes`.

        `failed` is told when the store fails.
        """
        self._mind, self._body, self._lanes, self._failed = mind, body, lanes, failed
        self._rates = Rates()
        self._early: dict[str, Perception] = {}
        """The last changes that were of nothing known, by the key of what they are about; the oldest first."""
        self.last_at: dict[str, datetime] = {}
        """When each network was last heard, live or in its history."""
        self._is_shut = False
        self.company: Company | None = None
        """Who is let in by a code, and where the soul takes part how."""
        self.taken_down: Callable[[str], None] = lambda _: None
        """Is told the key of each message that is gone."""
        self._frozen: frozenset[str] = frozenset()

    def shut(self) -> None:
        """Hear nothing more: what comes now is not acknowledged, and comes back to whoever wakes next."""
        self._is_shut = True

    def freeze(self, persons: Sequence[str]) -> None:
        """Hear nothing of these persons for now, because they are being erased: what comes is to come again."""
        self._frozen = frozenset(persons)

    async def accept(self, perception: Perception) -> bool:
        """Make a perception durable, then let its lane know; False where it is known, or not to be heard.

        Raises: StoreError, OverBudget, ConnectionAbortedError when shut; then nothing was accepted. The first message
        over a rate is accepted, to be apologised for without a model call.
        """
        self._check_open()
        network = Place.of(perception.conversation).network
        self.last_at[network] = self._body.clock.steady()
        self._body.clock.heard(network, perception.at)
        if self.company and OURSELVES in perception.extra and perception.kind is Kind.LEAVE:
            await self.company.removed(Place.of(perception.conversation).of_channel)
        admitted = self._admit(perception)
        if admitted is None:
            return False
        if admitted.kind in AFTERWARDS or is_stop(admitted):
            return await self._amend(admitted)
        if not admitted.is_owner and admitted.origin is Origin.EXTERNAL:
            admitted = self._within_rates(admitted)
        (new,) = await self._keep((admitted,))
        if new and (change := self._early.pop(admitted.key, None)):
            await self._amend(change)
        self._lanes.wake(admitted.conversation)
        return new

    async def hear(self, missed: Sequence[Perception]) -> None:
        """Take what was missed, in order. It was said over time, so that no rate applies to it.

        Raises: StoreError, ConnectionAbortedError when shut.
        """
        self._check_open()
        self.last_at |= {Place.of(one.conversation).network: self._body.clock.steady() for one in missed}
        admitted = [one for heard in missed if (one := self._admit(heard))]
        stops = [one for one in admitted if is_stop(one)]
        if said := [one for one in admitted if one not in stops]:
            await self._keep(said)
        for stop in stops:
            await self._amend(stop)
        for conversation in dict.fromkeys(one.conversation for one in said):
            self._lanes.wake(conversation)

    def _check_open(self) -> None:
        if self._is_shut:
            raise ConnectionAbortedError("going to sleep: whoever wakes next will hear it")

    async def _keep(self, perceptions: Sequence[Perception]) -> Sequence[bool]:
        """WRITE 1. Raises: StoreError; then nothing was kept."""
        return await self._write(lambda: self._mind.store.accept(perceptions, self._body.clock.steady()))

    async def _amend(self, perception: Perception) -> bool:
        """Put a second thought in force; the turn that was about the old words does not go on. Raises: StoreError."""
        store, now = self._mind.store, self._body.clock.steady()
        if is_stop(perception):
            by_owner = is_owner(perception, self._mind.config())
            amended = await self._write(lambda: store.stop(perception, now, by_owner=by_owner))
        else:
            amended = await self._write(lambda: store.amend(perception, now))
        if amended.is_new:
            self._lanes.break_off(amended.conversation, amended.interrupts)
            self._lanes.wake(amended.conversation)
            if perception.kind is Kind.DELETE:
                self.taken_down(str(perception.extra.get("of")))
        elif perception.kind in (Kind.EDIT, Kind.DELETE):
            self._keep_in_mind(perception)
        return amended.is_new

    def _keep_in_mind(self, change: Perception) -> None:
        of = str(change.extra.get("of"))
        known = self._early.pop(of, None)
        if known and (known.kind is Kind.DELETE or (change.kind is Kind.EDIT and change.position < known.position)):
            change = known
        self._early[of] = change
        if len(self._early) > EARLY:
            del self._early[next(iter(self._early))]

    async def _write(self, write: Callable[[], Awaitable[T]]) -> T:
        self._body.disk.refuse()
        try:
            with self._body.turnstile.hearing():
                return await write()
        except StoreError as error:
            self._failed(error)
            raise

    def _admit(self, perception: Perception) -> Perception | None:
        if perception.person in self._frozen:
            raise TryAgain("this person is being forgotten just now")
        if perception.kind in (Kind.JOIN, Kind.LEAVE):
            self._lanes.forget_members(perception.audience)
        perception = self.company.introduce(perception) if self.company else perception
        config = self._mind.config()
        admitted = admit(perception, config)
        if admitted is None:
            if self.company:
                self.company.refuse(perception)
            log.debug("not heard", extra={"person": perception.person, "standing": perception.standing})
            return None
        if admitted.is_bot and not self._rates.once(f"bot {admitted.key}", lambda: self._hears_bot(admitted)):
            return None
        return self.company.receive(admitted) if self.company else admitted

    def _hears_bot(self, perception: Perception) -> bool:
        turns = self._mind.config().bots.turns
        return self._rates.judge_bot(perception.person, perception.conversation, turns, time.monotonic())

    def _judge(self, perception: Perception) -> Verdict:
        budget = self._mind.config().budget
        return self._rates.judge(perception.person, perception.conversation, budget, time.monotonic())

    def _within_rates(self, perception: Perception) -> Perception:
        match self._rates.once(perception.key, lambda: self._judge(perception)):
            case Verdict.SHUT:
                raise OverBudget("too many messages: this is not heard before the hour is over")
            case Verdict.OVER_NOW:
                return replace(perception, extra={**perception.extra, "over_budget": True})
            case Verdict.WITHIN:
                return perception
