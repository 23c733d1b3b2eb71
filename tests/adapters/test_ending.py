"""What adapters run beside each other ends together, also where a library loses a cancellation."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from claudius.adapters.chat_adapter import either


async def losing(lost: list[str]) -> None:
    """Lose one cancellation, as `asyncio.wait_for` does on Python 3.11 if its work ends in the same moment."""
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()
    lost.append("a cancellation")
    await asyncio.Event().wait()


async def test_a_lost_cancellation_does_not_keep_an_adapter_from_beginning_anew() -> None:
    """A25: where the watch wants a fresh client, the old one ends, though it missed that it should."""
    lost: list[str] = []

    async with asyncio.timeout(20):
        await either(losing(lost), asyncio.sleep(0), "discord")

    assert lost == ["a cancellation"]


async def test_a_lost_cancellation_does_not_keep_an_adapter_from_ending() -> None:
    """A30: who is cancelled while both run ends both."""
    lost: list[str] = []
    running = asyncio.create_task(either(losing(lost), losing(lost), "discord"))
    await asyncio.sleep(0)

    running.cancel()
    async with asyncio.timeout(20):
        await asyncio.gather(running, return_exceptions=True)

    assert running.cancelled()
    assert lost == ["a cancellation"] * 2
