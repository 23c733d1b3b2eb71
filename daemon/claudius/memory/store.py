"""The `Store` protocol: one store, one attribute per topic. `SqliteStore` implements it.

`tests/contracts/store` is its contract. `Store` is held by the one process that takes turns (async, one
writer); `Records` (`records.py`) reads beside it for commands. Every time is an aware UTC datetime. Every write is one
transaction.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from claudius.memory.audit import AuditStore
from claudius.memory.codes import CodeStore
from claudius.memory.documents import DocumentStore
from claudius.memory.inbox import InboxStore
from claudius.memory.leases import LeaseStore
from claudius.memory.ledger import LedgerStore
from claudius.memory.moments import MomentStore
from claudius.memory.outbox import OutboxStore
from claudius.memory.people import PeopleStore
from claudius.memory.plans import PlanStore
from claudius.memory.psyche import PsycheStore
from claudius.memory.records import Records
from claudius.memory.sql.erasure import ErasureStore
from claudius.memory.turns import TurnStore
from claudius.memory.whispers import WhisperStore


class Waiting(Struct, frozen=True, kw_only=True):
    """Unfinished work that a new boot finds."""

    conversations: tuple[str, ...]
    """Conversations with unfinished inbox or outbox rows, oldest first."""
    was_clean: bool
    """Whether the last process stopped cleanly."""


class Store(Protocol):
    """What the process that takes turns keeps and recalls, by topic."""

    inbox: InboxStore
    outbox: OutboxStore
    turns: TurnStore
    moments: MomentStore
    people: PeopleStore
    documents: DocumentStore
    erasure: ErasureStore
    ledger: LedgerStore
    plans: PlanStore
    whispers: WhisperStore
    psyche: PsycheStore
    audit: AuditStore
    codes: CodeStore
    leases: LeaseStore | None
    """None = no other process takes turns of this store."""

    async def start(self, boot: str, now: datetime) -> Waiting:
        """Open a new boot and report what is unfinished.

        Leases of earlier boots are void: `taken` inbox rows become pending, attempts kept; `taken` outbox rows become
        `unknown_after_send`.
        """
        ...

    async def check(self) -> None:
        """Check everything that is kept, while the store is in use. Raises: StoreCorrupt."""
        ...

    async def flush(self) -> None:
        """Return once everything queued so far is durable. Raises: StoreError."""
        ...

    async def close(self, *, clean: bool) -> None:
        """Write what is queued; `clean` records an orderly stop; close."""
        ...

    async def give_back(self, pages: int) -> int:
        """Return up to `pages` free pages of the database file to the disk; return how many free pages remain."""
        ...

    def back_up(self, directory: Path, now: datetime) -> Path | None:
        """Write a verified copy into `directory`; None if copies are not ours to make. Blocks.

        Raises: StoreError, OSError.
        """
        ...

    def records(self) -> Records:
        """Open what commands read, beside the process that takes turns; close it. Raises: StoreError."""
        ...
