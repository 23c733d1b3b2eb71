"""Catch up on what was said while the adapter was not listening, and read earlier messages for context.

Channels and threads are read through the library, which observes the rate limits.

Source: the reliability design, section 5.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import discord
from msgspec.structs import replace

from claudius.adapters.caches import MarkedChannel, Posts, Reached, has_lost, marked_channels, posts_in, root_of, swept
from claudius.adapters.discord.api_errors import FAILURES, classify
from claudius.adapters.discord.gateway import Gateway
from claudius.adapters.discord.incoming import (
    DIRECT,
    NETWORK,
    DiscordBot,
    DiscordMessage,
    KnownChannels,
    Where,
    bared,
    interpret,
    moment,
    perceive,
    position,
    reworded,
    stamp,
    where_is,
)
from claudius.adapters.discord.people import DiscordPeople
from claudius.adapters.incoming import MISREAD, deleted
from claudius.errors import DeliveryRefused
from claudius.foreign import unquoted
from claudius.perception import Perception, Place
from claudius.runtime.adapter import Gap, Swept

log = logging.getLogger(__name__)

MOST = 1000
"""How many messages of one channel a sweep processes. Any more are only counted."""
MOST_LOOKED_AT = 5 * MOST
OLDER = 200
"""How many messages of a place, before what is missed, are looked at for what was edited or deleted meanwhile."""
NEW_PLACES = 50
"""How many channels without a stored position are read: a first mention may have come while we were away."""
UNTOLD = 10
"""How many more are read for which Discord does not report the last message, which it need not do."""


class DiscordHistory:
    """Reads the past through one client."""

    def __init__(
        self, client: Gateway, us: DiscordBot, people: DiscordPeople, places: KnownChannels, reached: Reached
    ) -> None:
        self._client, self._us, self._people = client, us, people
        self._places, self._reached = places, reached

    async def catch_up(self, gap: Gap) -> AsyncIterator[Swept]:
        """Read what may have been missed: first the channels heard before, latest first, then those without a position.

        Raises: DeliveryLater, DeliveryUnknown, TimeoutError if Discord cannot be read now. A channel that may not be
        read is skipped.
        """
        since = stamp(gap.since)
        # history is read after a position
        lost = {channel: position(str(int(first) - 1)) for channel, first in self._reached.lost.items()}
        gap = replace(gap, marks=lost | {name: min(mark, lost.get(name, mark)) for name, mark in gap.marks.items()})
        heard = [one for one in marked_channels(gap) if one.workspace == DIRECT or self._people.hears(one.workspace)]
        async for one in swept((*heard, *self._unmarked(gap)), partial(self._sweep, since=since, gap=gap)):
            yield one

    async def before(self, perception: Perception, most: int) -> Sequence[Perception]:
        """Return the first message of a perception's thread and the latest ones before it, oldest first.

        Of one outside a thread, those above it; in a channel or direct message, the latest ones altogether. Raises:
        DeliveryError.
        """
        place = Place.of(perception.conversation)
        is_above = bool(place.thread) and perception.position == position(place.thread)
        where = Where(place.workspace, place.channel, "" if is_above else place.thread)
        try:
            if is_above:
                channel, end = self._place(place.channel, place.workspace), discord.Object(int(perception.position))
                found = [one async for one in channel.history(limit=most, before=end, oldest_first=False)][::-1]
            elif place.thread:
                thread, parent = (self._place(one, place.workspace) for one in (place.thread, place.channel))
                end = discord.Object(int(perception.position))
                found = [one async for one in thread.history(limit=most, before=end, oldest_first=False)][::-1]
                found = [*await _first(parent, int(place.thread)), *found[1 - most :]]
            else:
                found = [one async for one in self._place(place.channel, place.workspace).history(limit=most)][::-1]
        except FAILURES as error:
            raise classify(error) from error
        return await self._hear(found, where, with_ours=True)

    def _place(self, number: str, guild: str) -> discord.PartialMessageable:
        return self._client.get_partial_messageable(int(number), guild_id=None if guild == DIRECT else int(guild))

    async def _sweep(self, channel: MarkedChannel, since: str, gap: Gap) -> AsyncIterator[Swept]:
        name = f"{channel.workspace}:{channel.channel}"
        floor = max(channel.mark, since)
        furthest, posts, parts = floor, posts_in(gap, f"{NETWORK}:{name}"), self._parts(channel, floor)
        places = [part.thread for part in parts]  # what else was known of is not looked for, and so not missed
        posts = posts if posts and await self._client.may_read(channel.workspace, channel.channel) else {}
        known = {id_: one for id_, one in posts.items() if since < position(id_) <= floor and root_of(one) in places}
        for where in parts:
            read = await self._read(where, limit=MOST_LOOKED_AT, after=discord.Object(int(floor)), oldest_first=True)
            missed, end = read or [], discord.Object(int(floor) + 1)
            older = await self._read(where, limit=OLDER, before=end) if known and read is not None else None
            edits = await self._edits(older or (), where, known, gap.now)
            known = _left(known, where, older)
            is_whole = bool(where.thread) or channel.workspace == DIRECT
            yield Swept(
                channel=name,
                perceptions=(*edits, *await self._hear(missed[:MOST], where)),
                conversation=where.conversation if is_whole else "",
                left_out=max(0, len(missed) - MOST),
            )
            if missed:
                last = position(str(missed[-1].id))
                self._places.know(where.place, last)
                furthest = max(furthest, last)
        self._reached.known(name, furthest)
        if self._reached.lost.get(name, furthest) <= furthest:
            self._reached.lost.pop(name, None)
        at = gap.now or moment(floor)
        gone = [deleted(post.key, post.conversation, at, stamp(at), moment(one)) for one, post in sorted(known.items())]
        yield Swept(channel=name, perceptions=tuple(gone), position=furthest)

    def _parts(self, channel: MarkedChannel, floor: str) -> list[Where]:
        """Return a channel and its threads that may hold something new: the recent ones and those that have grown."""
        grown = [
            str(thread.id)
            for guild in self._client.guilds
            if str(guild.id) == channel.workspace
            for thread in guild.threads
            if where_is(thread).channel == channel.channel and position(str(thread.last_message_id or 0)) > floor
        ]
        threads = dict.fromkeys((*channel.threads, *grown))
        itself = [] if channel.channel in threads else [""]  # a private thread is under no other channel
        return [Where(channel.workspace, channel.channel, one) for one in (*itself, *threads)]

    async def _read(self, where: Where, **span: Any) -> list[discord.Message] | None:
        """Read messages of a place; None if it is gone or was never opened: replies were posted beside the message."""
        try:
            return [one async for one in self._place(where.place, where.guild).history(**span)]
        except FAILURES as error:
            log.info("history not read", extra={"channel": where.place, "error": unquoted(error)})
            found = classify(error)
            if where.thread and isinstance(found, DeliveryRefused):
                return None
            raise found from error

    async def _hear(
        self, messages: Sequence[discord.Message], where: Where, *, with_ours: bool = False
    ) -> tuple[Perception, ...]:
        heard: list[Perception] = []
        for message in messages:
            try:
                said = interpret(message, where, self._us, with_ours=with_ours)
            except MISREAD as error:  # one odd message must not block the others
                log.warning("a message cannot be read", extra={"id": message.id, "error": unquoted(error)})
                continue
            if isinstance(said, DiscordMessage):
                who = await self._people.know(where.guild, self._client, said.user, message.author)
                heard.append(perceive(said, self._us, who))
        return tuple(heard)

    async def _edits(
        self, messages: Sequence[discord.Message], where: Where, known: Posts, now: datetime | None
    ) -> tuple[Perception, ...]:
        """Return the edits of messages that were heard before: one that came while nobody listened is not reported."""
        mine = {str(one.id): one for one in messages if str(one.id) in known}
        said = await self._hear([one for id_, one in mine.items() if one.edited_at or known[id_].brings], where)
        ids = {message.key.rpartition(":")[2]: message for message in said}
        told = [one for id_, message in ids.items() if (at := mine[id_].edited_at) for one in reworded(message, at)]
        less = [(one, mine[id_].edited_at or one.at) for id_, one in ids.items() if has_lost(known[id_], one)]
        bare = [bared(one, last, now) for one, last in less if now]
        return *told, *bare

    def _unmarked(self, gap: Gap) -> list[MarkedChannel]:
        """Find channels without a stored position that hold something newer than the newest stored message.

        Direct messages are not among them, because Discord does not list those. Nothing from before we joined is read.
        """
        last = max(gap.marks.values(), default="")
        found: dict[MarkedChannel, str] = {}
        untold: list[MarkedChannel] = []
        for guild in self._client.guilds if last else ():
            if not self._people.hears(str(guild.id)):
                continue
            floor = max(last, stamp(guild.me.joined_at)) if guild.me and guild.me.joined_at else last
            for place in (*guild.channels, *guild.threads):
                newest = getattr(place, "last_message_id", None)
                channel = where_is(place).channel
                one = MarkedChannel(str(guild.id), channel, floor)
                if f"{guild.id}:{channel}" in gap.marks:
                    continue
                if newest is None and isinstance(place, discord.TextChannel):
                    untold.append(one)
                elif newest and (told := position(str(newest))) > floor:
                    found[one] = max(told, found.get(one, ""))
        return sorted(found, key=lambda one: found[one], reverse=True)[:NEW_PLACES] + untold[:UNTOLD]


async def _first(parent: discord.PartialMessageable, thread: int) -> list[discord.Message]:
    """Return the message that a thread was opened on (it is not in the thread itself), or nothing if there is none."""
    try:
        return [await parent.fetch_message(thread)]
    except discord.NotFound:
        return []


def _left(known: Posts, where: Where, there: Sequence[discord.Message] | None) -> Posts:
    """Return what is not there of what is known of a channel, as far as it was looked at. Pure."""
    if there is None:
        return {id_: one for id_, one in known.items() if root_of(one) != where.thread}
    first = position(str(there[-1].id)) if len(there) == OLDER else ""
    ids = {str(one.id) for one in there}
    return {id_: one for id_, one in known.items() if id_ not in ids and position(id_) > first}
