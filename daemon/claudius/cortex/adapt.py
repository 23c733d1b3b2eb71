"""Adjust trigger thresholds, within bounds, by how often the cycles that they started were useful. Pure.

Source: the cortex design, section 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from claudius.ledger_types import Tuned

WINDOW, EVERY = 20, 10
LOW, HIGH = 0.3, 0.7
MINUTES, COUNTS = (10.0, 120.0), (3.0, 15.0)
TUNABLE = ("timer", "interaction_count")


def current(tuned: Sequence[Tuned], bases: Mapping[str, float]) -> dict[str, float]:
    """Return the threshold in force for each trigger; a trigger whose base setting changed starts over. Pure."""
    return {one.trigger: one.value for one in tuned if bases.get(one.trigger) == one.base}


def learn(before: Tuned | None, trigger: str, base: float, *, was_useful: bool) -> Tuned:
    """Count one cycle of a trigger; every tenth cycle may move its threshold. Pure."""
    if before is None or before.base != base:
        before = Tuned(trigger=trigger, base=base, value=base)
    useful = (*before.useful, was_useful)[-WINDOW:]
    after = replace(before, useful=useful, cycles=before.cycles + 1)
    if after.cycles % EVERY or trigger not in TUNABLE:
        return after
    share = sum(useful) / len(useful)
    return replace(after, value=_moved(trigger, after.value, share))


def _moved(trigger: str, value: float, share: float) -> float:
    if LOW <= share <= HIGH:
        return value
    low, high = MINUTES if trigger == "timer" else COUNTS
    if trigger == "timer":
        value = value * 1.25 if share < LOW else value * 0.8
    else:
        value = value + 1 if share < LOW else value - 1
    return max(low, min(high, value))
