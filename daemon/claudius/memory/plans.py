"""The part of the `Store` protocol for mental processes: plans, merged messages, and what subprocesses keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from claudius.intent import Schedule
from claudius.memory.pending import Pending
from claudius.perception import Perception
from claudius.recollection import Entry

MOST_OPEN = 100
"""Pending plans allowed in one conversation; further ones are refused."""

TOO_MANY = f"{MOST_OPEN} plans wait in this conversation already"
"""Why a plan was refused, as shown by `claudius why`."""


class Plans(Protocol):
    """What mental processes keep and recall outside their turns.

    A turn's own plans are written by its commit, which records in the turn's `changes` how many were refused.
    """

    async def fire_due(self, now: datetime, grace_hours: float) -> tuple[str, ...]:
        """Create a perception for each plan that is due; return the conversations affected.

        What a person asked for is heard however late. A plan of the soul's own lapses after `grace_hours`, and so does
        a plan for a conversation that the soul has ended. Each plan is heard exactly once, even with concurrent
        callers.
        """
        ...

    async def next_due(self) -> datetime | None:
        """Return when the next plan is due; None if there is none."""
        ...

    async def open_plans(self, conversation: str) -> int:
        """Return the number of pending plans of a conversation."""
        ...

    async def plan(self, schedule: Schedule) -> bool:
        """Store a plan outside any turn; False if `MOST_OPEN` are already pending there.

        A pending plan with the same conversation and key stays unchanged.
        """
        ...

    async def cancel(self, schedule_id: int) -> bool:
        """Cancel a plan that was not heard yet; False if there is none."""
        ...

    async def unfinished(self, conversation: str, most: int = 32) -> Sequence[Pending]:
        """Return what no turn has committed yet, oldest first, without its calls."""
        ...

    async def join(self, pendings: Sequence[Pending]) -> Pending:
        """Merge perceptions of one conversation into one turn, that of the last, and return it."""
        ...

    async def hold(self, pending: Pending) -> None:
        """Leave what a turn was to answer to the next turn, because it yielded to a newer perception."""
        ...

    async def kept(self, conversation: str, subprocess: str) -> Mapping[str, Any]:
        """Return what a subprocess keeps about a conversation."""
        ...

    async def search(self, perception: Perception, words: str, limit: int) -> Sequence[Entry]:
        """Return recent entries that contain most of these words and may be shown here, best first."""
        ...
