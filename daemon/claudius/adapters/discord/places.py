"""Where messages stand, and what is known of the threads that the soul speaks in; kept over a reconnect."""

from __future__ import annotations

import logging
from typing import TypeVar

import discord
from msgspec import Struct, field

from claudius.adapters.discord.incoming import DIRECT, Where

log = logging.getLogger("claudius.discord.places")

V = TypeVar("V")
MOST = 5_000
"""So many of each are kept; the oldest goes first."""


class Places(Struct):
    """What one process learned of channels."""

    newest: dict[str, str] = field(default_factory=dict)
    """The position of the newest message that is known, by channel or thread; latest last."""
    opened: dict[str, None] = field(default_factory=dict)
    """Threads that are there."""
    closed: dict[str, None] = field(default_factory=dict)
    """Messages that no thread can be opened on: what answers them stands beside them."""
    titles: dict[str, str] = field(default_factory=dict)
    """What a thread on a message would be called."""
    spoken: dict[str, str] = field(default_factory=dict)
    """Which of our utterances stands in a message, by the message's id."""
    _found: dict[str, Where] = field(default_factory=dict)

    async def whereabouts(self, message: discord.Message, client: discord.Client) -> Where:
        """Return where a message stands; Discord is asked for a thread that is not known. Raises as a call does."""
        channel = message.channel
        if isinstance(channel, discord.PartialMessageable):
            return await self._fetch(channel.id, client)
        return where_is(channel)

    async def find(self, channel: int, guild: int | None, client: discord.Client) -> Where:
        """Return what a channel's id means; Discord is asked for a thread that is not known. Raises as a call does."""
        if guild is None:
            return Where(DIRECT, str(channel))
        known = client.get_channel(channel)
        return where_is(known) if known else await self._fetch(channel, client)

    async def _fetch(self, channel: int, client: discord.Client) -> Where:
        number = str(channel)
        found = self._found.get(number) or where_is(await client.fetch_channel(channel))
        keep(self._found, number, found)
        return found

    def know(self, place: str, position: str) -> None:
        """Note that a message is there."""
        newest = max(position, self.newest.pop(place, ""))
        keep(self.newest, place, newest)


def where_is(channel: object) -> Where:
    """Return what a channel is to the soul. Pure.

    A private thread is a place of its own: not everybody who sees the channel above it sees what is said there.
    """
    if isinstance(channel, discord.Thread) and channel.is_private():
        return Where(str(channel.guild.id), str(channel.id), str(channel.id))
    if isinstance(channel, discord.Thread):
        return Where(str(channel.guild.id), str(channel.parent_id), str(channel.id))
    if isinstance(channel, discord.abc.GuildChannel):
        return Where(str(channel.guild.id), str(channel.id))
    if isinstance(channel, discord.abc.PrivateChannel):
        return Where(DIRECT, str(channel.id))
    raise TypeError(f"a channel of an unknown kind: {channel!r}")  # never taken for a private place


def keep(known: dict[str, V], key: str, value: V) -> None:
    """Note something, and forget what was noted longest ago where there is too much."""
    known.pop(key, None)
    known[key] = value
    if len(known) > MOST:
        del known[next(iter(known))]
