"""Shared by the tests of the Discord adapter: short waits in place of Discord's minutes, and what people see."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from claudius.adapters.discord.adapter import DiscordAdapter
from claudius.adapters.discord.gateway import DiscordTimings
from claudius.testing.alive import Alive
from lab.loopback.discord.world import DiscordWorld

QUICK = DiscordTimings(
    tick_s=0.02,
    guild_ready_s=0.05,
    identify_s=0.0,
    lost_s=0.3,
    client_s=3.0,
    deaf_s=0.3,
    spoke_s=60.0,
    arrives_s=0.1,
    again_s=0.1,
    close_s=0.5,
    send_s=20.0,
)
"""Discord's minutes in tenths of seconds."""
BOB = "400000000000000002"

Make = Callable[..., DiscordAdapter]
Wake = Callable[..., AbstractAsyncContextManager[Alive]]


async def said(discord: DiscordWorld) -> list[tuple[str, str]]:
    """Return each message of ours that people see: where (a thread has an id of its own), and its text."""
    return [(one.channel, one.text) for one in await discord.visible()]
