"""How the numbers moved: the turns that moved them, and the curves that the laws give between two turns. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from html import escape
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import msgspec

from claudius.decoding import ready
from claudius.psyche.arcs import DEAD, HALF_S
from claudius.psyche.personality import Kernel
from claudius.psyche.state import DAY_S, DRIVE_BASE, HOUR_S, VALENCE_BASE, advance, advance_edge, drifted
from claudius.psyche_types import DRIVES, Edge, Numbers

MOST_PEOPLE, MOST_SUBJECTS = 4, 4
RELATION = ("warmth", "trust", "tension")
_MARKS = "▁▂▃▄▅▆▇█"

_K = TypeVar("_K")
_V = TypeVar("_V")
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


class Strip(NamedTuple):
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
            numbers=msgspec.convert(row["after"], ready(Numbers)),
            edges=tuple(Edge(**edge, at_s=row["inputs"]["at_s"]) for edge in row["edges"]),
            arcs=None if row["arcs"] is None else {one["arc"]: (one["at_s"], one["intensity"]) for one in row["arcs"]},
            kernel=Kernel(*row["traits"]),
        )
        for row in rows
    )


def lanes_of(moves: Sequence[Move], names: Mapping[str, str], since_s: float) -> list[Strip]:
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


def sparks(moves: Sequence[Move], names: Mapping[str, str], from_s: float, to_s: float, width: int = 60) -> list[str]:
    """Draw the curves as lines of text. Pure."""
    lines: list[str] = []
    for lane in lanes_of(moves, names, from_s):
        drawn = [line for curve in lane.curves if (line := _spark(lane, curve, from_s, to_s, width))]
        lines += [lane.title, *drawn] if drawn else []
    return lines


def _spark(lane: Strip, curve: Curve, from_s: float, to_s: float, width: int) -> str:
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


def _relation(moves: Sequence[Move], person: str, axis: str) -> Value:
    known = [(move.at_s, (edge, move.kernel)) for move in moves for edge in move.edges if edge.person == person]
    return _since(known, lambda last, at_s: float(getattr(advance_edge(last[0], at_s, last[1]), axis)))


def _arc(moves: Sequence[Move], arc: str) -> Value:
    def value_of(last: tuple[float, float] | None, at_s: float) -> float | None:
        now = drifted(last[1], 0.0, HALF_S, at_s - last[0]) if last else 0.0
        return now if now >= DEAD else None

    return _since([(move.at_s, move.arcs.get(arc)) for move in moves if move.arcs is not None], value_of)


WIDTH, LEFT, RIGHT, TOP, GAP = 1000, 132, 132, 74, 22
TALL, LOW = 104, 76
"""Heights of a lane: of the first, of the others."""
STEPS = 240
"""Points a curve is drawn with, besides those of its turns."""
LABEL = 13.0
"""The least distance between two labels at the end of a lane."""
COLOURS = ("#2a6fb0", "#d1653a", "#2f8f6b", "#8a5aa8", "#b8942e")
COLOUR_OF = {
    "valence": "#2a6fb0",
    "energy": "#2f8f6b",
    "arousal": "#d1653a",
    "warmth": "#d1653a",
    "trust": "#2a6fb0",
    "tension": "#8c2f39",
}
TICKS = {"think": ("#1f2933", 12), "react": ("#7b8794", 8), "ignore": ("#c3cad1", 5)}
"""Colour and height of a turn's tick, by what became of it."""
STYLE = (
    "text{font:11px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#52606d}"
    ".l{fill:#f5f7fa;fill-opacity:.7}polyline{fill:none;stroke-width:1.6;stroke-linejoin:round}"
    ".h{font-size:17px;font-weight:600;fill:#1f2933}.t{font-size:12px;font-weight:600;fill:#1f2933}.s{fill:#9aa5b1}"
)
SWING = 0.1
"""A turn that moves valence this far is marked."""
BASES = {"Mood": VALENCE_BASE, "Needs": DRIVE_BASE}
"""Where a lane's curves rest."""

