"""Find out which guilds a person shares with us, for admission, and which shared channels they can see.

Without the members intent, Discord lists nobody, so each guild is asked about the person. Its answer about a guild is
fresh for ten minutes and usable for a day while Discord cannot be asked. A person who writes in a guild counts as its
member for a while. Departures are not reported to us, so of what a person can see only a negative answer is kept for a
while. In case of doubt, a channel counts as not visible.

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

from claudius.adapters.caches import FRESH_S, Lookups, keep
from claudius.adapters.discord.api_errors import FAILURES
from claudius.adapters.discord.gateway import MOST_GUILDS, Gateway
from claudius.adapters.discord.incoming import DIRECT, Belonging
from claudius.config.schema import Config
from claudius.config.tables import AccessSettings
from claudius.foreign import unquoted

log = logging.getLogger(__name__)

GUILDS_S = 5.0
"""How long a message waits for Discord's answer about its speaker."""
EVERY = "*"


class DiscordPeople(Lookups[Mapping[str, tuple[str, ...]]]):
    """The allowed guilds that each person shares with us, with their roles there.

    By their id and what the settings wanted to know when they were asked about.
    """

    def __init__(self, allowed: tuple[str, ...]) -> None:
        super().__init__()
        self._allowed: Callable[[], tuple[str, ...]] = lambda: allowed
        self._access: Callable[[], AccessSettings] = AccessSettings

    def follow(self, config: Callable[[], Config]) -> None:
        """Read the allowed guilds and the access rules from `config` from now on."""
        self._allowed = lambda: config().discord.guilds
        self._access = lambda: config().access

    async def _shared(self, user: str, client: Gateway) -> Mapping[str, tuple[str, ...]]:
        """Return the allowed guilds that a person shares with us, by id, with the ids of their roles there.

        Raises: TimeoutError if Discord does not answer and nothing is known.
        """
        await self.refresh((self._key(user),), lambda _: self._ask(user, client), GUILDS_S)
        if (found := self.get(self._key(user))) is None:
            raise TimeoutError(f"Discord did not say who {user} is")
        return found

    async def know(self, guild: str, client: Gateway, user: str, author: object = None) -> Belonging:
        """Return what a speaker is in a guild, or in a direct message in every shared one.

        `author` is the object that came with the message: a member brings their roles, anybody else is asked about.

        Raises: TimeoutError if Discord does not answer and nothing is known.
        """
        if guild == DIRECT:
            found = await self._shared(user, client)
            return Belonging(tuple(found), tuple(role for roles in found.values() for role in roles))
        if not self.hears(guild):
            return Belonging((guild,))
        if self._access().asks_roles:
            roles = _roles(author) or (await self._shared(user, client)).get(guild, ())
            return Belonging((guild,), roles)
        if self.get(self._key(user), FRESH_S) is None:
            self.keep(self._key(user), {guild: ()})
        return Belonging((guild,))

    def nobody_heard(self, client: Gateway) -> str:
        """Return a notice for the owner if none of the bot's guilds is allowed, or "" if one is."""
        if any(self.hears(str(one.id)) for one in client.guilds):
            return ""
        there = ", ".join(f"{one.id} ({one.name})" for one in client.guilds) or "none yet"
        return f"no server is allowed in discord.guilds; the bot is in: {there}"

    def hears(self, guild: str) -> bool:
        """Return whether the settings allow the guild with this id."""
        return EVERY in (allowed := self._allowed()) or guild in allowed

    def _key(self, user: str) -> str:
        return " ".join((user, "by role" if self._access().asks_roles else "", *self._allowed()))

    async def _ask(self, user: str, client: Gateway) -> Mapping[str, tuple[str, ...]] | None:
        try:
            guilds = (await client.present(self.hears))[:MOST_GUILDS]
        except FAILURES as error:
            log.warning("the guilds are not known", extra={"error": unquoted(error)})
            return None
        answers = await asyncio.gather(*(_member(guild, user) for guild in guilds))
        found = {str(guild.id): roles for guild, roles in zip(guilds, answers, strict=True) if roles}
        is_whole = None not in answers  # a guild that does not answer may hold a role that is denied
        return found if is_whole or (found and not self._access().is_by_role) else None


async def _member(guild: discord.Guild, user: str) -> tuple[str, ...] | None:
    """Return a user's roles in a guild, at least `@everyone`; none if they are not in it, None if Discord is silent."""
    try:
        return _roles(await guild.fetch_member(int(user)))
    except discord.NotFound:
        return ()
    except FAILURES as error:
        log.warning("a person is not known", extra={"user": user, "guild": guild.id, "error": unquoted(error)})
        return None


def _roles(author: object) -> tuple[str, ...]:
    """Return the ids of a member's roles, `@everyone` (the guild's id) among them; none if it is no member. Pure."""
    if not isinstance(author, discord.Member):
        return ()
    return (str(author.guild.id), *(str(role.id) for role in author.roles if role.id != author.guild.id))


T = TypeVar("T")
_PLACE = re.compile(r"shared:discord:\d+:\d+")

NO_S = 60.0
"""How long something that does not exist, or that we may not see, is not asked for again."""
CHANNELS_S = 1.5
"""How long to wait for Discord's answers. A channel not answered for by then counts as not visible."""


class ChannelVisibility:
    """Answers who can see what, through one client."""

    def __init__(self, client: Gateway) -> None:
        self._client = client
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
            _, late = await asyncio.wait(asking, timeout=CHANNELS_S)
            for task in (*late, *members.values()):
                task.cancel()
        return [task.get_name() for task in asking if not task.cancelled() and task.result()]

    async def _member(self, number: int, user: int) -> discord.Member | None:
        guild = await self._ask(f"guild {number}", lambda: self._client.current(number))
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
        if monotonic() - self._refused.get(key, -NO_S) < NO_S:
            return None
        try:
            return await ask()
        except (discord.NotFound, discord.Forbidden):
            keep(self._refused, key, monotonic())
        except FAILURES as error:
            log.info("not known who sees what", extra={"asked": key, "error": unquoted(error)})
        return None


def _may_read(channel: discord.abc.GuildChannel, member: discord.Member) -> bool:
    """Return whether a member may read a channel's whole history, including from before they joined. Pure."""
    may = channel.permissions_for(member)
    is_voice = isinstance(channel, (discord.VoiceChannel, discord.StageChannel))
    return may.view_channel and may.read_message_history and (may.connect or not is_voice)
