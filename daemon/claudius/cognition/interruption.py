"""Track the perceptions that arrive in a conversation while one of its turns runs, so that the turn can yield."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from claudius.perception import Perception

Look = Callable[[], Awaitable[Sequence[Perception]]]


class Superseded(Exception):
    """The turn was stopped for a new perception. Nothing is kept; its messages go into the next turn."""


async def nothing() -> Sequence[Perception]:
    """Return no other perceptions."""
    return ()


class Hearing:
    """Watches for new perceptions during one turn. Call `ring` whenever one may have arrived."""

    def __init__(self, look: Look = nothing) -> None:
        """`look` returns the perceptions waiting in the conversation, oldest first, without those this turn answers."""
        self._look = look
        self._rung, self.arrived = asyncio.Event(), asyncio.Event()
        self._one_look = asyncio.Lock()
        self.pending: tuple[Perception, ...] = ()
        """The perceptions found by the last look."""

    @property
    def has_arrived(self) -> bool:
        """Whether a new perception arrived since the turn began."""
        return self.arrived.is_set()

    def ring(self) -> None:
        """Signal that a perception may have arrived."""
        self._rung.set()

    async def begin(self) -> None:
        """Record the perceptions that already wait; they came before the turn and do not interrupt it."""
        self._rung.clear()
        self.pending = tuple(await self._look())

    async def look(self) -> bool:
        """Look again if `ring` was called. Returns whether a new perception arrived since the turn began."""
        async with self._one_look:  # a concurrent caller waits and gets the result of the look under way
            if self._rung.is_set():
                self._rung.clear()
                known = {one.key for one in self.pending}
                self.pending = tuple(await self._look())
                if any(one.key not in known for one in self.pending):
                    self.arrived.set()
        return self.has_arrived

    async def listen(self) -> None:
        """Keep `pending` up to date while the turn runs."""
        while True:
            await self._rung.wait()
            await self.look()
