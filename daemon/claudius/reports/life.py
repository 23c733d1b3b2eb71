"""How the soul felt over time, as numbers to draw: `claudius psyche plot --json`. The laws draw between two turns."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from math import floor, log10
from typing import Any

from claudius.home import Home
from claudius.memory.records import Records
from claudius.psyche.bands import mood_words, numbers_bands
from claudius.psyche.plot import BASES, Curve, Move, Strip, lanes_of, moves_of
from claudius.psyche.state import advance
from claudius.reports.opened import records
from claudius.runtime.process_resources import set_wall

MOST_PX = 2000
"""The widest picture."""
VALUE_DIGITS = 3
"""Of a curve's values: a tenth of what a strip can show."""
MOST_TOLD = 24
"""Turns whose words are told: those that moved the mood most."""


def clock_now() -> datetime:
    """Return the same clock time as the daemon's: `CLAUDIUS_CLOCK` sets where it starts."""
    return set_wall(os.environ)()


def moved(home: Home, days: float, now: datetime) -> tuple[tuple[Move, ...], dict[str, str], float, float]:
    """Return the turns that moved the numbers, everybody's name, and the span of `days` in seconds since 1970."""
    with records(home) as kept:
        return _moved(kept, now - timedelta(days=days), now)


def life(home: Home, begin: datetime, end: datetime, px: int = 800) -> dict[str, Any]:
    """Return the strips between two instants for a picture `px` wide: curves, turns, and trust as it was judged.

    A curve has at most four points a column of two pixels: the first, the last, the lowest and the highest.
    """
    with records(home) as kept:
        moves, names, from_s, to_s = _moved(kept, begin, end)
        lanes = lanes_of(moves, names, from_s)
        told = {row["turn"]: row for row in kept.turns_between(begin, end)}
        here = [move.person for move in moves if from_s <= move.at_s <= to_s]
        judged = {one: kept.peer(one) for one in dict.fromkeys(here) if one}
    columns = max(2, min(px, MOST_PX) // 2)
    inside = [move.at_s for move in moves if from_s <= move.at_s <= to_s]
    turns = list(_turns(moves, from_s, to_s))
    loudest = sorted(turns, key=lambda one: -abs(one["delta"]))[:MOST_TOLD]
    return {
        "from": _instant(from_s),
        "to": _instant(to_s),
        "zone": str(datetime.now().astimezone().tzinfo or "UTC"),
        "lanes": [_lane(lane, inside, from_s, to_s, columns) for lane in lanes],
        "turns": [one | _whose(told.get(one["turn"])) for one in turns],
        "most": [one["turn"] for one in loudest],
        "said": {one["turn"]: told[one["turn"]]["preview"] for one in loudest if one["turn"] in told},
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


def _moved(kept: Records, begin: datetime, end: datetime) -> tuple[tuple[Move, ...], dict[str, str], float, float]:
    rows = kept.psyche_moves(begin)
    names = {row["person"]: row["name"] for row in kept.people()}
    names |= {arc.arc: arc.label for arc in kept.psyche()[0].arcs}
    from_s, to_s = begin.timestamp(), end.timestamp()
    inside = [row for row in rows if row["inputs"]["at_s"] >= from_s]
    if inside and rows[0] is inside[0]:  # nothing changed before: the picture begins with the soul's first moment
        first_s = inside[0]["inputs"]["at_s"]
        from_s = max(from_s, first_s - max(60.0, (to_s - first_s) / 30))
    return moves_of(rows), names, from_s, to_s


def _turns(moves: Sequence[Move], from_s: float, to_s: float) -> Iterator[dict[str, Any]]:
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
            "mood": mood_words(numbers_bands(move.numbers)),
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


def _instant(at_s: float) -> str:
    return datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")
