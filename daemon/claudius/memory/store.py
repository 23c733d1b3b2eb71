"""`Store`: the topics of a store, one attribute each, and its life. Each database opens and copies it in its own way.

`tests/contracts/store` is its contract. A store is held by the one process that takes turns; `Records` (`records.py`)
reads beside it for commands. Every time is an aware UTC datetime. Every write is one transaction.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from claudius.memory.audit import AuditStore
from claudius.memory.calls import CallStore, PinStore
from claudius.memory.codes import CodeStore
from claudius.memory.database import Core, Database, Writer, stamp
from claudius.memory.documents import DocumentStore
from claudius.memory.erasure import ErasureStore
from claudius.memory.forgotten import FactStore
from claudius.memory.inbox import InboxStore
from claudius.memory.leases import LeaseStore
from claudius.memory.ledger import LedgerStore
from claudius.memory.moments import Embedder, MomentStore, Semantic
from claudius.memory.outbox import OutboxStore
from claudius.memory.people import PeopleStore
from claudius.memory.plans import PlanStore
from claudius.memory.psyche import PsycheStore
from claudius.memory.records import Records
from claudius.memory.turns import TurnStore
from claudius.memory.whispers import WhisperStore


class Unfinished(Struct, frozen=True, kw_only=True):
    """Unfinished work that a new boot finds."""

    conversations: tuple[str, ...]
    """Conversations with unfinished inbox or outbox rows, oldest first."""
    was_clean: bool
    """Whether the last process stopped cleanly."""


KEYS_KEPT = timedelta(days=30)
"""How long the key of a settled perception is known, so that a late redelivery is still a duplicate."""
LONGEST_WAIT = timedelta(hours=1)
"""A row that at a start would wait longer than this got its time from a wrong clock."""


class Store:
    """What the process that takes turns keeps and recalls, by topic."""

    erasure: ErasureStore
    writer: ClassVar[type[Writer]] = Writer
    """The writer class; a simulation uses one without a thread."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.inbox = InboxStore(core)
        self.outbox = OutboxStore(core)
        self.turns = TurnStore(core)
        self.moments = MomentStore(core)
        self.facts = FactStore(core, self.inbox.follow_unsaid)
        self.people = PeopleStore(core)
        self.documents = DocumentStore(core)
        self.ledger = LedgerStore(core)
        self.plans = PlanStore(core)
        self.calls = CallStore(core)
        self.whispers = WhisperStore(core)
        self.psyche = PsycheStore(core)
        self.audit = AuditStore(core)
        self.codes = CodeStore(core)
        self.pins = PinStore(core)
        self.leases = LeaseStore(self)

    @property
    def is_shared(self) -> bool:
        """Whether other processes may take turns of it, too."""
        return self.leases.is_shared

    @abstractmethod
    async def open(self) -> None:
        """Open the database; create or migrate it if needed.

        Begins no boot; the process that takes turns calls `start` for that. Raises: StoreError.
        """

    @abstractmethod
    async def check(self) -> None:
        """Check everything that is kept, while the store is in use. Raises: StoreCorrupt."""

    @abstractmethod
    async def give_back(self, pages: int) -> int:
        """Return up to `pages` free pages of the database file to the disk; return how many free pages remain."""

    @abstractmethod
    def back_up(self, directory: Path, now: datetime) -> Path:
        """Write a verified copy into `directory`. Blocks. Raises: StoreError, OSError."""

    @abstractmethod
    def records(self) -> Records:
        """Open what commands read, beside the process that takes turns; close it. Raises: StoreError."""

    def search_by_meaning(self, build: Callable[[], Embedder]) -> Semantic:
        """Search moments by meaning, too, from now on; return what gives them their vectors."""
        self.moments.semantic = Semantic(self.moments, build)
        return self.moments.semantic

    async def start(self, boot: str, now: datetime) -> Unfinished:
        """Open a new boot and report what is unfinished.

        Leases of earlier boots are void: `taken` inbox rows become pending, attempts kept; `taken` outbox rows become
        `unknown_after_send`.
        """
        await self.open()
        self.core.boot = boot
        conversations, was_clean = await self.core.write(lambda db: open_boot(db, boot, now))
        return Unfinished(conversations=conversations, was_clean=was_clean)

    async def flush(self) -> None:
        """Return once everything queued so far is durable. Raises: StoreError."""
        await self.core.flush()

    async def close(self, *, clean: bool) -> None:
        """Write what is queued; `clean` records an orderly stop; close."""
        core, boot = self.core, self.core.boot
        if not core.is_open:
            return
        await core.close().stop((lambda db: db.run("boot_clean", boot=boot)) if clean and boot else None)


def open_boot(db: Database, boot: str, now: datetime) -> tuple[tuple[str, ...], bool]:
    """Begin a new boot. Return the conversations with unfinished rows, and whether the last stop was clean."""
    last = db.one("boot_last")
    db.run("boot_open", boot=boot, now=stamp(now))
    db.run("inbox_void_leases", boot=boot)
    db.run("outbox_void_leases", boot=boot)
    for void_waits in ("inbox_void_waits", "outbox_void_waits"):
        db.run(void_waits, latest=stamp(now + LONGEST_WAIT))
    db.run("codes_of_earlier")
    db.run("inbox_prune", before=stamp(now - KEYS_KEPT))
    return tuple(row["conversation"] for row in db.all("waiting")), last is None or bool(last["clean"])
