"""The graph of the mental processes: as Mermaid, and as a picture with every conversation at its place. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

WIDTH, HEIGHT, MARGIN = 900, 640, 110
BOX_W, BOX_H = 168, 44
SHOWN = 4
"""Conversations named below a process; the rest are counted."""


def mermaid(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write the graph as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "  [*] --> greeting: never met", "  [*] --> main_process"]
    lines += [f"  {row['name']} --> {to}" for row in rows for to in row["next"]]
    lines += [f"  state {row['name']}" for row in rows if not row["next"]]
    return "\n".join(lines) + "\n"


def svg(rows: Sequence[Mapping[str, Any]], positions: Sequence[Mapping[str, Any]]) -> str:
    """Draw the graph on a circle, an arrow for each way, below each process the conversations that stand there."""
    places = _places([row["name"] for row in rows])
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
            'font-size="14">'
        ),
        (
            '<defs><marker id="to" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0 0 8 4 0 8z" fill="#667"/></marker></defs>'
        ),
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
    ]
    parts += [
        _arrow(places[row["name"]], places[to])
        for row in rows
        for to in row["next"]
        if to in places and to != row["name"]
    ]
    for name, (x, y) in places.items():
        here = [str(row["conversation"]) for row in positions if row["process"] == name]
        parts += _box(name, x, y, here)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _places(names: Sequence[str]) -> dict[str, tuple[float, float]]:
    middle = (WIDTH / 2, HEIGHT / 2 - 20)
    across, down = WIDTH / 2 - MARGIN, HEIGHT / 2 - MARGIN
    turns = [2 * math.pi * n / max(1, len(names)) - math.pi / 2 for n in range(len(names))]
    return {
        name: (middle[0] + across * math.cos(turn), middle[1] + down * math.sin(turn))
        for name, turn in zip(names, turns, strict=True)
    }


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    (x1, y1), (x2, y2) = _edge(start, end), _edge(end, start)
    bend_x, bend_y = (x1 + x2) / 2 - (y2 - y1) * 0.12, (y1 + y2) / 2 + (x2 - x1) * 0.12
    return (
        f'<path d="M{x1:.0f} {y1:.0f} Q{bend_x:.0f} {bend_y:.0f} {x2:.0f} {y2:.0f}" fill="none" stroke="#667" '
        'stroke-width="1.4" marker-end="url(#to)"/>'
    )


def _edge(box: tuple[float, float], towards: tuple[float, float]) -> tuple[float, float]:
    """Return where the line from a box's middle leaves it."""
    across, down = towards[0] - box[0], towards[1] - box[1]
    share = min(
        BOX_W / 2 / abs(across) if across else math.inf,
        BOX_H / 2 / abs(down) if down else math.inf,
    )
    return box[0] + across * share, box[1] + down * share


def _box(name: str, x: float, y: float, here: Sequence[str]) -> list[str]:
    fill = "#e8f0fe" if here else "#f6f6f8"
    lines = [*here[:SHOWN], *([f"and {len(here) - SHOWN} more"] if len(here) > SHOWN else [])]
    return [
        (
            f'<rect x="{x - BOX_W / 2:.0f}" y="{y - BOX_H / 2:.0f}" width="{BOX_W}" height="{BOX_H}" rx="8" '
            f'fill="{fill}" stroke="#445"/>'
        ),
        f'<text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle">{escape(name)}</text>',
        *(
            f'<text x="{x:.0f}" y="{y + BOX_H / 2 + 16 + 15 * n:.0f}" text-anchor="middle" font-size="12" fill="#345">'
            f"{escape(line)}</text>"
            for n, line in enumerate(lines)
        ),
    ]
