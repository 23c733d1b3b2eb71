"""`claudius ledger` and `claudius cortex`: whom the soul deals with, and what its second mind makes of them."""

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
from claudius.memory.records import Records
from claudius.reports import ledger as reports
from claudius.reports.life import clock_now
from claudius.reports.opened import read

MOST = 10


@click.group(cls=Group)
def ledger() -> None:
    """Whom the soul deals with, and what it makes of them."""


@ledger.command()
@json_option
def peers(*, as_json: bool) -> None:
    """List everyone it deals with, latest first."""
    found = read(Home.of(os.environ), Records.peers)
    print_result(found, map(_line, found), as_json=as_json)


@ledger.command()
@click.argument("peer")
@json_option
def show(peer: str, *, as_json: bool) -> None:
    """Print one peer: every assessment as a drawing of trust over time, and the latest of what passed.

    PEER is an id as `peers` prints it, or a name that only one of them has.
    """
    found = reports.peer(Home.of(os.environ), peer)
    lines = [_line(found)]
    for one in found["assessments"]:
        scored = f"{bar(one['trust'])}  information {one['info_score']}/10, {one['author']}"
        lines += [f"{one['at']:%Y-%m-%d %H:%M}  {scored}", f"    {safe(one['rationale'])}"]
    for one in found["timeline"]:
        arrow = "»" if one["direction"] == "in" else "«"
        lines.append(f"{one['at']:%Y-%m-%d %H:%M}  {arrow} {safe(one['preview'])}  ({one['channel_type']})")
    print_result(found, lines, as_json=as_json)


@ledger.command()
@click.argument("ids", nargs=-1, required=True, type=click.IntRange(1, 2**63 - 1))
@json_option
def evidence(ids: tuple[int, ...], *, as_json: bool) -> None:
    """Print lines of the ledger by their ids: what a belief or a cycle was formed from."""
    found = read(Home.of(os.environ), lambda kept: kept.evidence(ids))
    lines = []
    for one in found:
        arrow = "»" if one["direction"] == "in" else "«"
        lines.append(f"{one['id']}  {one['at'][:16]}  {arrow} {one['peer']}: {safe(one['preview'])}")
    print_result(found, lines or ["none of them is kept any more"], as_json=as_json)


def _line(one: Mapping[str, Any]) -> str:
    trust = "not yet assessed" if one["trust"] is None else f"trust {one['trust']:+d}"
    many = f"{one['interactions']} message(s)"
    return f"{one['peer']}  {safe(one['name'])}  {many}  information {one['info_score']}/10  {trust}"


def bar(trust: int) -> str:
    """Format a trust value as a bar from -10 to 10 around a centre line. Pure."""
    left = "█" * max(0, -trust)
    right = "█" * max(0, trust)
    return f"{left:·>{MOST}}│{right:·<{MOST}} {trust:+3d}"


@click.group(cls=Group)
def cortex() -> None:
    """What the second mind believes, when it reflected, and what you decide about that."""


@cortex.command()
@json_option
def beliefs(*, as_json: bool) -> None:
    """Print what it believes now, and how long each belief will last."""
    now = clock_now()
    found = read(Home.of(os.environ), lambda kept: kept.beliefs(now))
    last = found["last_reflection_at"]
    lines = [f"last reflection: {_span(now - last)} ago" if last else "it has not reflected yet"]
    for one in found["beliefs"]:
        whom, life = f" ({one['peer']})" if one["peer"] else "", one["state"]
        if life == "active":
            life = f"{_span(now - one['created_at'])} ago, {_span(one['expires_at'] - now)} left"
        lines.append(f"{safe(one['key'])}{whom}: {safe(one['value'])}  [{life}]")
    print_result(found, lines, as_json=as_json)


@cortex.command()
@click.option("-n", "count", type=click.IntRange(1, 1000), default=10, show_default=True, help="How many cycles.")
@json_option
def history(count: int, *, as_json: bool) -> None:
    """Print its last cycles, newest first: what started each, and its outcome."""
    found = read(Home.of(os.environ), lambda kept: kept.reflections(count))
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
