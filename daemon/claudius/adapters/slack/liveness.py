"""Watching one socket: what the SDK does not notice by itself is found here, and a fresh client asked for.

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
    """Not connected for so long: the ticket is taken for dead."""
    client_s: float = 60.0
    """Not connected for so long: the client is."""
    silent_s: float = 30.0
    """Connected, and not even a pong for so long."""
    deaf_s: float = 60.0
    """No event for so long: the history is asked whether there should have been one."""
    spoke_s: float = 3600.0
    """But only where there was one within so long."""
    arrives_s: float = 3.0
    """How much later than into the history a message may come to us."""
    again_s: float = 5.0
    """After Slack could not be reached, it is tried again after so long."""


def judge(patience: Patience, *, is_connected: bool, down_s: float, silent_s: float, ticket_s: float) -> Verdict:
    """Return what ails a socket.

    `down_s`, `silent_s`: for how long it has not been connected, or not been heard. `ticket_s`: since a ticket was
    last dropped. Pure.
    """
    if is_connected:
        return "silent" if silent_s >= patience.silent_s else "well"
    if down_s >= patience.client_s:
        return "dead client"
    return "dead ticket" if min(down_s, ticket_s) >= patience.ticket_s else "lost"


async def watch(socket: Socket, link: Link, patience: Patience, deaf_s: Callable[[], Awaitable[float | None]]) -> None:
    """Return when a fresh client is needed. `deaf_s`: where something did not come, for how long nothing at all did."""
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
"""So many of the newest messages are looked at, with the newest word in the thread of each."""
A_WHILE = 20
"""So many channels are asked at most within the time after which one counts as silent."""
ANSWERS_S = 5.0
"""So long the watch over the socket stands still for an answer."""


class Probe:
    """Compares the history of channels where somebody spoke of late with what came of them."""

    def __init__(self, client: AsyncWebClient, us: Us, reached: Reached, patience: Patience) -> None:
        """Ask through `client` what `reached` should know."""
        self._client, self._us, self._reached, self._patience = client, us, reached, patience
        self._began_at = self._asked_at = self._heard_at = monotonic()
        self._silent_since: dict[str, float] = {}

    def heard(self, channel: str) -> None:
        """Note that something came from a channel."""
        self._heard_at = self._silent_since[channel] = monotonic()

    async def __call__(self) -> float | None:
        """Return for how many seconds nothing came at all, where something was said that did not come; else None.

        Asked seldom, and only of channels where somebody spoke of late.
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
            self._reached.known(channel, ts)  # told once: whoever reads the history now finds it, or nobody will
        return monotonic() - self._heard_at if missing else None

    def _silent(self, now: float) -> str:
        """Return the channel that is silent for longest, of those where somebody spoke of late; empty = none."""
        spoke_after = f"{time() - self._patience.spoke_s:.6f}"
        silent = {
            channel: since
            for channel, newest in reversed(self._reached.newest.items())
            if newest > spoke_after
            and now - (since := self._silent_since.get(channel, self._began_at)) >= self._patience.deaf_s
        }
        return min(silent, key=lambda channel: silent[channel], default="")

    async def _missing(self, channel: str) -> list[str]:
        """Return what the history holds of others, and what threads end with, that did not come."""
        try:
            async with asyncio.timeout(ANSWERS_S):
                page = await self._client.conversations_history(channel=channel, limit=LOOKED_AT)
        except FAILURES as error:
            self._asked_at = monotonic() + self._patience.deaf_s  # nobody is pressed for what is only a precaution
            log.info("not asked whether we are deaf", extra={"error": code_of(error) or repr(error)})
            return []
        found: list[str] = []
        for message in page.get("messages") or ():
            if isinstance(from_history(message, channel, self._us), Said):  # what we said since hides nothing
                found.append(str(message["ts"]))
            if last := message.get("latest_reply"):
                found.append(str(last))
        return [ts for ts in found if not self._reached.has(channel, ts)]
