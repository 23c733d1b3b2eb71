"""Find out which shared channels one person can see.

Without the members intent, Discord lists nobody, so the adapter asks about each person who writes directly. Discord
does not report departures to us, so only a negative answer is cached for a while. In case of doubt, a channel counts as
not visible.

Source: the chat design, section 2, "intents"; docs.discord.com/developers/topics/permissions and …/topics/threads.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from time import monotonic
from typing import Any, TypeVar

import discord

from claudius.adapters.discord.api_errors import FAILURES
from claudius.adapters.discord.places import keep

log = logging.getLogger("claudius.discord.sight")

T = TypeVar("T")
_PLACE = re.compile(r"shared:discord:\d+:\d+")

NO_S = 60.0
"""How long something that does not exist, or that we may not see, is not asked for again."""
PATIENCE_S = 1.5
"""How long to wait for Discord's answers. A channel not answered for by then counts as not visible."""


class Sight:
    """Answers who can see what, through one client."""

    def __init__(self, client: discord.Client, now: Callable[[], float] = monotonic) -> None:
        """Ask through `client`. `now` returns monotonic seconds for measuring durations."""
        self._client, self._now = client, now
        self._archived: dict[str, discord.Thread] = {}
        """Threads that the library no longer caches."""
        self._refused: dict[str, float] = {}
        """When a lookup was last answered with "not found" or "forbidden", by lookup key."""

    async def seen(self, person: str, audiences: Iterable[str]) -> Sequence[str]:
        """Return those of these shared audiences that a person can see now.

        Never raises: a doubtful one is left out.
        """
        user, asked = int(person.rpartition(":")[2]), [one for one in audiences if _PLACE.fullmatch(one)]
        if not asked:
            return []
        async with asyncio.TaskGroup() as group:
            numbers = {int(audience.split(":")[2]) for audience in asked}
            members = {number: group.create_task(self._member(number, user)) for number in numbers}
            asking = [group.create_task(self._sees(audience, members), name=audience) for audience in asked]
            _, late = await asyncio.wait(asking, timeout=PATIENCE_S)
            for task in (*late, *members.values()):
                task.cancel()
        return [task.get_name() for task in asking if not task.cancelled() and task.result()]

    async def _member(self, number: int, user: int) -> discord.Member | None:
        guild = self._client.get_guild(number)
        return await self._ask(f"{number} {user}", lambda: guild.fetch_member(user)) if guild else None

    async def _sees(self, audience: str, members: Mapping[int, Awaitable[discord.Member | None]]) -> bool:
        """Return whether a guild member can read a channel, or is in a private thread under a channel they can read."""
        number, place = map(int, audience.split(":")[2:])
        member = await members[number]
        if member is None:
            return False
        guild = member.guild
        channel = guild.get_channel(place)
        if channel:
            return _may_read(channel, member)
        thread = guild.get_thread(place) or await self._fetch(guild, place)
        if thread is None or thread.parent is None or not _may_read(thread.parent, member):
            return False
        return await self._ask(f"{place} {member.id}", lambda: thread.fetch_member(member.id)) is not None

    async def _fetch(self, guild: discord.Guild, place: int) -> discord.Thread | None:
        """Return an archived thread, or None if there is none."""
        number = str(place)
        found: object = self._archived.get(number) or await self._ask(number, lambda: guild.fetch_channel(place))
        if not isinstance(found, discord.Thread):
            return None
        keep(self._archived, number, found)
        return found

    async def _ask(self, key: str, ask: Callable[[], Coroutine[Any, Any, T]]) -> T | None:
        """Return Discord's answer, or None if the object does not exist or Discord does not answer."""
        if self._now() - self._refused.get(key, -NO_S) < NO_S:
            return None
        try:
            return await ask()
        except (discord.NotFound, discord.Forbidden):
            keep(self._refused, key, self._now())
        except FAILURES as error:
            log.info("not known who sees what", extra={"asked": key, "error": repr(error)})
        return None


def _may_read(channel: discord.abc.GuildChannel, member: discord.Member) -> bool:
    """Return whether a member may read a channel's whole history, including from before they joined. Pure."""
    may = channel.permissions_for(member)
    is_voice = isinstance(channel, (discord.VoiceChannel, discord.StageChannel))
    return may.view_channel and may.read_message_history and (may.connect or not is_voice)
