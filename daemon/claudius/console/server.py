"""`claudius console`: serve the page on this machine's loopback addresses until Ctrl-C, and open it in the browser."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click
from aiohttp import web

from claudius.console.access import ConsoleLock, Entrance, mint, opening
from claudius.console.live import Live
from claudius.console.routes import Routes
from claudius.console.walls import BODY_BYTES, Walls, headed
from claudius.errors import TryAgain
from claudius.foreign import unquoted
from claudius.home import Home, shipped

log = logging.getLogger(__name__)

LOOPBACK = ("127.0.0.1", "::1")
"""Where it listens. No setting widens this."""
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
"""The kinds of the page's files; a file of another kind is not served."""


class Console:
    """The server of one console."""

    def __init__(self, home: Home, page: Path | None = None) -> None:
        """Serve `home`; `page` is the directory of the page's files."""
        self._home, self._page = home, page or shipped("console")
        self._env = dict(os.environ)  # a soul that wakes in this process takes the secrets out of it
        self._entrance, self._live, self._standing = Entrance(home), Live(home), ConsoleLock(home)
        self._runner: web.AppRunner | None = None
        self.port = 0
        """Where it listens, once started."""

    async def start(self, port: int = 0) -> None:
        """Listen on `port`, or on a free one. Raises: TryAgain if it is taken."""
        walls = Walls(self._entrance, self._open_connections, self._env)
        app = web.Application(middlewares=[walls.middleware()], client_max_size=BODY_BYTES)
        app.on_response_prepare.append(headed)
        Routes(self._home, self._entrance, self._live, lambda: self.port, self._env).add_to(app)
        for path in sorted(self._page.rglob("*")):
            if path.suffix in KINDS:
                name = path.relative_to(self._page).as_posix()
                app.router.add_get("/" if name == "index.html" else f"/{name}", _file(path))
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=1.0)
        await self._runner.setup()
        for host in LOOPBACK:
            try:
                await web.TCPSite(self._runner, host, port or self.port).start()
            except OSError as error:
                if host != LOOPBACK[0]:
                    log.debug("no IPv6 loopback", extra={"error": unquoted(error)})
                    continue
                await self._runner.cleanup()
                raise TryAgain(f"port {port} is taken: choose another, or none") from error
            self.port = self.port or int(self._runner.addresses[0][1])
        self._standing.take(self.port)
        self._live.start()

    async def stop(self) -> None:
        """End every stream and stop listening."""
        self._standing.leave()
        await self._live.stop()
        if self._runner:
            await self._runner.cleanup()

    def _open_connections(self) -> int:
        server = self._runner.server if self._runner else None
        return len(server.connections) if server else 0


def _file(path: Path) -> Callable[[web.Request], asyncio.Future[web.Response]]:
    async def answer(_: web.Request) -> web.Response:
        """Read the file again each time, so that a changed page is seen at the next load."""
        text = await asyncio.to_thread(path.read_text, "utf-8")
        response = web.Response(text=text, content_type=KINDS[path.suffix], charset="utf-8")
        response.enable_compression()
        return response

    return answer  # type: ignore[return-value]  # a coroutine function is one of aiohttp's handlers


async def serve(home: Home, port: int, ready: Callable[[int], None]) -> None:
    """Serve until SIGINT or SIGTERM; `ready` is told the port once it listens."""
    console, ended = Console(home), asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(sign, ended.set)
    await console.start(port)
    try:
        ready(console.port)
        await ended.wait()
    finally:
        await console.stop()


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Listen on this port; by default a free one.")
@click.option("--no-open", is_flag=True, help="Only print the address; open no browser.")
@click.option("--link", is_flag=True, help="Print a fresh address of the console that runs already.")
def console(port: int, *, no_open: bool, link: bool) -> None:
    """Look at the soul in your browser: talk, watch it think, see what moved it. Only you, only on this machine."""
    home = Home.of(os.environ)
    home.create()
    running = ConsoleLock(home).port()
    if running:
        _offer(home, mint(home, running), is_opened=not no_open and not link)
        return
    if link:
        raise TryAgain("no console is running: `claudius console` starts one")

    def ready(taken: int) -> None:
        _offer(home, mint(home, taken), is_opened=not no_open)

    asyncio.run(serve(home, port, ready))


def _offer(home: Home, address: str, *, is_opened: bool) -> None:
    """Print an address, and open it by way of a private page, so that no process's arguments show it."""
    click.echo(address)
    if is_opened:
        import webbrowser

        webbrowser.open(opening(home, address).as_uri())
