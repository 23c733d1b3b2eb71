"""`claudius daimon`: list the daimons, ask one for a whisper now, or mute one."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime

import click

from claudius.cli.output import Group, json_option, print_result, safe
from claudius.config import KOTHAR
from claudius.home import Home
from claudius.reports import clock


@click.group(cls=Group)
def daimon() -> None:
    """Who whispers to the soul."""


@daimon.command("list")
@click.option("--whispers", is_flag=True, help="What was whispered, newest first, and what became of each.")
@click.option("-n", "most", type=click.IntRange(1, 1000), default=50, show_default=True, help="How many whispers.")
@json_option
def list_(most: int, *, whispers: bool, as_json: bool) -> None:
    """List daimons: on or off, how each speaks, when it last did, and why it is paused."""
    if whispers:
        said = clock.whispers(Home.of(os.environ), most)
        fates = [f"felt by turn {one['used_turn']}" if one["used_turn"] else one["state"] for one in said]
        told = [
            f"{one['at'][:16]}  {one['daimon']}: {safe(one['text'])}  [{fate}]"
            for one, fate in zip(said, fates, strict=True)
        ]
        print_result(said, told or ["nobody has whispered yet"], as_json=as_json)
        return
    found = clock.daimons(Home.of(os.environ), datetime.now(UTC))
    lines = []
    for row in found:
        state = f"on, {row['mode']}, over {row['transport']}" if row["enabled"] else "off"
        word = "rests" if row["rests_until"] else "lately"
        rests = f"; {word}: {safe(row['problem'])}" if row["problem"] else ""
        lines.append(f"{row['name']}  {state}  last whisper: {row['last_whisper_at'] or 'never'}{rests}")
    print_result(found, lines, as_json=as_json)


@daimon.command()
@click.argument("name", default=KOTHAR)
@json_option
def whisper(name: str, *, as_json: bool) -> int:
    """Ask a daimon now; what it whispers is felt at the next turn."""
    record = asyncio.run(clock.whisper(Home.of(os.environ), name))
    line = safe(record["whisper"]) or f"{name} says nothing: {safe(record['reason'])}"
    print_result(record, [line], as_json=as_json)
    return 0 if record["stored"] or record["reason"] == "it is silent" else 1


@daimon.command()
@click.argument("name", default=KOTHAR)
@click.option("--mode", type=click.Choice(["whisper", "speak", "both", "off"]), default="off", help="Another mode.")
def mute(name: str, mode: str) -> None:
    """Mute a daimon everywhere until you change it; with --mode, set another mode."""
    clock.set_mode(Home.of(os.environ), name, mode)
    click.echo(f"{name}: {mode}")
