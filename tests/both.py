"""A complete soul on Slack or Discord, so that one test can check a rule on both."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import discord
import pytest

from claudius.adapters.discord.adapter import DiscordAdapter, DiscordOptions
from claudius.adapters.slack.adapter import SlackAdapter, SlackOptions
from claudius.home import Home
from claudius.provider import Provider
from claudius.runtime.adapter import Adapter
from claudius.testing.adapter_contract.stage import Stage
from claudius.testing.alive import Alive, alive
from claudius.tool import Tool
from discord_side import QUICK as QUICK_DISCORD
from lab.loopback.discord import state
from lab.loopback.discord.server import DiscordServer
from lab.loopback.slack import state as slack
from lab.loopback.slack.server import SlackServer
from lab.loopback.slack.state import APP_TOKEN, BOT_TOKEN
from lab.stages.discord import DiscordStage
from lab.stages.slack import SlackStage
from slack_side import QUICK as QUICK_SLACK

BEN_ON_DISCORD, BEN_ON_SLACK = "400000000000000002", "U2"


@dataclass(frozen=True, slots=True)
class Side:
    """One network, and a function that creates an adapter for it: one that introduces itself to nobody."""

    stage: Stage
    make: Callable[[], Adapter]

    def wake(
        self, home: Home, voice: Provider, *, clean: bool = True, tools: Sequence[Tool] = (), **settings: str
    ) -> AbstractAsyncContextManager[Alive]:
        """Start a complete soul that listens to this network and answers each message by itself."""
        given = {"CLAUDIUS_DISCORD_GUILDS": state.GUILD, "CLAUDIUS_RUNTIME_MERGE_WHILE_BUSY": "0"}
        return _awake(self, home, voice, clean=clean, tools=tools, settings=given | settings)

    async def linked(self, title: str) -> str:
        """Have Ana call the soul in the channel with a link that is shown with what it leads to; give the message."""
        if isinstance(self.stage, SlackStage):
            previews = [{"id": 1, "from_url": "https://example.org/", "title": title}]
            return await self.stage.world.say(
                "C1", "U1", f"<@{slack.BOT_USER}> who does?", fields={"attachments": previews}
            )
        assert isinstance(self.stage, DiscordStage)
        fields = {"embeds": [{"type": "link", "url": "https://example.org/", "title": title}]}
        return await self.stage.world.say(state.CHANNEL, state.ANA, f"<@{state.BOT_USER}> who does?", fields=fields)


@asynccontextmanager
async def _awake(
    side: Side, home: Home, voice: Provider, *, clean: bool, tools: Sequence[Tool], settings: dict[str, str]
) -> AsyncIterator[Alive]:
    adapter = side.make()
    async with alive(
        home, voice, adapter=adapter, settings=settings, clean=clean, archives=True, tools=lambda: tools
    ) as soul:
        async with asyncio.timeout(20):
            await adapter.link.tried()
        yield soul


@asynccontextmanager
async def slack_side() -> AsyncIterator[Side]:
    """Run a Slack with Ana and Ben that redelivers events after a short time."""
    async with SlackServer() as server:
        world = server.world
        await world.set(retry_delays_s=(0.01, 0.05, 0.05), ack_deadline_s=1.0, refresh_grace_s=0.2)
        await world.add_user(BEN_ON_SLACK, "ben")
        await world.join("C1", BEN_ON_SLACK, deliver=False)

        def make() -> SlackAdapter:
            """Create an adapter for this Slack."""
            options = SlackOptions(BOT_TOKEN, APP_TOKEN, server.base_url, status="is thinking…")
            adapter = SlackAdapter(options, QUICK_SLACK)
            adapter.appears_s, adapter.introduces = 0.05, False
            return adapter

        yield Side(SlackStage(world), make)


@asynccontextmanager
async def discord_side() -> AsyncIterator[Side]:
    """Run a Discord with Ana and Ben and no limit on starting sessions; restore the library's addresses at the end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discord.http.Route, "BASE", discord.http.Route.BASE)
        gateway = discord.gateway.DiscordWebSocket
        patch.setattr(gateway, "DEFAULT_GATEWAY", gateway.DEFAULT_GATEWAY)
        async with DiscordServer() as server:
            await server.world.set(identify_every_s=0.0)
            await server.world.add_user(BEN_ON_DISCORD, "ben")

            def make() -> DiscordAdapter:
                """Create an adapter for this Discord."""
                options = DiscordOptions(state.BOT_TOKEN, server.base_url, server.gateway_url, guilds=(state.GUILD,))
                adapter = DiscordAdapter(options, lambda: datetime.now(UTC), QUICK_DISCORD)
                adapter.introduces = False
                return adapter

            yield Side(DiscordStage(server.world), make)
        async with asyncio.timeout(5):  # each client has ended, and its heartbeat thread too
            while any(thread.name.startswith("keep-alive") for thread in threading.enumerate()):
                await asyncio.sleep(0.01)


SIDES = {"slack": slack_side, "discord": discord_side}


async def done(side: Side, soul: Alive) -> None:
    """Wait until everything that was said is heard, answered and done."""
    await side.stage.until_told()
    async with asyncio.timeout(20):
        while getattr(soul.server._lanes._adapters[side.stage.name], "_hearing", ()) or soul.server.busy:
            await asyncio.sleep(0.002)
