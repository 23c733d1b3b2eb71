"""What is felt: state and psyche in words and numbers, and how they moved. The laws draw between two turns."""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from itertools import pairwise
from math import floor, log10
from typing import Any, NamedTuple, TypeVar

import msgspec

from claudius.decoding import ready
from claudius.home import Home
from claudius.memory.records import Records
from claudius.psyche import showing
from claudius.psyche.bands import mood_of
from claudius.psyche.change import DEAD, HALF_S
from claudius.psyche.personality import Kernel
from claudius.psyche.state import DRIVE_BASE, VALENCE_BASE, advance, advance_edge, drifted
from claudius.psyche_types import DRIVES, Edge, Numbers
from claudius.reports.opened import records
from claudius.runtime.process_resources import set_wall

MOST_PEOPLE, MOST_SUBJECTS = 4, 4
RELATION = ("warmth", "trust", "tension")
BASES = {"Mood": VALENCE_BASE, "Needs": DRIVE_BASE}
"""Where a lane's curves rest."""
MOST_PX = 2000
"""The widest picture."""
VALUE_DIGITS = 3
"""Of a curve's values: a tenth of what a strip can show."""
MOST_TOLD = 24
"""Turns whose words are told: those that moved the mood most."""

_K = TypeVar("_K")
_V = TypeVar("_V")
Value = Callable[[float], float | None]
"""A number at an instant; None = there is none then."""


def clock_now() -> datetime:
    """Return the same clock time as the daemon's: `CLAUDIUS_CLOCK` sets where it starts."""
    return set_wall(os.environ)()


