"""Select the search terms of a question by how rare they are among all episodes. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from math import log

MOST_TERMS = 16
COMMON = 0.20
"""A term that occurs in more than this share of all episodes is not searched for."""
SMALL = 20
"""With fewer episodes than this, every term counts."""
MOST_POSTINGS = 2500
"""Upper limit on postings looked up, however much is kept; the rarest term is always included."""


def rarest(frequencies: Mapping[str, int], total: int) -> tuple[str, ...]:
    """Return the terms worth searching for: at most sixteen, the rarest, none that is common. Pure."""
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
    """Return the BM25 weight of a term that occurs in `count` of `total` episodes. Pure."""
    return log(1.0 + (total - count + 0.5) / (count + 0.5)) if total >= count else 0.0
