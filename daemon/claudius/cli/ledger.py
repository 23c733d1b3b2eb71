"""`claudius ledger`: list the soul's peers; show what passed between them, and how its trust changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import click

from claudius.cli.output import Group, json_option, print_result, safe
from claudius.home import Home
from claudius.reports import ledger as reports

MOST = 10


@click.group(cls=Group)
def ledger() -> None:
    """Whom the soul deals with, and what it makes of them."""


@ledger.command()
@json_option
def peers(*, as_json: bool) -> None:
    """List everyone it deals with, latest first."""
    found = reports.peers(Home.of(os.environ))
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
@click.argument("ids", nargs=-1, required=True, type=int)
@json_option
def evidence(ids: tuple[int, ...], *, as_json: bool) -> None:
    """Print lines of the ledger by their ids: what a belief or a cycle was formed from."""
    found = reports.evidence(Home.of(os.environ), ids)
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
