"""`claudius audit`: who decided or looked at what, when, and from where."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import click

from claudius.cli.output import json_option, print_result, safe, table
from claudius.home import Home
from claudius.reports.status import EVERY, acts

MOST_SHOWN = 50


@click.command()
@click.option("--since", type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"]), help="From this time on, in UTC.")
@click.option("-n", "most", type=click.IntRange(min=1), help="The newest so many [default: 50; with --json, all].")
@json_option
def audit(since: datetime | None, most: int | None, *, as_json: bool) -> None:
    """List settings changed, approvals, erasures, portraits read, soul files edited, and commands of owners."""
    start = since.replace(tzinfo=UTC).isoformat() if since else ""
    found = acts(Home.of(os.environ), start, most or (EVERY if as_json else MOST_SHOWN))
    names = ("at", "who", "act", "target", "from")
    lines = table(names, ([safe(str(row[name])) for name in names] for row in found))
    print_result(found, lines if found else ["nothing is recorded yet"], as_json=as_json)
