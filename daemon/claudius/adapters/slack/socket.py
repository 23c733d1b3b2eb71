"""Being let in: who we are, and a first ticket, each asked once, so that a bad token is named, not tried for ever."""

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
"""What a bot's token begins with."""
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
    """What Slack gave at the door."""

    us: Us
    ticket: str
    """The address of the first socket; it opens one, once."""


class NotNow(Exception):
    """Slack cannot be reached or does not answer now."""


async def enter(client: AsyncWebClient, app_token: str) -> LetIn:
    """Ask who we are and for a socket. Raises: AdapterRefused where a token will never do, NotNow."""
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
