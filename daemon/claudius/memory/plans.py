"""The part of the store's door that minds in motion use: plans, messages taken together, what subprocesses keep."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from claudius.intent import Schedule
from claudius.memory.pending import Pending
from claudius.perception import Perception
from claudius.recollection import Entry


class Plans(Protocol):
    """What mental processes keep and recall, beside their turns. A turn's own plans are written by its commit."""

    async def fire_due(self, now: datetime, grace_hours: float) -> tuple[str, ...]:
        """Make a perception of each plan whose time has come; return the conversations that hear one.

        What a person asked for is heard however late; a plan of the soul's own lapses past `grace_hours`, and so does
        one for a conversation that the soul has ended. Each plan is heard once, whoever else fires it.
        """
        ...

    async def next_due(self) -> datetime | None:
        """Return when the next plan is due; None where there is none."""
        ...

    async def plan(self, schedule: Schedule) -> None:
        """Keep a plan apart from any turn. One of the same conversation and key changes nothing while that waits."""
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
