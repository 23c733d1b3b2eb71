"""Show Slack's typing indicator while the soul thinks: a status in a thread, an eyes reaction in a plain DM.

It never shows a word of the reply. Slack removes a status after two minutes, so it is renewed earlier.

Source: the chat design, section 1.5.
"""

from __future__ import annotations

import asyncio
import logging

from msgspec import Struct, field
from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.slack.web_api import FAILURES, code_of
from claudius.adapters.waiting import until
from claudius.perception import Perception, Place

log = logging.getLogger("claudius.slack.sign")

REFRESH_S = 90.0
CLEARED_S = 2.0
"""How long clearing the last indicators may take at shutdown."""
EYES = "eyes"


class _Shown(Struct):
    status: str
    over: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    holding: asyncio.Task[None] | None = None


class Signs:
    """The typing indicators of one workspace, one per conversation, each in its own task that nobody waits for."""

    def __init__(self, client: AsyncWebClient, status: str, refresh_s: float = REFRESH_S) -> None:
        """Show `status`. Empty = no indicator at all."""
        self._client, self._status, self._refresh_s = client, status, refresh_s
        self._shown: dict[str, _Shown] = {}

    def show(self, perception: Perception) -> None:
        """Show that the soul thinks about a perception."""
        self.hide(perception)
        place = Place.of(perception.conversation)
        if not self._status or not (place.thread or perception.audience.startswith("private:")):
            return
        before, shown = self._shown.get(perception.conversation), _Shown(self._status)
        work = self._sign(place, perception.position, shown, before.task if before else None)
        shown.task = asyncio.create_task(work, name=f"sign {perception.conversation}")
        self._shown[perception.conversation] = shown
        shown.task.add_done_callback(lambda _: self._gone(perception.conversation, shown))

    def hold(self, perception: Perception, line: str) -> None:
        """Show a line in the status, saying that this takes a moment. A reaction as indicator cannot show it."""
        shown, place = self._shown.get(perception.conversation), Place.of(perception.conversation)
        if shown and place.thread and not shown.over.is_set():
            shown.status = line
            shown.holding = asyncio.create_task(self._set(place, line), name=f"hold {perception.conversation}")

    def hide(self, perception: Perception) -> None:
        """Stop showing the indicator."""
        if shown := self._shown.get(perception.conversation):
            shown.over.set()

    async def close(self) -> None:
        """Clear every indicator, and cancel the tasks that do not finish in time."""
        tasks = [task for shown in self._shown.values() for task in (shown.task, shown.holding) if task]
        for shown in self._shown.values():
            shown.over.set()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=CLEARED_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def _gone(self, conversation: str, shown: _Shown) -> None:
        if self._shown.get(conversation) is shown:
            del self._shown[conversation]

    async def _sign(self, place: Place, ts: str, shown: _Shown, before: asyncio.Task[None] | None) -> None:
        over = shown.over
        await asyncio.sleep(0)  # let the turn itself start first
        if before is not None:
            await asyncio.wait((before,))
        if over.is_set():
            return
        if place.thread:
            while not over.is_set():
                await self._set(place, shown.status)
                await until(over, self._refresh_s)
            if shown.holding:
                await asyncio.wait((shown.holding,))
            await self._set(place, "")
        else:
            where = {"channel": place.channel, "timestamp": ts, "name": EYES}
            await self._call("reactions_add", **where)
            await over.wait()
            await self._call("reactions_remove", **where)

    async def _set(self, place: Place, status: str) -> None:
        where = {"channel_id": place.channel, "thread_ts": place.thread}
        await self._call("assistant_threads_setStatus", **where, status=status)

    async def _call(self, method: str, **arguments: str) -> None:
        try:
            await getattr(self._client, method)(**arguments)
        except FAILURES as error:
            log.info("no sign", extra={"method": method, "error": code_of(error) or repr(error)})
