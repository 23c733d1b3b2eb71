"""The part of the store's door that the clock uses: when a job is due, its ring, how its work went."""

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
    """How often in a row its work failed."""


class Quiet(Struct, frozen=True, kw_only=True):
    """A conversation in which nobody has spoken for a while."""

    conversation: str
    audience: str
    last_at: datetime
    number: int
    """The last turn that answered somebody."""
    person: str
    """Whom it answered."""


class FirstWords(Struct, frozen=True, kw_only=True):
    """What the soul has said first, and to whom."""

    here: tuple[datetime, ...] = ()
    """When it did so in this conversation, oldest first."""
    everywhere: tuple[datetime, ...] = ()
    last_heard: datetime | None = None
    """When somebody last spoke here."""
    waiting: int = 0
    """Perceptions that wait here."""


class Jobs(Protocol):
    """What the clock keeps."""

    async def jobs(self) -> Mapping[str, Due]:
        """Return every job that was ever armed."""
        ...

    async def arm(self, due: Mapping[str, datetime], gone: Sequence[str] = ()) -> None:
        """Say when jobs ring next; `gone` are no jobs any more."""
        ...

    async def ring(self, job: str, conversation: str, due: datetime, next_due: datetime, now: datetime) -> bool:
        """Make a perception of a job that is due, and say when it rings next, in one transaction.

        False where nothing new is heard: its last ring still waits, or this very instant was heard before.
        """
        ...

    async def job_ended(self, job: str, started_at: datetime, ended_at: datetime, outcome: str, failures: int) -> None:
        """Note how a job's work went."""
        ...

    async def quiet(self, since: datetime, until: datetime, most: int) -> Sequence[Quiet]:
        """Return conversations whose last turn lies between two instants, latest first."""
        ...

    async def expired(self, before: datetime, most: int) -> Sequence[tuple[str, str]]:
        """Return conversations, with their audiences, all of whose entries are older than `before`."""
        ...

    async def impose(self, perception: Perception, name: str, kept: Mapping[str, Any], now: datetime) -> bool:
        """Have the soul perceive something of its own, behind all that waits there; False where it was heard before.

        What `name` keeps of that conversation is written with it.
        """
        ...

    async def first_words(self, conversation: str, since: datetime) -> FirstWords:
        """Return what was said first since then, and what is known of the conversation that is to be spoken in."""
        ...

    async def promised(self, person: str, audience: str) -> str:
        """Return what the soul said it would do for somebody, in this very audience; empty where nothing is open."""
        ...
