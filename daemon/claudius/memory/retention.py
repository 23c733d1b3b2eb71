"""The part of the `Store` protocol that deletes expired records and returns their space."""

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


class Retention(Protocol):
    """Records that are kept for a limited time."""

    async def expire_records(self, before: datetime, now: datetime, most: int) -> int:
        """Delete the records of at most `most` turns older than `before`; return how many."""
        ...

    async def old_traces(self, before: datetime, most: int) -> OldTraces:
        """Return at most `most` of the traces older than `before`."""
        ...

    async def fold_traces(self, last: Trace, edges: Sequence[Edge]) -> None:
        """Delete every trace up to `last`, and move the checkpoint after it, with `edges` as they were then."""
        ...

    async def give_back(self, pages: int) -> int:
        """Return up to `pages` free pages of the database file to the disk; return how many free pages remain."""
        ...
