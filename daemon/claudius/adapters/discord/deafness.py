"""Connected, yet deaf: where nothing comes for a while, the history is asked whether something should have come.

A quiet guild restarts nothing. Source: the chat design, sections 1.6 and 2.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic

import discord

from claudius.adapters.discord.hearing import position
from claudius.adapters.discord.places import Places
from claudius.adapters.discord.refusals import FAILURES
from claudius.adapters.discord.watch import Patience

LOOKED_AT = 20
"""So many of the newest messages are looked at: some are our own."""

log = logging.getLogger("claudius.discord.deafness")


class Probe:
    """Compares the newest message of the place that was last heard with the last one that came."""

    def __init__(self, places: Places, patience: Patience) -> None:
        """Know what `places` knows."""
        self._places, self._patience = places, patience
        self._spoke_at: float | None = None
        self._came_at = self._asked_at = monotonic()

    def came(self) -> None:
        """Note that an event came."""
        self._came_at = self._asked_at = monotonic()

    def spoke(self) -> None:
        """Note that somebody said something."""
        self._spoke_at = monotonic()

    async def is_deaf(self, client: discord.Client) -> bool:
        """Tell whether something was said that did not come; asked seldom, and only where somebody spoke of late."""
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
            # what we said since hides nothing that others said before it
            others = [position(str(one.id)) for one in found if one.author != client.user]
        except FAILURES as error:
            log.info("not asked whether we are deaf", extra={"error": repr(error)})
            return False
        return max(others, default="") > self._places.newest.get(place, "")
