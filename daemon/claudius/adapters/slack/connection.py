"""Log in to Slack, run one Socket Mode client, and watch it: the SDK does not notice every fault by itself.

Our identity and a first ticket are each requested once, so that a bad token is reported by name instead of being
retried for ever.

Source: the chat design, section 1.6 (python-slack-sdk#1446, #1922; bolt-python#417).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic, time
from typing import Any, Literal

from aiohttp import WSMessage
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.app.async_app import AsyncApp
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.caches import Reached
from claudius.adapters.chat_adapter import NotConnected, Timings
from claudius.adapters.slack.incoming import NETWORK, SlackBot, SlackMessage, from_history, timed
from claudius.adapters.slack.web_api import FAILURES, NOT_NOW, code_of
from claudius.errors import AdapterRefused
from claudius.foreign import unquoted
from claudius.proxies import proxy_of
from claudius.runtime.adapter import Link

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


async def identify(client: AsyncWebClient) -> SlackBot:
    """Return who we are. Raises: AdapterRefused if the token can never work, NotConnected."""
    try:
        found = await client.auth_test()
    except FAILURES as error:
        raise _refused(error, BOT_TOKEN) from error
    us = SlackBot(*(str(found.get(key) or "") for key in ("team_id", "user_id", "bot_id", "enterprise_id")))
    if not us.bot and not (client.token or "").startswith(BOT):
        raise AdapterRefused(NETWORK, BOT_TOKEN, "it is a person's token", "put the bot token (xoxb-) into .env")
    return us


async def open_ticket(client: AsyncWebClient, app_token: str) -> str:
    """Return a first ticket: the address of one socket, which it opens once.

    Raises: AdapterRefused if the token can never work, NotConnected.
    """
    try:
        opened = await client.apps_connections_open(app_token=app_token)
    except FAILURES as error:
        raise _refused(error, APP_TOKEN) from error
    return str(opened.get("url") or "")


def _refused(error: Exception, setting: str) -> NotConnected | AdapterRefused:
    code = code_of(error)
    if not code or code in TRANSIENT:
        return NotConnected(code or type(error).__name__)
    return AdapterRefused(NETWORK, setting, code, REMEDIES.get(code, REMEDY))


log = logging.getLogger(__name__)

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
        self._client.proxy = proxy_of(ticket)
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
            log.info("a socket did not close in time", extra={"error": unquoted(error)})
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


Verdict = Literal["well", "lost", "dead ticket", "dead client", "silent"]


class SlackTimings(Timings, frozen=True):
    """How long each thing may take, in seconds."""

    ping_s: float = 5.0
    ticket_s: float = 5.0
    """After this long without a connection, the ticket counts as dead."""
    client_s: float = 60.0
    """After this long without a connection, the client counts as dead."""
    transcribed_s: tuple[float, ...] = (0.0, 1.0, 2.0, 4.0, 4.0)
    """The pauses between looks for the transcript of a clip."""
    press_s: float = 2.5
    """How long the press of a button may take to be stored before it is acknowledged."""
    silent_s: float = 30.0
    """How long a connected socket may be silent, without even a pong."""


def judge(timings: SlackTimings, *, is_connected: bool, down_s: float, silent_s: float, ticket_s: float) -> Verdict:
    """Return the state of a socket. Pure.

    `down_s`, `silent_s`: for how long it has not been connected, or nothing was received. `ticket_s`: since a ticket
    was last dropped.
    """
    if is_connected:
        return "silent" if silent_s >= timings.silent_s else "well"
    if down_s >= timings.client_s:
        return "dead client"
    return "dead ticket" if min(down_s, ticket_s) >= timings.ticket_s else "lost"


async def watch(
    socket: Socket, link: Link, timings: SlackTimings, deaf_s: Callable[[], Awaitable[float | None]]
) -> None:
    """Return when a fresh client is needed.

    `deaf_s`: if an event was missed, for how long nothing at all has arrived.
    """
    connected_at = dropped_at = monotonic()
    while True:
        now, is_connected = monotonic(), await socket.is_connected()
        connected_at = now if is_connected else connected_at
        verdict = judge(
            timings,
            is_connected=is_connected,
            down_s=now - connected_at,
            silent_s=socket.silent_s(),
            ticket_s=now - dropped_at,
        )
        if verdict != "well" and link.connected:
            link.down("the connection is lost and being made again")
        if verdict == "dead ticket":
            dropped_at = now
            socket.drop_ticket()
            link.down("Slack opens no socket; asking for another")
        if verdict in ("dead client", "silent"):
            link.down("nothing is heard from Slack; connecting from the beginning")
            log.warning("a fresh client is made", extra={"reason": verdict})
            return
        if verdict == "well" and link.connected and (silent_s := await deaf_s()) is not None:
            link.deaf(silent_s)
            if silent_s >= timings.deaf_s:
                log.warning("a fresh client is made", extra={"reason": "deaf"})
                return
            log.warning("something did not come", extra={"silent_s": round(silent_s, 1)})
        await asyncio.sleep(timings.tick_s)


LOOKED_AT = 50
"""How many of the newest messages are examined, with the latest reply in each one's thread."""
A_WHILE = 20
"""How many channels are checked at most within the time after which one counts as silent."""
UNLIKELY = 10
"""Slack gives each event to any one of several listeners: it is unlikely that so many in a row go to the others."""
ANSWERS_S = 5.0
"""How long the watch over the socket waits for an answer."""


