"""Show Discord's typing indicator while the soul thinks. Discord clears it after ten seconds or on our post."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import discord

from claudius.adapters.discord.api_errors import FAILURES
from claudius.adapters.discord.places import Places
from claudius.perception import Perception, Place

log = logging.getLogger("claudius.discord.sign")

REFRESH_S = 8.0


class Signs:
    """The typing indicators of one client, one per conversation, each in its own task so that nobody waits for it."""

    def __init__(self, client: discord.Client, places: Places, *, is_shown: bool, refresh_s: float = REFRESH_S) -> None:
        """Show nothing at all unless `is_shown`."""
        self._client, self._places = client, places
        self._is_shown, self._refresh_s = is_shown, refresh_s
        self._shown: dict[str, asyncio.Task[None]] = {}

    def show(self, perception: Perception) -> None:
        """Show that the soul thinks about a perception."""
        self.hide(perception)
        if self._is_shown:
            conversation = perception.conversation
            work = self._sign(Place.of(conversation))
            self._shown[conversation] = task = asyncio.create_task(work, name=f"sign {conversation}")
            task.add_done_callback(self._gone(conversation))

    def hide(self, perception: Perception) -> None:
        """Stop showing the indicator."""
        if task := self._shown.pop(perception.conversation, None):
            task.cancel()

    async def close(self) -> None:
        """Cancel every task."""
        tasks = list(self._shown.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _gone(self, conversation: str) -> Callable[[asyncio.Task[None]], None]:
        def forget(task: asyncio.Task[None]) -> None:
            if self._shown.get(conversation) is task:
                del self._shown[conversation]

        return forget

    async def _sign(self, place: Place) -> None:
        # The reply may open a thread that does not exist yet, so the indicator is shown where the message is.
        is_there = place.thread in self._places.opened or (place.thread and self._client.get_channel(int(place.thread)))
        target = int(place.thread if is_there else place.channel)
        try:
            while True:
                await self._client.http.send_typing(target)
                await asyncio.sleep(self._refresh_s)
        except FAILURES as error:
            log.info("no sign", extra={"channel": target, "error": repr(error)})
