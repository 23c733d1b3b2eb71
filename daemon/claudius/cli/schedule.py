"""`claudius schedule`: list and cancel what the soul has planned to notice later."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import click

from claudius.cli.output import Group, json_option, print_result, safe
from claudius.home import Home
from claudius.reports import clock


@click.group(cls=Group)
def schedule() -> None:
    """What the soul has planned for later."""


@schedule.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List plans and the clock's own jobs in local time, soonest first; also plans that lapsed."""
    found = clock.schedule(Home.of(os.environ), datetime.now(UTC))
    lines = []
    for row in found:
        late = "  lapsed: it came too late" if row["lapsed_at"] else ""
        late += f"  waits for {row['waits_for']}" if row["waits_for"] else ""
        place, process = row["conversation"] or row["kind"], row["process"] or "-"
        at = datetime.fromisoformat(row["due_local"])
        lines.append(f"{row['id']}  {at:%a %Y-%m-%d %H:%M}  {place}  {process}  {safe(row['what'])}{late}")
    print_result(found, lines or ["nothing is planned"], as_json=as_json)


@schedule.command()
@click.argument("plan", metavar="ID")
def cancel(plan: str) -> None:
    """Cancel a plan."""
    clock.cancel(Home.of(os.environ), plan)
    click.echo(f"cancelled: {plan}")
