"""Slow drift: stances taken over weeks shift the soul's traits slightly; no single phrase does. Pure.

Drift affects the laws and the tilt, never the system text. Source: the psyche design, section 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import asdict

from claudius.psyche.personality import HIGHEST, LOWEST, Kernel, kernel_hash
from claudius.psyche.state import DAY_S
from claudius.psyche_types import Drift

EACH_S = 7 * DAY_S
"""How often drift is recomputed."""
STEP, MOST = 0.01, 0.10
LEAST_EVENTS, LEAST_SPAN_S = 20, 14 * DAY_S
"""A trait moves only after at least this many stances of one sign that span at least this long."""
PULLS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "trust_baseline": (frozenset(("trust_more", "benefit_of_doubt")), frozenset(("trust_less", "withdraw_trust"))),
    "forgiveness_baseline": (frozenset(("forgive", "resolve", "reconcile")), frozenset(("resent",))),
    "conflict_avoidance": (frozenset(("deescalate",)), frozenset(("escalate",))),
    "dominance": (frozenset(("set_boundary",)), frozenset(("relax_boundary",))),
}
"""Trait → the stances that raise it, and those that lower it."""


def tinted(compiled: Kernel, drift: Drift) -> Kernel:
    """Return the kernel with drift applied, or unchanged if soul.md has changed since. Pure."""
    if not drift.by or drift.compiled != kernel_hash(compiled):
        return compiled
    moved = asdict(compiled)
    for trait, by in drift.by:
        if trait in moved:
            moved[trait] = max(LOWEST, min(HIGHEST, moved[trait] + max(-MOST, min(MOST, by))))
    return Kernel(**moved)


def looks_back(compiled: Kernel, drift: Drift, at_s: float) -> float | None:
    """Return the instant since which stances are to be counted; None if no recomputation is due. Pure."""
    if drift.compiled != kernel_hash(compiled):
        return at_s
    return drift.began_s if at_s - drift.looked_s >= EACH_S else None


def drift_on(compiled: Kernel, drift: Drift, stances: Sequence[tuple[float, str]], at_s: float) -> Drift:
    """Return the recomputed drift; `stances` since it began, oldest first, are pairs of instant and name. Pure."""
    name = kernel_hash(compiled)
    if drift.compiled != name:
        return Drift(compiled=name, began_s=at_s, looked_s=at_s)
    by, since_s = dict(drift.by), dict(drift.since_s)
    for trait, (up, down) in PULLS.items():
        mine = [(when_s, stance) for when_s, stance in stances if when_s > since_s.get(trait, drift.began_s)]
        rises = [when_s for when_s, stance in mine if stance in up]
        falls = [when_s for when_s, stance in mine if stance in down]
        way = _way(rises, falls)
        if way:
            by[trait] = max(-MOST, min(MOST, by.get(trait, 0.0) + STEP * way))
            since_s[trait] = at_s
    return Drift(
        compiled=name, began_s=drift.began_s, looked_s=at_s, by=tuple(by.items()), since_s=tuple(since_s.items())
    )


def _way(rises: Sequence[float], falls: Sequence[float]) -> int:
    side, way = (rises, 1) if len(rises) > len(falls) else (falls, -1)
    if len(rises) == len(falls) or len(side) < LEAST_EVENTS or side[-1] - side[0] < LEAST_SPAN_S:
        return 0
    return way
