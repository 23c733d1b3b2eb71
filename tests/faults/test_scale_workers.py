"""Several workers on one PostgreSQL: each message is answered once, in order, whoever thinks and whoever dies."""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from claudius.errors import StoreError
from claudius.home import Home
from claudius.memory.leases import LeaseTimes
from claudius.memory.opening import StorePlace
from claudius.perception import Kind, Perception, private
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter, Visible
from driven import reply
from lab import postgres

LEASE_S = 3.0
START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def echo(request: Request) -> str:
    """Repeat the message that is answered."""
    return reply("re " + request.tail.rpartition('"text":"')[2].partition('"')[0])


class World:
    """What people posted, and what became visible, whichever worker showed it."""

    def __init__(self, url: str, root: Path) -> None:
        self.url, self.root, self.visible, self.said = url, root, list[Visible](), list[Perception]()
        self.born = 0

    def post(self, conversation: int, n: int) -> Perception:
        """Have somebody post a message in a conversation of theirs."""
        who, place = f"rehearsal:t:p{conversation}", f"rehearsal:t:dm-p{conversation}:"
        made = Perception(
            key=f"{place}#{n}",
            conversation=place,
            audience=private(who),
            person=who,
            name=f"P{conversation}",
            text=f"{conversation}/{n}",
            at=START + timedelta(seconds=len(self.said)),
            position=f"{n:020d}",
            kind=Kind.MESSAGE,
        )
        self.said.append(made)
        return made

    async def worker(self, stack: AsyncExitStack, *, clean: bool = True) -> Alive:
        """Start a worker that speaks into this world."""
        from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

        self.born += 1
        home, network = Home(self.root / f"w{self.born}"), RehearsalAdapter()
        home.create()
        network.visible = self.visible
        times = LeaseTimes(lease_s=LEASE_S, renew_s=LEASE_S / 3, look_s=0.1)
        store = PostgresStore(StorePlace(self.url), times=times, roles="lanes")
        soul = alive(home, Scripted(default=echo), network=network, store=store, clean=clean)
        return await stack.enter_async_context(soul)

    async def offer(self, soul: Alive, perception: Perception) -> None:
        """Deliver a message to one worker."""
        assert soul.network._accept
        await soul.network._accept(perception)

    async def until_accepted(self, soul: Alive, perception: Perception) -> None:
        """Deliver a message again and again, as a network does, until it is acknowledged."""
        async with asyncio.timeout(60):
            while True:
                try:
                    return await self.offer(soul, perception)
                except (StoreError, ConnectionAbortedError):
                    await asyncio.sleep(0.1)

    async def until_visible(self, count: int) -> None:
        """Wait until people see this many answers."""
        async with asyncio.timeout(60):
            while len(self.visible) < count:
                await asyncio.sleep(0.005)

    async def answered(self, within_s: float = 60.0) -> None:
        """Wait until everything is answered."""
        wanted = {f"re {one.text}" for one in self.said}
        async with asyncio.timeout(within_s):
            while not wanted <= {one.text for one in self.visible if one.is_complete}:
                await asyncio.sleep(0.02)

    def judge(self) -> None:
        """O1 to O3: each message has one answer, in its own conversation, in the order of the messages there."""
        texts = [one.text for one in self.visible]
        assert sorted(texts) == sorted(f"re {one.text}" for one in self.said)
        by_place = defaultdict(list)
        for one in self.visible:
            by_place[one.conversation].append(one.text)
        for place, found in by_place.items():
            assert found == [f"re {one.text}" for one in self.said if one.conversation == place]


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
