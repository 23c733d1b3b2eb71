"""How the model server answers one call: whole, streamed, or broken at the place that was ordered."""

import asyncio
import json
import socket
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from aiohttp import web

from claudius.testing.model_calls import Reply
from lab.loopback.model_wire import Wire, sse

FAULTS: Mapping[str, str] = {
    "status": "answers with the reply's status, message, headers and Retry-After",
    "html": "502 with a page of HTML, as a proxy does",
    "reset": "resets the connection before it answers",
    "hang": "never answers",
    "hang_mid": "sends the stream up to byte `at`, then nothing more",
    "truncate": "sends the stream up to byte `at`, then closes without the end of the body",
    "reset_mid": "sends the stream up to byte `at`, then resets the connection",
    "eof": "sends the stream up to byte `at`, then ends the body properly",
    "no_stop": "ends the body properly, without the events that say that it is the end",
    "bad_json": "puts a data line in place of event `at` that is not JSON",
    "deep_json": "puts a data line in place of event `at` that is nested too deep",
    "error_event": "puts an error event in place of event `at`, inside the 200",
    "huge": "streams as many megabytes as ordered",
    "huge_line": "sends one event of as many megabytes as ordered",
}

KINDS: Mapping[int, str] = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error", 500: "api_error", 504: "timeout_error",
    529: "overloaded_error",
}  # fmt: skip
"""Source: platform.claude.com/docs/en/api/errors."""

SEED = "x"
"""The delta that `huge` swells."""
_PIECE = 64 * 1024


def refusal(status: int, kind: str, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """Answer with an error in the shape that both vendors' clients read."""
    error = {"type": kind, "code": kind, "message": message}
    return web.json_response({"type": "error", "error": error}, status=status, headers=headers)


_TYPES: Mapping[Wire, str] = {
    "anthropic": "text/event-stream",
    "openai": "text/event-stream",
    "ollama": "application/x-ndjson",
}


@dataclass(slots=True)
class Stream:
    """One answer on its way."""

    request: web.Request
    reply: Reply
    kind: Wire
    events: list[bytes]
    whole: Mapping[str, Any]

    async def answer(self, *, stream: bool) -> web.StreamResponse:
        """Answer, as one document or as a stream, in the ordered way."""
        await asyncio.sleep(self.reply.delay_s)
        match self.reply.fault:
            case "status":
                return self._status()
            case "html":
                return web.Response(status=502, content_type="text/html", text="<html><h1>502 Bad Gateway</h1></html>")
            case "reset":
                self._drop(reset=True)
                return web.Response()
            case "hang":
                await _for_ever()
        return await self._stream() if stream else web.json_response(self.whole)

    def _status(self) -> web.Response:
        reply = self.reply
        kind = KINDS.get(reply.status, "api_error")
        headers = dict(reply.headers)
        if reply.retry_after is not None:
            headers["Retry-After"] = f"{reply.retry_after:g}"
        return refusal(reply.status, kind, reply.message or kind.replace("_", " "), headers)

    async def _stream(self) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": _TYPES[self.kind], "Cache-Control": "no-cache"})
        await response.prepare(self.request)
        for piece in self._pieces():
            await response.write(piece)
            if self.reply.gap_s:
                await asyncio.sleep(self.reply.gap_s)
        match self.reply.fault:
            case "hang_mid":
                await _for_ever()
            case "truncate" | "reset_mid":
                self._drop(reset=self.reply.fault == "reset_mid")
                return response
        await response.write_eof()
        return response

    def _pieces(self) -> Iterator[bytes]:
        reply, events = self.reply, list(self.events)
        middle = len(events) // 2 if reply.at is None else min(reply.at, len(events) - 1)
        match reply.fault:
            case "hang_mid" | "truncate" | "reset_mid" | "eof":
                yield from cut_at(events, reply.at)
            case "no_stop":
                is_chat = self.kind == "openai"  # there the reason of the end is an end, and some servers send no more
                yield from [one for one in events if b'"finish_reason":null' in one] if is_chat else events[:-2]
            case "bad_json" | "deep_json":
                broken = "[" * 100_000 if reply.fault == "deep_json" else '{"type": "content_block_delta", "ind'
                yield from (*events[:middle], self._event(broken), *events[middle + 1 :])
            case "error_event":
                yield from (*events[:middle], self._event(json.dumps(self._error()), "error"))
            case "huge" | "huge_line":
                yield from self._huge(reply.megabytes * 1024 * 1024, one_line=reply.fault == "huge_line")
            case _:
                yield from events

    def _event(self, data: str, name: str = "content_block_delta") -> bytes:
        return sse(name if self.kind == "anthropic" else None, data)

    def _error(self) -> dict[str, Any]:
        message = self.reply.message or "Overloaded"
        return {"type": "error", "error": {"type": "overloaded_error", "code": 529, "message": message}}

    def _huge(self, size: int, *, one_line: bool) -> Iterator[bytes]:
        """Swell the one delta."""
        seed = json.dumps(SEED).encode()
        number = next(number for number, event in enumerate(self.events) if seed in event)
        start, _, end = self.events[number].partition(seed)
        before, after = start + b'"', b'"' + end
        yield from self.events[:number]
        if one_line:
            yield before
            for _ in range(size // _PIECE):
                yield b"x" * _PIECE
            yield after
        else:
            for _ in range(size // _PIECE):
                yield before + b"x" * _PIECE + after
        yield from self.events[number + 1 :]

    def _drop(self, *, reset: bool) -> None:
        """End the connection: by a reset, or by closing it where more was promised."""
        transport = self.request.transport
        if transport:
            if reset:
                sock: socket.socket = transport.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            transport.abort()


def cut_at(events: Sequence[bytes], at: int | None) -> list[bytes]:
    """Give the events up to byte `at` of the stream, whole ones in one piece each; None = the middle. Pure."""
    left = sum(map(len, events)) // 2 if at is None else at
    pieces = []
    for event in events:
        if left <= 0:
            break
        pieces.append(event[:left])
        left -= len(event)
    return pieces


async def _for_ever() -> NoReturn:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")
