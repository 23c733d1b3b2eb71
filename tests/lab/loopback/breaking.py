"""What breaks on order at every loopback service."""

import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

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


Ordered = TypeVar("Ordered", bound=Any)


@dataclass(slots=True)
class Faults(Generic[Ordered]):
    """The faults that were ordered, first come first served."""

    ordered: list[Ordered] = field(default_factory=list)

    def take(self, what: str, facts: Mapping[str, Any]) -> Ordered | None:
        """Take the fault that hits this call."""
        for fault in self.ordered:
            if not fault.hits(what, facts):
                continue
            if fault.skip:
                fault.skip -= 1
                continue
            fault.times -= 1
            if not fault.times:
                self.ordered.remove(fault)
            return fault
        return None