GRID_S = (60.0, 300.0, 900.0, HOUR_S, 3 * HOUR_S, 6 * HOUR_S, DAY_S, 7 * DAY_S, 28 * DAY_S)
"""The distances that two lines of the time grid may have."""

Across = Callable[[float], float]


def plot(moves: Sequence[Move], names: Mapping[str, str], from_s: float, to_s: float, zone: tzinfo = UTC) -> str:
    """Draw mood, energy, needs, subjects and relations between two instants, a tick for every turn. Pure."""
    lanes = lanes_of(moves, names, from_s)
    tops = [TOP]
    for n, _ in enumerate(lanes):
        tops.append(tops[-1] + (TALL if n == 0 else LOW) + GAP)
    bottom = tops[-1] + 4
    height, inner = bottom + 74, WIDTH - LEFT - RIGHT

    def across(at_s: float) -> float:
        return LEFT + inner * (at_s - from_s) / max(1.0, to_s - from_s)

    inside = [move for move in moves if from_s <= move.at_s <= to_s]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">',
        f"<style>{STYLE}</style>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        '<text class="h" x="24" y="34">How it felt</text>',
        f'<text x="24" y="53">{_span(from_s, to_s, zone)} · {_counted(inside)}</text>',
        *_days(from_s, to_s, zone, across, bottom),
    ]
    # the curves are sampled evenly, and on both sides of every turn, where they jump
    even = {from_s + (to_s - from_s) * n / STEPS for n in range(STEPS + 1)}
    instants = sorted(even | {at_s for move in inside for at_s in (move.at_s - 0.001, move.at_s)})
    for n, lane in enumerate(lanes):
        parts += _lane(lane, tops[n], TALL if n == 0 else LOW, instants, across)
    parts += _swings(moves, names, from_s, across)
    parts += _turns(inside, names, across, bottom)
    return "\n".join([*parts, "</svg>", ""])


def _days(from_s: float, to_s: float, zone: tzinfo, across: Across, bottom: int) -> Iterator[str]:
    """Yield the grid of time: a line and a name for each day, or minutes, hours, weeks."""
    span_s = to_s - from_s
    step_s = next((step for step in GRID_S if span_s / step <= 10), span_s / 8)
    form = "%H:%M" if step_s < DAY_S else "%a %-d %b" if step_s == DAY_S else "%-d %b %Y"
    start = datetime.fromtimestamp(from_s, zone).replace(hour=0, minute=0, second=0, microsecond=0)
    at = start
    while at.timestamp() <= to_s:
        if at.timestamp() >= from_s:
            x = across(at.timestamp())
            yield f'<path d="M{x:.1f} {TOP - 8}V{bottom + 16}" stroke="#eef1f4"/>'
            yield f'<text class="s" x="{x:.1f}" y="{bottom + 34}" text-anchor="middle">{at.strftime(form)}</text>'
        at += timedelta(seconds=step_s)


def _lane(lane: Strip, top: int, height: int, instants: Sequence[float], across: Across) -> list[str]:
    def up(value: float) -> float:
        return top + height - height * (value - lane.low) / (lane.high - lane.low)

    right = WIDTH - RIGHT
    parts = [
        f'<rect class="l" x="{LEFT}" y="{top}" width="{right - LEFT}" height="{height}" rx="4"/>',
        f'<text class="t" x="24" y="{top + 14}">{escape(_short(lane.title, 16))}</text>',
        *(
            f'<text class="s" x="{LEFT - 8}" y="{up(value) + 4:.1f}" text-anchor="end">{value:g}</text>'
            for value in (lane.low, lane.high)
        ),
    ]
    rest = BASES.get(lane.title, 0.0 if lane.low < 0 else None)
    if rest is not None:
        parts.append(f'<path d="M{LEFT} {up(rest):.1f}H{right}" stroke="#cbd2d9" stroke-dasharray="2 3"/>')
    ends: list[tuple[float, str, str]] = []
    for n, curve in enumerate(lane.curves):
        colour = COLOUR_OF.get(curve.name, COLOURS[n % len(COLOURS)])
        last = None
        for run in _runs(curve, instants):
            points = " ".join(f"{across(at_s):.1f},{up(value):.1f}" for at_s, value in run)
            if len(lane.curves) == 1:
                first, end = across(run[0][0]), across(run[-1][0])
                ground = up(rest or 0.0)
                area = f"{first:.1f},{ground:.1f} {points} {end:.1f},{ground:.1f}"
                parts.append(f'<polygon points="{area}" fill="{colour}" fill-opacity="0.14"/>')
            parts.append(f'<polyline points="{points}" stroke="{colour}"/>')
            last = run[-1]
        if last and last[0] == instants[-1]:
            ends.append((up(last[1]), colour, f"{_short(curve.name, 14)} {last[1]:.2f}"))
    return parts + _labels(ends, right, top, top + height)


