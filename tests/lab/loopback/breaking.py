"""Ways to break off an HTTP answer that every loopback service shares."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping

from aiohttp import web


def drop(request: web.Request, *, is_reset: bool) -> None:
    """End the connection without a word: by a reset, or by closing it."""
    transport = request.transport
    if transport is None:
        return
    if is_reset:
        sock: socket.socket = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def cut(request: web.Request, body: bytes, headers: Mapping[str, str]) -> web.StreamResponse:
    """Promise the whole body, send half of it and close."""
    response = web.StreamResponse(headers={**headers, "Content-Length": str(len(body))})
    await response.prepare(request)
    await response.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.close()
    return response
