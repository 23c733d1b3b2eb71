"""One conversation's lane, while it has something to do: what runs in it, what wakes it, and what breaks it off."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.cognition.reflection import reflect
from claudius.cognition.turn import Turned
from claudius.cognition.turn_state import Arrivals
from claudius.failure import Failure
from claudius.perception import Perception, Place
from claudius.runtime.adapter import Adapter
from claudius.runtime.background_services import BackgroundServices
from claudius.runtime.failures import AGAIN, Retry
from claudius.runtime.process_resources import Passage
from claudius.shown import Quoted


class BrokenOff(Exception):
    """What the turn was to answer has changed or is gone."""


class Lane(Struct, eq=False):
    """One conversation's lane, while it has something to do."""

    conversation: str
    adapter: Adapter | None
    mind: Mind
    """Writes to the store as the holder of this lane."""
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

    @property
    def is_for_commands(self) -> bool:
        """Whether commands are carried out in it, and no turns run."""
        return Place.of(self.conversation).is_for_commands

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
