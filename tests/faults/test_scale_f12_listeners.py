"""F12: a listener is killed, or two processes believe that they are the one listener: nothing is lost or kept twice."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from both import Side, discord_side
from claudius.adapters.discord.adapter import DiscordAdapter
from claudius.errors import StoreFull
from claudius.home import Home
from claudius.memory.database import StorePlace
from claudius.memory.leases import LeaseTimes
from claudius.perception import Perception
from claudius.providers.scripted import Scripted
from claudius.runtime.adapter import Gap
from claudius.testing.adapter_contract.stage import CHANNEL, DM
from claudius.testing.alive import Alive, alive
from ear import echo
from lab.loopback.discord.state import ANA, GUILD
from lab.loopback.discord.state import CHANNEL as CHANNEL_ID
from lab.stages.discord import DiscordStage

if TYPE_CHECKING:
    from claudius.memory.store import Store


@dataclass
class Listener:
    """A process that listens to Discord and keeps what it hears in the store of all."""

    adapter: DiscordAdapter
    store: Store
    told: list[str] = field(default_factory=list)
    """The text of each message that arrived, once for every time."""
    kept: list[str] = field(default_factory=list)
    """The text of each that the store did not know."""

    async def accept(self, perception: Perception) -> bool:
        """Keep a perception."""
        self.told.append(perception.text)
        (is_new,) = await self.store.inbox.accept((perception,), datetime.now(UTC))
        if is_new:
            self.kept.append(perception.text)
        return is_new

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Listen for a while; the history is read."""
        gaps = asyncio.Queue[float | None]()
        self.adapter.link.on_missed(gaps.put_nowait)
        task = asyncio.create_task(self.adapter.listen(self.accept))
        try:
            async with asyncio.timeout(20):
                await gaps.get()
                await self._sweep()
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _sweep(self) -> None:
        marks = await self.store.inbox.marks("discord")
        async for swept in self.adapter.catch_up(Gap(since=datetime.now(UTC) - timedelta(hours=1), marks=marks)):
            for one in swept.perceptions:
                await self.accept(one)


@pytest.fixture
async def side() -> AsyncIterator[Side]:
    """Run a Discord."""
    async with discord_side() as running:
        yield running


