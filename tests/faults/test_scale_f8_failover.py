"""F8: a standby is promoted. What was acknowledged is there, or else what was said is looked for, and not repeated."""

import asyncio
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from msgspec.structs import replace

from claudius.errors import StoreError
from lab import postgres
from lab.postgres import Server
from workers import World

ANOTHER = b"UPDATE release SET timeline = 99"
"""As a server looks that was promoted: the timeline that it had before is not its own."""


async def test_scale_f8_what_another_server_does_not_know_is_not_said_again(
    postgres_server: Server, postgres_url: str, tmp_path: Path
) -> None:
    """After a change of timeline, a reply to an earlier message is looked for before it is sent; no other one is."""
    import psycopg  # noqa: PLC0415 - an extra

    world = World(postgres_url, tmp_path)
    with postgres.schema(postgres_server, "f8_other") as other:
        for url in (other, postgres_url):
            async with AsyncExitStack() as stack:
                first = await world.worker(stack, url=url)
                if url == postgres_url:
                    await world.offer(first, replace(world.post(1, 0), at=datetime.now(UTC)))
                    await world.answered()
        with psycopg.connect(other, autocommit=True) as server:
            server.execute(ANOTHER)

        async with AsyncExitStack() as stack:
            second = await world.worker(stack, url=other)
            await world.offer(second, replace(world.said[0], at=datetime.now(UTC)))
            await second.idle()
            looks = second.network.looks
            await world.offer(second, replace(world.post(1, 1), at=datetime.now(UTC) + timedelta(minutes=2)))
            await world.answered()
            await second.idle()

    world.judge()
    assert (looks, second.network.looks) == (1, 1)


async def talk(world: World, first: Server, second: Server, *, loses: bool) -> None:
    """Have people talk while the first server fails and the second one is promoted, and once more after that.

    If it `loses` what was last written, the network delivers again whatever it holds, as a sweep does.
    """
    async with AsyncExitStack() as stack:
        soul = await world.worker(stack)
        for n in range(3):
            for conversation in range(6):
                if (n, conversation) == (1, 3):
                    await world.answered()
                    await asyncio.to_thread(first.stop)
                    with pytest.raises(StoreError):
                        await world.offer(soul, world.said[0])
                    await asyncio.to_thread(second.promote)
                    if loses:
                        for message in world.said:
                            await world.until_accepted(soul, message)
                if loses and (n, conversation) == (1, 0):
                    await world.answered()
                    await soul.idle()
                    await asyncio.to_thread(second.set, "primary_conninfo", "")
                    await until_alone(first)
                await world.until_accepted(soul, world.post(conversation, n))
        await world.answered()
        await soul.idle()
    world.judge()


async def until_alone(primary: Server) -> None:
    """Wait until no standby follows a server."""
    import psycopg  # noqa: PLC0415 - an extra

    async with asyncio.timeout(60), await psycopg.AsyncConnection.connect(primary.url, autocommit=True) as server:
        while await (await server.execute("SELECT 1 FROM pg_stat_replication")).fetchone():
            await asyncio.sleep(0.1)


@pytest.mark.nightly
@pytest.mark.skipif(not postgres.programs(), reason=postgres.MISSING)
@pytest.mark.parametrize("loses", [False, True], ids=["synchronous", "asynchronous"])
async def test_scale_f8_a_standby_is_promoted(tmp_path: Path, *, loses: bool) -> None:
    """Synchronous: no acknowledged row is lost. Asynchronous: what is heard again is not answered again."""
    settings = {"fsync": "on", "wal_level": "replica"}
    with postgres.running(settings) as first, postgres.schema(first, "f8") as url, postgres.standby(first) as second:
        if not loses:
            await asyncio.to_thread(first.set, "synchronous_standby_names", "*")
        world = World(postgres.either(first, second, url), tmp_path)
        await talk(world, first, second, loses=loses)
