"""How the numbers moved: the turns that moved them, and between two turns the curves that the laws draw. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from claudius.psyche.arcs import DEAD, HALF_S
from claudius.psyche.personality import Kernel
from claudius.psyche.state import advance, advance_edge, drifted
from claudius.substrate import DRIVES, Edge, Numbers

MOST_PEOPLE, MOST_SUBJECTS = 4, 4
RELATION = ("warmth", "trust", "tension")
_MARKS = "▁▂▃▄▅▆▇█"

Value = Callable[[float], float | None]
"""A number at an instant; None = there is none then."""


class Move(NamedTuple):
    """One turn that moved the numbers."""

    turn: str
    at_s: float
    person: str
    outcome: str
    numbers: Numbers
    edges: tuple[Edge, ...] = ()
    arcs: Mapping[str, tuple[float, float]] | None = None
    """Each subject's instant and intensity after it; None = as they were."""
    kernel: Kernel = Kernel()


class Curve(NamedTuple):
    """A line of a lane: its name and its value at an instant."""

    name: str
    value: Value


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
            edges=tuple(Edge(**edge, at_s=row["inputs"]["at_s"]) for edge in row["edges"]),
            arcs=None if row["arcs"] is None else {one["arc"]: (one["at_s"], one["intensity"]) for one in row["arcs"]},
            kernel=Kernel(*row["traits"]),
        )
        for row in rows
    )


def lanes_of(moves: Sequence[Move], names: Mapping[str, str], since_s: float) -> list[Lane]:
    """Return the strips: mood, strength, needs, subjects, then the people met since, latest first. Pure.

    `names` gives the display name of a person and the label of a subject, by id.
    """
    lanes = [
        Lane("Mood", -1, 1, [Curve("valence", _number(moves, lambda one: one.valence))]),
        Lane(
            "Strength",
            0,
            1,
            [
                Curve("energy", _number(moves, lambda one: one.energy)),
                Curve("arousal", _number(moves, lambda one: one.arousal)),
            ],
        ),
        Lane("Needs", 0, 1, [Curve(drive, _drive(moves, n)) for n, drive in enumerate(DRIVES)]),
    ]
    subjects = _subjects(moves)
    if subjects:
        lanes.append(
            Lane("On its mind", 0, 1, [Curve(names.get(arc, "a subject"), _arc(moves, arc)) for arc in subjects])
        )
    latest = (edge.person for move in reversed(moves) if move.at_s >= since_s for edge in move.edges)
    people = list(dict.fromkeys(latest))[:MOST_PEOPLE]
    return lanes + [
        Lane(names.get(person) or person, -1, 1, [Curve(axis, _relation(moves, person, axis)) for axis in RELATION])
        for person in people
    ]


def sparks(moves: Sequence[Move], names: Mapping[str, str], from_s: float, to_s: float, width: int = 60) -> list[str]:
    """Draw the curves as lines of text. Pure."""
    lines: list[str] = []
    for lane in lanes_of(moves, names, from_s):
        drawn = [line for curve in lane.curves if (line := _spark(lane, curve, from_s, to_s, width))]
        lines += [lane.title, *drawn] if drawn else []
    return lines


def _spark(lane: Lane, curve: Curve, from_s: float, to_s: float, width: int) -> str:
    values = [curve.value(from_s + (to_s - from_s) * n / max(1, width - 1)) for n in range(width)]
    last = next((value for value in reversed(values) if value is not None), None)
    if last is None:
        return ""
    top = len(_MARKS) - 1
    marks = (
        " " if value is None else _MARKS[round((value - lane.low) / (lane.high - lane.low) * top)] for value in values
    )
    return f"  {curve.name:<14.14} {''.join(marks)} {last:+.2f}"


def _subjects(moves: Sequence[Move]) -> list[str]:
    """Return the hottest subjects of that time, by their ids, in the order of their coming."""
    hottest: dict[str, float] = {}
    for move in moves:
        for arc, (_, intensity) in (move.arcs or {}).items():
            hottest[arc] = max(intensity, hottest.get(arc, 0.0))
    chosen = sorted(hottest, key=lambda arc: -hottest[arc])[:MOST_SUBJECTS]
    return [arc for arc in hottest if arc in chosen]


def _number(moves: Sequence[Move], pick: Callable[[Numbers], float]) -> Value:
    instants = [move.at_s for move in moves]

    def value(at_s: float) -> float | None:
        place = bisect_right(instants, at_s)
        return pick(advance(moves[place - 1].numbers, at_s)) if place else None

    return value


def _drive(moves: Sequence[Move], place: int) -> Value:
    return _number(moves, lambda one: one.drives[place])


def _relation(moves: Sequence[Move], person: str, axis: str) -> Value:
    known = [(move.at_s, edge, move.kernel) for move in moves for edge in move.edges if edge.person == person]
    instants = [at_s for at_s, _, _ in known]

    def value(at_s: float) -> float | None:
        place = bisect_right(instants, at_s)
        if not place:
            return None
        _, edge, kernel = known[place - 1]
        return float(getattr(advance_edge(edge, at_s, kernel), axis))

    return value


def _arc(moves: Sequence[Move], arc: str) -> Value:
    known = [(move.at_s, move.arcs.get(arc)) for move in moves if move.arcs is not None]
    instants = [at_s for at_s, _ in known]

    def value(at_s: float) -> float | None:
        place = bisect_right(instants, at_s)
        found = known[place - 1][1] if place else None
        if found is None:
            return None
        since_s, intensity = found
        now = drifted(intensity, 0.0, HALF_S, at_s - since_s)
        return now if now >= DEAD else None

    return value
