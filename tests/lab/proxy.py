"""A TCP proxy between one process and a server, which drops, delays, cuts one way or swallows what passes by."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal
from urllib.parse import parse_qs, urlsplit

Way = Literal["whole", "dropped", "delayed", "deaf", "mute", "swallowed"]
"""What becomes of the bytes. `deaf`: answers do not arrive; `mute`: questions do not; `swallowed`: neither.

Whoever is not reached is told nothing: no connection is ended. A connection that lost a byte is of no use any more,
even once the way is `whole` again. `dropped` ends every connection, and refuses new ones.
"""
LOST = {"mute": ("there",), "deaf": ("back",), "swallowed": ("there", "back")}
CHUNK = 2**16


class Proxy:
    """Passes bytes on between `port` and a server, in a thread of its own."""

    def __init__(self, host: str, port: int, *, delay_s: float = 2.0) -> None:
        """Lead to a server: `host` is a name, or the path of a socket with `port` 0. `delay_s`: of each chunk."""
        self._host, self._there, self._delay_s = host, port, delay_s
        self.way: Way = "whole"
        self.port = 0
        self._is_ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop
        self._over: asyncio.Event
        self._open: set[asyncio.StreamWriter] = set()

    def set(self, way: Way) -> None:
        """Have the way be like this from now on."""
        self.way = way
        if way == "dropped":
            self._loop.call_soon_threadsafe(self._drop)

    def _drop(self) -> None:
        for one in self._open:
            one.transport.abort()

    @contextmanager
    def running(self) -> Iterator[Proxy]:
        """Pass bytes on during the block."""
        thread = threading.Thread(target=lambda: asyncio.run(self._live()), name="proxy")
        thread.start()
        self._is_ready.wait()
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._over.set)
            thread.join()

    async def _live(self) -> None:
        self._loop, self._over = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._is_ready.set()
        await self._over.wait()
        server.close()
        self._drop()

    async def _serve(self, asks: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        self._open.add(answers)
        try:
            if self.way == "dropped":
                return
            if self._there:
                reads, writes = await asyncio.open_connection(self._host, self._there)
            else:
                reads, writes = await asyncio.open_unix_connection(self._host)
            self._open.add(writes)
            with suppress(OSError):
                await asyncio.gather(self._pass(asks, writes, "there"), self._pass(reads, answers, "back"))
            self._open.discard(writes)
            writes.transport.abort()
        finally:
            self._open.discard(answers)
            answers.transport.abort()

    async def _pass(self, source: asyncio.StreamReader, to: asyncio.StreamWriter, direction: str) -> None:
        is_lost = False
        while data := await source.read(CHUNK):
            if self.way == "delayed":
                await asyncio.sleep(self._delay_s)
            is_lost = is_lost or direction in LOST.get(self.way, ())
            if not is_lost:
                to.write(data)
                await to.drain()
        while is_lost or direction in LOST.get(self.way, ()):
            await asyncio.sleep(0.05)  # the end of a connection is swallowed as well
            is_lost = self.way != "whole"
        to.transport.abort()


def before(url: str) -> Proxy:
    """Return a proxy that leads to the server of a store's URL."""
    parts = urlsplit(url)
    directory = parse_qs(parts.query).get("host", [""])[0]
    if directory.startswith("/"):
        return Proxy(f"{directory}/.s.PGSQL.{parts.port or 5432}", 0)
    return Proxy(parts.hostname or "127.0.0.1", parts.port or 5432)


def through(proxy: Proxy, url: str) -> str:
    """Return the same URL with the proxy as the server."""
    parts = urlsplit(url)
    query = "&".join(one for one in parts.query.split("&") if not one.startswith("host="))
    user = parts.netloc.rpartition("@")[0]
    return parts._replace(netloc=f"{user}@127.0.0.1:{proxy.port}", query=query).geturl()
