"""A Discord on loopback, and discord.py in front of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import discord
import pytest
import yarl

from discord_ear import Ear
from lab.loopback.discord.server import DiscordServer
from lab.loopback.discord.world import DiscordWorld

Listen = Callable[..., Awaitable[Ear]]


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordServer]:
    """Run a Discord to which the library is pointed; sessions may be started at any pace, answers may take a while."""
    async with DiscordServer() as running:
        await running.world.set(identify_every_s=0.0, interaction_deadline_s=60.0)
        monkeypatch.setattr(discord.http.Route, "BASE", running.base_url)
        monkeypatch.setattr(discord.gateway.DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(running.gateway_url))
        yield running


@pytest.fixture
def world(server: DiscordServer) -> DiscordWorld:
    """Give the people of that Discord."""
    return server.world


@pytest.fixture
async def listen(server: DiscordServer) -> AsyncIterator[Listen]:
    """Give what starts a client and makes it ready."""
    assert server.port
    ears: list[Ear] = []

    async def start(**options: Any) -> Ear:
        """Start one more client."""
        ear = Ear(**options)
        ears.append(ear)
        await ear.listen()
        return ear

    yield start
    for ear in ears:
        await ear.leave()
