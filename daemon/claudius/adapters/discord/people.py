"""Which guilds a person shares with us: asked once, kept for ten minutes, and for a day while Discord cannot be asked.

Who writes in a guild is of it, and is known for a while; of a direct message Discord tells nothing, so that each guild
is asked about anybody else.
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
"""A message waits so long for what Discord says of its speaker."""
MOST = 10_000
"""So many are kept; who was looked up longest ago goes first."""
MOST_GUILDS = 100
EVERY = "*"


class _Known(Struct, frozen=True):
    guilds: tuple[str, ...]
    asked: tuple[str, ...]
    """The allowed guilds that were asked about."""
    at_s: float


class People:
    """Those who write to us directly."""

    def __init__(self, allowed: tuple[str, ...], now: Callable[[], float] = monotonic) -> None:
        """Ask the `allowed` guilds; durations are measured with `now`, in monotonic seconds."""
        self._allowed: Callable[[], tuple[str, ...]] = lambda: allowed
        self._now = now
        self._known: dict[str, _Known] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    def follow(self, config: Callable[[], Config]) -> None:
        """Ask those guilds from now on that `config` allows by then."""
        self._allowed = lambda: config().discord.guilds

    async def shared(self, user: str, client: discord.Client) -> tuple[str, ...]:
        """Return the ids of the allowed guilds that a person is in with us.

        Raises: TimeoutError where Discord does not tell, and nothing is known.
        """
        if not self._has(user, FRESH_S):
            await asyncio.wait((self._ask(user, client),), timeout=PATIENCE_S)
        if not self._has(user, STALE_S):
            raise TimeoutError(f"Discord did not say who {user} is")
        return self._known[user].guilds

    async def shared_in(self, guild: str, user: str, client: discord.Client) -> tuple[str, ...]:
        """Return the guilds that matter for who writes there: that guild; in a direct message, the shared ones.

        Raises: TimeoutError where Discord does not tell, and nothing is known.
        """
        if guild == DIRECT:
            return await self.shared(user, client)
        if self.hears(guild) and not self._has(user, FRESH_S):
            self._keep(user, (guild,))
        return (guild,)

    def nobody_heard(self, client: discord.Client) -> str:
        """Tell, for whoever set it up, that no guild that the bot is in is allowed; empty where one is."""
        if any(self.hears(str(one.id)) for one in client.guilds):
            return ""
        there = ", ".join(f"{one.id} ({one.name})" for one in client.guilds) or "none yet"
        return f"no server is allowed in discord.guilds; the bot is in: {there}"

    def hears(self, guild: str) -> bool:
        """Tell whether a guild is allowed."""
        return EVERY in (allowed := self._allowed()) or guild in allowed

    async def close(self) -> None:
        """Leave no question open."""
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
    """Tell whether somebody is in a guild; None where Discord does not say."""
    try:
        await guild.fetch_member(int(user))
    except discord.NotFound:
        return False
    except FAILURES as error:
        log.warning("a person is not known", extra={"user": user, "guild": guild.id, "error": repr(error)})
        return None
    return True
