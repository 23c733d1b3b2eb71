"""Hearing comes before thinking: in a burst, what was heard is durable before thoughts about it begin.

A thought takes the event loop for milliseconds before it waits for a model. A hundred that begin side by side would
keep everyone else waiting until the last of them has, acknowledgements of what is heard meanwhile first of all; and
the thread that writes gets the interpreter readily only where the loop is at rest.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_S = 0.25
"""Nobody waits for longer than this for those who hear."""
LATELY_S = 0.1
"""So long after something was heard, more of it may be on the way."""
ABREAST = 64
"""So many begin in one pass of the event loop while nothing was heard lately; else one does."""


class Turnstile:
    """Lets lanes begin in the order in which they came: none while anything is heard, one by one soon after."""

    def __init__(self) -> None:
        """Stand open."""
        self._waiting: deque[tuple[float, asyncio.Future[None]]] = deque()
        """Until when each waits for those who hear, and what it waits on."""
        self._opening: asyncio.Handle | None = None
        """When it opens next: in the next pass, or when the first one's patience ends."""
        self._hearing = 0
        self._heard_s = float("-inf")

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Let nobody begin while a block runs, which makes durable what was heard."""
        self._hearing += 1
        try:
            yield
        finally:
            self._hearing -= 1
            loop = asyncio.get_running_loop()
            self._heard_s = loop.time()
            if self._waiting and not self._hearing:
                self._open_soon()

    async def through(self) -> None:
        """Wait until it is one's turn to begin."""
        loop = asyncio.get_running_loop()
        if self._opening is None and not self._hearing:
            self._open_soon()
            return
        future = loop.create_future()
        self._waiting.append((loop.time() + PATIENCE_S, future))
        if self._opening is None:
            self._open_at(loop.call_at(self._waiting[0][0], self._open))
        await future

    def _open_soon(self) -> None:
        self._open_at(asyncio.get_running_loop().call_soon(self._open))

    def _open_at(self, handle: asyncio.Handle) -> None:
        if self._opening is not None:
            self._opening.cancel()
        self._opening = handle

    def _open(self) -> None:
        """Let the next ones begin."""
        loop = asyncio.get_running_loop()
        self._opening, now_s = None, loop.time()
        room = 1 if now_s - self._heard_s < LATELY_S else ABREAST
        while self._waiting and room:
            latest_s, future = self._waiting[0]
            if self._hearing and now_s < latest_s and not future.done():
                self._open_at(loop.call_at(latest_s, self._open))
                return
            self._waiting.popleft()
            if not future.done():  # cancelled meanwhile
                future.set_result(None)
                room -= 1
        if self._waiting:
            self._open_soon()
