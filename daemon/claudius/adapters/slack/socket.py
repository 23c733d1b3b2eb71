"""Log in to Slack and run one Socket Mode client.

Our identity and a first ticket are each requested once, so that a bad token is reported by name instead of being
retried for ever.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic, time
from typing import Any

from aiohttp import WSMessage
from msgspec import Struct
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.slack.incoming import NETWORK, Us, timed
from claudius.adapters.slack.web_api import FAILURES, NOT_NOW, code_of
from claudius.errors import AdapterRefused

BOT_TOKEN, APP_TOKEN = "SLACK_BOT_TOKEN", "SLACK_APP_TOKEN"
BOT = "xoxb-"
"""The prefix of a bot token."""
TRANSIENT = frozenset(
    {*NOT_NOW, "fatal_error", "internal_error", "service_unavailable", "request_timeout", "team_added_to_org"}
)
SOCKET_MODE = "turn Socket Mode on in the app's settings; `claudius slack manifest` has it on"
REMEDIES = {
    "missing_scope": "give the app-level token the scope connections:write (Basic Information, App-Level Tokens)",
    "not_allowed_token_type": "SLACK_BOT_TOKEN begins with xoxb-, SLACK_APP_TOKEN with xapp-: put each in its place",
    "socket_mode_not_enabled": SOCKET_MODE,
    "link_disabled": SOCKET_MODE,
}
REMEDY = "put a token that is in force into .env; docs/slack.md says where Slack shows it"


class LetIn(Struct, frozen=True):
    """What Slack returned at login."""

    us: Us
    ticket: str
    """The address of the first socket. It opens one socket, once."""


class NotNow(Exception):
    """Slack cannot be reached or does not answer now."""


async def enter(client: AsyncWebClient, app_token: str) -> LetIn:
    """Ask who we are and for a socket. Raises: AdapterRefused if a token can never work, NotNow."""
    setting = BOT_TOKEN
    try:
        found = await client.auth_test()
        us = Us(*(str(found.get(key) or "") for key in ("team_id", "user_id", "bot_id", "enterprise_id")))
        if not us.bot and not (client.token or "").startswith(BOT):
            raise AdapterRefused(NETWORK, BOT_TOKEN, "it is a person's token", "put the bot token (xoxb-) into .env")
        setting = APP_TOKEN
        opened = await client.apps_connections_open(app_token=app_token)
    except FAILURES as error:
        code = code_of(error)
        if not code or code in TRANSIENT:
            raise NotNow(code or type(error).__name__) from error
        raise AdapterRefused(NETWORK, setting, code, REMEDIES.get(code, REMEDY)) from error
    return LetIn(us, str(opened.get("url") or ""))


log = logging.getLogger("claudius.slack.socket")

Take = Callable[[Mapping[str, Any]], Awaitable[BoltResponse]]
"""Takes one payload. What it returns is the acknowledgement. If it raises, there is none."""

CLOSE_S = 5.0


def bolt(client: AsyncWebClient, take: Take, logger: logging.Logger) -> AsyncApp:
    """Build a Bolt app in which `take` is the first middleware and the last.

    Bolt acknowledges before a listener runs, so work in a listener is lost in a crash. A middleware's answer is itself
    the acknowledgement. Later middlewares would acknowledge events that they could not look up or take for ours.
    """

    async def hear(body: dict[str, Any]) -> BoltResponse:
        return await take(timed(body, time()))

    # for each event, Bolt sets the level of the logger named like the app to this `logger`'s level
    return AsyncApp(name=logger.name, client=client, before_authorize=hear, logger=logger)


class Socket:
    """One client object of the SDK, which keeps one socket open at a time."""

    def __init__(self, app: AsyncApp, app_token: str, ping_s: float, logger: logging.Logger) -> None:
        """Prepare to open. A ping is sent every `ping_s` seconds."""
        self._handler = AsyncSocketModeHandler(app, app_token, logger=logger, ping_interval=ping_s)
        self._client = self._handler.client
        self._client.on_message_listeners.append(self._frame)
        self._opening: asyncio.Task[None] | None = None
        self._pong: float | None = None
        self._heard_at = monotonic()
        self._hello: Callable[[int], None] = lambda _: None

    def open(self, ticket: str, hello: Callable[[int], None]) -> None:
        """Begin to connect with a first ticket.

        `hello` is called for each socket with the number of sockets Slack counts.
        """
        self._hello = hello
        self._client.wss_uri = ticket or None
        connecting = self._handler.connect_async()  # type: ignore[no-untyped-call] # library function
        self._opening = asyncio.create_task(connecting, name="slack connects")

    async def is_connected(self) -> bool:
        """Return whether the SDK believes that it is connected. That does not mean that events arrive."""
        return await self._client.is_connected()

    def drop_ticket(self) -> None:
        """Make the SDK ask for a new ticket, since by itself it retries a dead one for ever."""
        self._client.wss_uri = None

    def silent_s(self) -> float:
        """Return for how many seconds no hello, pong or envelope has arrived."""
        pong = self._client.last_ping_pong_time
        if pong != self._pong and self._pong is not None:
            self._heard_at = monotonic()
        self._pong = pong
        return monotonic() - self._heard_at

    async def close(self) -> None:
        """Close every socket, session and task, within a time limit whatever the other side does."""
        client = self._client
        client.closed = True
        tasks = (self._opening, client.message_processor, client.current_session_monitor, client.message_receiver)
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._handler.close_async()  # type: ignore[no-untyped-call] # library function
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
