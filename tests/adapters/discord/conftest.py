"""A Discord server on loopback and the adapter that uses it, with the whole soul or with a listener that only hears."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import discord
import pytest

from claudius.adapters.discord.adapter import DiscordAdapter, DiscordOptions
from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive
from discord_side import QUICK, Make, Wake
from ear import Ear, echo
from lab.loopback.discord.server import DiscordServer
from lab.loopback.discord.state import BOT_TOKEN, GUILD
from lab.loopback.discord.world import DiscordWorld


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordServer]:
    """Run a Discord server that accepts session starts at any pace. The library forgets its address afterwards."""
    monkeypatch.setattr(discord.http.Route, "BASE", discord.http.Route.BASE)
    gateway = discord.gateway.DiscordWebSocket
    monkeypatch.setattr(gateway, "DEFAULT_GATEWAY", gateway.DEFAULT_GATEWAY)
    async with DiscordServer() as running:
        await running.world.set(identify_every_s=0.0)
        yield running
    async with asyncio.timeout(5):  # each client has ended, and its heartbeat with it
        while any(thread.name.startswith("keep-alive") for thread in threading.enumerate()):
            await asyncio.sleep(0.01)


@pytest.fixture
def world(server: DiscordServer) -> DiscordWorld:
    """Add the people of that Discord server."""
    return server.world


@pytest.fixture
def make(server: DiscordServer) -> Make:
    """Return a factory of adapters for that Discord server."""

    def made(**changes: Any) -> DiscordAdapter:
        timings = changes.pop("timings", QUICK)
        values: dict[str, Any] = {
            "token": BOT_TOKEN,
            "api_url": server.base_url,
            "gateway_url": server.gateway_url,
            "guilds": (GUILD,),
        }
        adapter = DiscordAdapter(DiscordOptions(**(values | changes)), lambda: datetime.now(UTC), timings)
        adapter.introduces = False
        return adapter

    return made


@pytest.fixture
async def adapter(make: Make) -> DiscordAdapter:
    """Return an adapter that is not listening yet."""
    return make()


@pytest.fixture
async def ear(adapter: DiscordAdapter, world: DiscordWorld) -> AsyncIterator[Ear]:
    """Listen without a soul."""
    made = Ear()
    listening = asyncio.create_task(adapter.listen(made.accept))
    await adapter.link.tried()
    yield made
    await adapter.close()
    await asyncio.wait_for(listening, 20)


@pytest.fixture
def wake(home: Home, make: Make, world: DiscordWorld) -> Wake:
    """Return a function that wakes a whole soul connected to that Discord server."""

    @asynccontextmanager
    async def awake(
        *, voice: Scripted | None = None, clean: bool = True, options: dict[str, Any] | None = None, **settings: str
    ) -> AsyncIterator[Alive]:
        """Wake the soul in a home where the server's guild is allowed."""
        allowed = {"CLAUDIUS_DISCORD_GUILDS": GUILD} | settings
        adapter = make(**(options or {}))
        async with alive(home, voice or Scripted(default=echo), adapter=adapter, settings=allowed, clean=clean) as soul:
            await adapter.link.tried()
            yield soul

    return awake
