"""One Bolt app on one Socket Mode client, from its first ticket to its close: what it hears goes through one door."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic, time
from typing import Any

from aiohttp import WSMessage
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.slack.hearing import timed

log = logging.getLogger("claudius.slack.socket")

Take = Callable[[Mapping[str, Any]], Awaitable[BoltResponse]]
"""Takes one payload; what it returns is the acknowledgement, what it raises means that there is none."""

CLOSE_S = 5.0


def bolt(client: AsyncWebClient, take: Take, logger: logging.Logger) -> AsyncApp:
    """Make a Bolt app in which `take` is the first middleware, and the last.

    Bolt acknowledges before a listener runs, so that whoever hears in a listener loses what a crash interrupts; a
    middleware's answer is the acknowledgement. Later ones acknowledge what they could not look up, or take for ours.
    """

    async def hear(body: dict[str, Any]) -> BoltResponse:
        return await take(timed(body, time()))

    # with each event, Bolt gives the logger that is called like the app this `logger`'s level
    return AsyncApp(name=logger.name, client=client, before_authorize=hear, logger=logger)


class Socket:
    """One client object of the SDK, which keeps one socket open at a time."""

    def __init__(self, app: AsyncApp, app_token: str, ping_s: float, logger: logging.Logger) -> None:
        """Be ready to open; pings go out every `ping_s` seconds."""
        self._handler = AsyncSocketModeHandler(app, app_token, logger=logger, ping_interval=ping_s)
        self._client = self._handler.client
        self._client.on_message_listeners.append(self._frame)
        self._opening: asyncio.Task[None] | None = None
        self._pong: float | None = None
        self._heard_at = monotonic()
        self._hello: Callable[[int], None] = lambda _: None

    def open(self, ticket: str, hello: Callable[[int], None]) -> None:
        """Begin to connect with a first ticket; tell `hello` of each socket, with the number that Slack counts."""
        self._hello = hello
        self._client.wss_uri = ticket or None
        connecting = self._handler.connect_async()  # type: ignore[no-untyped-call] # the library's
        self._opening = asyncio.create_task(connecting, name="slack connects")

    async def is_connected(self) -> bool:
        """Tell whether the SDK takes itself for connected: true does not mean that anything is heard."""
        return await self._client.is_connected()

    def drop_ticket(self) -> None:
        """Have the SDK ask for a new ticket: by itself it tries a dead one for ever."""
        self._client.wss_uri = None

    def silent_s(self) -> float:
        """Return for how many seconds no hello, pong or envelope came."""
        pong = self._client.last_ping_pong_time
        if pong != self._pong and self._pong is not None:
            self._heard_at = monotonic()
        self._pong = pong
        return monotonic() - self._heard_at

    async def close(self) -> None:
        """Leave no socket, session or task; bounded, whatever the other side does."""
        client = self._client
        client.closed = True
        tasks = (self._opening, client.message_processor, client.current_session_monitor, client.message_receiver)
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._handler.close_async()  # type: ignore[no-untyped-call] # the library's
        except (TimeoutError, OSError) as error:
            log.info("a socket did not close in time", extra={"error": repr(error)})
            await client.aiohttp_client_session.close()
        open_tasks = [task for task in tasks if task is not None]
        for task in open_tasks:
            task.cancel()
        await asyncio.gather(*open_tasks, return_exceptions=True)

    async def _frame(self, message: WSMessage) -> None:
        self._heard_at = monotonic()
        if isinstance(message.data, str) and '"hello"' in message.data[:500]:
            frame = json.loads(message.data)
            if frame.get("type") == "hello":
                self._hello(int(frame.get("num_connections") or 1))
