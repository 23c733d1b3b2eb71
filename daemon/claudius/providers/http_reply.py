"""Collect one streamed reply within size limits, and drain its body so that the connection can be reused.

A call that soon follows then needs no new handshake. How long a connection is kept is left to the libraries (5 s): one
kept longer may be dead without a sign after a laptop slept or changed its network, and the next call would wait for it
in vain.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from contextlib import suppress

from claudius.provider import Delta

DRAIN_S = 0.05


async def drain(rest: AsyncIterable[object], *faults: type[Exception]) -> None:
    """Read what follows a reply's end, because only a fully read body leaves its connection to the next call.

    A body that the server keeps open is given up, and errors at this point (`faults`, or invalid JSON) are ignored.
    """
    with suppress(TimeoutError, ValueError, RecursionError, *faults):
        async with asyncio.timeout(DRAIN_S):
            async for _ in rest:
                pass


REPLY_CHARS = 1_048_576
"""Longest reply accepted from a transport, far above what `max_tokens` allows and what the parser reads."""
LINE_BYTES = 4 * 1_048_576
"""Longest line of a stream. A longer one breaks the stream."""


class Reply:
    """One reply as it grows."""

    __slots__ = ("_parts", "chars")

    def __init__(self) -> None:
        """Begin empty."""
        self._parts: list[str] = []
        self.chars = 0

    def add(self, text: str) -> Delta | None:
        """Add a piece, cut to the room left. Returns None if nothing was added."""
        kept = text[: REPLY_CHARS - self.chars]
        if not kept:
            return None
        self._parts.append(kept)
        self.chars += len(kept)
        return Delta(kept)

    @property
    def is_full(self) -> bool:
        """Whether the stream is to be broken off. The reply then counts as cut, as at `max_tokens`."""
        return self.chars >= REPLY_CHARS

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self._parts)
