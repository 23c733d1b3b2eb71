"""The gateway: hello, identify, heartbeats, RESUME, and what may befall a socket.

Source, where none is given: docs.discord.com/developers/events/gateway.
"""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from lab.loopback.discord import intents
from lab.loopback.discord.records import Journal
from lab.loopback.discord.sessions import Health, Session, Sessions, Socket
from lab.loopback.discord.settings import Settings
from lab.loopback.discord.state import Space

PAYLOAD_BYTES = 4096
SENDS, SENDS_WITHIN_S = 120, 60.0
"""What a client may send. Source: the same page, "Rate Limiting"."""

Welcome = Callable[[Session], None]
"""Sends READY and what follows it."""
Members = Callable[[Session, dict[str, Any]], None]
"""Answers a request for a guild's members."""


@dataclass(slots=True)
class Gateway:
    """All sockets of the app."""

    space: Space
    settings: Settings
    journal: Journal
    sessions: Sessions
    welcome: Welcome
    members: Members
    sockets: dict[int, Socket] = field(default_factory=dict)
    opened: int = 0
    """Sockets that were ever open."""
    identified: int = 0
    resumed: int = 0
    refusing: int = 0
    """Upgrades to refuse; negative = all."""
    newcomers: Health = "live"
    """How new sockets are."""

    async def link(self, request: web.Request) -> web.StreamResponse:
        """Be one socket, from the upgrade to its end."""
        if self.refusing:
            self.refusing -= self.refusing > 0
            return web.Response(status=503)
        wire = web.WebSocketResponse(autoclose=False)
        await wire.prepare(request)
        self.opened += 1
        is_compressed = request.query.get("compress") == "zlib-stream"
        socket = Socket(self.opened, wire, request, self.newcomers, is_compressed, _monotonic())
        self.sockets[socket.id] = socket
        writing = asyncio.create_task(socket.write(), name=f"discord-write-{socket.id}")
        waiting = asyncio.create_task(self._expect_heartbeats(socket), name=f"discord-pulse-{socket.id}")
        left_with = 0
        try:
            if request.query.get("v") not in ("9", "10") or request.query.get("encoding") != "json":
                socket.close(4012)
            socket.put(10, {"heartbeat_interval": self.settings.heartbeat_ms, "_trace": ["loopback"]})
            self.journal.changes.happened()
            left_with = await self._listen(socket)
            if socket.is_leaving:
                await asyncio.wait({writing}, timeout=1.0)  # our close frame is on its way
        finally:
            writing.cancel()
            waiting.cancel()
            self.sockets.pop(socket.id, None)
            # Source: "When you close the connection … with close code 1000 or 1001, your session will be invalidated".
            self.sessions.leave(socket, is_over=left_with in (1000, 1001))
            self.journal.changes.happened()
        return wire

    async def _listen(self, socket: Socket) -> int:
        """Take what comes until the end; give the code with which the client closed, 0 = it did not."""
        times: deque[float] = deque(maxlen=SENDS)
        while True:
            message = await socket.wire.receive()
            if message.type in (WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR):
                if message.type is WSMsgType.CLOSE and socket.health != "half_open":
                    await socket.wire.close(code=message.data or 1000)
                while socket.health == "half_open" and socket.request.transport is not None:
                    await asyncio.sleep(0.05)
                return int(message.data or 1000) if message.type is WSMsgType.CLOSE else 0
            if socket.health in ("zombie", "half_open"):
                continue
            now = _monotonic()
            is_flood = len(times) == SENDS and now - times[0] < SENDS_WITHIN_S
            times.append(now)
            if code := 4008 if is_flood else self._take(socket, message.data):
                socket.close(code)

    def _take(self, socket: Socket, text: str | bytes) -> int:
        """Take a frame; give the code to close with, 0 = go on."""
        read = _read(text)
        if read is None:
            return 4002
        op, body = read
        match op:
            case 1:
                self._beat(socket, body)
            case 2:
                return 4005 if socket.session else self._identify(socket, body)
            case 6:
                return 4005 if socket.session else self._resume(socket, body)
            case 3 | 4 | 8 if socket.session is None:
                return 4003
            case 3 | 4:
                pass
            case 8:
                assert socket.session  # the case before
                self.members(socket.session, body)
            case _:
                return 4001
        return 0

    def _beat(self, socket: Socket, seq: int | None) -> None:
        socket.heartbeats += 1
        socket.heard_at = _monotonic()
        if socket.session and seq is not None:
            socket.session.heard = seq
        socket.put(11)
        self.journal.changes.happened()

    def _identify(self, socket: Socket, body: dict[str, Any]) -> int:
        if body.get("token") != self.space.token:
            return 4004
        if code := intents.wrong(int(body.get("intents", -1)), self.settings.privileges):
            return code
        if not self.sessions.remaining():
            self._spend()
            return 4004
        if self.sessions.is_too_early():
            socket.put(9, body=False)
            return 0
        self.identified += 1
        socket.session = self.sessions.start(int(body["intents"]), socket)
        self.welcome(socket.session)
        self.journal.changes.happened()
        return 0

    def _spend(self) -> None:
        """End all and change the token: what comes of too many sessions in a day."""
        self.space.token = f"reset.{self.space.next_id()}"
        self.sessions.open.clear()
        for socket in self.sockets.values():
            socket.close(4004)

    def _resume(self, socket: Socket, body: dict[str, Any]) -> int:
        if body.get("token") != self.space.token:
            return 4004
        seq = int(body.get("seq") or 0)
        session = self.sessions.resumable(str(body.get("session_id")), seq)
        if session is None:
            socket.put(9, body=False)
            return 0
        if seq > session.seq:
            return 4007
        if session.socket is not None:
            session.socket.close(4000)
        self.resumed += 1
        session.socket, socket.session, session.heard = socket, session, seq
        for number, event, kept in list(session.kept):
            if number > seq:
                socket.put(0, kept, number, event)
                channel, subject = str(kept.get("channel_id", "")), _subject(kept)
                self.journal.note(event, channel, subject, session.id, number, "replayed")
        session.send("RESUMED", {"_trace": ["loopback"]})
        self.journal.changes.happened()
        return 0

    async def _expect_heartbeats(self, socket: Socket) -> None:
        while not socket.wire.closed:
            limit_s = self.settings.heartbeats_missed * self.settings.heartbeat_ms / 1000
            left_s = socket.heard_at + limit_s - _monotonic()
            if left_s <= 0:
                socket.close(4000)
                return
            await asyncio.sleep(left_s)

    async def each(self, act: Callable[[Socket], Awaitable[None] | None]) -> int:
        """Do something to every open socket; give their number."""
        sockets = list(self.sockets.values())
        for socket in sockets:
            if (done := act(socket)) is not None:
                await done
        return len(sockets)


def _read(text: str | bytes) -> tuple[int, Any] | None:
    """Read a frame; None where it is none, or too long."""
    try:
        frame = json.loads(text)
        return (int(frame["op"]), frame.get("d")) if len(text) <= PAYLOAD_BYTES else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _monotonic() -> float:
    return asyncio.get_running_loop().time()


def _subject(body: Mapping[str, Any]) -> str:
    return str(body.get("message_id") or body.get("id") or "") if "channel_id" in body else ""