class SlackProbe:
    """Compares the history of recently active channels with what arrived from them."""

    def __init__(
        self, client: AsyncWebClient, us: SlackBot, reached: Reached, timings: SlackTimings, link: Link
    ) -> None:
        self._client, self._us, self._reached, self._timings, self._link = client, us, reached, timings, link
        self._began_at = self._asked_at = self._heard_at = monotonic()
        self._silent_since: dict[str, float] = {}

    def heard(self, channel: str) -> None:
        """Note that an event of this channel arrived now."""
        self._heard_at = self._silent_since[channel] = monotonic()

    async def __call__(self) -> float | None:
        """Return for how many seconds nothing at all has arrived if a message was missed, else None.

        Checks rarely, and only the channel silent for longest of those where somebody spoke recently.
        """
        now = monotonic()
        spoke_after = f"{time() - self._timings.spoke_s:.6f}"
        silent = {
            channel: since
            for channel, newest in reversed(self._reached.newest.items())
            if newest > spoke_after
            and now - (since := self._silent_since.get(channel, self._began_at)) >= self._timings.deaf_s
        }
        channel = min(silent, key=lambda channel: silent[channel], default="")
        if not channel or now - self._asked_at < self._timings.deaf_s / A_WHILE:
            return None
        self._asked_at = self._silent_since[channel] = now
        if not await self._missing(channel):
            return None
        await asyncio.sleep(self._timings.arrives_s)
        missing = await self._missing(channel)
        for ts in missing:
            self._reached.known(channel, ts)  # report it once: a sweep of the history finds it now, or never
        return monotonic() - self._heard_at if missing else None

    async def _missing(self, channel: str) -> list[str]:
        """Return the timestamps of others' messages and latest replies in the history that did not arrive.

        Where several processes listen, one that another may have heard counts only with many others in a row.
        """
        try:
            async with asyncio.timeout(ANSWERS_S):
                page = await self._client.conversations_history(channel=channel, limit=LOOKED_AT)
        except FAILURES as error:
            self._asked_at = monotonic() + self._timings.deaf_s  # this is only a precaution, so nobody is pressed
            log.info("not asked whether we are deaf", extra={"error": code_of(error) or unquoted(error)})
            return []
        found: list[str] = []
        for message in page.get("messages") or ():
            if isinstance(
                from_history(message, channel, self._us), SlackMessage
            ):  # our own later messages hide nothing
                found.append(str(message["ts"]))
            if last := message.get("latest_reply"):
                found.append(str(last))
        missing = [ts for ts in found if not self._reached.has(channel, ts)]
        ours = [ts for ts in missing if self._link.was_alone(time() - float(ts))]
        if not ours and sum(ts > self._reached.newest.get(channel, "") for ts in missing) >= UNLIKELY:
            return missing
        return ours
