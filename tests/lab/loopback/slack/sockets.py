"""Socket Mode: tickets, open sockets, and what may befall them.

Source, where none is given: docs.slack.dev/apis/events-api/using-socket-mode.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from aiohttp import WSMsgType, web

from lab.loopback.slack.records import Journal
from lab.loopback.slack.settings import Settings
from lab.loopback.slack.state import APP

Health = Literal["live", "deaf", "half_open"]
Reason = Literal["warning", "refresh_requested", "link_disabled"]

Acknowledge = Callable[[str, dict[str, Any]], None]


@dataclass(slots=True)
class Socket:
    """One open socket. `deaf`: it answers pings and brings no events. `half_open`: it is read and never answered."""

    id: int
    wire: web.WebSocketResponse
    request: web.Request
    opened_at: float
    health: Health = "live"
    is_leaving: bool = False
    """Its end was announced: nothing more is sent through it. Our reading."""
    pings: int = 0
    """Pings that the client sent."""

    async def send(self, frame: Mapping[str, Any]) -> None:
        """Send a frame, if it gets through."""
        if self.health == "live" and not self.wire.closed:
            try:
                await self.wire.send_str(json.dumps(frame))
            except ConnectionError:
                return


@dataclass(slots=True)
class Sockets:
    """All sockets of the app."""

    settings: Settings
    journal: Journal
    open: dict[int, Socket] = field(default_factory=dict)
    opened: int = 0
    """Sockets that were ever open."""
    tickets: dict[str, float | None] = field(default_factory=dict)
    """When each was issued; None = it is dead."""
    refusing: int = 0
    """Upgrades to refuse; negative = all."""
    spoiling: int = 0
    """Tickets to come that are dead from the start; negative = all."""
    newcomers: Health = "live"
    """How new sockets are."""
    _turn: int = 0

    def ticket(self) -> str:
        """Issue a ticket."""
        ticket = str(uuid4())
        is_dead = self.spoiling != 0
        self.spoiling -= self.spoiling > 0
        self.tickets[ticket] = None if is_dead else self.journal.now()
        return ticket

    def pick(self) -> Socket | None:
        """Choose the socket for the next envelope: any of them; here, in turn."""
        ready = [socket for socket in self.open.values() if not socket.is_leaving]
        if not ready:
            return None
        self._turn += 1
        return ready[self._turn % len(ready)]

    async def link(self, request: web.Request, acknowledge: Acknowledge) -> web.StreamResponse:
        """Be one socket, from the upgrade to its end."""
        if refusal := self._refusal(request):
            return refusal
        wire = web.WebSocketResponse(autoping=False, autoclose=False)
        await wire.prepare(request)
        self.opened += 1
        socket = Socket(self.opened, wire, request, self.journal.now(), self.newcomers)
        self.open[socket.id] = socket
        # The trick of that page for tests of rotation: the connection lasts 360 s.
        lasts_s = 360.0 if request.query.get("debug_reconnects") == "true" else self.settings.connection_s
        beside = [
            asyncio.create_task(self._ping(socket), name=f"slack-ping-{socket.id}"),
            asyncio.create_task(self._age(socket, lasts_s), name=f"slack-age-{socket.id}"),
        ]
        try:
            await socket.send(self._hello(lasts_s))
            self.journal.changes.happened()
            await self._listen(socket, acknowledge)
        finally:
            for task in beside:
                task.cancel()
            del self.open[socket.id]
            self.journal.changes.happened()
        return wire

    async def announce(self, socket: Socket, reason: Reason) -> None:
        """Send a `disconnect` frame; but for a warning, the end follows after `refresh_grace_s`."""
        await socket.send({"type": "disconnect", "reason": reason, "debug_info": {"host": "loopback"}})
        if reason != "warning":
            socket.is_leaving = True
            await asyncio.sleep(self.settings.refresh_grace_s)
            await socket.wire.close()

    def drop(self) -> int:
        """Cut every socket without a close frame; give their number."""
        for socket in self.open.values():
            if socket.request.transport is not None:
                socket.request.transport.abort()
        return len(self.open)

    def _refusal(self, request: web.Request) -> web.Response | None:
        """Refuse an upgrade; the statuses are our reading. A ticket is used up by trying (python-slack-sdk#1446)."""
        ticket = request.query.get("ticket", "")
        issued_at = self.tickets.get(ticket)
        self.tickets[ticket] = None
        if self.refusing:
            self.refusing -= self.refusing > 0
            return web.Response(status=503)
        if issued_at is None or self.journal.now() - issued_at > self.settings.ticket_life_s:
            return web.Response(status=404)
        return web.Response(status=429) if len(self.open) >= self.settings.max_sockets else None

    def _hello(self, lasts_s: float) -> dict[str, Any]:
        return {
            "type": "hello",
            "num_connections": len(self.open),
            "debug_info": {"host": "loopback", "build_number": 1, "approximate_connection_time": int(lasts_s)},
            "connection_info": {"app_id": APP},
        }

    async def _age(self, socket: Socket, lasts_s: float) -> None:
        grace_s = self.settings.refresh_grace_s
        await asyncio.sleep(max(0.0, lasts_s - grace_s))
        await self.announce(socket, "warning")
        await asyncio.sleep(grace_s)
        await self.announce(socket, "refresh_requested")

    async def _ping(self, socket: Socket) -> None:
        while self.settings.ping_s and not socket.wire.closed:
            await asyncio.sleep(self.settings.ping_s)
            if socket.health != "half_open" and not socket.wire.closed:
                try:
                    await socket.wire.ping(b"Ping from loopback")
                except ConnectionError:
                    return

    async def _listen(self, socket: Socket, acknowledge: Acknowledge) -> None:
        while True:
            message = await socket.wire.receive()
            if socket.health == "half_open":
                if message.type in (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR):
                    await _until_gone(socket.request)
                    return
                continue
            match message.type:
                case WSMsgType.PING:
                    socket.pings += 1
                    await socket.wire.pong(message.data)
                case WSMsgType.TEXT:
                    _take_ack(message.data, acknowledge)
                case WSMsgType.CLOSE | WSMsgType.CLOSING | WSMsgType.CLOSED | WSMsgType.ERROR:
                    await socket.wire.close()
                    return


def _take_ack(text: str, acknowledge: Acknowledge) -> None:
    frame = json.loads(text)
    acknowledge(str(frame.get("envelope_id", "")), frame.get("payload") or {})


async def _until_gone(request: web.Request) -> None:
    """Answer not even a close: the client's own patience ends it."""
    while request.transport is not None:
        await asyncio.sleep(0.05)
