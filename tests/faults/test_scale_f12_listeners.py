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
from claudius.home import Home
from claudius.memory.leases import LeaseTimes
from claudius.memory.opening import StorePlace
from claudius.perception import Perception
from claudius.providers.scripted import Scripted
from claudius.runtime.adapter import Gap
from claudius.testing.adapter_contract.stage import CHANNEL, DM
from claudius.testing.alive import Alive, alive
from ear import echo
from lab.loopback.discord.state import GUILD
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
        """Listen for a while; the history is read, unless nothing was missed."""
        gaps = asyncio.Queue[float | None]()
        self.adapter.link.on_missed(gaps.put_nowait)
        task = asyncio.create_task(self.adapter.listen(self.accept))
        try:
            async with asyncio.timeout(20):
                if await gaps.get() != 0.0:
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


@pytest.mark.parametrize("is_one_session", [True, False])
async def test_scale_f12_two_who_both_believe_that_they_listen_keep_nothing_twice(
    side: Side, postgres_url: str, *, is_one_session: bool
) -> None:
    """They share a session, and take it from each other, or have one each and hear all twice: keys drop the doubles."""
    said = [f"message {n}" for n in range(6)]
    async with process(side, postgres_url) as one, process(side, postgres_url) as other, AsyncExitStack() as split:
        await split.enter_async_context(one.listening())
        if is_one_session:
            other.adapter.resume(one.adapter.session())
        await split.enter_async_context(other.listening())
        for n, text in enumerate(said):
            await side.stage.say(CHANNEL if n % 2 else DM, text, calls=bool(n % 2))
        kept = await until_kept(len(said), one, other)
        async with asyncio.timeout(20):
            while not is_one_session and len(one.told + other.told) < 2 * len(said):
                await asyncio.sleep(0.01)

    assert kept == said
    assert sorted(one.kept + other.kept) == said


async def test_scale_f12_a_killed_listener_is_followed_by_one_that_resumes(side: Side, postgres_url: str) -> None:
    """The row is as old as a renewal: what came since is told again, and kept once; one login in all."""
    assert isinstance(side.stage, DiscordStage)
    world = side.stage.world
    async with process(side, postgres_url) as other:
        async with process(side, postgres_url) as one:
            async with one.listening():
                await side.stage.say(DM, "first")
                await until_kept(1, one)
                row = one.adapter.session()
                await side.stage.say(DM, "second")
                await until_kept(2, one)
                await world.refuse_upgrades(-1)
                await world.drop_sockets()
            await side.stage.say(CHANNEL, "third", calls=True)
            await world.refuse_upgrades(0)
        other.adapter.resume(row)
        async with other.listening():
            kept = await until_kept(3, one, other)

    assert kept == ["first", "second", "third"]
    assert (one.kept, other.kept) == (["first", "second"], ["third"])
    assert (await world.counts())["identified"] == 1
    assert (await world.counts())["resumed"] == 1


async def test_scale_f12_the_role_moves_with_its_session_and_every_process_speaks(
    side: Side, postgres_url: str, tmp_path: Path
) -> None:
    """One daemon ends in good order: the other resumes, is told what was said meanwhile, and nobody waits or reads."""
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
        async with daemon(0) as one:
            await world.until_connected()
            other = await left.enter_async_context(daemon(1))
            await side.stage.say(DM, "first")
            await side.stage.until_visible(1)
            async with asyncio.timeout(20):
                while not one.server._networks._adapters["discord"].session().get("session"):
                    await asyncio.sleep(0.01)
        await side.stage.say(CHANNEL, "second", calls=True)
        shown = await side.stage.until_visible(2)
        status = other.server._networks.status(other.mind.clock())

    assert [each.text for each in shown] == ["re first", "re second"]
    assert (await world.counts())["identified"] == 1
    assert (await world.counts())["resumed"] == 1
    assert [(each["connected"], each["hears"]) for each in status] == [(True, True)]
