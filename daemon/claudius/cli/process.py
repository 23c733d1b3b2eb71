"""`claudius process`: show the soul's mental processes, their transitions, and each conversation's place."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import click

from claudius.cli.output import Group, json_option, print_result
from claudius.errors import ClaudiusError
from claudius.home import Home
from claudius.reports import soul as reports

WIDTH, HEIGHT, MARGIN = 900, 560, 110
BOX_W, BOX_H = 168, 44
SIDE, TIP = 9.0, 9.0
"""The offset of opposite arrows from the straight line, and the length of an arrowhead."""
SHOWN = 4
"""How many conversations are named below a process; the rest are counted."""


@click.group(cls=Group)
def process() -> None:
    """Its mental processes, and where each conversation stands."""


@process.command("list")
@json_option
def list_(*, as_json: bool) -> None:
    """List the processes, shipped ones first."""
    found = reports.processes(Home.of(os.environ))
    lines = []
    for row in found:
        steps = f"  {', '.join(row['steps']) or 'a function'}; next: {', '.join(row['next']) or '-'}"
        lines += [f"{row['name']}: {row['description']}", click.style(steps, dim=True)]
    print_result(found, lines, as_json=as_json)


@process.command()
@click.argument("name")
@json_option
def show(name: str, *, as_json: bool) -> None:
    """Show one process, and the conversations that are in it now."""
    document = reports.process(Home.of(os.environ), name)
    print_result(document, [f"{key}: {value}" for key, value in document.items()], as_json=as_json)


@process.command()
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Draw it as an SVG file.")
@json_option
def graph(out: Path | None, *, as_json: bool) -> None:
    """Print the graph of the processes as Mermaid, or draw it with every conversation at its place."""
    home = Home.of(os.environ)
    rows = reports.processes(home)
    if out is None:
        print_result({"mermaid": mermaid(rows)}, [mermaid(rows).removesuffix("\n")], as_json=as_json)
        return
    try:
        out.write_text(svg(rows, reports.positions(home)), "utf-8")
    except OSError as error:
        raise ClaudiusError(f"{out} cannot be written ({error.strerror})") from error
    click.echo(f"drawn: {out}")


def mermaid(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the graph as a Mermaid state diagram. Pure."""
    lines = ["stateDiagram-v2", "  [*] --> greeting: never met", "  [*] --> main_process"]
    lines += [f"  {row['name']} --> {to}" for row in rows for to in row["next"]]
    lines += [f"  state {row['name']}" for row in rows if not row["next"]]
    return "\n".join(lines) + "\n"


def svg(rows: Sequence[Mapping[str, Any]], positions: Sequence[Mapping[str, Any]]) -> str:
    """Draw the graph as SVG: the busiest process in the centre, its neighbours around it, unreachable ones below. Pure.

    Under each process stand the conversations that are there now.
    """
    ways = [(row["name"], to) for row in rows for to in row["next"] if to != row["name"]]
    places = _places([row["name"] for row in rows], ways)
    ways = [(start, end) for start, end in ways if start in places and end in places]
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
            'font-size="14">'
        ),
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    for start, end in ways:
        parts += _arrow(places[start], places[end], aside=SIDE if (end, start) in ways else 0.0)
    joined = {name for way in ways for name in way}
    for name, (x, y) in places.items():
        here = [str(row["conversation"]) for row in positions if row["process"] == name]
        parts += _box(name, x, y, here, is_joined=name in joined)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _places(names: Sequence[str], ways: Sequence[tuple[str, str]]) -> dict[str, tuple[float, float]]:
    """Return the centre of each process's box: the best connected in the middle, lone ones in a row below. Pure."""
    degree = Counter(name for way in ways for name in way)
    joined = sorted((name for name in names if degree[name]), key=lambda name: -degree[name])
    alone = [name for name in names if not degree[name]]
    low = HEIGHT - 70
    places = {name: (WIDTH * (n + 1) / (len(alone) + 1), float(low)) for n, name in enumerate(alone)}
    middle = (WIDTH / 2, (low - MARGIN / 2) / 2 if alone else HEIGHT / 2)
    across, down = WIDTH / 2 - MARGIN, middle[1] - BOX_H - 20
    around = [name for name in names if name in joined[1:]]
    turns = [2 * math.pi * (n + 0.5) / len(around) - math.pi / 2 for n in range(len(around))]
    places |= dict.fromkeys(joined[:1], middle)
    return places | {
        name: (middle[0] + across * math.cos(turn), middle[1] + down * math.sin(turn))
        for name, turn in zip(around, turns, strict=True)
    }


def _arrow(start: tuple[float, float], end: tuple[float, float], aside: float) -> list[str]:
    """Draw an arrow shifted `aside` of the straight line, so that the opposite arrow has its own line."""
    long = math.dist(start, end) or 1.0
    along = (end[0] - start[0]) / long, (end[1] - start[1]) / long
    off = -along[1] * aside, along[0] * aside
    x1, y1 = _edge(start, along, off)
    x2, y2 = _edge(end, (-along[0], -along[1]), off)
    foot = x2 - along[0] * TIP, y2 - along[1] * TIP
    wing = -along[1] * TIP / 2, along[0] * TIP / 2
    head = ((x2, y2), (foot[0] + wing[0], foot[1] + wing[1]), (foot[0] - wing[0], foot[1] - wing[1]))
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in head)
    return [
        f'<path class="way" d="M{x1:.1f} {y1:.1f}L{foot[0]:.1f} {foot[1]:.1f}" stroke="#667" stroke-width="1.4"/>',
        f'<polygon points="{points}" fill="#667"/>',
    ]


def _edge(box: tuple[float, float], along: tuple[float, float], off: tuple[float, float]) -> tuple[float, float]:
    """Return where a line that passes a box's centre at `off` leaves the box."""
    reach = min(
        (math.copysign(half, step) - shift) / step
        for half, step, shift in zip((BOX_W / 2, BOX_H / 2), along, off, strict=True)
        if abs(step) > 1e-9
    )
    return box[0] + off[0] + along[0] * reach, box[1] + off[1] + along[1] * reach


def _box(name: str, x: float, y: float, here: Sequence[str], *, is_joined: bool) -> list[str]:
    fill = "#e8f0fe" if here else "#f6f6f8"
    dashes = "" if is_joined else ' stroke-dasharray="4 3"'
    lines = [*here[:SHOWN], *([f"and {len(here) - SHOWN} more"] if len(here) > SHOWN else [])]
    return [
        (
            f'<rect x="{x - BOX_W / 2:.0f}" y="{y - BOX_H / 2:.0f}" width="{BOX_W}" height="{BOX_H}" rx="8" '
            f'fill="{fill}" stroke="#445"{dashes}/>'
        ),
        f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle">{escape(name)}</text>',
        *(
            f'<text x="{x:.0f}" y="{y + BOX_H / 2 + 16 + 15 * n:.0f}" text-anchor="middle" font-size="12" {look}>'
            f"{escape(line)}</text>"
            for n, line in enumerate(lines)
            for look in ('stroke="#fff" stroke-width="4"', 'fill="#345"')  # outlined, to be readable over an arrow
        ),
    ]
