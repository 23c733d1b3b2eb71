"""F9: the way between one worker and the database, or the network, is cut; others take over; the cut-off one is silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from claudius.errors import DeliveryUnknown
from claudius.intent import Utterance
from claudius.memory.leases import LeaseTimes
from claudius.provider import Request
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from lab.proxy import Way, before, through
from minds import until
from workers import World, echo

if TYPE_CHECKING:
    from claudius.memory.postgres.store import PostgresStore

LEASE_S = 1.5
TIMES = LeaseTimes(lease_s=LEASE_S, renew_s=LEASE_S / 3, look_s=0.1)
WAYS = [
    "swallowed",
    pytest.param("dropped", marks=pytest.mark.slow),
    pytest.param("delayed", marks=pytest.mark.slow),
    pytest.param("mute", marks=pytest.mark.slow),
    pytest.param("deaf", marks=pytest.mark.slow),
]


SILENT_S = 1.0
"""How long the cut-off worker and the server wait for each other inside a transaction; a quarter of longer leases."""


def impatient(store: PostgresStore) -> None:
    """Have a store and its server give each other up after a second, so that the test need not wait for five."""
    from claudius.memory.postgres.connection import PostgresConnection  # noqa: PLC0415 - an extra

    store._silent_s, store._connect = SILENT_S, partial(PostgresConnection, store.place, SILENT_S)


def counting(url: str, conversation: str, vain: list[bool]) -> Callable[[PostgresStore], None]:
    """Return what has a store's worker note each look at a lane whose lease is past: whether it was in vain."""
    import psycopg  # noqa: PLC0415 - an extra

    def prepare(store: PostgresStore) -> None:
        leases: Any = store.leases
        take = leases.take

        async def counted(*words: Any) -> Any:
            """Look, where the server says that the lease is past."""
            with psycopg.connect(url, autocommit=True) as server:
                asked = (
                    "SELECT lease_until < clock_timestamp() FROM lane WHERE conversation = %s AND worker IS NOT NULL"
                )
                row = server.execute(asked, (conversation,)).fetchone()
            found = await take(*words)
            if row and row[0]:
                vain.append(conversation not in found)
            return found

        leases.take = counted

    return prepare


@pytest.mark.parametrize("way", WAYS)
async def test_scale_f9_a_worker_that_is_cut_off_from_the_database(way: Way, postgres_url: str, tmp_path: Path) -> None:
    """Another worker answers for it; it says nothing; once the way is whole it works again. One copy of each.

    The other one has the lane with its first look after the lease, or, if the cut-off one holds the row in a
    transaction, after a quarter of a lease more: counted in looks, so that a busy machine is no failure.
    """
    vain = list[bool]()
    world, proxy, speaks = World(postgres_url, tmp_path), before(postgres_url), RehearsalAdapter()
    with proxy.running():
        async with AsyncExitStack() as stack:
            cut = await world.worker(
                stack, network=speaks, prepare=impatient, url=through(proxy, postgres_url), times=TIMES
            )
            cutting = asyncio.Event()

            def cuts(request: Request) -> str:
                """Answer, but what was thought reaches no one any more."""
                if not cutting.is_set():
                    proxy.set(way)
                    cutting.set()
                return echo(request)

            world.voices[0].default = cuts
            first = world.post(1, 0)
            await world.offer(cut, first)
            await cutting.wait()
            other = await world.worker(stack, times=TIMES, prepare=counting(postgres_url, first.conversation, vain))
            for n in range(1, 4):
                await world.until_accepted(other, world.post(n, 1))
            await world.answered()

            proxy.set("whole")
            await world.until_accepted(cut, world.post(5, 0))
            await world.answered()
            await other.idle()

    assert False in vain
    assert vain.index(False) <= 2 * SILENT_S / TIMES.look_s  # whoever offers something has it look, too
    world.judge()


class CutOff(RehearsalAdapter):
    """A network to which this worker's posts do not get through, until its client gives them up."""

    def __init__(self) -> None:
        super().__init__()
        self.is_cut, self.tried, self.gives_up = True, 0, asyncio.Event()

    async def speak(self, utterance: Utterance) -> str:
        """Post into the void."""
        if self.is_cut:
            self.tried += 1
            await self.gives_up.wait()
            raise DeliveryUnknown("timeout")
        return await super().speak(utterance)


async def test_scale_f9_a_worker_that_is_cut_off_from_the_network(postgres_url: str, tmp_path: Path) -> None:
    """What it cannot say for longer than its lease and a quarter another worker says, and it takes nothing meanwhile."""
    world, cut = World(postgres_url, tmp_path), CutOff()
    async with AsyncExitStack() as stack:
        first = await world.worker(stack, network=cut, times=TIMES)
        await world.offer(first, world.post(1, 0))
        await until(lambda: cut.tried == 1)  # else the other one may have been the first to take it
        second = await world.worker(stack, times=TIMES)
        await world.answered(within_s=20)
        for n in range(2, 6):
            await world.offer(second, world.post(n, 0))
        await world.answered(within_s=20)

        assert cut.tried == 1

        cut.is_cut = False
        cut.gives_up.set()
        await world.offer(first, world.post(1, 1))
        await world.answered()
        await first.idle()
        await second.idle()

    world.judge()
