"""`claudius schedule`: list and cancel what the soul has planned to notice later."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
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
    """List plans and the clock's own jobs, soonest first; also plans that lapsed."""
    live = asyncio.run(ask(Home.of(os.environ), "status")) or {}
    timers = [_job({"job": name, "next_due": at}) for name, at in live.get("timers", {}).items()]
    with records() as kept:
        found = sorted([*kept.plans(), *map(_job, kept.jobs()), *timers], key=lambda row: str(row["due_at"]))
    lines = []
    for row in found:
        late = "  lapsed: it came too late" if row["lapsed_at"] else ""
        place, process = row["conversation"] or row["kind"], row["process"] or "-"
        lines.append(f"{row['id']}  {row['due_at']}  {place}  {process}  {safe(row['text'])}{late}")
    print_result(found, lines or ["nothing is planned"], as_json=as_json)


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
