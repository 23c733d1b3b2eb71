"""A figure, its anchors and its verdict: ratios are judged, absolute values are only reported.

Source: the performance design, sections 1, 6 and 7.
"""

from __future__ import annotations

import random
import statistics
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

BOUNDS = Path(__file__).with_name("bounds.toml")
RESAMPLES = 2000
Sense = Literal["<=", ">="]
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Bound:
    """What a ratio has to reach: the floor that a release needs, and the aim. None means not set."""

    sense: Sense
    floor: float | None
    aim: float | None

    def verdict(self, interval: Interval) -> str:
        """Judge a ratio by its whole interval: `aim`, `ok`, `MISSED` or `unsure`. Pure."""
        if self.aim is not None and self._holds(interval, self.aim):
            return "aim"
        if self.floor is None or self._holds(interval, self.floor):
            return "ok"
        return "MISSED" if self._fails(interval, self.floor) else "unsure"

    def _holds(self, interval: Interval, limit: float) -> bool:
        low, high = interval
        return high <= limit if self.sense == "<=" else low >= limit

    def _fails(self, interval: Interval, limit: float) -> bool:
        low, high = interval
        return low > limit if self.sense == "<=" else high < limit

    def shown(self, limit: float | None) -> str:
        """Format one limit for a row."""
        return "–" if limit is None else f"{'≤' if self.sense == '<=' else '≥'} {limit:g}"


UNJUDGED = Bound("<=", None, None)
"""For what is only reported."""


@cache
def bounds() -> dict[str, dict[str, Any]]:
    """Return bounds.toml, by `ID.name`."""
    found = tomllib.loads(BOUNDS.read_text("utf-8"))
    return {f"{metric}.{name}": one for metric, those in found.items() for name, one in those.items()}


def bound(key: str) -> Bound:
    """Return the bound of this name. Raises: KeyError."""
    one = bounds()[key]
    floor, aim = [*one.get("at_most", one.get("at_least", ())), None][:2]
    return Bound("<=" if "at_most" in one else ">=", floor, aim)


def page() -> str:
    """Return the table of docs/design/performance.md."""
    made = []
    for key in bounds():
        limit = bound(key)
        cells = (key.partition(".")[0], bounds()[key]["says"], limit.shown(limit.floor), limit.shown(limit.aim))
        made.append(f"| {' | '.join(cells)} |")
    return "\n".join(["| | | floor | aim |", "|---|---|---|---|", *made, ""])


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """One anchor's samples from the same rounds, or the reason why there are none."""

    name: str
    bound: Bound
    samples: Sequence[float] = ()
    version: str = ""
    reason: str = ""
    """Why it did not run, or an empty text if it did."""
    compare: Literal["ratio", "points"] = "ratio"
    """`points`: the difference of two shares in hundredths, in place of their ratio."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """The samples of one metric, by round, with its anchors."""

    id: str
    name: str
    unit: str
    samples: Sequence[float]
    """Our samples, one a round."""
    beside: Sequence[Beside] = ()
    note: str = ""
    is_counted: bool = False
    """Tokens, bytes, calls: they are the same on any disk, so an unsteady disk does not prevent a judgement."""
    singles: Sequence[float] = field(default=(), repr=False)
    """The single measurements of the rounds, for the 99th percentile."""


def not_run(name: str, bound: Bound) -> Beside:
    """Return the anchor of a peer that was not given."""
    return Beside(name=name, bound=bound, reason=f"not run: give --peer {name}=PATH")


def within(key: str, count: int, more: float = 0.0) -> Beside:
    """Return a bound in a unit of its own as the anchor of `count` samples. `more`: what is granted beyond it."""
    limit = bound(key)
    assert limit.floor is not None, key
    most = limit.floor + more
    share = Bound(limit.sense, 1.0, None if limit.aim is None else (limit.aim + more) / most)
    return Beside(name=f"the bound, {most:g}", bound=share, samples=[most] * count)


def failed(name: str, bound: Bound, error: object) -> Beside:
    """Return the anchor of a peer that could not be run: reported as failed, not as slow."""
    line = next(iter(str(error).strip().splitlines()[-1:]), "")
    return Beside(name=name, bound=bound, reason=f"not run: {name} failed: {line[:200]}")


def ratio(ours: Sequence[float], anchor: Sequence[float], compare: str = "ratio") -> float:
    """Compare the medians. Pure."""
    mine, theirs = statistics.median(ours), statistics.median(anchor)
    if compare == "points":
        return 100 * (mine - theirs)
    return mine / theirs if theirs else float("inf")


def bootstrap(ours: Sequence[float], anchor: Sequence[float], compare: str = "ratio") -> Interval:
    """Return the 95 % bootstrap interval of the ratio, by paired resampling of rounds. Deterministic. Pure."""
    chance = random.Random(len(ours))
    rounds = min(len(ours), len(anchor))
    found = []
    for _ in range(RESAMPLES if rounds > 1 else 1):
        drawn = [chance.randrange(rounds) for _ in range(rounds)]
        found.append(ratio([ours[n] for n in drawn], [anchor[n] for n in drawn], compare))
    found.sort()
    return found[int(0.025 * (len(found) - 1))], found[int(0.975 * (len(found) - 1) + 0.5)]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values lie. Pure."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report: a figure beside one anchor."""

    figure: Figure
    beside: Beside | None
    ratio: float | None
    interval: Interval | None
    verdict: str

    def json(self) -> dict[str, Any]:
        """Return the anchor's part of the document."""
        beside = self.beside
        if beside is None:
            raise ValueError("a figure without an anchor has no row in the document")
        return {
            "name": beside.name,
            "version": beside.version,
            "median": statistics.median(beside.samples) if beside.samples else None,
            "ratio": self.ratio,
            "ci95": list(self.interval) if self.interval else None,
            "floor": beside.bound.floor,
            "aim": beside.bound.aim,
            "verdict": self.verdict,
        }


def rows(figure: Figure, unjudged: str = "") -> list[Row]:
    """Return a figure's rows. `unjudged`: why this run judges nothing; empty if it does. Pure."""
    if not figure.beside:
        return [Row(figure, None, None, None, "–")]
    found = []
    for beside in figure.beside:
        if beside.reason:
            found.append(Row(figure, beside, None, None, beside.reason))
            continue
        interval = bootstrap(figure.samples, beside.samples, beside.compare)
        verdict = f"not judged: {unjudged}" if unjudged else beside.bound.verdict(interval)
        found.append(Row(figure, beside, ratio(figure.samples, beside.samples, beside.compare), interval, verdict))
    return found


def document(figure: Figure, unjudged: str = "") -> dict[str, Any]:
    """Return a figure as stored in the JSON document. Pure."""
    singles = figure.singles or figure.samples
    return {
        "id": figure.id,
        "name": figure.name,
        "unit": figure.unit,
        "ours": {
            "median": statistics.median(figure.samples),
            "p99": percentile(singles, 0.99),
            "samples": list(figure.samples),
        },
        "anchors": [row.json() for row in rows(figure, unjudged) if row.beside],
        "note": figure.note,
    }
