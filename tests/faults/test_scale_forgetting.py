"""F16: a person who writes everywhere is forgotten on every worker, whoever dies; the receipt is true."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import psycopg
import pytest

from claudius.errors import TryAgain
from workers import LEASE_S, World

OWNER = "rehearsal:t:owner"


def held(url: str, words: str) -> list[str]:
    """Return the tables that hold these words in any row."""
    with psycopg.connect(url) as made:
        names = made.execute(
            "SELECT relname::text FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
        ).fetchall()
        return [
            name
            for (name,) in names
            if made.execute(f'SELECT 1 FROM "{name}" AS t WHERE t::text LIKE %s LIMIT 1', [f"%{words}%"]).fetchone()  # noqa: S608 - our own names
        ]


@pytest.mark.parametrize("dies", [False, True])
async def test_scale_f16_forgotten_on_every_worker(postgres_url: str, tmp_path: Path, dies: bool) -> None:  # noqa: FBT001 - a case
    """Each worker lets go of sessions, caches and log lines before the receipt; one that dies is waited for, no longer."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack, AsyncExitStack() as doomed:
        one = await world.worker(stack)
        other = await world.worker(doomed if dies else stack, clean=not dies)
        for n in range(3):
            for soul in (one, other):
                await world.offer(soul, world.post(1, n))
                await world.offer(soul, world.post(2, n))
        await world.answered()
        writing = asyncio.create_task(keep_writing(world, (one,) if dies else (one, other)))
        if dies:
            await doomed.aclose()
        forgetting = one.server._forgetting
        receipt = await forgetting.forget("rehearsal:t:p1", world.said[-1].at, OWNER)
        writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
        with psycopg.connect(postgres_url) as made:
            left = made.execute("SELECT count(*) FROM letting_go").fetchone()
            turns = made.execute("SELECT count(*) FROM turn").fetchone()

    assert receipt["verified"], receipt["left"]
    assert any("write-ahead log" in one for one in receipt["not_ours"])
    assert held(postgres_url, "rehearsal:t:p1") == []
    assert left == (0,)
    assert turns == (3,)


async def keep_writing(world: World, souls: tuple[object, ...]) -> None:
    """Have the person write at every worker, over and over; nothing of it is taken while they are being erased."""
    n = 100
    while True:
        for soul in souls:
            n += 1
            with suppress(TryAgain):
                await world.offer(soul, world.post(1, n))  # type: ignore[arg-type]  # an Alive
        await asyncio.sleep(0.01)


async def test_scale_f16_who_is_asked_to_let_go_hears_them_again_afterwards(postgres_url: str, tmp_path: Path) -> None:
    """While another process erases somebody, a worker refuses them, clears what it has at hand, and says so; then hears."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        one = await world.worker(stack)
        await world.offer(one, world.post(1, 0))
        await world.answered()
        with psycopg.connect(postgres_url, autocommit=True) as made:
            made.execute(
                "INSERT INTO letting_go (ids, conversations, audiences) VALUES (%s, '[]', '[]')",
                [json.dumps(["rehearsal:t:p1"])],
            )
            async with asyncio.timeout(5 * LEASE_S):
                while made.execute("SELECT count(*) FROM let_go").fetchone() == (0,):
                    await asyncio.sleep(0.02)
            with pytest.raises(TryAgain):
                await world.offer(one, world.post(1, 1))
            made.execute("DELETE FROM letting_go")
            async with asyncio.timeout(5 * LEASE_S):
                while one.server._forgetting.is_frozen("rehearsal:t:p1"):
                    await asyncio.sleep(0.02)
            await world.offer(one, world.said[-1])
        await world.answered()

    world.judge()
