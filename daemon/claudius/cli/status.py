"""`claudius status`: what runs, who speaks, what waits."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime
from typing import Any

import click

import claudius
from claudius.cli.output import json_option, print_json
from claudius.cli.records import records
from claudius.cli.session import ask
from claudius.errors import EXIT_FAILED
from claudius.home import Home
from claudius.runtime.lock import holder


@click.command()
@json_option
def status(*, as_json: bool) -> int:
    """Tell what runs, who speaks, and what waits."""
    home = Home.of(os.environ)
    live = asyncio.run(ask(home, "status"))
    document: dict[str, Any] = {
        "running": live is not None,
        "pid": holder(home) if live else None,
        "version": claudius.__version__,
        "home": str(home.root),
        "uptime_s": None,
        "provider": _voice(home) if live is None else None,
        "adapters": [],
    }
    document |= live or {}
    with records(home) as kept:
        document |= kept.counts(datetime.now(UTC))
    if as_json:
        print_json(document)
    else:
        _tell(document)
    return 0 if live else EXIT_FAILED


def _voice(home: Home) -> dict[str, str] | None:
    from claudius.compose import voices
    from claudius.config import load

    first = voices(load(home, os.environ), home)[0]
    return {"name": first, "model": ""}


def _tell(document: dict[str, Any]) -> None:
    if document["running"]:
        click.echo(f"awake: process {document['pid']}, up {document['uptime_s']:.0f} s, home {document['home']}")
    else:
        click.echo(f"asleep: nothing runs for {document['home']} (`claudius chat` wakes it)")
    voice = document["provider"] or {}
    click.echo(f"voice: {voice.get('name')} {voice.get('model') or ''}".rstrip())
    for adapter in document["adapters"]:
        heard = adapter["last_inbound_s"]
        last = "never heard" if heard is None else f"last heard {heard:.0f} s ago"
        click.echo(f"{adapter['name']}: {'connected' if adapter['connected'] else 'not connected'}, {last}")
    inbox, outbox, turns = document["inbox"], document["outbox"], document["turns"]
    click.echo(f"waiting: {inbox['pending']} to think, {outbox['pending']} to say")
    if inbox["dead"] or outbox["failed"]:
        click.echo(f"given up: {inbox['dead']} heard, {outbox['failed']} said (`claudius doctor` tells why)")
    click.echo(f"turns: {turns['total']}, {turns['today']} today")
