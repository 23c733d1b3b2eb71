"""Watching one socket: what the SDK does not notice by itself is found here, and a fresh client asked for.

Source: the chat design, section 1.6 (python-slack-sdk#1446, #1922; bolt-python#417).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Literal

from msgspec import Struct

from claudius.adapters.slack.socket import Socket
from claudius.runtime.adapter import Link

log = logging.getLogger("claudius.slack.watch")

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
