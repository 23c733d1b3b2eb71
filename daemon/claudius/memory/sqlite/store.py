"""`SqliteStore`: one file, one writer thread with group commit, one reader in the event loop's thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from datetime import datetime
from functools import partial
from pathlib import Path

from claudius.home import shipped
from claudius.memory.codes import CodeStore
from claudius.memory.records import Records
from claudius.memory.sql.connection import Core, Database, load_queries
from claudius.memory.sqlite.backups import back_up, backups_of
from claudius.memory.sqlite.erasure import SqliteErasure
from claudius.memory.sqlite.file import ONCE_KIB, open_reader, pragma
from claudius.memory.sqlite.records import SqliteRecords
from claudius.memory.sqlite.schema import check_database, load_migrations, open_database, translate
from claudius.memory.store import Store


class SqliteStore(Store):
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
        self.erasure, self.codes = SqliteErasure(self.core, path), CodeStore()
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


def give_back(db: Database, pages: int) -> int:
    """Return up to `pages` free pages to the disk; return how many free pages the file still has."""
    for _ in range(pages):  # a statement without columns runs one step in Python, which is one page
        db.connection.execute("PRAGMA incremental_vacuum(1)")
    if not pragma(db.connection, "auto_vacuum"):
        return 0  # created without auto_vacuum: only a VACUUM takes its free pages away
    return int(pragma(db.connection, "freelist_count"))
