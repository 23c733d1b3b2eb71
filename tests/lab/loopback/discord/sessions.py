"""Gateway sessions: each numbers its events, keeps them for a RESUME, and outlives its socket for a while."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from aiohttp import web

from lab.loopback.breaking import drop
from lab.loopback.discord.records import Fate, Journal
from lab.loopback.discord.settings import Settings

Health = Literal["live", "deaf", "zombie", "half_open"]
"""`deaf`: heartbeats are answered, events never happen. `zombie`: nothing is sent any more, events are kept for a
RESUME. `half_open`: a zombie that does not even answer a close."""


@dataclass(slots=True)
class Socket:
    """One open socket. Frames leave it in the order in which they were put."""

    id: int
    wire: web.WebSocketResponse
    request: web.Request
    health: Health
    is_compressed: bool
    heard_at: float
    """When the last heartbeat came."""
    session: Session | None = None
    heartbeats: int = 0
    is_leaving: bool = False
    """It was closed from here, after all that was put before."""
    _frames: asyncio.Queue[str | int] = field(default_factory=asyncio.Queue)
    _press: Any = field(default_factory=zlib.compressobj)

    def put(self, op: int, body: Any = None, seq: int | None = None, event: str | None = None) -> None:
        """Send a frame after all that was put before."""
        self._frames.put_nowait(json.dumps({"t": event, "s": seq, "op": op, "d": body}, separators=(",", ":")))

    def close(self, code: int) -> None:
        """Close after all that was put before."""
        self.is_leaving = True
        self._frames.put_nowait(code)

    def cut(self, *, is_reset: bool) -> None:
        """End it without a close frame."""
        drop(self.request, is_reset=is_reset)

    async def write(self) -> None:
        """Carry the frames, until one of them is a close code."""
        while True:
            frame = await self._frames.get()
            try:
                if isinstance(frame, int):
                    await self.wire.close(code=frame)
                    return
                if self.health in ("live", "deaf"):
                    await self._send(frame)
            except (ConnectionError, RuntimeError):  # aiohttp's word for a socket that closes just now
                return

    async def _send(self, frame: str) -> None:
        # Source: docs.discord.com/developers/events/gateway, "Transport Compression": one stream a connection.
        if self.is_compressed:
            pressed = self._press.compress(frame.encode()) + self._press.flush(zlib.Z_SYNC_FLUSH)
            await self.wire.send_bytes(pressed)
        else:
            await self.wire.send_str(frame)


@dataclass(slots=True)
class Session:
    """What a client identified as. `heard` is the last number that the client named."""

    id: str
    intents: int
    kept: deque[tuple[int, str, Mapping[str, Any]]]
    seq: int = 0
    heard: int = 0
    socket: Socket | None = None
    left_at: float = 0.0

    def send(self, event: str, body: Mapping[str, Any]) -> Fate:
        """Number an event, keep it, and send it if there is a socket that works."""
        socket = self.socket
        if socket and socket.health == "deaf":
            return "deaf"
        self.seq += 1
        self.kept.append((self.seq, event, body))
        if socket is None or socket.health != "live":
            return "kept"
        socket.put(0, body, self.seq, event)
        return "sent"


@dataclass(slots=True)
class Sessions:
    """All sessions of the app, and how many more it may start."""

    settings: Settings
    journal: Journal
    open: dict[str, Session] = field(default_factory=dict)
    starts: deque[float] = field(default_factory=deque)
    """When sessions were started within the last day."""

    def remaining(self) -> int:
        """Say how many sessions may be started still."""
        limit, now = self.settings.session_starts_within_s, self.journal.now()
        while self.starts and self.starts[0] <= now - limit:
            self.starts.popleft()
        return max(0, self.settings.session_starts - len(self.starts))

    def resets_after_ms(self) -> int:
        """Say when the count of starts begins anew."""
        if not self.starts:
            return 0
        return int((self.starts[0] + self.settings.session_starts_within_s - self.journal.now()) * 1000)

    def is_too_early(self) -> bool:
        """Say whether the last start was just now."""
        return bool(self.starts) and self.journal.now() - self.starts[-1] < self.settings.identify_every_s

    def start(self, intents: int, socket: Socket) -> Session:
        """Start a session."""
        self.starts.append(self.journal.now())
        session = Session(uuid4().hex, intents, deque(maxlen=self.settings.buffer_events), socket=socket)
        self.open[session.id] = session
        return session

    def resumable(self, session: str, seq: int) -> Session | None:
        """Find a session that can go on after event `seq`."""
        self.sweep()
        found = self.open.get(session)
        if found is None or (found.kept and found.kept[0][0] > seq + 1):
            return None
        return found

    def leave(self, socket: Socket, *, is_over: bool) -> None:
        """Part a socket from its session; the session ends with it if `is_over`."""
        session = socket.session
        if session is None or session.socket is not socket:
            return
        session.socket, session.left_at = None, self.journal.now()
        if is_over:
            self.open.pop(session.id, None)

    def sweep(self) -> None:
        """Forget the sessions that have been without a socket for too long."""
        latest = self.journal.now() - self.settings.session_life_s
        for session in list(self.open.values()):
            if session.socket is None and session.left_at < latest:
                del self.open[session.id]
