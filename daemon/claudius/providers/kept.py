"""Connections to a model's server that outlive a reply: the next one is asked for without new handshakes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from contextlib import suppress

KEPT_S = 60.0
"""How long an idle connection is kept: the libraries' 5 s are shorter than people take to answer."""
DRAIN_S = 0.05


async def drain(rest: AsyncIterable[object], *faults: type[Exception]) -> None:
    """Read what follows a reply's end: only a body that was read whole leaves its connection to the next call.

    A server that keeps it open is left, and what breaks by then (`faults`) harms nobody.
    """
    with suppress(TimeoutError, *faults):
        async with asyncio.timeout(DRAIN_S):
            async for _ in rest:
                pass
