"""Watch one socket, and report when a fresh client is needed because the SDK does not notice a fault by itself.

Source: the chat design, section 1.6 (python-slack-sdk#1446, #1922; bolt-python#417).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import monotonic, time
from typing import Literal

from msgspec import Struct
from slack_sdk.web.async_client import AsyncWebClient

from claudius.adapters.heard_marks import Reached
from claudius.adapters.slack.incoming import Said, Us, from_history
from claudius.adapters.slack.socket import Socket
from claudius.adapters.slack.web_api import FAILURES, code_of
from claudius.runtime.adapter import Link

log = logging.getLogger("claudius.slack.liveness")

Verdict = Literal["well", "lost", "dead ticket", "dead client", "silent"]


class Patience(Struct, frozen=True):
    """How long each thing may take, in seconds."""

    tick_s: float = 1.0
    ping_s: float = 5.0
    ticket_s: float = 5.0
    """After this long without a connection, the ticket counts as dead."""
    client_s: float = 60.0
    """After this long without a connection, the client counts as dead."""
    silent_s: float = 30.0
    """How long a connected socket may be silent, without even a pong."""
    deaf_s: float = 60.0
    """After this long without an event, the history is checked for a missed one."""
    spoke_s: float = 3600.0
    """That check covers only channels where somebody spoke within this time."""
    arrives_s: float = 3.0
    """How much later than in the history a message may reach us."""
    again_s: float = 5.0
    """The pause before trying again after Slack could not be reached."""


def judge(patience: Patience, *, is_connected: bool, down_s: float, silent_s: float, ticket_s: float) -> Verdict:
    """Return the state of a socket. Pure.

    `down_s`, `silent_s`: for how long it has not been connected, or nothing was received. `ticket_s`: since a ticket
    was last dropped.
    """
    if is_connected:
        return "silent" if silent_s >= patience.silent_s else "well"
    if down_s >= patience.client_s:
        return "dead client"
    return "dead ticket" if min(down_s, ticket_s) >= patience.ticket_s else "lost"


async def watch(socket: Socket, link: Link, patience: Patience, deaf_s: Callable[[], Awaitable[float | None]]) -> None:
    """Return when a fresh client is needed.

    `deaf_s`: if an event was missed, for how long nothing at all has arrived.
    """
    connected_at = dropped_at = monotonic()
    while True:
        now, is_connected = monotonic(), await socket.is_connected()
        connected_at = now if is_connected else connected_at
        verdict = judge(
            patience,
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
            if silent_s >= patience.deaf_s:
                log.warning("a fresh client is made", extra={"reason": "deaf"})
                return
            log.warning("something did not come", extra={"silent_s": round(silent_s, 1)})
        await asyncio.sleep(patience.tick_s)


LOOKED_AT = 50
"""How many of the newest messages are examined, with the latest reply in each one's thread."""
A_WHILE = 20
"""How many channels are checked at most within the time after which one counts as silent."""
ANSWERS_S = 5.0
"""How long the watch over the socket waits for an answer."""


class Probe:
    """Compares the history of recently active channels with what arrived from them."""

    def __init__(self, client: AsyncWebClient, us: Us, reached: Reached, patience: Patience) -> None:
        """Check through `client` what `reached` should know."""
        self._client, self._us, self._reached, self._patience = client, us, reached, patience
        self._began_at = self._asked_at = self._heard_at = monotonic()
        self._silent_since: dict[str, float] = {}

    def heard(self, channel: str) -> None:
        """Note that something arrived from a channel."""
        self._heard_at = self._silent_since[channel] = monotonic()

    async def __call__(self) -> float | None:
        """Return for how many seconds nothing at all has arrived if a message was missed, else None.

        Checks rarely, and only channels where somebody spoke recently.
        """
        now = monotonic()
        channel = self._silent(now)
        if not channel or now - self._asked_at < self._patience.deaf_s / A_WHILE:
            return None
        self._asked_at = self._silent_since[channel] = now
        if not await self._missing(channel):
            return None
        await asyncio.sleep(self._patience.arrives_s)
        missing = await self._missing(channel)
        for ts in missing:
            self._reached.known(channel, ts)  # report it once: a sweep of the history finds it now, or never
        return monotonic() - self._heard_at if missing else None

    def _silent(self, now: float) -> str:
        """Return the recently active channel that has been silent for longest, or "" if there is none."""
        spoke_after = f"{time() - self._patience.spoke_s:.6f}"
        silent = {
            channel: since
            for channel, newest in reversed(self._reached.newest.items())
            if newest > spoke_after
            and now - (since := self._silent_since.get(channel, self._began_at)) >= self._patience.deaf_s
        }
        return min(silent, key=lambda channel: silent[channel], default="")

    async def _missing(self, channel: str) -> list[str]:
        """Return the timestamps of others' messages and latest replies in the history that did not arrive."""
        try:
            async with asyncio.timeout(ANSWERS_S):
                page = await self._client.conversations_history(channel=channel, limit=LOOKED_AT)
        except FAILURES as error:
            self._asked_at = monotonic() + self._patience.deaf_s  # this is only a precaution, so nobody is pressed
            log.info("not asked whether we are deaf", extra={"error": code_of(error) or repr(error)})
            return []
        found: list[str] = []
        for message in page.get("messages") or ():
            if isinstance(from_history(message, channel, self._us), Said):  # our own later messages hide nothing
                found.append(str(message["ts"]))
            if last := message.get("latest_reply"):
                found.append(str(last))
        return [ts for ts in found if not self._reached.has(channel, ts)]
