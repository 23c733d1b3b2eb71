"""F7: the database server crashes under traffic, and at each statement of a turn's writes, and is started again."""

import asyncio
import os
import random
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from claudius.memory.leases import LeaseTimes
from claudius.perception import Perception
from lab import postgres
from workers import Send, World, met

PROFILE = os.environ.get("CLAUDIUS_TEST_PROFILE", "push")
STOPS = 20 if PROFILE == "nightly" else 4
LEASE_S = 10.0
GOES_ON_S = LEASE_S + 5.0
"""A reply to what is said after the server is back comes within this time."""
POINTS = {"push": (14, 20), "full": range(0, 40, 4)}.get(PROFILE, range(40))
"""Statements of the writer, counted from the first word; the last ones of these are after the turn."""

pytestmark = pytest.mark.skipif(not postgres.programs(), reason=postgres.MISSING)


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Server]:
    """Run a server that keeps what it has acknowledged."""
    with postgres.running({"fsync": "on"}) as running:
        yield running


@pytest.fixture
def url(server: postgres.Server, request: pytest.FixtureRequest) -> Iterator[str]:
    """Make a schema of the test's own."""
    with postgres.schema(server, request.node.name) as made:
        yield made


def kept(url: str) -> set[str]:
    """Return the keys of everything that was accepted."""
    import psycopg  # noqa: PLC0415 - an extra

    with closing(psycopg.connect(url)) as made:
        return {key for (key,) in made.execute("SELECT key FROM inbox")}


async def test_scale_f7_the_server_stops_under_traffic(server: postgres.Server, url: str, tmp_path: Path) -> None:
    """No ack without a row; whatever was refused is offered again, and everything is answered once, in order."""
    world, chance, acked = World(url, tmp_path), random.Random(7), set[str]()  # noqa: S311 - no secret
    times = LeaseTimes(lease_s=LEASE_S, renew_s=LEASE_S / 3, look_s=0.1)
    async with AsyncExitStack() as stack:
        workers = [await world.worker(stack, times=times) for _ in range(2)]
        is_over = asyncio.Event()

        async def offer(message: Perception) -> None:
            """Offer a message until it is acknowledged."""
            await world.until_accepted(chance.choice(workers), message)
            acked.add(message.key)

        async def talk(conversation: int) -> None:
            """Have a person talk until the last stop is over."""
            n = 0
            while not is_over.is_set():
                await offer(world.post(conversation, n))
                n += 1
                await asyncio.sleep(chance.uniform(0.0, 0.2))

        talking = [asyncio.create_task(talk(conversation)) for conversation in range(6)]
        for n in range(STOPS):
            await world.until_visible(len(world.visible) + chance.randint(1, 12))
            await asyncio.to_thread(server.stop)
            before = set(acked)
            await asyncio.to_thread(server.start)
            assert before <= kept(url)
            async with asyncio.timeout(GOES_ON_S):
                await offer(world.post(100, n))
                while f"re 100/{n}" not in {one.text for one in world.visible}:
                    await asyncio.sleep(0.02)
        is_over.set()
        await asyncio.gather(*talking)
        await world.answered()

    world.judge()


class Crash:
    """Stops the server before the writer's n-th statement, or, if `late`, right after it was done."""

    def __init__(self, server: postgres.Server, point: int, *, late: bool) -> None:
        self.server, self.left, self.late = server, point, late
        self.is_armed = self.is_over = False
        self.stopped, self._loop = asyncio.Event(), asyncio.get_running_loop()

    def meet(self, connection: Any, _: str, send: Send) -> Any:
        """Let the statement pass; stop the server at the one that is meant."""
        self.left -= connection.is_writer and self.is_armed
        if self.left >= 0 or self.is_over or not connection.is_writer:
            return send()
        self.is_over = True
        done = send() if self.late else None
        self.server.stop()
        self._loop.call_soon_threadsafe(self.stopped.set)
        return done or send()


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("point", POINTS)
async def test_scale_f7_the_server_stops_at_each_statement(
    point: int,
    late: bool,  # noqa: FBT001 - parametrised
    server: postgres.Server,
    url: str,
    tmp_path: Path,
) -> None:
    """Whether the commit arrived or not: one answer each, in order, by the process that goes on."""
    world, crash = World(url, tmp_path), Crash(server, point, late=late)
    async with AsyncExitStack() as stack:
        soul = await world.worker(stack, prepare=met(crash.meet))
        crash.is_armed = True
        told = [world.post(1, n) for n in range(2)]
        offering = asyncio.create_task(_offer(world, soul, told))
        await crash.stopped.wait()
        await asyncio.to_thread(server.start)
        await offering
        await world.answered()

    world.judge()


async def _offer(world: World, soul: Any, told: list[Perception]) -> None:
    for message in told:
        await world.until_accepted(soul, message)
