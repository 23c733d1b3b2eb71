"""After an unclean stop: one turn at a time, each counted before it begins.

A perception that ends the process at once is counted even so, and after the second time is not thought again.
Source: the reliability design, section 4.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager

CAREFUL_S = 60.0


class Careful:
    """A mode that ends after 60 s, or as soon as what the last process left is done."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Be careless until `begin`."""
        self._monotonic = monotonic
        self._until_s = 0.0
        self._backlog: set[str] = set()
        self._is_thinking = False
        self._changed = asyncio.Condition()

    def begin(self, conversations: Iterable[str]) -> None:
        """Be careful from now on, until these conversations have nothing left to do."""
        self._backlog = set(conversations)
        self._until_s = self._monotonic() + CAREFUL_S

    @property
    def is_on(self) -> bool:
        """Whether turns are taken one at a time."""
        return bool(self._backlog) and self._monotonic() < self._until_s

    async def done(self, conversation: str) -> None:
        """A conversation has nothing left to do."""
        if conversation in self._backlog:
            self._backlog.discard(conversation)
            async with self._changed:
                self._changed.notify_all()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Think one turn: alone while the mode lasts."""
        if not self.is_on:
            yield
            return
        is_alone = await self._alone()
        try:
            yield
        finally:
            if is_alone:
                self._is_thinking = False
                async with self._changed:
                    self._changed.notify_all()

    async def _alone(self) -> bool:
        """Wait until no other turn is thought, or the mode is over; tell whether this turn now keeps others waiting."""
        try:
            async with asyncio.timeout(self._until_s - self._monotonic()), self._changed:
                await self._changed.wait_for(lambda: not self._is_thinking or not self.is_on)
                self._is_thinking = self.is_on
                return self._is_thinking
        except TimeoutError:
            return False