def _swings(moves: Sequence[Move], names: Mapping[str, str], from_s: float, across: Across) -> Iterator[str]:
    """Yield a dot on the mood for each turn that moved it far, and who caused it."""
    for before, move in pairwise(moves):
        swing = move.numbers.valence - advance(before.numbers, move.at_s).valence
        if move.at_s < from_s or abs(swing) < SWING:
            continue
        height = TOP + TALL * (1 - move.numbers.valence) / 2
        told = escape(f"{_who(move, names)}: {swing:+.2f}")
        dot = f'<circle cx="{across(move.at_s):.1f}" cy="{height:.1f}" r="3" fill="{COLOUR_OF["valence"]}">'
        yield f"{dot}<title>{told}</title></circle>"


def _runs(curve: Curve, instants: Sequence[float]) -> list[list[tuple[float, float]]]:
    runs: list[list[tuple[float, float]]] = [[]]
    for at_s in instants:
        value = curve.value(at_s)
        if value is not None:
            runs[-1].append((at_s, value))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if len(run) > 1]


def _labels(ends: Sequence[tuple[float, str, str]], right: int, top: int, bottom: int) -> list[str]:
    """Label each curve at its end, without overlaps."""
    ordered = sorted(ends)
    heights: list[float] = []
    for height, _, _ in ordered:
        heights.append(max(height, heights[-1] + LABEL if heights else float(top)))
    for n in range(len(heights) - 1, -1, -1):
        heights[n] = min(heights[n], (heights[n + 1] if n + 1 < len(heights) else bottom + LABEL) - LABEL)
    return [
        f'<text x="{right + 8}" y="{height + 4:.1f}" style="fill:{colour}">{escape(name)}</text>'
        for height, (_, colour, name) in zip(heights, ordered, strict=True)
    ]


def _turns(moves: Sequence[Move], names: Mapping[str, str], across: Across, bottom: int) -> list[str]:
    """Draw a tick for each turn, and say what the ticks mean."""
    parts = [f'<text class="t" x="24" y="{bottom + 12}">Turns</text>']
    for move in moves:
        colour, tall = TICKS.get(move.outcome, TICKS["ignore"])
        told = escape(f"{move.turn}: {_who(move, names)}, {move.outcome}, valence {move.numbers.valence:+.2f}")
        line = f'<path d="M{across(move.at_s):.1f} {bottom + 14}v-{tall}" stroke="{colour}" stroke-width="1.5">'
        parts.append(f"{line}<title>{told}</title></path>")
    x = LEFT
    for outcome, said in (("think", "thought about"), ("react", "answered without a thought"), ("ignore", "let be")):
        colour, tall = TICKS[outcome]
        parts.append(f'<path d="M{x} {bottom + 58}v-{tall}" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<text class="s" x="{x + 8}" y="{bottom + 58}">{said}</text>')
        x += 30 + 6 * len(said)
    return parts


def _counted(moves: Sequence[Move]) -> str:
    thoughts = sum(move.outcome == "think" for move in moves)
    return f"{len(moves)} turn{'s' * (len(moves) != 1)}, {thoughts} thought about"


def _who(move: Move, names: Mapping[str, str]) -> str:
    return names.get(move.person) or move.person or "nobody"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _span(from_s: float, to_s: float, zone: tzinfo) -> str:
    first, last = (datetime.fromtimestamp(at_s, zone).strftime("%-d %B %Y, %H:%M") for at_s in (from_s, to_s))
    return f"{first} to {last}"