@asynccontextmanager
async def process(side: Side, url: str) -> AsyncIterator[Listener]:
    """Start a process that can speak, with a connection of its own to the store of all."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    store = PostgresStore(StorePlace(url), roles="lanes")
    await store.start(secrets.token_hex(8), datetime.now(UTC))
    adapter = side.make()
    assert isinstance(adapter, DiscordAdapter)
    await adapter.log_in()
    try:
        yield Listener(adapter, store)
    finally:
        await adapter.close()
        await store.close(clean=True)


async def until_kept(count: int, *listeners: Listener) -> list[str]:
    """Wait until the listeners have kept so many messages together, and return their texts."""
    async with asyncio.timeout(20):
        while sum(len(one.kept) for one in listeners) < count:
            await asyncio.sleep(0.01)
    return sorted(text for one in listeners for text in one.kept)


async def test_scale_f12_two_who_both_believe_that_they_listen_keep_nothing_twice(
    side: Side, postgres_url: str
) -> None:
    """They have a session each and hear all twice: keys drop the doubles."""
    said = [f"message {n}" for n in range(6)]
    async with process(side, postgres_url) as one, process(side, postgres_url) as other, AsyncExitStack() as split:
        await split.enter_async_context(one.listening())
        await split.enter_async_context(other.listening())
        for n, text in enumerate(said):
            await side.stage.say(CHANNEL if n % 2 else DM, text, calls=bool(n % 2))
        async with asyncio.timeout(20):
            while len(one.told + other.told) < 2 * len(said):
                await asyncio.sleep(0.01)

    assert sorted(one.kept + other.kept) == said


@pytest.mark.parametrize("ending", ["killed", "cancelled", "closed"])
async def test_scale_f12_the_next_listener_reads_what_was_missed(side: Side, postgres_url: str, ending: str) -> None:
    """However one ends, the next begins a session and sweeps: what no one heard is kept once, what was kept is not."""
    assert isinstance(side.stage, DiscordStage)
    world = side.stage.world
    async with process(side, postgres_url) as other, process(side, postgres_url) as one:
        async with one.listening():
            await side.stage.say(DM, "first")
            await side.stage.say(CHANNEL, "second", calls=True)
            thread = await world.create_thread(CHANNEL_ID, ANA, "plans")
            await until_kept(2, one)
            if ending == "killed":
                await world.refuse_upgrades(-1)
                await world.drop_sockets()
            if ending == "closed":
                await one.adapter.close()
        for text, where in (("third", DM), ("fourth", CHANNEL)):
            await side.stage.say(where, text, calls=where == CHANNEL)
        await side.stage.say(CHANNEL, "fifth", thread=thread)
        await world.refuse_upgrades(0)
        async with other.listening():
            await until_kept(5, one, other)
            await side.stage.say(DM, "live")
            await until_kept(6, one, other)

    assert sorted(one.kept) == ["first", "second"]
    assert sorted(other.kept) == ["fifth", "fourth", "live", "third"]


@pytest.mark.parametrize("lost", ["a full store", "the role's end"])
async def test_scale_f12_what_arrives_and_is_not_stored_is_found_by_the_next_listener(
    side: Side, postgres_url: str, lost: str
) -> None:
    """What came after it and was stored says nothing of it: no mark passes over it."""
    begun, goes_on = asyncio.Event(), asyncio.Event()
    async with process(side, postgres_url) as other, process(side, postgres_url) as one:
        store = one.accept

        async def accept(perception: Perception) -> bool:
            """Store slowly, or not at all."""
            if perception.text == "lost":
                raise StoreFull
            if perception.text == "slow":
                begun.set()
                await goes_on.wait()
            return await store(perception)

        one.accept = accept  # type: ignore[method-assign] # as its store would
        async with one.listening():
            await side.stage.say(DM, "before")
            await until_kept(1, one)
            if lost == "a full store":
                await side.stage.say(DM, "lost")
            await side.stage.say(DM, "slow")
            await begun.wait()
            asyncio.get_running_loop().call_soon(goes_on.set)
        await side.stage.say(DM, "too late")
        async with other.listening():
            await until_kept(4 if lost == "a full store" else 3, one, other)

    assert one.kept == ["before", "slow"]
    assert other.kept == (["lost", "too late"] if lost == "a full store" else ["too late"])


async def test_scale_f12_the_role_moves_and_every_process_speaks(side: Side, postgres_url: str, tmp_path: Path) -> None:
    """One daemon ends in good order: the other listens, reads what was said meanwhile, and each is answered once."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    assert isinstance(side.stage, DiscordStage)
    world, voices = side.stage.world, [Scripted(default=echo), Scripted(default=echo)]
    times = LeaseTimes(lease_s=3.0, renew_s=1.0, look_s=0.1)

    def daemon(n: int) -> AbstractAsyncContextManager[Alive]:
        """Return a process with a home of its own."""
        home = Home(tmp_path / f"home{n}")
        home.create()
        store = PostgresStore(StorePlace(postgres_url), times=times)
        return alive(home, voices[n], adapter=side.make(), store=store, settings={"CLAUDIUS_DISCORD_GUILDS": GUILD})

    async with AsyncExitStack() as left:
        async with daemon(0):
            await world.until_connected()
            other = await left.enter_async_context(daemon(1))
            await side.stage.say(DM, "first")
            await side.stage.until_visible(1)
        await side.stage.say(CHANNEL, "second", calls=True)
        shown = await side.stage.until_visible(2)
        status = other.server._networks.status(other.mind.clock())

    assert [each.text for each in shown] == ["re first", "re second"]
    assert [(each["connected"], each["hears"]) for each in status] == [(True, True)]
