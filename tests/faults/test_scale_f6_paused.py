"""F4, F5, F6: a worker is paused for longer than its lease while it speaks; another takes over; one copy stands."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from claudius.intent import Utterance
from claudius.testing.rehearsal_adapter import RehearsalAdapter, Visible
from driven import reply
from workers import World

if TYPE_CHECKING:
    from claudius.memory.postgres.store import PostgresStore


PARTS = 2


class Loose(RehearsalAdapter):
    """A network without keys of its own, as Slack is: whatever is posted twice stands twice, until it is deleted."""

    posts: dict[str, Visible]
    """What stands, by its receipt; of all workers."""
    stops_before = stops_after = False
    """Where a post of this worker stops, as its process does."""
    taken_down = ended = 0

    def __init__(self, posts: dict[str, Visible]) -> None:
        super().__init__()
        self.appears_s = 0.1
        self.posts, self.reached, self.goes_on = posts, asyncio.Event(), asyncio.Event()

    async def speak(self, utterance: Utterance) -> str:
        """Post, and stop where the test says."""
        await self._stop(at=self.stops_before)
        made = Visible(utterance.key, utterance.conversation, utterance.body)
        receipt = uuid4().hex
        self.visible.append(made)
        self.posts[receipt] = made
        await self._stop(at=self.stops_after)
        self.ended += 1
        return receipt

    async def _stop(self, *, at: bool) -> None:
        if at:
            self.reached.set()
            await self.goes_on.wait()

    async def find(self, utterance: Utterance, *, decided_at: datetime) -> str | None:  # noqa: ARG002 - the protocol's signature
        """Look a post up by the key in its metadata."""
        self.looks += 1
        return next((one for one, made in self.posts.items() if made.key == utterance.key), None)

    async def take_back(self, conversation: str, receipt: str) -> None:  # noqa: ARG002 - the protocol's signature
        """Delete a post."""
        self.visible.remove(self.posts.pop(receipt))
        self.taken_down += 1


def pausing(
    paused: asyncio.Event, goes_on: asyncio.Event, *, after_post: bool = False
) -> Callable[[PostgresStore], None]:
    """Return what has a store's worker neither take nor renew lanes from `paused` on, until it goes on.

    `after_post`: it is paused when it is about to note its first post.
    """

    def prepare(store: PostgresStore) -> None:
        leases: Any = store.leases

        def stopping(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
            async def stopped(*words: Any) -> Any:
                """Wait while the worker is paused."""
                if paused.is_set():
                    await goes_on.wait()
                return await method(*words)

            return stopped

        def stopping_to_settle(conversation: str) -> Any:
            lane = store_of(conversation)
            lane.outbox.settle = after_the_post(lane.outbox.settle)
            return lane

        def after_the_post(settle: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
            async def settled(*words: Any, **more: Any) -> Any:
                """Pause the worker once its first post stands."""
                paused.set()
                await goes_on.wait()
                return await settle(*words, **more)

            return settled

        leases.take, leases.renew = stopping(leases.take), stopping(leases.renew)
        if after_post:
            store_of, leases.store_of = leases.store_of, stopping_to_settle

    return prepare


@pytest.mark.parametrize("where", ["F4: on the wire", "F5: right after the post", "F6: before the first byte"])
async def test_scale_f6_a_worker_that_is_paused_while_it_speaks(where: str, postgres_url: str, tmp_path: Path) -> None:
    """The other one finds what is visible, or speaks; who is late takes its own copy down, and it is counted."""
    world, posts = World(postgres_url, tmp_path), dict[str, Visible]()
    slow, quick = Loose(posts), Loose(posts)
    slow.stops_before, slow.stops_after = where.startswith("F6"), where.startswith("F4")
    async with AsyncExitStack() as stack:
        stops = pausing(slow.reached, slow.goes_on, after_post=where.startswith("F5"))
        first = await world.worker(stack, network=slow, prepare=stops)
        await world.offer(first, world.post(1, 0))
        await slow.reached.wait()
        world.past(first)
        second = await world.worker(stack, network=quick)
        async with asyncio.timeout(60):
            while quick.looks < 1 + slow.stops_before or not posts:
                await asyncio.sleep(0.02)
        await second.idle()
        slow.goes_on.set()
        await world.offer(second, world.post(1, 1))
        await world.answered()
        await first.idle()
        await second.idle()

    world.judge()
    assert first.mind.store.leases
    assert slow.taken_down == first.mind.store.leases.tally.late == slow.stops_before
    assert world.calls() <= 2 * len(world.said)  # the late one may think what it can commit no more


async def test_scale_f4_a_worker_that_wakes_in_the_middle_of_a_long_reply(postgres_url: str, tmp_path: Path) -> None:
    """It sends no further part: whoever has the lane now has sent them, although its own first part was believed."""
    world, posts = World(postgres_url, tmp_path), dict[str, Visible]()
    slow, quick = Loose(posts), Loose(posts)
    slow.post_chars = quick.post_chars = 40
    slow.stops_after = True
    async with AsyncExitStack() as stack:
        first = await world.worker(stack, network=slow, prepare=pausing(slow.reached, slow.goes_on))
        world.voices[0].default = lambda _: reply(
            "one two three four five six seven eight nine ten eleven twelve and more"
        )
        await world.offer(first, world.post(1, 0))
        await slow.reached.wait()
        world.past(first)
        second = await world.worker(stack, network=quick)
        async with asyncio.timeout(60):
            while len(posts) < PARTS:
                await asyncio.sleep(0.02)
        await second.idle()
        slow.goes_on.set()
        async with asyncio.timeout(60):
            while slow.ended < 1:
                await asyncio.sleep(0.02)
        await first.idle()

    assert (slow.ended, slow.taken_down, len(posts)) == (1, 0, PARTS)
