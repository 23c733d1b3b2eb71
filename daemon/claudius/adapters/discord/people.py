"""Find out which guilds a person shares with us, for admission.

An answer is fresh for ten minutes and usable for a day while Discord cannot be asked. A person who writes in a guild
counts as its member for a while. For direct messages Discord reports no guilds, so each guild is asked about the
person.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from time import monotonic

import discord
from msgspec import Struct

from claudius.adapters.discord.api_errors import FAILURES
from claudius.adapters.discord.incoming import DIRECT
from claudius.config import Config

log = logging.getLogger("claudius.discord.people")

FRESH_S = 600.0
STALE_S = 86_400.0
PATIENCE_S = 5.0
"""How long a message waits for Discord's answer about its speaker."""
MOST = 10_000
"""How many people are kept. The one looked up longest ago is dropped first."""
MOST_GUILDS = 100
EVERY = "*"


class _Known(Struct, frozen=True):
    guilds: tuple[str, ...]
    asked: tuple[str, ...]
    """The allowed guilds that were asked."""
    at_s: float


class People:
    """The people who write to us directly."""

    def __init__(self, allowed: tuple[str, ...], now: Callable[[], float] = monotonic) -> None:
        """Ask the `allowed` guilds. `now` returns monotonic seconds for measuring durations."""
        self._allowed: Callable[[], tuple[str, ...]] = lambda: allowed
        self._now = now
        self._known: dict[str, _Known] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    def follow(self, config: Callable[[], Config]) -> None:
        """Read the allowed guilds from `config` from now on."""
        self._allowed = lambda: config().discord.guilds

    async def shared(self, user: str, client: discord.Client) -> tuple[str, ...]:
        """Return the ids of the allowed guilds that a person shares with us.

        Raises: TimeoutError if Discord does not answer and nothing is known.
        """
        if not self._has(user, FRESH_S):
            await asyncio.wait((self._ask(user, client),), timeout=PATIENCE_S)
        if not self._has(user, STALE_S):
            raise TimeoutError(f"Discord did not say who {user} is")
        return self._known[user].guilds

    async def shared_in(self, guild: str, user: str, client: discord.Client) -> tuple[str, ...]:
        """Return the guilds that matter for a speaker: the guild itself, or in a direct message the shared ones.

        Raises: TimeoutError if Discord does not answer and nothing is known.
        """
        if guild == DIRECT:
            return await self.shared(user, client)
        if self.hears(guild) and not self._has(user, FRESH_S):
            self._keep(user, (guild,))
        return (guild,)

    def nobody_heard(self, client: discord.Client) -> str:
        """Return a notice for the owner if none of the bot's guilds is allowed, or "" if one is."""
        if any(self.hears(str(one.id)) for one in client.guilds):
            return ""
        there = ", ".join(f"{one.id} ({one.name})" for one in client.guilds) or "none yet"
        return f"no server is allowed in discord.guilds; the bot is in: {there}"

    def hears(self, guild: str) -> bool:
        """Return whether a guild is allowed."""
        return EVERY in (allowed := self._allowed()) or guild in allowed

    async def close(self) -> None:
        """Cancel every open lookup."""
        for task in self._asking.values():
            task.cancel()
        await asyncio.gather(*self._asking.values(), return_exceptions=True)

    def _has(self, user: str, within_s: float) -> bool:
        found = self._known.get(user)
        return found is not None and found.asked == self._allowed() and self._now() - found.at_s < within_s

    def _ask(self, user: str, client: discord.Client) -> asyncio.Task[None]:
        """Ask once, however many messages wait for the answer."""
        task = self._asking.get(user)
        if task is None:
            task = self._asking[user] = asyncio.create_task(self._learn(user, client), name=f"who is {user}")
            task.add_done_callback(lambda _: self._asking.pop(user, None))
        return task

    async def _learn(self, user: str, client: discord.Client) -> None:
        guilds = [guild for guild in client.guilds if self.hears(str(guild.id))][:MOST_GUILDS]
        answers = await asyncio.gather(*(_is_in(guild, user) for guild in guilds))
        found = tuple(str(guild.id) for guild, is_in in zip(guilds, answers, strict=True) if is_in)
        if found or None not in answers:
            self._keep(user, found)

    def _keep(self, user: str, guilds: tuple[str, ...]) -> None:
        self._known.pop(user, None)
        self._known[user] = _Known(guilds, self._allowed(), self._now())
        if len(self._known) > MOST:
            del self._known[next(iter(self._known))]


async def _is_in(guild: discord.Guild, user: str) -> bool | None:
    """Return whether a user is in a guild, or None if Discord does not say."""
    try:
        await guild.fetch_member(int(user))
    except discord.NotFound:
        return False
    except FAILURES as error:
        log.warning("a person is not known", extra={"user": user, "guild": guild.id, "error": repr(error)})
        return None
    return True