def life(home: Home, begin: datetime, end: datetime, px: int = 800) -> dict[str, Any]:
    """Return the strips between two instants for a picture `px` wide: curves, turns, and trust as it was judged.

    A curve has at most four points a column of two pixels: the first, the last, the lowest and the highest.
    """
    with records(home) as kept:
        moves, names, from_s, to_s = _moved(kept, begin, end)
        lanes = lanes_of(moves, names, from_s)
        told = {row["turn"]: row for row in kept.turns_between(begin, end)}
        diary = kept.diaries_between(begin, end)
        here = [move.person for move in moves if from_s <= move.at_s <= to_s]
        judged = {one: kept.peer(one) for one in dict.fromkeys(here) if one}
    columns = max(2, min(px, MOST_PX) // 2)
    inside = [move.at_s for move in moves if from_s <= move.at_s <= to_s]
    turns = list(_turns(moves, from_s, to_s))
    loudest = sorted(turns, key=lambda one: -abs(one["delta"]))[:MOST_TOLD]
    return {
        "from": showing.instant(from_s),
        "to": showing.instant(to_s),
        "zone": str(datetime.now().astimezone().tzinfo or "UTC"),
        "lanes": [_lane(lane, inside, from_s, to_s, columns) for lane in lanes],
        "turns": [one | _whose(told.get(one["turn"])) for one in turns],
        "most": [one["turn"] for one in loudest],
        "said": {one["turn"]: told[one["turn"]]["preview"] for one in loudest if one["turn"] in told},
        "diary": diary,
        "names": {one: names.get(one, "") for one in judged},
        "trust": {
            one: [
                {"at": row["at"], "trust": row["trust"], "rationale": row["rationale"]} for row in found["assessments"]
            ]
            for one, found in judged.items()
            if found
        },
    }


def mood_shifts(home: Home, begin: datetime, end: datetime) -> dict[str, float]:
    """Return how far each turn between two instants moved the mood."""
    with records(home) as kept:
        moves, _, from_s, to_s = _moved(kept, begin, end)
    return {one["turn"]: one["delta"] for one in _turns(moves, from_s, to_s)}


def _moved(kept: Records, begin: datetime, end: datetime) -> tuple[tuple[MovedTurn, ...], dict[str, str], float, float]:
    rows = kept.psyche_moves(begin)
    names = {row["person"]: row["name"] for row in kept.people()}
    names |= {arc.arc: arc.label for arc in kept.psyche()[0].arcs}
    from_s, to_s = begin.timestamp(), end.timestamp()
    inside = [row for row in rows if row["inputs"]["at_s"] >= from_s]
    if inside and rows[0] is inside[0]:  # nothing changed before: the picture begins with the soul's first moment
        first_s = inside[0]["inputs"]["at_s"]
        from_s = max(from_s, first_s - max(60.0, (to_s - first_s) / 30))
    return moves_of(rows), names, from_s, to_s


def _turns(moves: Sequence[MovedTurn], from_s: float, to_s: float) -> Iterator[dict[str, Any]]:
    """Yield each turn of the span with how far it moved the mood."""
    for before, move in pairwise([None, *moves]):
        if move is None or not from_s <= move.at_s <= to_s:
            continue
        valence = move.numbers.valence
        delta = valence - advance(before.numbers, move.at_s).valence if before else 0.0
        yield {
            "turn": move.turn,
            "at": round(move.at_s, 3),
            "person": move.person,
            "outcome": move.outcome,
            "valence": round(valence, 3),
            "delta": round(delta, 3),
            "mood": mood_of(move.numbers),
        }


def _whose(row: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"conversation": row["conversation"], "process": row["process"]} if row else {}


def _lane(lane: Strip, inside: Sequence[float], from_s: float, to_s: float, columns: int) -> dict[str, Any]:
    curves = [{"name": curve.name, "runs": [*_runs(curve, inside, from_s, to_s, columns)]} for curve in lane.curves]
    rest = BASES.get(lane.title, 0.0 if lane.low < 0 else None)
    return {"title": lane.title, "low": lane.low, "high": lane.high, "rest": rest, "curves": curves}


def _runs(curve: Curve, inside: Sequence[float], from_s: float, to_s: float, columns: int) -> Iterator[list[Any]]:
    """Yield the unbroken stretches of a curve, each a list of [instant in seconds, value]."""
    run: list[list[float]] = []
    width = (to_s - from_s) / columns
    digits = -floor(log10(max(width, 1.0) / 10))  # of an instant, to a tenth of a column
    for n in range(columns + 1):
        start = from_s + n * width
        jumps = inside[bisect_left(inside, start) : bisect_left(inside, start + width)]
        # a curve jumps at a turn only, so a column is looked at where it begins and on both sides of each turn
        instants = [start, *(at_s for turn_s in jumps for at_s in (turn_s - 0.001, turn_s))]
        points = [(at_s, curve.value(at_s)) for at_s in instants if at_s <= to_s]
        known = [(at_s, value) for at_s, value in points if value is not None]
        if len(known) < len(points) and run:
            yield run
            run = []
        lowest, highest = (pick(known, key=lambda one: one[1], default=None) for pick in (min, max))
        chosen = {known[0], known[-1], lowest, highest} if known else set()
        for at_s, value in sorted(one for one in chosen if one):
            point = [round(at_s, digits), round(value, VALUE_DIGITS)]
            if run and point == run[-1]:
                continue
            if len(run) > 1 and n < columns and run[-1][1] == run[-2][1] == point[1]:
                run[-1] = point  # a flat stretch needs its two ends only
            else:
                run.append(point)
    if run:
        yield run


class MovedTurn(NamedTuple):
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


class Strip(NamedTuple):
    """One strip of the picture."""

    title: str
    low: float
    high: float
    curves: Sequence[Curve]


def moves_of(rows: Sequence[Mapping[str, Any]]) -> tuple[MovedTurn, ...]:
    """Read the rows of the trace, oldest first. Pure."""
    return tuple(
        MovedTurn(
            turn=row["turn"],
            at_s=row["inputs"]["at_s"],
            person=row["person"],
            outcome=row["inputs"]["outcome"],
            numbers=msgspec.convert(row["after"], ready(Numbers)),
            edges=tuple(Edge(**edge, at_s=row["inputs"]["at_s"]) for edge in row["edges"]),
            arcs=None if row["arcs"] is None else {one["arc"]: (one["at_s"], one["intensity"]) for one in row["arcs"]},
            kernel=Kernel(*row["traits"]),
        )
        for row in rows
    )


def lanes_of(moves: Sequence[MovedTurn], names: Mapping[str, str], since_s: float) -> list[Strip]:
    """Return the strips: mood, strength, needs, subjects, then the people met since, latest first. Pure.

    `names` gives the display name of a person and the label of a subject, by id.
    """
    at = cache(_since([(move.at_s, move.numbers) for move in moves], advance))  # every curve asks for the same instants
    lanes = [
        Strip("Mood", -1, 1, [Curve("valence", _number(at, lambda one: one.valence))]),
        Strip(
            "Strength",
            0,
            1,
            [
                Curve("energy", _number(at, lambda one: one.energy)),
                Curve("arousal", _number(at, lambda one: one.arousal)),
            ],
        ),
        Strip("Needs", 0, 1, [Curve(drive, _drive(at, n)) for n, drive in enumerate(DRIVES)]),
    ]
    subjects = _subjects(moves)
    if subjects:
        lanes.append(
            Strip("On its mind", 0, 1, [Curve(names.get(arc, "a subject"), _arc(moves, arc)) for arc in subjects])
        )
    latest = (edge.person for move in reversed(moves) if move.at_s >= since_s for edge in move.edges)
    people = list(dict.fromkeys(latest))[:MOST_PEOPLE]
    return lanes + [
        Strip(names.get(person) or person, -1, 1, [Curve(axis, _relation(moves, person, axis)) for axis in RELATION])
        for person in people
    ]


def _subjects(moves: Sequence[MovedTurn]) -> list[str]:
    """Return the hottest subjects of that time, by their ids, in order of first appearance."""
    hottest: dict[str, float] = {}
    for move in moves:
        for arc, (_, intensity) in (move.arcs or {}).items():
            hottest[arc] = max(intensity, hottest.get(arc, 0.0))
    chosen = sorted(hottest, key=lambda arc: -hottest[arc])[:MOST_SUBJECTS]
    return [arc for arc in hottest if arc in chosen]


def _since(
    known: Sequence[tuple[float, _K]], value_of: Callable[[_K, float], _V | None]
) -> Callable[[float], _V | None]:
    """Return the value at an instant, computed from what was known last; None before that."""
    instants = [at_s for at_s, _ in known]

    def value(at_s: float) -> _V | None:
        place = bisect_right(instants, at_s)
        return value_of(known[place - 1][1], at_s) if place else None

    return value


def _number(at: Callable[[float], Numbers | None], pick: Callable[[Numbers], float]) -> Value:
    def value(at_s: float) -> float | None:
        numbers = at(at_s)
        return None if numbers is None else pick(numbers)

    return value


def _drive(at: Callable[[float], Numbers | None], place: int) -> Value:
    return _number(at, lambda one: one.drives[place])


def _relation(moves: Sequence[MovedTurn], person: str, axis: str) -> Value:
    known = [(move.at_s, (edge, move.kernel)) for move in moves for edge in move.edges if edge.person == person]
    return _since(known, lambda last, at_s: float(getattr(advance_edge(last[0], at_s, last[1]), axis)))


def _arc(moves: Sequence[MovedTurn], arc: str) -> Value:
    def value_of(last: tuple[float, float] | None, at_s: float) -> float | None:
        now = drifted(last[1], 0.0, HALF_S, at_s - last[0]) if last else 0.0
        return now if now >= DEAD else None

    return _since([(move.at_s, move.arcs.get(arc)) for move in moves if move.arcs is not None], value_of)


def psyche(home: Home, now: datetime) -> Mapping[str, Any]:
    """Return the numbers as they are now, each with its words."""
    from claudius.psyche.personality import Kernel, kernel_hash
    from claudius.psyche.showing import shown

    with records(home) as kept:
        found, traits = kept.psyche()
    return shown(found, traits, kernel_hash(Kernel(*traits)) if traits else "", now.timestamp())
