"""The control socket: JSON frames, one per line, for processes of the same user.

A client sends `{"op": NAME, ...}`; the handler registered under that name then owns the connection. HTTP requests are
passed to the HTTP API, if there is one.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import resource
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from claudius.errors import ClaudiusError
from claudius.foreign import unquoted
from claudius.home import FILE_MODE

log = logging.getLogger(__name__)

FRAME_BYTES = 8 * 2**20
"""The longest frame in either direction."""
WAITING = 1024
"""How many clients may connect at once before the kernel refuses one."""
FILES = 8192
"""The limit of open files that a daemon requests; some systems start with 256."""
UNIX_PATH_BYTES = 100
"""A longer path does not fit a socket address and is addressed through its directory."""


def allow_files() -> None:
    """Raise this process's limit of open files up to `FILES`: each client needs one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def most_clients(allowed: int) -> int:
    """Return how many clients a process accepts with this limit of open files: half are for everything else. Pure."""
    return (FILES if allowed == resource.RLIM_INFINITY else allowed) // 2


class FrameTooLong(ClaudiusError):
    """What was to be said is too long."""


class ControlConnection:
    """One open connection: frames in, frames out."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def receive(self, line: bytes | None = None) -> dict[str, Any] | None:
        """Return the next frame, or None at the end. Raises: ValueError if it is not a JSON object or too long.

        `line`: the frame's line, if it was read already.
        """
        line = await self._reader.readline() if line is None else line
        if not line.endswith(b"\n"):
            return None
        try:
            frame = json.loads(line)
        except RecursionError as error:
            raise ValueError("a frame is nested too deep") from error
        if not isinstance(frame, dict):
            raise ValueError("a frame is a JSON object")
        return frame

    async def send(self, frame: Mapping[str, Any]) -> None:
        """Send one frame. Raises: ConnectionError if the client is gone, FrameTooLong."""
        self.post(frame)
        await self._writer.drain()

    def post(self, frame: Mapping[str, Any]) -> None:
        """Queue one small frame behind those already sent, without waiting for the client. Raises: FrameTooLong."""
        line = json.dumps(frame, ensure_ascii=True).encode() + b"\n"
        if len(line) > FRAME_BYTES:
            raise FrameTooLong(f"too long to be heard: {len(line):,} bytes, and {FRAME_BYTES:,} are the most")
        if not self._writer.is_closing():
            self._writer.write(line)

    async def pass_on(self, begun: bytes, to: socket.socket) -> None:
        """Relay bytes between this connection and a socket, starting with `begun`, until the socket closes."""
        reader, writer = await asyncio.open_connection(sock=to)
        writer.write(begun)
        sending = asyncio.create_task(_carry(self._reader, writer), name="http in")
        try:
            await _carry(reader, self._writer)
        finally:
            sending.cancel()
            writer.close()
            await asyncio.gather(sending, return_exceptions=True)

    async def close(self) -> None:
        """Close the connection."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    @property
    def peer_uid(self) -> int | None:
        """The user id of the other end according to the kernel; our own where it cannot tell."""
        raw: socket.socket = self._writer.get_extra_info("socket")
        if not hasattr(socket, "SO_PEERCRED"):
            return os.geteuid()
        _, uid, _ = struct.unpack("3i", raw.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        return int(uid)


Handler = Callable[[ControlConnection, Mapping[str, Any]], Awaitable[None]]


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()


HTTP = (b"POST ", b"GET ", b"HEAD ", b"PUT ", b"DELETE ", b"OPTIONS ", b"PATCH ")


class ControlSocket:
    """The listening end. HTTP requests are handed to its `door`, if it has one."""

    def __init__(
        self,
        path: Path,
        handlers: Mapping[str, Handler],
        door: Callable[[ControlConnection, bytes], Awaitable[None]] | None = None,
    ) -> None:
        """Listen at `path` once `open` is called; `handlers` by op; `door` serves HTTP, from its first line on."""
        self._path, self._handlers, self._door = path, handlers, door
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen. The caller holds the home's lock, so an existing socket file belongs to a dead process."""
        self._path.unlink(missing_ok=True)
        with socket_address(self._path) as address:
            self._server = await asyncio.start_unix_server(
                self._connected, path=address, limit=FRAME_BYTES, backlog=WAITING
            )
        self._path.chmod(FILE_MODE)

    async def close(self) -> None:
        """Stop listening and close every connection."""
        if self._server:
            self._server.close()
        self._path.unlink(missing_ok=True)
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:  # pragma: no cover - asyncio always runs a callback in a task
            return
        connection = ControlConnection(reader, writer)
        if len(self._open) >= most_clients(resource.getrlimit(resource.RLIMIT_NOFILE)[0]):
            await connection.close()
            return
        self._open.add(task)
        try:
            await self._serve(connection, reader)
        except (OSError, ValueError) as error:
            log.info("a connection ended badly", extra={"error": unquoted(error)})
        except asyncio.CancelledError:
            log.debug("a connection was closed")
        finally:
            try:
                await connection.close()
            finally:
                self._open.discard(task)

    async def _serve(self, connection: ControlConnection, reader: asyncio.StreamReader) -> None:
        if connection.peer_uid != os.geteuid():
            return
        line = await reader.readline()
        if self._door and line.startswith(HTTP):
            await self._door(connection, line)
            return
        first = await connection.receive(line)
        if first is None:
            return
        handler = self._handlers.get(str(first.get("op")))
        if handler is None:
            await connection.send({"event": "error", "message": f"no such operation: {first.get('op')}"})
            return
        await handler(connection, first)


@contextlib.asynccontextmanager
async def connect(path: Path) -> AsyncIterator[ControlConnection]:
    """Connect to the process that listens at `path`. Raises: OSError if there is none."""
    with socket_address(path) as address:
        reader, writer = await asyncio.open_unix_connection(address, limit=FRAME_BYTES)
    connection = ControlConnection(reader, writer)
    try:
        yield connection
    finally:
        await connection.close()


@contextlib.contextmanager
def socket_address(path: Path) -> Any:
    """Yield an address for a socket path of any length: through an open directory if it is too long."""
    if len(os.fsencode(path)) < UNIX_PATH_BYTES:
        yield str(path)
        return
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)
