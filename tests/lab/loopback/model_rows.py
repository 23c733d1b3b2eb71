"""A model server in a thread of its own that answers as a row of `tests/cases/streams.json` says."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import web

from claudius.testing.model_calls import Call
from lab.loopback.model import ModelServer
from lab.loopback.model_families import is_asked
from lab.loopback.model_wire import sse


def usual(_: Call) -> web.Response | None:
    """Let the server answer as it would."""
    return None


NOTICE_S = 0.05
"""How long the server takes to notice that a client has gone."""


@dataclass(slots=True)
class RowServer(ModelServer):
    """A model server whose answers a test may replace by bytes of its own."""

    instead: Callable[[Call], web.Response | None] = usual
    """Returns what is answered in place of a reply of the model; None = the reply."""

    drips: str = ""
    """The path at which an answer never ends, a blank at a time; empty = none."""

    beside: list[tuple[Call, Call]] = field(default_factory=list)
    """Each call of the model that was still answered when another one came, with that one."""

    async def _route(self, request: web.Request, call: Call) -> web.StreamResponse:
        if call.path == self.drips:
            await _drip(request)
        if is_asked(call):
            await asyncio.sleep(NOTICE_S)
            self.beside += [(one, call) for one in self.asked if one is not call and not (one.finished or one.gone)]
        found = self.instead(call) if is_asked(call) else None
        return await ModelServer._route(self, request, call) if found is None else found


async def _drip(request: web.Request) -> None:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    while True:
        await response.write(b" ")
        await asyncio.sleep(0.2)


def events(found: Any, line_end: str = "\n") -> web.Response:
    """Answer with the events of one stream: a text is a comment or `[DONE]`; a document in place of a list is whole."""
    if isinstance(found, Mapping):
        return web.json_response(found)
    written = [f"{one}\n\n".encode() if str(one).startswith(":") else sse(None, one) for one in found]
    body = b"".join(written).replace(b"\n", line_end.encode())
    return web.Response(body=body, content_type="text/event-stream")


def failure(status: int, body: Any) -> web.Response:
    """Answer with a status and a body: a document, plain text, or `{"stream": [...]}`, events inside a 200."""
    if isinstance(body, Mapping) and "stream" in body:
        return web.Response(text="".join(body["stream"]), content_type="text/event-stream")
    if isinstance(body, str):
        return web.Response(
            status=status, text=body, content_type="text/html" if body.startswith("<") else "text/plain"
        )
    return web.Response(status=status, text=json.dumps(body), content_type="application/json")


@contextmanager
def threaded(server: ModelServer) -> Iterator[None]:
    """Run a server beside a test that waits for commands."""
    started: Future[Callable[[], Any]] = Future()

    async def serve() -> None:
        """Serve until the test is over; whoever is still connected then is left."""
        ended = asyncio.Event()
        async with server:
            started.set_result(partial(asyncio.get_running_loop().call_soon_threadsafe, ended.set))
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="the model's server")
    thread.start()
    end = started.result(timeout=20)
    try:
        yield
    finally:
        end()
        thread.join(timeout=20)
