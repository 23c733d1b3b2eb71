"""`claudius stream`: watch live as the soul hears, thinks, decides, feels and speaks."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any

import click

from claudius.cli.output import safe
from claudius.errors import TryAgain
from claudius.home import Home

COLOURS = {
    "hear": "cyan",
    "think": "bright_black",
    "gate": "yellow",
    "transition": "magenta",
    "whisper": "blue",
    "speak": "green",
}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--count", type=click.IntRange(min=1), default=None, help="End after so many events.")
def stream(*, as_json: bool, count: int | None) -> None:
    """Watch the running soul hear, think, decide, feel and speak; private thoughts, too."""
    asyncio.run(_show(Home.of(os.environ), as_json=as_json, count=count))


async def _show(home: Home, *, as_json: bool, count: int | None) -> None:
    shown = 0
    async for event in _events(home):
        click.echo(json.dumps(event) if as_json else _line(event))
        shown += 1
        if shown == count:
            return


async def _events(home: Home) -> AsyncIterator[dict[str, Any]]:
    from claudius.runtime.control import connect

    try:
        async with connect(home.socket) as connection:
            await connection.send({"op": "stream"})
            first = await connection.receive()
            if not first or first.get("event") != "streaming":
                raise TryAgain("the process that is awake has no stream to show: `claudius daemon restart`")
            click.echo("watching: Ctrl-C ends it", err=True)
            while event := await connection.receive():
                yield event
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise TryAgain("nothing is awake here to be watched: `claudius daemon start`") from error


def _line(event: dict[str, Any]) -> str:
    kind = str(event["kind"])
    head = click.style(f"{str(event['at'])[11:19]} {kind:<10}", fg=COLOURS.get(kind), bold=kind == "speak")
    return f"{head} {safe(' '.join(str(event['text']).split()))}  {click.style(str(event['conversation']), dim=True)}"
