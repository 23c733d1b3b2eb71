"""A server's clock, and how tests wait until something is so."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Clock:
    """A server's wall time; it can be put forward. UTC seconds."""

    tick: Callable[[], float] = time.time
    ahead_s: float = 0.0

    def now(self) -> float:
        """Tell the time."""
        return self.tick() + self.ahead_s


@dataclass(slots=True)
class Changes:
    """Wakes whoever waits for something. A person who changes the records says so."""

    _waiting: set[asyncio.Event] = field(default_factory=set)

    def happened(self) -> None:
        """Have everybody look again."""
        for event in self._waiting:
            event.set()

    async def until(self, is_so: Callable[[], bool], within_s: float) -> None:
        """Wait until something is so. Raises: TimeoutError."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            async with asyncio.timeout(within_s):
                while not is_so():
                    event.clear()
                    await event.wait()
        finally:
            self._waiting.discard(event)
