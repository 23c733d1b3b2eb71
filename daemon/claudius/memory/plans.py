"""The part of the store's door that minds in motion use: plans, messages taken together, what subprocesses keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from claudius.intent import Schedule
from claudius.memory.pending import Pending
from claudius.perception import Perception
from claudius.recollection import Entry

MOST_OPEN = 100
"""Plans of one conversation that may wait at once; the next is refused."""

TOO_MANY = f"{MOST_OPEN} plans wait in this conversation already"
"""Why a plan was refused, in words for `claudius why`."""


class Plans(Protocol):
    """What mental processes keep and recall, beside their turns.

    A turn's own plans are written by its commit, which tells in the turn's `changes` how many were refused.
    """

    async def fire_due(self, now: datetime, grace_hours: float) -> tuple[str, ...]:
        """Make a perception of each plan whose time has come; return the conversations that hear one.

        What a person asked for is heard however late; a plan of the soul's own lapses past `grace_hours`, and so does
        one for a conversation that the soul has ended. Each plan is heard once, whoever else fires it.
        """
        ...

    async def next_due(self) -> datetime | None:
        """Return when the next plan is due; None where there is none."""
        ...

    async def open_plans(self, conversation: str) -> int:
        """Return how many plans of a conversation wait."""
        ...

    async def plan(self, schedule: Schedule) -> bool:
        """Keep a plan apart from any turn; False where `MOST_OPEN` wait there already.

        One of the same conversation and key changes nothing while that waits.
        """
        ...

    async def cancel(self, schedule_id: int) -> bool:
        """Take a plan back that was not heard yet; False where there is none."""
        ...

    async def unfinished(self, conversation: str, most: int = 32) -> Sequence[Pending]:
        """Return what no turn has committed yet, oldest first, without its calls."""
        ...

    async def join(self, pendings: Sequence[Pending]) -> Pending:
        """Bring perceptions of one conversation into one turn, the last one's, and return them so."""
        ...

    async def hold(self, pending: Pending) -> None:
        """Leave what a turn was to answer to the next one: it gave way to a newer perception."""
        ...

    async def kept(self, conversation: str, subprocess: str) -> Mapping[str, Any]:
        """Return what a subprocess keeps of a conversation."""
        ...

    async def search(self, perception: Perception, words: str, limit: int) -> Sequence[Entry]:
        """Return what was said lately and holds most of these words, best first, as far as it may be shown here."""
        ...
