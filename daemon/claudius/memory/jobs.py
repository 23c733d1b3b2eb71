"""The part of the `Store` protocol for the scheduler: when jobs are due, their rings, and the outcome of their work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct

from claudius.perception import Perception


class Due(Struct, frozen=True):
    """When a job rings next."""

    next_due: datetime
    failures: int = 0
    """Number of consecutive failures."""


class Quiet(Struct, frozen=True, kw_only=True):
    """A conversation in which nobody has spoken for a while."""

    conversation: str
    audience: str
    last_at: datetime
    number: int
    """The last turn that answered somebody."""
    person: str
    """The person it answered."""


class FirstWords(Struct, frozen=True, kw_only=True):
    """When the soul has spoken unprompted, and the state of the conversation that it wants to speak in."""

    here: tuple[datetime, ...] = ()
    """When it spoke unprompted in this conversation, oldest first."""
    everywhere: tuple[datetime, ...] = ()
    last_heard: datetime | None = None
    """When somebody last spoke here."""
    waiting: int = 0
    """Number of perceptions that wait here."""


class Jobs(Protocol):
    """What the scheduler keeps."""

    async def jobs(self) -> Mapping[str, Due]:
        """Return every job that was ever armed."""
        ...

    async def arm(self, due: Mapping[str, datetime], gone: Sequence[str] = ()) -> None:
        """Set when jobs ring next, and delete the jobs in `gone`."""
        ...

    async def ring(self, job: str, conversation: str, due: datetime, next_due: datetime, now: datetime) -> bool:
        """Create a perception for a due job and set its next ring, in one transaction.

        Returns False if nothing new is heard, because its last ring still waits or this instant was heard before.
        """
        ...

    async def job_ended(self, job: str, started_at: datetime, ended_at: datetime, outcome: str, failures: int) -> None:
        """Record the outcome of a job's work."""
        ...

    async def quiet(self, since: datetime, until: datetime, most: int) -> Sequence[Quiet]:
        """Return conversations whose last turn lies between two instants, latest first."""
        ...

    async def expired(self, before: datetime, most: int) -> Sequence[tuple[str, str]]:
        """Return conversations, with their audiences, all of whose entries are older than `before`."""
        ...

    async def impose(self, perception: Perception, name: str, kept: Mapping[str, Any], now: datetime) -> bool:
        """Queue a perception of the soul's own after everything that waits in its conversation.

        Returns False if it was heard before. `kept` is stored in the same transaction as what `name` keeps of that
        conversation.
        """
        ...

    async def first_words(self, conversation: str, since: datetime) -> FirstWords:
        """Return when the soul spoke unprompted since `since`, and the state of the conversation to speak in."""
        ...

    async def promised(self, person: str, audience: str) -> str:
        """Return what the soul promised a person in exactly this audience; empty if nothing is open."""
        ...
