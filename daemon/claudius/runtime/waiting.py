"""How a lane waits: for a while, or until its bell rings."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine


async def unless(bell: asyncio.Event, work: Coroutine[None, None, None]) -> None:
    """Do idle work, and drop it as soon as someone speaks."""
    doing, ringing = asyncio.ensure_future(work), asyncio.ensure_future(bell.wait())
    try:
        await asyncio.wait((doing, ringing), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (doing, ringing):
            task.cancel()
        await asyncio.gather(doing, ringing, return_exceptions=True)
    if not doing.cancelled() and (error := doing.exception()):
        raise error


async def until(bell: asyncio.Event, seconds: float) -> None:
    """Wait for so long, or until it rings."""
    try:
        async with asyncio.timeout(seconds):
            await bell.wait()
    except TimeoutError:
        return
