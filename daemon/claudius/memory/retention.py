"""The part of the store's door that lets go what is kept for a time, and gives its room back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct

from claudius.psyche_types import Edge, Numbers, Psyche


class Trace(Struct, frozen=True, kw_only=True):
    """How one turn moved the numbers, and what they stood at after it."""

    id: int
    turn: str
    person: str
    inputs: Mapping[str, Any]
    after: Numbers
    traits: tuple[float, ...]


class OldTraces(Struct, frozen=True, kw_only=True):
    """Traces that are to go, oldest first, and what stood before the first of them."""

    before: Psyche
    """The checkpoint: numbers, and the edges of the persons that the traces name."""
    traces: Sequence[Trace]


class Retention(Protocol):
    """What is kept for a time."""

    async def expire_records(self, before: datetime, now: datetime, most: int) -> int:
        """Let go the records of so many turns older than `before`; return how many went."""
        ...

    async def old_traces(self, before: datetime, most: int) -> OldTraces:
        """Return so many of the traces older than `before`."""
        ...

    async def fold_traces(self, last: Trace, edges: Sequence[Edge]) -> None:
        """Let go every trace up to `last`; the checkpoint then stands after it, with `edges` as they were then."""
        ...

    async def give_back(self, pages: int) -> int:
        """Give so many free pages of the database file back to the disk; return how many free pages it still has."""
        ...
