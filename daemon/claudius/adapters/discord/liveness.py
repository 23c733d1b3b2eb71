"""Watch one client, and report when a fresh one is needed because the library does not notice a fault by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import monotonic

import discord
from msgspec import Struct, field

from claudius.adapters.discord.api_errors import FAILURES
from claudius.adapters.discord.incoming import position
from claudius.adapters.discord.places import Places
from claudius.runtime.adapter import Link

log = logging.getLogger("claudius.discord.liveness")


class Patience(Struct, frozen=True):
    """How long each thing may take, in seconds."""

    tick_s: float = 1.0
    guild_ready_s: float = 2.0
    """After this long without a further guild, all guilds count as known."""
    identify_s: float = 5.0
    """The pause before a further session."""
    lost_s: float = 5.0
    """A socket that is resumed sooner counts as never lost."""
    client_s: float = 120.0
    """After this long without a connection, a fresh client starts at once: the library's own waits keep growing."""
    deaf_s: float = 60.0
    """After this long without an event, the history is checked for a missed one."""
    spoke_s: float = 3600.0
    """That check runs only if somebody spoke within this time."""
    arrives_s: float = 3.0
    """How much later than in the history a message may reach us."""
    again_s: float = 5.0
    """The pause before trying again after Discord could not be reached or a message could not be stored."""
    close_s: float = 5.0
    """How long the other side may take to close a socket."""
    send_s: float = 60.0
    """How long a post may take, including waits for rate limits."""


class Pulse(Struct):
    """Since when a client has had no socket. None = it has one."""

    down_at: float | None = field(default_factory=monotonic)

    def down_s(self) -> float:
        """Return for how many seconds it has had no socket."""
        return 0.0 if self.down_at is None else monotonic() - self.down_at


async def watch(pulse: Pulse, link: Link, patience: Patience, is_deaf: Callable[[], Awaitable[bool]]) -> None:
    """Return when a fresh client is needed."""
    while True:
        down_s = pulse.down_s()
        if link.connected and down_s >= patience.lost_s:
            link.down("the connection is lost and being made again")
        if down_s >= patience.client_s:
            link.down("nothing is heard from Discord; connecting from the beginning")
            log.warning("a fresh client is made", extra={"reason": "lost"})
            return
        if pulse.down_at is None and await is_deaf():
            log.warning("a fresh client is made", extra={"reason": "deaf"})
            link.deaf()
            return
        await asyncio.sleep(patience.tick_s)


LOOKED_AT = 20
"""How many of the newest messages are examined, since some are our own."""


class Probe:
    """Compares the newest message in the last active channel with the last message that arrived."""

    def __init__(self, places: Places, patience: Patience) -> None:
        """Use the positions in `places`."""
        self._places, self._patience = places, patience
        self._spoke_at: float | None = None
        self._came_at = self._asked_at = monotonic()

    def came(self) -> None:
        """Note that an event arrived."""
        self._came_at = self._asked_at = monotonic()

    def spoke(self) -> None:
        """Note that somebody said something."""
        self._spoke_at = monotonic()

    async def is_deaf(self, client: discord.Client) -> bool:
        """Return whether a message was said that did not arrive. Checks rarely, and only if somebody spoke recently."""
        now = monotonic()
        if self._spoke_at is None or now - self._spoke_at > self._patience.spoke_s or not self._places.newest:
            return False
        if now - self._asked_at < self._patience.deaf_s:
            return False
        self._asked_at = now
        place = next(reversed(self._places.newest))
        if not await self._is_ahead(client, place):
            return False
        before = self._came_at
        await asyncio.sleep(self._patience.arrives_s)
        return self._came_at == before and await self._is_ahead(client, place)

    async def _is_ahead(self, client: discord.Client, place: str) -> bool:
        try:
            found = [one async for one in client.get_partial_messageable(int(place)).history(limit=LOOKED_AT)]
            # our own later messages must not hide earlier ones of others
            others = [position(str(one.id)) for one in found if one.author != client.user]
        except FAILURES as error:
            log.info("not asked whether we are deaf", extra={"error": repr(error)})
            return False
        return max(others, default="") > self._places.newest.get(place, "")
