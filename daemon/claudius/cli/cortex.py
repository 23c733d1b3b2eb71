"""`claudius cortex`: show the cortex's beliefs and cycles, start a cycle, and let the owner change beliefs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import click

from claudius.cli.output import Group, json_option, print_result, safe
from claudius.errors import UsageProblem
from claudius.home import Home
from claudius.ledger_types import OwnersHand
from claudius.reports import beliefs as reports
from claudius.reports.life import clock_now


@click.group(cls=Group)
def cortex() -> None:
    """What the second mind believes, when it reflected, and what you decide about that."""


@cortex.command()
@json_option
def beliefs(*, as_json: bool) -> None:
    """Print what it believes now, and how long each belief will last."""
    now = clock_now()
    found = reports.beliefs(Home.of(os.environ), now)
    last = found["last_reflection_at"]
    lines = [f"last reflection: {_span(now - last)} ago" if last else "it has not reflected yet"]
    for one in found["beliefs"]:
        whom, life = f" ({one['peer']})" if one["peer"] else "", one["state"]
        if life == "active":
            life = f"{_span(now - one['created_at'])} ago, {_span(one['expires_at'] - now)} left"
        lines.append(f"{safe(one['key'])}{whom}: {safe(one['value'])}  [{life}]")
    print_result(found, lines, as_json=as_json)


@cortex.command()
@click.option("-n", "count", type=click.IntRange(min=1), default=10, show_default=True, help="How many cycles.")
@json_option
def history(count: int, *, as_json: bool) -> None:
    """Print its last cycles, newest first: what started each, and its outcome."""
    found = reports.cycles(Home.of(os.environ), count)
    lines = [line for one in found for line in _cycle(one)]
    print_result(found, lines or ["it has not reflected yet"], as_json=as_json)


@cortex.command()
@json_option
def reflect(*, as_json: bool) -> None:
    """Run one cycle now and print its record."""
    record = asyncio.run(reports.reflect(Home.of(os.environ)))
    print_result(record, _cycle(record), as_json=as_json)


@cortex.command()
@click.argument("key")
@click.option("--pin", "hand", flag_value="pin", help="Keep it for good: it does not expire, nothing displaces it.")
@click.option("--dispute", "hand", flag_value="dispute", help="Reject it: it is shown nowhere, the cortex is told so.")
@click.option("--delete", "hand", flag_value="delete", help="Delete it; the cortex may form it again.")
@json_option
def belief(key: str, hand: OwnersHand | None, *, as_json: bool) -> None:
    """Decide about a belief: pin, dispute or delete it."""
    if hand is None:
        raise UsageProblem("say what to do with it: --pin, --dispute or --delete")
    document = reports.change(Home.of(os.environ), key, hand, clock_now())
    print_result(document, [f"{key} is {document['state']}"], as_json=as_json)


def _cycle(one: Mapping[str, Any]) -> Iterator[str]:
    at = one["at"] if isinstance(one["at"], str) else f"{one['at']:%Y-%m-%d %H:%M}"
    counts = f"{one['assessments']} assessed, {one['beliefs']} beliefs, {one['directives']} directives"
    yield f"{one['cycle']}  {at}  {one['trigger']}  {one['duration_s']:.1f} s  {counts}  {one['outcome']}"
    if one["summary"]:
        yield f"   {safe(one['summary'])}"


def _span(span: timedelta) -> str:
    minutes = max(0, int(span.total_seconds() // 60))
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h" if minutes < 2880 else f"{minutes // 1440} d"
