"""`SqliteStore`: one file, one writer thread with group commit, one reader in the event loop's thread."""

from __future__ import annotations

import sqlite3
from abc import abstractmethod
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import ClassVar

from claudius.home import shipped
from claudius.memory.audit import AuditStore
from claudius.memory.codes import CodeStore
from claudius.memory.documents import DocumentStore
from claudius.memory.erasure import ErasureStore
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
from claudius.memory.sqlite.audit import SqliteAudit
from claudius.memory.sqlite.backups import back_up, backups_of
from claudius.memory.sqlite.codes import CodesInMemory
from claudius.memory.sqlite.connection import ONCE_KIB, Database, load_queries, open_reader, pragma
from claudius.memory.sqlite.core import Core, Writer
from claudius.memory.sqlite.documents import SqliteDocuments
from claudius.memory.sqlite.erasure import SqliteErasure
from claudius.memory.sqlite.inbox import SqliteInbox
from claudius.memory.sqlite.ledger import SqliteLedger
from claudius.memory.sqlite.moments import SqliteMoments
from claudius.memory.sqlite.outbox import SqliteOutbox
from claudius.memory.sqlite.people import SqlitePeople
from claudius.memory.sqlite.plans import SqlitePlans
from claudius.memory.sqlite.psyche import SqlitePsyche
from claudius.memory.sqlite.records import SqliteRecords
from claudius.memory.sqlite.rows import stamp
from claudius.memory.sqlite.schema import check_database, load_migrations, open_database, translate
from claudius.memory.sqlite.turns import SqliteTurns
from claudius.memory.sqlite.whispers import Claims, SqliteWhispers
from claudius.memory.store import Waiting
from claudius.memory.turns import TurnStore
from claudius.memory.whispers import WhisperStore

KEYS_KEPT = timedelta(days=30)
"""How long the key of a settled perception is known, so that a late redelivery is still a duplicate."""
LONGEST_WAIT = timedelta(hours=1)
"""A row that at a start would wait longer than this got its time from a wrong clock."""


class SqlStore:
    """A store in a database that speaks SQL: its topics, and its life. What differs by database is in a subclass."""

    writer: ClassVar[type[Writer]] = Writer
    """The writer class; a simulation uses one without a thread."""

    def __init__(self, core: Core) -> None:
        """Set up the topics; nothing is opened yet."""
        self.core = core
        claims = Claims()
        self.inbox: InboxStore = SqliteInbox(core)
        self.outbox: OutboxStore = SqliteOutbox(core)
        self.turns: TurnStore = SqliteTurns(core, claims)
        self._moments = SqliteMoments(core)
        self.moments: MomentStore = self._moments
        self.people: PeopleStore = SqlitePeople(core)
        self.documents: DocumentStore = SqliteDocuments(core)
        self.erasure: ErasureStore = SqliteErasure(core)
        self.ledger: LedgerStore = SqliteLedger(core)
        self.plans: PlanStore = SqlitePlans(core)
        self.whispers: WhisperStore = SqliteWhispers(core, claims)
        self.psyche: PsycheStore = SqlitePsyche(core)
        self.audit: AuditStore = SqliteAudit(core)
        self.codes: CodeStore = CodesInMemory()
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


class SqliteStore(SqlStore):
    """The store of the process that takes turns, or of an owner's edit beside it.

    `open` or `start` it, then `close` it.
    """

    def __init__(
        self,
        path: Path,
        *,
        backups: Path | None = None,
        memory: Path | None = None,
        linger_s: float = 0.2,
        relieve: Callable[[], bool] = lambda: False,
    ) -> None:
        """Set the file's path; nothing is opened yet.

        `backups` takes the copy before a migration (by default the home's); `memory` holds schema and queries (by
        default the shipped ones); a write that nobody waits for stays unwritten for `linger_s` seconds at most;
        `relieve` is called in the writer's thread when the disk is full, to free space, and returns whether it did.
        """
        super().__init__(Core(str(path), partial(open_reader, path, cache_kib=ONCE_KIB), partial(translate, path=path)))
        self._path = path
        self._backups = backups or backups_of(path)
        self._memory = memory or shipped("memory")
        self._linger_s = linger_s
        self._relieve = relieve

    async def open(self) -> None:
        """Open the file; create or migrate it if needed. Raises: StoreCorrupt, StoreTooNew, StoreFull, StoreError."""
        core, path = self.core, self._path
        if core.is_open:
            return
        queries = load_queries(self._memory / "queries")
        connection = open_database(path, load_migrations(self._memory / "schema"), self._backups)
        try:
            reader = Database(open_reader(path), queries)
        except sqlite3.Error as error:
            connection.close()
            raise translate(error, path) from error
        database = Database(connection, queries)
        core.open(self.writer(database, core.translate, self._linger_s, relieve=self._relieve), reader)

    async def check(self) -> None:
        """Check every page in a separate thread while the store is in use. Raises: StoreCorrupt."""
        await check_database(self._path)

    async def give_back(self, pages: int) -> int:
        return await self.core.write(lambda db: give_back(db, pages))

    def back_up(self, directory: Path, now: datetime) -> Path | None:
        try:
            return back_up(self._path, directory, now).path
        except sqlite3.Error as error:
            raise translate(error, self._path) from error

    def records(self) -> Records:
        return SqliteRecords(self._path, memory=self._memory)


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


def give_back(db: Database, pages: int) -> int:
    """Return up to `pages` free pages to the disk; return how many free pages the file still has."""
    for _ in range(pages):  # a statement without columns runs one step in Python, which is one page
        db.connection.execute("PRAGMA incremental_vacuum(1)")
    if not pragma(db.connection, "auto_vacuum"):
        return 0  # created without auto_vacuum: only a VACUUM takes its free pages away
    return int(pragma(db.connection, "freelist_count"))
