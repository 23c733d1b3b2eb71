"""`claudius daimon`: list the daimons, ask one for a whisper now, or mute one."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import click

from claudius.cli.output import json_option, print_result, safe
from claudius.cli.records import edit, noted, records
from claudius.cli.session import wake_and_ask
from claudius.config import KOTHAR, daimons, load
from claudius.errors import ClaudiusError, UsageProblem
from claudius.home import Home


@click.group()
def daimon() -> None:
    """Who whispers to the soul."""


@daimon.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List daimons: on or off, how each speaks, when it last did, and why it is paused."""
    home = Home.of(os.environ)
    known = daimons(load(home, os.environ).config)
    with records() as kept:
        fared = {row["daimon"]: row for row in kept.daimons()}
    found = [_row(name, one, fared.get(name, {})) for name, one in known.items()]
    lines = []
    for row in found:
        state = f"on, {row['mode']}, over {row['transport']}" if row["enabled"] else "off"
        word = "rests" if row["rests_until"] else "lately"
        rests = f"; {word}: {safe(row['problem'])}" if row["problem"] else ""
        lines.append(f"{row['name']}  {state}  last whisper: {row['last_whisper_at'] or 'never'}{rests}")
    print_result(found, lines, as_json=as_json)


def _row(name: str, one: Any, fared: Mapping[str, Any]) -> dict[str, Any]:
    until = fared.get("rests_until")
    rests = until is not None and datetime.fromisoformat(until) > datetime.now(UTC)
    transports = [word for word, on in (("http", one.enabled), ("model", one.groq_enabled)) if on]
    return {
        "name": name,
        "enabled": one.is_on,
        "mode": fared.get("mode") or one.mode,
        "transport": "+".join(transports) or None,
        "last_whisper_at": fared.get("last_whisper_at"),
        "asked_at": fared.get("asked_at"),
        "rests_until": until if rests else None,
        "problem": (fared.get("reason") or "").rpartition(" [")[0],
    }


@daimon.command()
@click.argument("name", default=KOTHAR)
@json_option
def whisper(name: str, *, as_json: bool) -> int:
    """Ask a daimon now; what it whispers is felt at the next turn."""
    answer = asyncio.run(wake_and_ask(Home.of(os.environ), "daimon", name=name))
    record = answer.get("record")
    if record is None:
        raise ClaudiusError(str(answer.get("message", "no answer came")))
    line = safe(record["whisper"]) or f"{name} says nothing: {safe(record['reason'])}"
    print_result(record, [line], as_json=as_json)
    return 0 if record["stored"] or record["reason"] == "it is silent" else 1


@daimon.command()
@click.argument("name", default=KOTHAR)
@click.option("--mode", type=click.Choice(["whisper", "speak", "both", "off"]), default="off", help="Another mode.")
def mute(name: str, mode: str) -> None:
    """Mute a daimon everywhere until you change it; with --mode, set another mode."""
    home = Home.of(os.environ)
    if name not in daimons(load(home, os.environ).config):
        raise UsageProblem(f"no daimon {name!r}: `claudius daimon list` names them")
    home.create()
    noted("daimon", f"{name} {mode}")
    edit(lambda store: store.whispers.set_mode(name, mode))
    click.echo(f"{name}: {mode}")
