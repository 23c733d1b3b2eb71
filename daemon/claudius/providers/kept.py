"""Connections to a model's server that outlive a reply: a call that soon follows pays for no handshake.

For how long is left to the libraries (5 s): one that is kept longer may be dead without a sign, where a laptop slept
or changed its network, and the next call would wait for it in vain.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from contextlib import suppress

DRAIN_S = 0.05


async def drain(rest: AsyncIterable[object], *faults: type[Exception]) -> None:
    """Read what follows a reply's end: only a body that was read whole leaves its connection to the next call.

    A server that keeps it open is left, and what breaks by then (`faults`, or no JSON) harms nobody.
    """
    with suppress(TimeoutError, ValueError, RecursionError, *faults):
        async with asyncio.timeout(DRAIN_S):
            async for _ in rest:
                pass
