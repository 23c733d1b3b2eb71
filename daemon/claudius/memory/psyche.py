"""The topic `store.psyche`: the traces of how turns moved the psyche, and the checkpoint that replaces old ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
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
