"""`claudius console`: open the page in the owner's own browser, and serve it until Ctrl-C."""

from __future__ import annotations

import asyncio
import os

import click

from claudius.errors import TryAgain
from claudius.home import Home


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Listen on this port; by default a free one.")
@click.option("--no-open", is_flag=True, help="Only print the address; open no browser.")
@click.option("--link", is_flag=True, help="Print a fresh address of the console that runs already.")
def console(port: int, *, no_open: bool, link: bool) -> None:
    """Look at the soul in your browser: talk, watch it think, see what moved it. Only you, only on this machine."""
    from claudius.console.access import ConsoleLock, mint

    home = Home.of(os.environ)
    home.create()
    running = ConsoleLock(home).port()
    if running:
        _offer(home, mint(home, running), is_opened=not no_open and not link)
        return
    if link:
        raise TryAgain("no console is running: `claudius console` starts one")
    from claudius.console.server import serve

    def ready(taken: int) -> None:
        _offer(home, mint(home, taken), is_opened=not no_open)

    asyncio.run(serve(home, port, ready))


def _offer(home: Home, address: str, *, is_opened: bool) -> None:
    """Print an address, and open it by way of a private page, so that no process's arguments show it."""
    click.echo(address)
    if is_opened:
        import webbrowser

        from claudius.console.access import opening

        webbrowser.open(opening(home, address).as_uri())
