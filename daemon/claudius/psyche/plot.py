"""How the numbers moved, as an SVG written by hand: the same data, the same bytes. Pure.

Between two events the curves follow the laws, so what is drawn is what was in force, not a line between two points.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any, NamedTuple

import msgspec

from claudius.psyche.state import advance
from claudius.substrate import DRIVES, Numbers

WIDTH, LANE, LEFT, TOP, GAP = 960, 110, 150, 34, 26
STEPS = 240
"""Points a curve is drawn with."""
MOST_PEOPLE = 6
COLOURS = ("#4363d8", "#e6194b", "#3cb44b", "#f58231", "#911eb4", "#469990")


class Move(NamedTuple):
    """One turn that moved the numbers."""

    turn: str
    at_s: float
    person: str
    outcome: str
    numbers: Numbers
    edges: tuple[Mapping[str, Any], ...]


class Curve(NamedTuple):
    """A line of a lane: its name and its value at an instant; None = there is none yet."""

    name: str
    value: Callable[[float], float | None]


class Lane(NamedTuple):
    """One strip of the picture."""

    title: str
    low: float
    high: float
    curves: Sequence[Curve]


def moves_of(rows: Sequence[Mapping[str, Any]]) -> tuple[Move, ...]:
    """Read the rows of the trace, oldest first. Pure."""
    return tuple(
        Move(
            turn=row["turn"],
            at_s=row["inputs"]["at_s"],
            person=row["person"],
            outcome=row["inputs"]["outcome"],
            numbers=msgspec.convert(row["after"], Numbers),
            edges=tuple(row["edges"]),
        )
        for row in rows
    )


def plot(moves: Sequence[Move], names: Mapping[str, str], from_s: float, to_s: float) -> str:
    """Draw mood, energy, needs and relations between two instants, a tick for every turn that moved them. Pure."""
    lanes = _lanes(moves, names)
    height = TOP + len(lanes) * (LANE + GAP) + 40
    inner = WIDTH - LEFT - 20

    def x(at_s: float) -> float:
        return LEFT + inner * (at_s - from_s) / max(1.0, to_s - from_s)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        "<style>text{font-size:12px}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{LEFT}" y="20" font-size="14">{_day(from_s)} – {_day(to_s)}</text>',
    ]
    instants = [from_s + (to_s - from_s) * n / STEPS for n in range(STEPS + 1)]
    for n, lane in enumerate(lanes):
        parts += _lane(lane, TOP + n * (LANE + GAP), instants, x, inner)
    bottom = TOP + len(lanes) * (LANE + GAP)
    for move in moves:
        if from_s <= move.at_s <= to_s:
            colour = "#222" if move.outcome == "think" else "#bbb"
            title = escape(f"{move.turn} {names.get(move.person, move.person)} {move.outcome}")
            parts.append(
                f'<path d="M{x(move.at_s):.1f} {bottom - 6}v14" stroke="{colour}"><title>{title}</title></path>'
            )
    parts.append(f'<text x="8" y="{bottom + 6}">turns</text>')
    parts.append(f'<text x="{LEFT}" y="{bottom + 26}" fill="#777">dark: thought about · light: heard</text>')
    return "\n".join([*parts, "</svg>", ""])


def sparks(moves: Sequence[Move], from_s: float, to_s: float, width: int = 60) -> list[str]:
    """Draw the same as lines of text. Pure."""
    marks = "▁▂▃▄▅▆▇█"
    lines = []
    for lane in _lanes(moves, {}):
        for curve in lane.curves:
            values = [curve.value(from_s + (to_s - from_s) * n / max(1, width - 1)) for n in range(width)]
            drawn = "".join(
                " " if value is None else marks[round((value - lane.low) / (lane.high - lane.low) * (len(marks) - 1))]
                for value in values
            )
            last = next((value for value in reversed(values) if value is not None), None)
            if last is not None:
                lines.append(f"{curve.name:<14.14} {drawn} {last:+.2f}")
    return lines


def _lanes(moves: Sequence[Move], names: Mapping[str, str]) -> list[Lane]:
    people = list(dict.fromkeys(edge["person"] for move in reversed(moves) for edge in move.edges))[:MOST_PEOPLE]
    drives = [Curve(drive, _drive(moves, n)) for n, drive in enumerate(DRIVES)]
    lanes = [
        Lane("mood", -1, 1, [Curve("valence", _number(moves, lambda one: one.valence))]),
        Lane(
            "arousal, energy",
            0,
            1,
            [
                Curve("arousal", _number(moves, lambda one: one.arousal)),
                Curve("energy", _number(moves, lambda one: one.energy)),
            ],
        ),
        Lane("needs", 0, 1, drives),
    ]
    return lanes + [
        Lane(
            names.get(person, person),
            -1,
            1,
            [Curve(axis, _edge(moves, person, axis)) for axis in ("warmth", "trust", "tension")],
        )
        for person in people
    ]


def _number(moves: Sequence[Move], pick: Callable[[Numbers], float]) -> Callable[[float], float | None]:
    def value(at_s: float) -> float | None:
        last = _last(moves, at_s)
        return pick(advance(last.numbers, at_s)) if last else None

    return value


def _drive(moves: Sequence[Move], place: int) -> Callable[[float], float | None]:
    return _number(moves, lambda one: one.drives[place])


def _edge(moves: Sequence[Move], person: str, axis: str) -> Callable[[float], float | None]:
    theirs = [(move.at_s, edge[axis]) for move in moves for edge in move.edges if edge["person"] == person]

    def value(at_s: float) -> float | None:
        return next((float(found) for since_s, found in reversed(theirs) if since_s <= at_s), None)

    return value


def _last(moves: Sequence[Move], at_s: float) -> Move | None:
    low, high = 0, len(moves)
    while low < high:
        middle = (low + high) // 2
        if moves[middle].at_s <= at_s:
            low = middle + 1
        else:
            high = middle
    return moves[low - 1] if low else None


def _lane(lane: Lane, top: int, instants: Sequence[float], x: Callable[[float], float], inner: int) -> list[str]:
    parts = [
        f'<rect x="{LEFT}" y="{top}" width="{inner}" height="{LANE}" fill="#fafafa" stroke="#ddd"/>',
        f'<text x="8" y="{top + 14}" font-weight="bold">{escape(lane.title[:20])}</text>',
    ]

    def y(value: float) -> float:
        return top + LANE - LANE * (value - lane.low) / (lane.high - lane.low)

    if lane.low < 0:
        parts.append(f'<path d="M{LEFT} {y(0):.1f}h{inner}" stroke="#ddd"/>')
    for n, curve in enumerate(lane.curves):
        colour = COLOURS[n % len(COLOURS)]
        points = [(x(at_s), curve.value(at_s)) for at_s in instants]
        path = " ".join(f"{across:.1f},{y(value):.1f}" for across, value in points if value is not None)
        if path:
            parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<text x="8" y="{top + 32 + 15 * n}" fill="{colour}">{escape(curve.name)}</text>')
    return parts


def _day(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).strftime("%Y-%m-%d %H:%M")
