"""One conversation's lane, while it has something to do: what runs in it, what wakes it, and what breaks it off.

Also which waiting perceptions one turn answers together, and which wait for the rest of a sentence.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import takewhile
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.cognition.reflection import reflect
from claudius.cognition.turn import Turned
from claudius.cognition.turn_state import Arrivals, is_more
from claudius.failure import Failure
from claudius.intent import ShownThought
from claudius.memory.inbox import Pending
from claudius.perception import MessageExtra, Origin, Perception, Place, private
from claudius.runtime.adapter import Adapter
from claudius.runtime.background_services import BackgroundServices
from claudius.runtime.failures import AGAIN, Retry
from claudius.runtime.hands import LaneHands
from claudius.runtime.process_resources import Passage
from claudius.shown import BROUGHT, Quoted


class BrokenOff(Exception):
    """What the turn was to answer has changed or is gone."""


class Lane(Struct, eq=False):
    """One conversation's lane, while it has something to do."""

    conversation: str
    adapter: Adapter | None
    mind: Mind
    """Writes to the store as the holder of this lane."""
    hands: LaneHands
    """Does the calls of tools there."""
    is_recovered: bool = False
    """Whether the calls were judged that an earlier holder left."""
    is_for_commands: bool = False
    """Whether commands are carried out in it, and no turns run."""
    passage: Passage | None = None
    """How far its turn has come, for admission; None = it has none."""
    speaking_s: float | None = None
    """Since when parts are being sent, which are to be noted, or taken down, even if the lane is lost meanwhile."""
    is_bound: bool = False
    """Whether the command that runs in it goes to its end, even if the lane is lost meanwhile."""
    heard: int = -1
    """The mark of what had become ready in it before the last look, where several processes share the store."""
    last: Turned | None = None
    """The last turn since the lane was last idle."""
    thought: ShownThought | None = None
    """What an owner chose to see of the last turn's thought, once its words are sent."""
    around: tuple[Quoted, ...] = ()
    """What stands above the message that the next turn answers."""
    signed: Perception | None = None
    """The perception whose typing indicator is shown."""
    bell: asyncio.Event = field(default_factory=asyncio.Event)
    hearing: Arrivals | None = None
    """The running turn's view of what waits in its conversation."""
    thinking: str = ""
    """The running turn."""
    told: tuple[str, Failure] | None = None
    """The turn whose failure was told last, and that failure."""
    broken: asyncio.Event = field(default_factory=asyncio.Event)
    """Set if the running turn is to be cancelled."""

    async def think(self, turn: str, work: Coroutine[Any, Any, Turned | None]) -> Turned | None:
        """Do the work of a turn to its end. Raises: BrokenOff if it was cancelled, and what the work raises."""
        self.thinking = turn
        self.broken.clear()
        doing, broken = asyncio.ensure_future(work), asyncio.ensure_future(self.broken.wait())
        try:
            await asyncio.wait((doing, broken), return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                raise BrokenOff
            return doing.result()
        finally:
            self.thinking = ""
            for task in (doing, broken):
                task.cancel()
            await asyncio.gather(doing, broken, return_exceptions=True)

    async def be_idle(self, mind: Mind, services: BackgroundServices | None) -> Retry | None:
        """Do the idle work that follows a turn, until someone speaks: first daimon speech, then the subprocesses.

        Returns when the lane goes on; None if nothing is left.
        """
        last, self.last = self.last, None
        if last is None:
            return None
        joining = services.beside(last.intent, last.pending) if services and not last.is_joined else None
        if joining:
            self.last = replace(last, is_joined=True)
            await self._unless_woken(joining)
            return AGAIN
        await self._unless_woken(reflect(last, mind.beside()))
        return None

    async def _unless_woken(self, work: Coroutine[None, None, None]) -> None:
        """Do idle work, and cancel it as soon as the lane is woken."""
        doing, ringing = asyncio.ensure_future(work), asyncio.ensure_future(self.bell.wait())
        try:
            await asyncio.wait((doing, ringing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (doing, ringing):
                task.cancel()
            await asyncio.gather(doing, ringing, return_exceptions=True)
        if not doing.cancelled() and (error := doing.exception()):
            raise error

    def end_passage(self) -> None:
        """Let admission count this lane no longer."""
        if self.passage:
            self.passage.end()
            self.passage = None

    async def wait(self, seconds: float) -> None:
        """Wait `seconds`, or until the lane is woken."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.bell.wait()

    async def sign(self, perception: Perception | None) -> None:
        """Show the typing indicator for a perception; None clears it."""
        before, self.signed = self.signed, perception
        for one, on in ((before, False), (perception, True)):
            if one is not None and self.adapter:
                await self.adapter.working(one, on=on)


TOGETHER = 10
"""The most messages that one reply answers."""
FRAGMENT_CHARS, FRAGMENT_S = 40, 1.2
"""A short message without an end waits so long for the next one."""
_TYPED_IN_PIECES = ("slack", "discord")
"""The networks on whose direct messages a sentence is typed in pieces."""
_NO_END = frozenset(",;:、，；：،؛'\"’”»「『(")
"""Punctuation after which a sentence goes on."""
_CLOSING = ")]}'\"’”»」』*_~ "
_EMOJI_NAME = re.compile(r":[a-z0-9_+'-]+:")


async def next_turn(first: Pending, mind: Mind, now: datetime) -> Pending | Retry:
    """Return what is answered together with the oldest perception of its conversation, as one turn.

    A perception that gave way to a newer one goes with the next; by `runtime.merge_while_busy`, one person's waiting
    messages are grouped. If the last of them is the beginning of a sentence, returns when to look again;
    so too where the oldest is to be tried again later.
    """
    if first.not_before and first.not_before > now:
        return Retry((first.not_before - now).total_seconds())
    group = await _grouped(first, mind)
    waits_s = (group[-1].heard_at - now).total_seconds() + FRAGMENT_S
    is_set_back = waits_s > 2 * FRAGMENT_S  # it was heard before a start, by a clock that has been set since
    if waits_s > 0 and not is_set_back and goes_on([one.perception for one in group], mind):
        return Retry(min(waits_s, FRAGMENT_S))
    return await mind.store.inbox.join(group) if len(group) > 1 else first


async def _grouped(first: Pending, mind: Mind) -> Sequence[Pending]:
    is_merged = _is_merged(first.perception, mind)
    if first.is_stopped or not (first.held or is_merged):
        return (first,)
    waiting = await mind.store.inbox.unfinished(first.perception.conversation)
    held = list(takewhile(lambda one: bool(one.held), waiting))
    rest = waiting[len(held) :]
    group = [*held, *rest[:1]]
    if is_merged and group:
        person = group[-1].perception.person
        group += takewhile(lambda one: is_more(one.perception, person), rest[1:])
    return [one for one in group[:TOGETHER] if (one.perception.owes and not one.is_stopped) or one is group[0]]


def _is_merged(perception: Perception, mind: Mind) -> bool:
    """Return whether what one person says there meanwhile is answered in one reply."""
    if perception.origin is not Origin.EXTERNAL or not perception.owes:  # what the clock brings is answered by itself
        return False
    mode = mind.config().runtime.merge_while_busy
    return _is_direct(perception) if mode == "direct" else mode


def _is_direct(perception: Perception) -> bool:
    is_there = Place.of(perception.conversation).network in _TYPED_IN_PIECES
    return is_there and perception.audience.startswith(private(""))


def goes_on(heard: Sequence[Perception], mind: Mind) -> bool:
    """Return whether the next message of that person probably belongs to these, and is answered with them."""
    last = heard[-1]
    return len(heard) < TOGETHER and _is_merged(last, mind) and _is_direct(last) and is_fragment(last)


def is_fragment(perception: Perception) -> bool:
    """Return whether a message looks like the beginning of a sentence that goes on in the next one. Pure.

    It is short, and has neither an end mark of any script, nor an emoji, nor brings a file or a text of another.
    """
    text, extra = perception.text.strip(), perception.extra
    if not text or len(text) > FRAGMENT_CHARS or _EMOJI_NAME.search(text):
        return False
    if isinstance(extra, MessageExtra) and (extra.files or [one for one in extra.shown if one.how in BROUGHT]):
        return False
    if any(unicodedata.category(sign) in ("So", "Sk") for sign in text):
        return False
    last = text.rstrip(_CLOSING)[-1:]
    return not (unicodedata.category(last or ".") == "Po" and last not in _NO_END)
