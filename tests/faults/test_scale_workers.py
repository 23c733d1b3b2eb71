"""Several workers on one PostgreSQL: each message is answered once, in order, whoever thinks and whoever dies."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from claudius.errors import StoreError
from claudius.providers.scripted import Scripted
from lab import postgres
from workers import World


async def test_scale_f1_two_workers_share_the_work(postgres_url: str, tmp_path: Path) -> None:
    """Each message is offered to both workers; both think, and everything is answered once, in order."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        workers = [await world.worker(stack) for _ in range(2)]
        for n in range(4):
            for conversation in range(12):
                message = world.post(conversation, n)
                for soul in workers:
                    await world.offer(soul, message)
        await world.answered()
        voices = [soul.mind.provider for soul in workers]
        shares = [len(voice.requests) for voice in voices if isinstance(voice, Scripted)]

    world.judge()
    assert all(shares)
    assert sum(shares) == len(world.said)


async def test_scale_f1_a_worker_that_dies_is_taken_over(postgres_url: str, tmp_path: Path) -> None:
    """Workers are dropped in the middle of their work, over and over; others take their lanes once a lease is past."""
    world, chance = World(postgres_url, tmp_path), random.Random(22)  # noqa: S311 - no secret
    async with AsyncExitStack() as stack:
        steady = await world.worker(stack)
        for n in range(6):
            async with AsyncExitStack() as doomed:
                other = await world.worker(doomed, clean=False)
                for conversation in range(8):
                    message = world.post(conversation, n)
                    for _ in range(chance.randint(1, 3)):
                        await world.offer(chance.choice((steady, other)), message)
                await world.until_visible(min(len(world.visible) + chance.randint(0, 4), len(world.said)))
        await world.answered()

    world.judge()


@pytest.mark.skipif(not postgres.programs(), reason=postgres.MISSING)
async def test_scale_f7_the_server_stops_and_starts_under_traffic(tmp_path: Path) -> None:
    """No ack without a row: what was refused is offered again, and everything is answered once, in order."""
    with postgres.running({"fsync": "on"}) as server, postgres.schema(server, "f7") as url:
        world = World(url, tmp_path)
        async with AsyncExitStack() as stack:
            soul = await world.worker(stack)
            for n in range(4):
                for conversation in range(6):
                    message = world.post(conversation, n)
                    if conversation == n:
                        await asyncio.to_thread(server.stop)
                        with pytest.raises(StoreError):
                            await world.offer(soul, message)
                        await asyncio.to_thread(server.start)
                    await world.until_accepted(soul, message)
            await world.answered()

    world.judge()
