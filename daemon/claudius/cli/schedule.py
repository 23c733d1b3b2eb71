"""`claudius schedule`: list and cancel what the soul has planned to notice later."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from datetime import datetime, tzinfo
from typing import Any

import click

from claudius.cli.output import json_option, print_result, safe
from claudius.cli.records import edit, records
from claudius.cli.session import ask
from claudius.errors import ClaudiusError
from claudius.home import Home


@click.group()
def schedule() -> None:
    """What the soul has planned for later."""


@schedule.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List plans and the clock's own jobs in local time, soonest first; also plans that lapsed."""
    live = asyncio.run(ask(Home.of(os.environ), "status")) or {}
    timers = [_job({"job": name, "next_due": at}) for name, at in live.get("timers", {}).items()]
    with records() as kept:
        rows = sorted([*map(_plan, kept.plans()), *map(_job, kept.jobs()), *timers], key=lambda row: str(row["due_at"]))
    zone = _zone()
    found = [row | {"due_local": datetime.fromisoformat(row["due_at"]).astimezone(zone).isoformat()} for row in rows]
    lines = []
    for row in found:
        late = "  lapsed: it came too late" if row["lapsed_at"] else ""
        at, place = datetime.fromisoformat(row["due_local"]), row["conversation"] or row["kind"]
        process = f"  ({row['process']})" if row["process"] else ""
        lines.append(f"{row['id']}  {at:%a %Y-%m-%d %H:%M}  {place}{process}  {safe(row['what'])}{late}")
    print_result(found, lines or ["nothing is planned"], as_json=as_json)


def _zone() -> tzinfo:
    from claudius.cognition.timing import known_zone
    from claudius.config import load

    return known_zone(load(Home.of(os.environ), os.environ).config.clock.timezone)


def _plan(row: Mapping[str, Any]) -> dict[str, Any]:
    """Add to a plan what it is about: the words that asked for it or promised it, else what the soul will notice."""
    return {**row, "what": row["params"].get("what") or row["text"]}


def _job(row: Mapping[str, Any]) -> dict[str, Any]:
    """Format a scheduled job like a plan, but one that nobody made."""
    return {
        "id": row["job"],
        "kind": "job",
        "due_at": row["next_due"],
        "conversation": None,
        "process": None,
        "params": {},
        "text": row.get("outcome", ""),
        "what": row.get("outcome", ""),
        "lapsed_at": None,
        "ended_at": row.get("ended_at"),
        "failures": row.get("failures", 0),
    }


@schedule.command()
@click.argument("plan", metavar="ID")
def cancel(plan: str) -> None:
    """Cancel a plan."""
    with records() as kept:
        if plan in [row["job"] for row in kept.jobs()]:
            raise ClaudiusError(
                f"{plan} is one of the clock's own jobs, not a plan: docs/daimons.md says which setting controls it"
            )
        number = next((row["id"] for row in kept.plans() if str(row["id"]) == plan), None)
    if number is None or not edit(lambda store: store.plans.cancel(number)):
        raise ClaudiusError(f"no plan {plan!r}: `claudius schedule list` names them")
    click.echo(f"cancelled: {plan}")
