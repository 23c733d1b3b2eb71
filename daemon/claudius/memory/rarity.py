"""Which words of a question are worth looking for among all that was lived. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import log

MOST_TERMS = 16
COMMON = 0.20
"""A term that stands in more than this share of all episodes is not looked for."""
SMALL = 20
"""Of so few episodes every term counts."""
MOST_POSTINGS = 2500
"""So many places are looked at, however much is kept; the rarest term always counts."""


def rarest(frequencies: Mapping[str, int], total: int) -> tuple[str, ...]:
    """Return the terms worth looking for: at most sixteen, the rarest, none that is everywhere. Pure."""
    few = sorted(
        (count, term) for term, count in frequencies.items() if count and (count <= COMMON * total or total < SMALL)
    )
    kept: list[str] = []
    places = 0
    for count, term in few[:MOST_TERMS]:
        places += count
        if kept and places > MOST_POSTINGS:
            break
        kept.append(term)
    return tuple(kept)


def rarity(count: int, total: int) -> float:
    """Return what a term weighs that stands in so many of so many episodes, as BM25 has it. Pure."""
    return log(1.0 + (total - count + 0.5) / (count + 0.5)) if total >= count else 0.0
