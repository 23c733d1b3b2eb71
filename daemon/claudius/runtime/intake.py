"""Intake: makes a perception durable as it is accepted (`access.py` judges it), then wakes its lane (WRITE 1).

Source: the reliability design, section 7, "budget"; the processes design, section 6.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from claudius.cognition.conclude.conclusion import paused
from claudius.cognition.mind import Mind
from claudius.errors import StoreError, TryAgain
from claudius.intent import Utterance
from claudius.memory.inbox import UNLIMITED, RateLimits, unanswered
from claudius.perception import (
    Kind,
    MoveExtra,
    Origin,
    Perception,
    Place,
    ReactionExtra,
    Standing,
    amended_key,
    can_react,
    is_terminal,
)
from claudius.runtime.access import MUTED_UNTIL, ChannelModes, Pairing, admit, is_moderator, is_owner, taking_part
from claudius.runtime.commands.words import SIGN, STOP, THUMBS, as_command, decided_by_thumb, is_lent
from claudius.runtime.forgetting import Forgetting
from claudius.runtime.lanes import Lanes
from claudius.runtime.process_resources import ProcessResources
from claudius.tool import ToolClass

log = logging.getLogger(__name__)

T = TypeVar("T")

AFTERWARDS = (Kind.EDIT, Kind.DELETE, Kind.REACTION)
"""Kinds that refer to an earlier message: applied at once, ahead of what waits."""


class Intake:
    """The one entry point for perceptions."""

    def __init__(  # noqa: PLR0913 - the parts that it joins
        self,
        mind: Mind,
        resources: ProcessResources,
        lanes: Lanes,
        *,
        pairing: Pairing,
        modes: ChannelModes,
        forgetting: Forgetting,
        taken_down: Callable[[str], None],
        held: Callable[[Perception], None],
        failed: Callable[[StoreError], None],
    ) -> None:
        """Store perceptions in `mind.store` while the disk of `resources` has room, then notify the `lanes`.

        `taken_down` is called with the key of each deleted message, `held` with what is said at the terminal and not
        answered now; `failed` when the store fails.
        """
        self._mind, self._resources, self._lanes, self._failed = mind, resources, lanes, failed
        self._pairing, self._modes, self._forgetting, self._taken_down = pairing, modes, forgetting, taken_down
        self._held = held
        self.last_at: dict[str, datetime] = {}
        """When each network was last heard, live or in its history."""
        self._is_shut = False

    def shut(self) -> None:
        """Stop accepting: later perceptions are not acknowledged and arrive again after the next start."""
        self._is_shut = True

    async def accept(self, perception: Perception) -> bool:
        """Make a perception durable, then wake its lane. Returns False if it is known or not to be heard.

        Raises: StoreError, OverBudget, TryAgain, ConnectionAbortedError when shut; then nothing was accepted. The first
        message over a rate is accepted, and answered with an apology without a model call.
        """
        self._check_open()
        place = Place.of(perception.conversation)
        self.last_at[place.network] = self._resources.clock.steady()
        self._resources.clock.heard(place.network, perception.at)
        is_our_own = isinstance(perception.extra, MoveExtra) and perception.extra.is_our_own
        if is_our_own and perception.kind is Kind.LEAVE:
            await self._modes.removed(place.of_channel)
        if self._forgetting.is_frozen(perception.person):
            raise TryAgain("this person is being forgotten just now")
        admitted = await self._admit(perception)
        is_new = False
        if admitted is None:
            self._lanes.turned_away(perception)
        elif admitted.kind in AFTERWARDS or is_stop(admitted):
            is_new = await self._amend(admitted)
        if perception.kind in (Kind.EDIT, Kind.DELETE):  # whoever wrote it, a message of others may show it
            await self._mind.store.inbox.put_right(perception)
        if admitted is None or admitted.kind in AFTERWARDS or is_stop(admitted):
            return is_new
        limits = UNLIMITED
        if not admitted.is_owner and admitted.origin is Origin.EXTERNAL:
            limits = RateLimits.of(self._mind.config())
        (new,) = await self._keep((admitted,), limits)
        config = self._mind.config()
        if admitted.origin is Origin.EXTERNAL and is_owner(admitted, config):  # what failed may be mended
            await self._mind.store.inbox.try_now(admitted.conversation)
        is_paused = config.runtime.paused and not admitted.is_owner
        is_held = (is_paused or not admitted.owes) and admitted.kind is not Kind.COMMAND
        if new and is_held and is_terminal(admitted.conversation):  # there somebody waits for words
            self._held(admitted)
        self._lanes.wake(admitted.conversation)
        return new

    async def hear(self, missed: Sequence[Perception]) -> bool:
        """Accept missed perceptions, in order. They were said over a longer time, so no rate applies, but to bots.

        Returns False if some are to be read again later, because whoever said them is being erased just now. Raises:
        StoreError, ConnectionAbortedError when shut.
        """
        self._check_open()
        self.last_at |= {Place.of(one.conversation).network: self._resources.clock.steady() for one in missed}
        now_heard = [one for one in missed if not self._forgetting.is_frozen(one.person)]
        admitted = [one for heard in now_heard if (one := await self._admit(heard))]
        changes = [one for one in admitted if one.kind in AFTERWARDS or is_stop(one)]
        if said := [one for one in admitted if one not in changes]:
            await self._keep(said, RateLimits(bot_turns=self._mind.config().bots.turns))
        for change in changes:
            await self._amend(change)
            if change.kind in (Kind.EDIT, Kind.DELETE):
                await self._mind.store.inbox.put_right(change)
        for conversation in dict.fromkeys(one.conversation for one in said):
            self._lanes.wake(conversation)
        return len(now_heard) == len(missed)

    def _check_open(self) -> None:
        if self._is_shut:
            raise ConnectionAbortedError("going to sleep: whoever wakes next will hear it")

    async def _keep(self, perceptions: Sequence[Perception], limits: RateLimits) -> Sequence[bool]:
        """Do WRITE 1. Raises: StoreError, OverBudget; then nothing was stored."""
        now, inbox = self._resources.clock.steady(), self._mind.store.inbox
        signs: Mapping[str, Utterance] = {}
        if self._mind.config().runtime.paused:  # one kept in a shared store would cost a question a message
            signs = {one.key: paused(one) for one in perceptions if one.owes and can_react(one)}
        return await self._write(partial(inbox.accept, perceptions, now, limits, signs))

    async def _amend(self, perception: Perception) -> bool:
        """Apply an edit, deletion or stop, and cancel the turn that was about the old words. Raises: StoreError."""
        store, now = self._mind.store, self._resources.clock.steady()
        if is_stop(perception):
            by_owner = is_owner(perception, self._mind.config())
            amended = await self._write(lambda: store.inbox.stop(perception, now, by_owner=by_owner))
            whose = () if by_owner else (perception.person, *await store.people.ids_of(perception.person))
            self._lanes.hands.stop(perception.conversation, whose)
        else:
            amended = await self._write(lambda: store.inbox.amend(perception, now))
        if amended.is_new:
            self._lanes.break_off(amended.conversation, amended.interrupts)
            self._lanes.wake(amended.conversation)
            if perception.kind is Kind.DELETE:
                self._taken_down(amended_key(perception))
        return amended.is_new

    async def _write(self, write: Callable[[], Awaitable[T]]) -> T:
        if shut := self._resources.disk.shut:
            raise type(shut.error)(shut.error.message)
        try:
            return await write()
        except StoreError as error:
            self._failed(error)
            raise

    async def _admit(self, perception: Perception) -> Perception | None:
        """Return the perception as it is accepted here: a command as a command, talk by the channel's mode."""
        place = Place.of(perception.conversation).of_channel
        if perception.kind in (Kind.JOIN, Kind.LEAVE):
            self._lanes.members.forget(perception.audience)
        is_paired, mode = self._modes.access(perception.person, place)
        if is_paired and perception.audience.startswith("private:"):
            extra = replace(perception.extra, is_paired=True)
            perception = replace(perception, standing=Standing.MEMBER, extra=extra)
        config = self._mind.config()
        admitted = admit(perception, config)
        if admitted is None:
            if config.access.discord_roles is None:  # otherwise a code would let nobody in
                await self._pairing.offer(perception)
            log.debug("not heard", extra={"person": perception.person, "standing": perception.standing})
            return None
        heard = taking_part(as_command(self._as_decision(admitted)), mode)
        if heard.kind is Kind.COMMAND and is_moderator(perception, config):
            heard = replace(heard, extra=replace(heard.extra, is_moderator=True))
        is_talk = heard.kind in (Kind.MESSAGE, Kind.MENTION, Kind.EDIT) and heard.origin is Origin.EXTERNAL
        return unanswered(heard) if is_talk and config.access.muted and await self._is_muted(heard.person) else heard

    def _as_decision(self, perception: Perception) -> Perception:
        """Return a thumb on a question as the command that decides it; one on a `send` decides nothing."""
        extra = perception.extra
        if not isinstance(extra, ReactionExtra) or not (extra.is_on and extra.receipt and extra.emoji in THUMBS):
            return perception
        call = self._mind.store.calls.asked_in(Place.of(perception.conversation).of_channel, extra.receipt)
        is_decided = call is not None and call.cls is not ToolClass.SEND
        return decided_by_thumb(perception, extra, call) if call and is_decided else perception

    async def _is_muted(self, person: str) -> bool:
        now = f"{self._mind.clock():{MUTED_UNTIL}}"
        entries = [entry.partition(" until ") for entry in self._mind.config().access.muted]
        muted = {one for one, _, until in entries if not until or now < until}
        return not muted.isdisjoint((person, *await self._mind.store.people.ids_of(person)))


def is_stop(perception: Perception) -> bool:
    """Return whether a perception asks to cancel an answer: by the word, or a reaction on one's own message. Pure."""
    extra = perception.extra
    if isinstance(extra, ReactionExtra):
        return bool(extra.emoji == SIGN and extra.is_on and extra.of)
    is_talk = perception.kind in (Kind.MESSAGE, Kind.MENTION) and not is_lent(perception.conversation)
    return is_talk and perception.text.strip().casefold() == STOP
