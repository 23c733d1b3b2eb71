"""Connections to a model's server that outlive a reply: a call that soon follows pays for no handshake.

For how long is left to the libraries (5 s): one that is kept longer may be dead without a sign, where a laptop slept
or changed its network, and the next call would wait for it in vain.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from contextlib import suppress

from claudius.provider import Delta

DRAIN_S = 0.05


async def drain(rest: AsyncIterable[object], *faults: type[Exception]) -> None:
    """Read what follows a reply's end: only a body that was read whole leaves its connection to the next call.

    A server that keeps it open is left, and what breaks by then (`faults`, or no JSON) harms nobody.
    """
    with suppress(TimeoutError, ValueError, RecursionError, *faults):
        async with asyncio.timeout(DRAIN_S):
            async for _ in rest:
                pass


REPLY_CHARS = 1_048_576
"""Longest reply taken from a transport; far above what `max_tokens` allows and what the parser reads."""
LINE_BYTES = 4 * 1_048_576
"""Longest line of a stream; a longer one breaks it."""


class Reply:
    """One reply as it grows."""

    __slots__ = ("_parts", "chars")

    def __init__(self) -> None:
        """Begin with nothing."""
        self._parts: list[str] = []
        self.chars = 0

    def add(self, text: str) -> Delta | None:
        """Take a piece, as much of it as there is room for; None where it is empty."""
        kept = text[: REPLY_CHARS - self.chars]
        if not kept:
            return None
        self._parts.append(kept)
        self.chars += len(kept)
        return Delta(kept)

    @property
    def is_full(self) -> bool:
        """Whether the stream is to be broken off: a cut reply, as at `max_tokens`."""
        return self.chars >= REPLY_CHARS

    @property
    def text(self) -> str:
        """The whole of it."""
        return "".join(self._parts)
