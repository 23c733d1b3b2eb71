"""What else is heard in a conversation while a turn of it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from claudius.perception import Perception

Look = Callable[[], Awaitable[Sequence[Perception]]]


class Superseded(Exception):
    """A turn was stopped for a new perception: nothing of it is kept, its messages go into the next."""


async def nothing() -> Sequence[Perception]:
    """Hear nothing else."""
    return ()


class Hearing:
    """The ear of one turn. `ring` it whenever something may have been heard."""

    def __init__(self, look: Look = nothing) -> None:
        """`look` returns what waits in the conversation, oldest first, without what this turn answers."""
        self._look = look
        self._rung, self.arrived = asyncio.Event(), asyncio.Event()
        self._one_look = asyncio.Lock()
        self.pending: tuple[Perception, ...] = ()
        """What waited when it was last looked."""

    @property
    def has_arrived(self) -> bool:
        """Something was heard since the turn began."""
        return self.arrived.is_set()

    def ring(self) -> None:
        """Tell that something may have been heard."""
        self._rung.set()

    async def begin(self) -> None:
        """Look at what waits already: it was there before the turn, and interrupts nothing."""
        self._rung.clear()
        self.pending = tuple(await self._look())

    async def look(self) -> bool:
        """Look again where it rang; tell whether something was heard since the turn began."""
        async with self._one_look:  # whoever asks while another looks gets what that one finds
            if self._rung.is_set():
                self._rung.clear()
                known = {one.key for one in self.pending}
                self.pending = tuple(await self._look())
                if any(one.key not in known for one in self.pending):
                    self.arrived.set()
        return self.has_arrived

    async def listen(self) -> None:
        """Keep `pending` as it is, for as long as the turn runs."""
        while True:
            await self._rung.wait()
            await self.look()
