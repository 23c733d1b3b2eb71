"""Hearing comes before thinking: in a burst, what was heard is durable before thoughts about it begin.

A thought takes the event loop for milliseconds before it waits for a model. A hundred that begin side by side would
keep everyone else waiting until the last of them has, acknowledgements of what is heard meanwhile first of all; and
the thread that writes gets the interpreter readily only where the loop is at rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_S = 0.25
"""Nobody waits for longer than this for those who hear."""


class Turnstile:
    """Lets lanes begin one after the other, one in each pass of the event loop, and none while anything is heard."""

    def __init__(self) -> None:
        """Stand open."""
        self._queue = asyncio.Lock()
        self._hearing = 0
        self._quiet = asyncio.Event()
        self._is_used = False
        """Somebody went through in this pass of the loop."""

    @contextmanager
    def hearing(self) -> Iterator[None]:
        """Let nobody begin while a block runs, which makes durable what was heard."""
        self._quiet.clear()
        self._hearing += 1
        try:
            yield
        finally:
            self._hearing -= 1
            if not self._hearing:
                self._quiet.set()

    async def through(self) -> None:
        """Wait until it is one's turn to begin."""
        loop = asyncio.get_running_loop()
        latest_s = loop.time() + PATIENCE_S
        async with self._queue:
            if self._hearing and loop.time() < latest_s:
                await self._until_quiet(latest_s)
            while self._is_used:  # noqa: ASYNC110 - the very next pass is what is waited for
                await asyncio.sleep(0)
            self._is_used = True
            loop.call_soon(self._next_pass)

    async def _until_quiet(self, latest_s: float) -> None:
        impatient = asyncio.get_running_loop().call_at(latest_s, self._quiet.set)
        try:
            await self._quiet.wait()
        finally:
            impatient.cancel()

    def _next_pass(self) -> None:
        self._is_used = False
