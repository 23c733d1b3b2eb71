"""`claudius ledger`: list the soul's peers; show what passed between them, and how its trust changed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import click

from claudius.cli.output import Group, json_option, print_result, safe
from claudius.home import Home
from claudius.reports import ledger as reports

MOST = 10
CHART_WIDTH, CHART_HEIGHT, EDGE = 760, 260, 40
FONT = 'font-family="sans-serif" font-size="12"'


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
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Draw the trust over time as an SVG file.")
@json_option
def show(peer: str, out: Path | None, *, as_json: bool) -> None:
    """Print one peer: every assessment as a drawing of trust over time, and the latest of what passed.

    PEER is an id as `peers` prints it, or a name that only one of them has.
    """
    found = reports.peer(Home.of(os.environ), peer)
    if out:
        out.write_text(picture(found["name"] or found["peer"], found["assessments"]), "utf-8")
    lines = [_line(found)]
    for one in found["assessments"]:
        scored = f"{bar(one['trust'])}  information {one['info_score']}/10, {one['author']}"
        lines += [f"{one['at']:%Y-%m-%d %H:%M}  {scored}", f"    {safe(one['rationale'])}"]
    for one in found["timeline"]:
        arrow = "»" if one["direction"] == "in" else "«"
        lines.append(f"{one['at']:%Y-%m-%d %H:%M}  {arrow} {safe(one['preview'])}  ({one['channel_type']})")
    lines += [f"drawn: {out}"] if out else []
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


def picture(name: str, assessments: Sequence[Mapping[str, Any]]) -> str:
    """Draw assessments, oldest first, as an SVG: trust as a line, information as the size of the dots. Pure."""
    times = [one["at"].timestamp() for one in assessments]
    first, span = (times[0], times[-1] - times[0] or 1.0) if times else (0.0, 1.0)
    points = [
        (EDGE + (at - first) / span * (CHART_WIDTH - 2 * EDGE), _height(one["trust"]))
        for at, one in zip(times, assessments, strict=True)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {CHART_WIDTH} {CHART_HEIGHT}" {FONT}>',
        f'<rect width="{CHART_WIDTH}" height="{CHART_HEIGHT}" fill="#fff"/>',
        f'<text x="{EDGE}" y="18">Trust in {escape(name)}</text>',
    ]
    for level in (-MOST, 0, MOST):
        y = _height(level)
        parts.append(f'<line x1="{EDGE}" x2="{CHART_WIDTH - EDGE}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ccc"/>')
        parts.append(f'<text x="8" y="{y + 4:.1f}">{level:+d}</text>')
    if len(points) > 1:
        parts.append(f'<polyline points="{path}" fill="none" stroke="#36c" stroke-width="2"/>')
    for (x, y), one in zip(points, assessments, strict=True):
        said = escape(f"{one['at']:%Y-%m-%d} {one['trust']:+d}: {one['rationale']}")
        radius = 2 + one["info_score"] / 2
        dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="#36c">'
        parts.append(f"{dot}<title>{said}</title></circle>")
    if assessments:
        below = CHART_HEIGHT - 8
        parts.append(f'<text x="{EDGE}" y="{below}">{assessments[0]["at"]:%Y-%m-%d}</text>')
        parts.append(
            f'<text x="{CHART_WIDTH - EDGE}" y="{below}" text-anchor="end">{assessments[-1]["at"]:%Y-%m-%d}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _height(trust: int) -> float:
    return EDGE + (MOST - trust) / (2 * MOST) * (CHART_HEIGHT - 2 * EDGE)
