"""The farming pattern: many small requests, then one far larger than all before. It starts a reflection, no more. Pure.

Source: the cortex design, section 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

LEAST_BEFORE, WINDOW = 4, 20
"""Earlier bursts there must be, and how many of the last are looked at."""
LEAST_SCOPE = 60
OVER_MEDIAN, OVER_MAX = 5, 3
TRUSTS = 5


def is_farming(scopes: Sequence[int], trusts: Sequence[int] = ()) -> bool:
    """Tell whether the last of these bursts stands out of the earlier ones. `trusts`: oldest first. Pure."""
    *before, newest = scopes or (0,)
    before = before[-WINDOW:]
    if len(before) < LEAST_BEFORE or newest < LEAST_SCOPE:
        return False
    recent = trusts[-TRUSTS:]
    if recent and recent[-1] < recent[0]:
        return False
    return newest >= OVER_MEDIAN * median(before) and newest >= OVER_MAX * max(before)


def first_farming(scopes: Sequence[int], trusts: Sequence[int] = ()) -> int | None:
    """Return the index of the first burst that fires; None where none does. Pure."""
    return next((at for at in range(len(scopes)) if is_farming(scopes[: at + 1], trusts)), None)
