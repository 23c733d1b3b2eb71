"""`SqlStore`: the topics of a store that speaks SQL, and its life. Each database opens and copies it in its own way."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar

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
from claudius.memory.semantic import Embedder, Semantic
from claudius.memory.sql.audit import SqlAudit
from claudius.memory.sql.connection import Database
from claudius.memory.sql.core import Core, Writer
from claudius.memory.sql.documents import SqlDocuments
from claudius.memory.sql.erasure import ErasureStore
from claudius.memory.sql.inbox import SqlInbox
from claudius.memory.sql.ledger import SqlLedger
from claudius.memory.sql.moments import SqlMoments
from claudius.memory.sql.outbox import SqlOutbox
from claudius.memory.sql.people import SqlPeople
from claudius.memory.sql.plans import SqlPlans
from claudius.memory.sql.psyche import SqlPsyche
from claudius.memory.sql.rows import stamp
from claudius.memory.sql.turns import SqlTurns
from claudius.memory.sql.whispers import Claims, SqlWhispers
from claudius.memory.store import Waiting
from claudius.memory.turns import TurnStore
from claudius.memory.whispers import WhisperStore

KEYS_KEPT = timedelta(days=30)
"""How long the key of a settled perception is known, so that a late redelivery is still a duplicate."""
LONGEST_WAIT = timedelta(hours=1)
"""A row that at a start would wait longer than this got its time from a wrong clock."""


class SqlStore:
    """A store in a database that speaks SQL: its topics, and its life. What differs by database is in a subclass."""

    erasure: ErasureStore
    codes: CodeStore
    writer: ClassVar[type[Writer]] = Writer
    """The writer class; a simulation uses one without a thread."""

    def __init__(self, core: Core) -> None:
        """Set up the topics; nothing is opened yet."""
        self.core = core
        claims = Claims()
        self.inbox: InboxStore = SqlInbox(core)
        self.outbox: OutboxStore = SqlOutbox(core)
        self.turns: TurnStore = SqlTurns(core, claims)
        self._moments = SqlMoments(core)
        self.moments: MomentStore = self._moments
        self.people: PeopleStore = SqlPeople(core)
        self.documents: DocumentStore = SqlDocuments(core)
        self.ledger: LedgerStore = SqlLedger(core)
        self.plans: PlanStore = SqlPlans(core)
        self.whispers: WhisperStore = SqlWhispers(core, claims)
        self.psyche: PsycheStore = SqlPsyche(core)
        self.audit: AuditStore = SqlAudit(core)
        self.leases: LeaseStore | None = None

    @abstractmethod
    async def open(self) -> None:
        """Open the database; create or migrate it if needed.

        Begins no boot; the process that takes turns calls `start` for that. Raises: StoreError.
        """

    @abstractmethod
    async def check(self) -> None: ...

    @abstractmethod
    async def give_back(self, pages: int) -> int: ...

    @abstractmethod
    def back_up(self, directory: Path, now: datetime) -> Path | None: ...

    @abstractmethod
    def records(self) -> Records: ...

    def search_by_meaning(self, build: Callable[[], Embedder]) -> Semantic:
        """Search moments by meaning, too, from now on; return what gives them their vectors."""
        self._moments.semantic = Semantic(self._moments, build)
        return self._moments.semantic

    async def start(self, boot: str, now: datetime) -> Waiting:
        await self.open()
        self.core.boot = boot
        conversations, was_clean = await self.core.write(lambda db: open_boot(db, boot, now))
        return Waiting(conversations=conversations, was_clean=was_clean)

    async def flush(self) -> None:
        await self.core.flush()

    async def close(self, *, clean: bool) -> None:
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
    db.run("inbox_prune", before=stamp(now - KEYS_KEPT))
    return tuple(row["conversation"] for row in db.all("waiting")), last is None or bool(last["clean"])
