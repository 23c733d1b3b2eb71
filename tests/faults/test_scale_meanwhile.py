"""What happens between two steps of one worker: a message that another accepts, a pause just after a taking."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from claudius.memory.database import StorePlace
from claudius.perception import Kind, Perception, shared
from claudius.runtime import lanes
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from ear import Reading
from workers import LEASE_S, START, World

if TYPE_CHECKING:
    from claudius.memory.postgres.store import PostgresStore


async def test_scale_o3_what_another_worker_accepts_meanwhile_is_answered_first(
    postgres_url: str, tmp_path: Path
) -> None:
    """An earlier message, accepted elsewhere while a worker reads a thread before its turn, is not overtaken."""
    from claudius.memory.postgres import store as postgres_store  # noqa: PLC0415 - an extra

    def look_seldom(store: PostgresStore) -> None:
        """Have a worker look for lanes when it is woken alone."""
        leases: Any = store.leases
        leases.times = replace(leases.times, look_s=60.0)

    world, network, place = World(postgres_url, tmp_path), Reading(), "rehearsal:t:c1:100"
    first, second = (
        replace(world.post(0, n), kind=Kind.MENTION, conversation=place, audience=shared(place)) for n in (1, 2)
    )
    world.said[:] = [first, second]
    other = postgres_store.PostgresStore(StorePlace(postgres_url), roles="lanes")
    async with AsyncExitStack() as stack:
        thinker = await world.worker(stack, network=network, prepare=look_seldom)
        await other.start("other", START)
        await world.offer(thinker, second)
        await network.is_read.wait()
        await other.inbox.accept((first,), START)
        network.goes_on.set()
        await world.answered()
        await other.close(clean=True)

    world.judge()


async def test_scale_f3_a_lane_that_was_taken_just_before_a_pause_is_not_left_alone(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to a taking comes when the lease is nearly past: the lane is looked after once it is renewed."""
    monkeypatch.setattr(lanes, "STUMBLE", lanes.Retry(0.05))

    def paused(store: PostgresStore) -> None:
        """Have the first lane be asked for before a pause."""
        leases: Any = store.leases
        take = leases.take

        async def late(*words: Any) -> Sequence[str]:
            """Take, and learn of it when a lease is past."""
            if not leases._held:
                leases._clock = lambda: time.monotonic() - LEASE_S
            found: Sequence[str] = await take(*words)
            leases._clock = time.monotonic
            return found

        leases.take = late

    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        await world.offer(await world.worker(stack, prepare=paused), world.post(1, 0))
        await world.answered(20.0)

    world.judge()


async def test_scale_f3_a_command_ends_with_its_lane(postgres_url: str, tmp_path: Path) -> None:
    """A command whose lane is lost is cancelled, and carried out by the one who has the lane then, perhaps the same process."""
    world, cancelled, answers = World(postgres_url, tmp_path), list[str](), list[str]()
    begun, goes_on = asyncio.Event(), asyncio.Event()

    async def slowly(perception: Perception, _: str) -> str:
        """Wait for ever at first."""
        begun.set()
        try:
            await goes_on.wait()
        except asyncio.CancelledError:
            cancelled.append(perception.text)
            raise
        return "done"

    async def answer(_: Perception, text: str) -> None:
        """Keep the answer."""
        answers.append(text)

    network: Any = Answering()
    network.answer = answer
    async with AsyncExitStack() as stack:
        soul = await world.worker(stack, network=network)
        soul.server._commands._words["whoami"] = slowly
        await world.offer(soul, replace(world.post(1, 0), text="!whoami"))
        await begun.wait()
        world.past(soul)
        async with asyncio.timeout(20):
            while not cancelled:
                await asyncio.sleep(0.01)
            goes_on.set()
            while not answers:
                await asyncio.sleep(0.01)
        await soul.idle()

    assert (cancelled, answers) == (["whoami"], ["done"])


class Answering(RehearsalAdapter):
    """A network that answers commands."""
