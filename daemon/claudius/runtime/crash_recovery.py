"""Recovery after an unclean stop: turns run one at a time, each counted before it begins; some turns always run alone.

Counting first means that even a perception that ends the process at once is counted. A perception that ended two
processes is tried a third time, alone. Source: the reliability design, sections 4 and 7.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress

CAREFUL_S = 60.0


class Careful:
    """Recovery mode: on for 60 s or until the last process's backlog is done, and while a turn runs alone."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Start with the mode off, until `begin`."""
        self._monotonic = monotonic
        self._until_s = 0.0
        self._backlog: set[str] = set()
        self._thinking = 0
        """Number of running turns."""
        self._alone = 0
        """Number of turns that run alone or wait to."""
        self._alone_until_s = 0.0
        """Until then, turns that run alone keep the others waiting."""
        self._changed = asyncio.Condition()

    def begin(self, conversations: Iterable[str]) -> None:
        """Switch the mode on until these conversations have nothing left to do."""
        self._backlog = set(conversations)
        self._until_s = self._monotonic() + CAREFUL_S

    @property
    def is_on(self) -> bool:
        """Whether turns run one at a time, each counted before it begins."""
        return bool(self._alone) or self._is_recovering

    @property
    def _is_recovering(self) -> bool:
        return bool(self._backlog) and self._monotonic() < self._until_s

    async def done(self, conversation: str) -> None:
        """Record that a conversation has nothing left to do."""
        if conversation in self._backlog:
            self._backlog.discard(conversation)
            await self._tell()

    @asynccontextmanager
    async def turn(self, *, alone: bool = False) -> AsyncIterator[None]:
        """Run one turn; exclusively if it is `alone`, or while the mode is on.

        Nobody waits longer than 60 s for that, neither this turn for the others nor the others for this one.
        """
        self._alone += alone
        try:
            await self._begin(alone=alone)
            try:
                yield
            finally:
                self._thinking -= 1
        finally:
            self._alone -= alone
            await self._tell()

    async def _begin(self, *, alone: bool) -> None:
        latest_s = self._monotonic() + CAREFUL_S
        if alone:
            self._alone_until_s = latest_s
        async with self._changed:
            while not self._may_begin(alone=alone):
                until_s = latest_s if alone else max(self._until_s, self._alone_until_s)
                if until_s <= self._monotonic():
                    break
                with suppress(TimeoutError):
                    async with asyncio.timeout(until_s - self._monotonic()):
                        await self._changed.wait()
            if alone:
                self._alone_until_s = self._monotonic() + CAREFUL_S
            self._thinking += 1

    def _may_begin(self, *, alone: bool) -> bool:
        if alone:
            return not self._thinking
        if self._alone and self._monotonic() < self._alone_until_s:
            return False
        return not self._thinking or not self._is_recovering

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()
