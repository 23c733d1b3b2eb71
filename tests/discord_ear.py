"""A discord.py client, for tests against the loopback server."""

import asyncio
from typing import Any

import discord
from discord import app_commands

from lab.loopback.discord.state import BOT_TOKEN


class Ear(discord.Client):
    """The real client."""

    def __init__(self, **options: Any) -> None:
        """Ask for the guilds alone; pass on the client's own options."""
        super().__init__(intents=discord.Intents(guilds=True), guild_ready_timeout=0.05, max_messages=None, **options)
        self.tree = app_commands.CommandTree(self)
        self.running: asyncio.Task[None]

    async def before_identify_hook(self, shard_id: int | None, *, initial: bool = False) -> None:
        """Identify immediately: the library would wait 5 s after an invalid session."""

    async def listen(self) -> None:
        """Log in and connect; return when the client is ready. Raises: the error that ended the client."""
        self.running = running = asyncio.create_task(self.start(BOT_TOKEN), name="discord-ear")
        ready = asyncio.create_task(self._ready_or_over(), name="discord-ear-ready")
        await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED, timeout=20)
        ready.cancel()
        if running.done():
            running.result()

    async def leave(self) -> None:
        """Close the client and ignore the error that it may have ended with."""
        await self.close()
        await asyncio.wait({self.running})
        if not self.running.cancelled():
            self.running.exception()

    async def _ready_or_over(self) -> None:
        while self._ready is discord.utils.MISSING:
            await asyncio.sleep(0.005)
        await self.wait_until_ready()
