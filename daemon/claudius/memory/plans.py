"""The topic `store.plans`: what the soul intends to do later, and when the scheduler's jobs are due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import Struct

from claudius.intent import Schedule

MOST_OPEN = 100
"""Pending plans allowed in one conversation; further ones are refused."""

TOO_MANY = f"{MOST_OPEN} plans wait in this conversation already"
"""Why a plan was refused, as shown by `claudius why`."""


class Due(Struct, frozen=True):
    """When a job is due next."""

    next_due: datetime
    failures: int = 0
    """Number of consecutive failures."""


class Waiting(Struct, frozen=True):
    """A plan that waits."""

    id: int
    at: datetime
    what: str
    """What it is about, in its own words; empty if it keeps none apart from what the soul is told then."""

    @property
    def name(self) -> str:
        """A short name for it, unlikely to be another's in one conversation."""
        return f"p{self.id % 1000}"


class PlanStore(Protocol):
    """Plans, and the jobs of the scheduler.

    A turn's own plans are written by its commit, which records in the turn's `changes` how many were refused.
    """

    async def fire_due(self, now: datetime, grace_hours: float) -> tuple[str, ...]:
        """Create a perception for each plan that is due; return the conversations affected.

        What a person asked for is heard, no matter how late. A plan of the soul's own lapses after `grace_hours`, and
        so does a plan for a conversation that the soul has ended. Each plan is heard exactly once, even with
        concurrent callers.
        """
        ...

    async def next_due(self) -> datetime | None:
        """Return when the next plan is due; None if there is none."""
        ...

    async def open_plans(self, conversation: str) -> int:
        """Return the number of pending plans of a conversation."""
        ...

    async def waiting(self, place: str, person: str) -> tuple[Waiting, ...]:
        """Return what a person asked for that waits in the conversations that begin so, soonest first."""
        ...

    async def plan(self, schedule: Schedule) -> bool:
        """Store a plan outside any turn; False if `MOST_OPEN` are already pending there.

        A pending plan with the same conversation and key stays unchanged.
        """
        ...

    async def cancel(self, schedule_id: int) -> bool:
        """Cancel a plan that was not heard yet; False if there is none."""
        ...

    async def jobs(self) -> Mapping[str, Due]:
        """Return every job that was ever armed."""
        ...

    async def arm(self, due: Mapping[str, datetime], gone: Sequence[str] = ()) -> None:
        """Set when jobs are due next, and delete the jobs in `gone`."""
        ...

    async def ring(self, job: str, conversation: str, due: datetime, next_due: datetime, now: datetime) -> bool:
        """Create a perception for a due job and set when it is due next, in one transaction.

        Returns False if nothing new is heard, because its last run still waits or this instant was heard before.
        """
        ...

    async def job_ended(self, job: str, started_at: datetime, ended_at: datetime, outcome: str, failures: int) -> None:
        """Record the outcome of a job's work."""
        ...
