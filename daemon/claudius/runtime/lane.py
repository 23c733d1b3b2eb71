"""How a lane waits: for a while, or until its bell rings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.interruption import Hearing
from claudius.cognition.mind import Mind
from claudius.cognition.turn import Turned, afterthought
from claudius.intent import ApologyKind
from claudius.memory.store import Pending
from claudius.perception import Perception


async def unless(bell: asyncio.Event, work: Coroutine[None, None, None]) -> None:
    """Do idle work, and drop it as soon as someone speaks."""
    doing, ringing = asyncio.ensure_future(work), asyncio.ensure_future(bell.wait())
    try:
        await asyncio.wait((doing, ringing), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (doing, ringing):
            task.cancel()
        await asyncio.gather(doing, ringing, return_exceptions=True)
    if not doing.cancelled() and (error := doing.exception()):
        raise error


async def until(bell: asyncio.Event, seconds: float) -> None:
    """Wait for so long, or until it rings."""
    try:
        async with asyncio.timeout(seconds):
            await bell.wait()
    except TimeoutError:
        return


log = logging.getLogger("claudius.lanes")

T = TypeVar("T")

ALONE_AFTER, ENDED_PROCESSES = 2, 3
"""A perception whose turns ended so many processes is thought alone the next time; after so many, not again."""


class BrokenOff(Exception):
    """What a turn was to answer is another thing now, or nothing."""


class Lane(Struct):
    """One conversation's lane, while it has something to do."""

    task: asyncio.Task[None]
    last: Turned | None = None
    """The last turn since the lane was last idle."""
    signed: Perception | None = None
    """What the soul is seen to think about."""
    bell: asyncio.Event = field(default_factory=asyncio.Event)
    hearing: Hearing | None = None
    """The ear of the turn that runs."""
    thinking: str = ""
    """The turn that runs."""
    broken: asyncio.Event = field(default_factory=asyncio.Event)
    """Set where that turn is not to go on."""

    async def think(self, turn: str, work: Coroutine[Any, Any, T]) -> T:
        """Do the work of a turn to its end. Raises: BrokenOff where it is not to go on, and what the work raises."""
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

    async def be_idle(self, mind: Mind) -> float | None:
        """Do what comes after a turn, until someone speaks: others speak first, then it is thought over.

        Returns how long to wait before the lane looks again; None where nothing is left.
        """
        last, self.last = self.last, None
        if last is None:
            return None
        if not last.is_joined and (joining := mind.beside(last.intent, last.pending)):
            self.last = replace(last, is_joined=True)
            await unless(self.bell, joining)
            return 0.0
        await unless(self.bell, afterthought(last, mind))
        return None

    def break_off(self, turn: str) -> None:
        """Let a turn not go on, where it is the one that runs."""
        if turn and self.thinking == turn:
            self.broken.set()


class Held(Struct):
    """A network whose lanes wait for its history."""

    waiting: set[str] = field(default_factory=set)
    complete: set[str] = field(default_factory=set)
    """Conversations whose history is read."""


def given_up(pending: Pending) -> ApologyKind | None:
    """Tell why a perception is not thought about, but apologised for; None where it is."""
    if pending.ended >= ENDED_PROCESSES:
        log.error("turn given up", extra={"turn": pending.turn, "attempts": pending.attempts})
        return "interrupted"
    return "stopped" if pending.is_stopped else None
