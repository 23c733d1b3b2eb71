"""The topic `store.psyche`: the traces of how turns moved the psyche, and the checkpoint that replaces old ones.

`rarest` and `rarity` choose and weigh the terms by which episodes are searched: the rarer among all episodes, the more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from math import log
from typing import Any, Protocol

from msgspec import Struct

from claudius.psyche_types import Edge, Numbers, Psyche


class Trace(Struct, frozen=True, kw_only=True):
    """How one turn moved the psyche's numbers, and their values after it."""

    id: int
    turn: str
    person: str
    inputs: Mapping[str, Any]
    after: Numbers
    traits: tuple[float, ...]


class OldTraces(Struct, frozen=True, kw_only=True):
    """Expiring traces, oldest first, and the state before the first of them."""

    before: Psyche
    """The checkpoint: numbers, and the edges of the persons that the traces name."""
    traces: Sequence[Trace]


class PsycheStore(Protocol):
    """The psyche outside a turn; in one it is read by `store.turns.recall` and moved by the commit."""

    async def standing(self) -> Psyche:
        """Return the numbers, subjects and intentions as they stand, without edges and facts, whoever they concern."""
        ...

    async def absent(self, since: datetime, until: datetime, most: int) -> Sequence[Edge]:
        """Return the edges to people who last moved one between two instants, latest first."""
        ...

    async def old_traces(self, before: datetime, most: int) -> OldTraces:
        """Return at most `most` of the traces older than `before`."""
        ...

    async def fold_traces(self, last: Trace, edges: Sequence[Edge]) -> None:
        """Delete every trace up to `last`, and move the checkpoint after it, with `edges` as they were then."""
        ...


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
