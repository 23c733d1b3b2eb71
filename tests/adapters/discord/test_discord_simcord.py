"""Hearing, channel visibility and commands on simcord, an independent in-process copy of Discord without faults."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import discord
import simcord

from claudius.adapters.discord.adapter import DiscordAdapter, DiscordOptions
from claudius.adapters.discord.gateway import Gateway
from claudius.adapters.discord.incoming import DiscordBot
from discord_side import QUICK
from ear import Ear


@dataclass(frozen=True, slots=True)
class Stage:
    """A guild with two people and two channels, one of which only a crew can see."""

    adapter: DiscordAdapter
    ear: Ear
    gateway: Gateway
    us: DiscordBot
    guild: Any
    general: Any
    cabin: Any
    ana: Any
    bob: Any

    async def seen(self, member: Any, *channels: int) -> list[bool]:
        """Return the given channels that a person can see."""
        places = [f"shared:discord:{self.guild.id}:{channel}" for channel in channels]
        found = await self.adapter.sees(f"discord:@me:{member.id}", places)
        return [place in found for place in places]


@asynccontextmanager
async def staged() -> AsyncIterator[Stage]:
    """Build the stage in the test's own task, without a network."""
    ear = Ear()
    options = DiscordOptions("token", "http://127.0.0.1:9/api/v10", "ws://127.0.0.1:9", ("*",))
    adapter = DiscordAdapter(options, lambda: datetime.now(UTC), QUICK)
    gateway = adapter._gateway()
    async with simcord.run(gateway) as env:
        assert gateway.user is not None
        us = DiscordBot(str(gateway.user.id), str(gateway.application_id), gateway.user.display_name)
        adapter._accept, adapter._inside = ear.accept, adapter._settle_in(gateway, us)
        await adapter._inside.tree.register()
        guild = env.create_guild()
        crew = guild.create_role("crew")
        shut, open_ = discord.PermissionOverwrite(view_channel=False), discord.PermissionOverwrite(view_channel=True)
        cabin = guild.create_text_channel("cabin", overwrites={guild.default_role: shut, crew: open_})
        general = guild.create_text_channel("general")
        ana = guild.add_member(env.create_user("ana"), roles=[crew])
        bob = guild.add_member(env.create_user("bob"))
        yield Stage(adapter, ear, gateway, us, guild, general, cabin, ana, bob)
        adapter._inside = None


async def test_somebody_sees_what_their_roles_open_until_they_leave() -> None:
    """The independent implementation of Discord's permissions agrees with ours."""
    async with staged() as stage:
        channels = stage.general.id, stage.cabin.id
        before = [await stage.seen(one, *channels) for one in (stage.ana, stage.bob)]
        stage.guild.remove_member(stage.ana)
        after = await stage.seen(stage.ana, *channels)
        odd = await stage.adapter.sees(f"discord:@me:{stage.bob.id}", ["shared:discord:@me:1", "shared:discord:1:1"])

    assert before == [[True, True], [True, False]]
    assert (after, odd) == ([False, False], [])


async def test_a_private_thread_is_seen_by_its_members() -> None:
    """No one else who sees its parent channel can see it."""
    async with staged() as stage:
        channel = stage.gateway.get_channel(stage.general.id)
        assert isinstance(channel, discord.TextChannel)
        thread = await channel.create_thread(name="secret", type=discord.ChannelType.private_thread)
        await thread.add_user(discord.Object(stage.bob.id))
        sees = [await stage.seen(one, thread.id) for one in (stage.ana, stage.bob)]

    assert sees == [[False], [True]]
