"""Admission control: in a burst, messages are made durable before turns about them begin.

A turn occupies the event loop for milliseconds before it waits for a model. A hundred turns beginning at once would
delay everyone else, above all the acknowledgements of messages that arrive meanwhile; and the writer thread gets the
interpreter lock readily only while the loop is idle.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_S = 0.25
"""The longest time a lane waits for incoming messages."""
LATELY_S = 0.1
"""For how long after a message more of them are expected."""
ABREAST = 64
"""How many lanes begin in one pass of the event loop if nothing arrived lately; otherwise one does."""


class Turnstile:
    """Lets lanes begin in order of arrival: none while a message is being stored, one by one soon after."""

    def __init__(self) -> None:
        """Create an open gate."""
        self._waiting: deque[tuple[float, asyncio.Future[None]]] = deque()
        """The deadline until which each lane waits for incoming messages, and the future it waits on."""
        self._opening: asyncio.Handle | None = None
        """The next opening: in the next pass, or at the deadline of the first lane."""
        self._hearing = 0
        self._heard_s = float("-inf")

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Let no lane begin while the block runs; the block stores an incoming message."""
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
        """Wait until the calling lane may begin."""
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
        """Let the next lanes begin."""
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
