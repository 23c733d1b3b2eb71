"""Trust over time as something one can look at: a bar in the terminal, a drawing in a file. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

MOST = 10
WIDTH, HEIGHT, EDGE = 760, 260, 40
FONT = 'font-family="sans-serif" font-size="12"'


def bar(trust: int) -> str:
    """Write a trust as a bar from -10 to 10 around a line in the middle. Pure."""
    left = "█" * max(0, -trust)
    right = "█" * max(0, trust)
    return f"{left:·>{MOST}}│{right:·<{MOST}} {trust:+3d}"


def picture(name: str, assessments: Sequence[Mapping[str, Any]]) -> str:
    """Draw assessments, oldest first, as an SVG: trust as a line, information as dots of that size. Pure."""
    times = [one["at"].timestamp() for one in assessments]
    first, span = (times[0], times[-1] - times[0] or 1.0) if times else (0.0, 1.0)
    points = [
        (EDGE + (at - first) / span * (WIDTH - 2 * EDGE), _height(one["trust"]))
        for at, one in zip(times, assessments, strict=True)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" {FONT}>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
        f'<text x="{EDGE}" y="18">Trust in {escape(name)}</text>',
    ]
    for level in (-MOST, 0, MOST):
        y = _height(level)
        parts.append(f'<line x1="{EDGE}" x2="{WIDTH - EDGE}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ccc"/>')
        parts.append(f'<text x="8" y="{y + 4:.1f}">{level:+d}</text>')
    if len(points) > 1:
        parts.append(f'<polyline points="{path}" fill="none" stroke="#36c" stroke-width="2"/>')
    for (x, y), one in zip(points, assessments, strict=True):
        said = escape(f"{one['at']:%Y-%m-%d} {one['trust']:+d}: {one['rationale']}")
        radius = 2 + one["info_score"] / 2
        dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="#36c">'
        parts.append(f"{dot}<title>{said}</title></circle>")
    if assessments:
        below = HEIGHT - 8
        parts.append(f'<text x="{EDGE}" y="{below}">{assessments[0]["at"]:%Y-%m-%d}</text>')
        parts.append(f'<text x="{WIDTH - EDGE}" y="{below}" text-anchor="end">{assessments[-1]["at"]:%Y-%m-%d}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _height(trust: int) -> float:
    return EDGE + (MOST - trust) / (2 * MOST) * (HEIGHT - 2 * EDGE)
