"""`SqliteStore`: one file, one writer thread with group commit, one reader in the event loop's thread."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from claudius.errors import RowInvalid, StoreError, StoreFull, StoreReadOnly
from claudius.home import shipped
from claudius.memory.database import EVERY_NETWORK, Core, Database, Decoding, dump, load_queries, stamp
from claudius.memory.erasure import ErasureStore
from claudius.memory.inbox import accept_one, perception_of
from claudius.memory.records import Records
from claudius.memory.sqlite.backups import back_up, backups_of
from claudius.memory.sqlite.file import BUSY_MS, ONCE_KIB, open_reader, open_writer, pragma, siblings, vacuum
from claudius.memory.sqlite.schema import (
    check_database,
    check_identity,
    check_log,
    check_new,
    check_pages,
    empty_database,
    load_migrations,
    look,
    open_database,
    translate,
)
from claudius.memory.store import Store

QUICK_BYTES = 64 * 2**20
"""A smaller file is written anew at once: nobody waits long (`VACUUM` took a second on two cores)."""
WAITS_S = (0.0, 0.5, 1.0, 2.0, 4.0)
"""How long to wait before each attempt to empty the log, which somebody who reads prevents."""


class SqliteErasure(ErasureStore):
    """Everything that is kept of one person, found, removed, and overwritten: the whole file is written anew.

    `secure_delete` zeroes what is deleted, but not the copy of a row that SQLite once moved to another page.
    """

    def __init__(self, core: Core, path: Path) -> None:
        super().__init__(core)
        self._path = path

    @property
    def is_quick(self) -> bool:
        return self._path.stat().st_size < QUICK_BYTES

    async def overwrite(self) -> Sequence[str]:
        await self._core.flush()
        try:
            await self._core.alone(lambda db: vacuum(db.connection))
        except StoreError as error:  # no room, say, here or for SQLite's temporary file: nothing of the soul is harmed
            return (f"the file, which could not be written anew ({error.message})",)
        return await self.empty_log()

    async def empty_log(self) -> Sequence[str]:
        for wait_s in WAITS_S:
            await asyncio.sleep(wait_s)
            if not await self._core.alone(_is_busy):
                return ()
        return ("the write-ahead log, which somebody reads",)


def _is_busy(db: Database) -> bool:
    db.connection.execute("PRAGMA busy_timeout = 0")  # else every turn would wait for whoever reads
    try:
        return bool(db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()["busy"])
    finally:
        db.connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")


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
        self.erasure = SqliteErasure(self.core, path)
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

    def back_up(self, directory: Path, now: datetime) -> Path:
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


REASON = "answered before this copy was restored"


class HeardBefore(Struct, frozen=True):
    """What a database has heard."""

    answered: Sequence[str]
    """The keys of everything that it has answered."""
    waiting: Sequence[Mapping[str, Any]]
    """What it has accepted and not answered, oldest first."""
    said: Sequence[Mapping[str, Any]]
    """What it has decided to say to that, delivered or not."""
    calls: Sequence[Mapping[str, Any]] = ()
    """What it has begun to do for that with tools."""


def heard(db: Database) -> HeardBefore:
    """Return what a store has heard."""
    return HeardBefore(
        db.values("answered_here"),
        db.dicts("unanswered_here"),
        db.dicts("said_of_unanswered_here"),
        db.dicts("calls_of_unanswered_here"),
    )


def heard_in(path: Path) -> HeardBefore | None:
    """Return what a database file has heard; None if it is not there, or damaged.

    Checks all of it, so that no lost page or log hides an answer. Nothing else may have it open. Blocks.
    """
    if not path.exists():
        return None
    try:
        log = look(siblings(path)[0])
        with closing(open_writer(path)) as connection:
            check_log(connection, path, log)
            check_pages(connection, path)
            return heard(_database(connection))
    except (OSError, sqlite3.Error, UnicodeDecodeError, StoreError):
        return None


def acts_in(path: Path) -> Sequence[Mapping[str, Any]]:
    """Return the acts that a database's audit log holds, of any release, oldest first; none if it cannot be read."""
    try:
        with closing(open_reader(path)) as connection:
            rows = _database(connection).all("audit_shown", since="", most=-1)
    except (OSError, sqlite3.Error, UnicodeDecodeError):
        return []
    return [
        {name: row[name] for name in ("at", "who", "act", "target")} | {"from": row["origin"]} for row in rows[::-1]
    ]


async def take_over(core: Core, before: HeardBefore | None, now: datetime) -> None:
    """Settle in a copy what was answered `before`, and have wait there what waited; nobody knows (None): settle all.

    Nobody allows any more what the copy asked. Raises: StoreError.
    """

    def write(db: Database) -> None:
        for key in [row["key"] for row in db.all("unanswered_here")] if before is None else before.answered:
            db.run("said_elsewhere", key=key, reason=REASON, now=stamp(now))
            db.run("answered_elsewhere", key=key, reason=REASON, now=stamp(now))
        if before is None:
            db.run("mark_swept", adapter=EVERY_NETWORK, channel="", position=stamp(now), now=stamp(now))
        for row in before.waiting if before else ():
            with suppress(RowInvalid):  # damaged there, and no less here
                _wait(db, row)
        for row in before.said if before else ():
            db.run("said_as_elsewhere", **row)
        db.each("call_as_elsewhere", before.calls if before else ())
        db.run("calls_restored", now=stamp(now))

    await core.write(write)


def _wait(db: Database, row: Mapping[str, Any]) -> None:
    with Decoding("inbox", row["key"]):
        perception = perception_of(row["payload"])
    db.run("unsaid_here", key=row["key"], turn=row["turn"])
    db.run("unheard_here", key=row["key"])
    accept_one(db, perception, row["heard_at"])
    db.run("waits_as_elsewhere", **{name: row[name] for name in ("key", "owes", "turn", "stopped", "state")})


def _database(connection: sqlite3.Connection) -> Database:
    return Database(connection, load_queries(shipped("memory") / "queries"))


class SqliteRecords(Records):
    """A read-only view of one database file."""

    def __init__(self, path: Path, *, memory: Path | None = None, is_lasting: bool = False) -> None:
        """Open the database at `path`. Raises: StoreCorrupt, StoreTooNew, StoreError.

        `is_lasting`: it stays open while others write, so that it needs the log's index, which reading alone does not.
        """
        memory = memory or shipped("memory")
        opened = _open(path, load_migrations(memory / "schema"), is_lasting=is_lasting)
        database = Database(opened, load_queries(memory / "queries"))
        super().__init__(database, path.parent.parent / "memory", partial(translate, path=path))

    def marks(self, seen: int) -> tuple[int, str]:
        """Return the file's version, and an opaque mark of what the console shows; empty if the version is `seen`."""
        version = int(pragma(self._db.connection, "data_version"))
        if version == seen:
            return version, ""
        with self._snapshot() as db:
            return version, dump(db.dicts("what_changed")[0])

    def size(self) -> Mapping[str, Any]:
        """Return the size of the database, its number of turns and days, and whether free pages can be returned."""
        with self._snapshot() as db:
            page, pages, free, vacuum = (
                int(pragma(db.connection, name))
                for name in ("page_size", "page_count", "freelist_count", "auto_vacuum")
            )
            row = db.one("turns_span")
        turns, days = (row["turns"], row["days"] or 0.0) if row else (0, 0.0)
        return {"bytes": page * (pages - free), "turns": turns, "days": days, "gives_back": bool(vacuum)}

    def integrity(self) -> Sequence[str]:
        """Return the problems that `integrity_check` and `foreign_key_check` find; empty if the file is sound."""
        with self._snapshot() as db:
            found = [row["integrity_check"] for row in db.connection.execute("PRAGMA integrity_check(20)")]
            foreign = [
                f"{row['table']}: row without its {row['parent']}"
                for row in db.connection.execute("PRAGMA foreign_key_check")
            ]
        return [line for line in found if line != "ok"] + foreign


def _open(path: Path, migrations: Mapping[int, str], *, is_lasting: bool) -> sqlite3.Connection:
    if not path.exists():
        check_new(path)
        return empty_database(migrations)
    try:
        connection = open_reader(path) if is_lasting else _beside_or_alone(path)
        try:
            found = check_identity(connection, path, migrations)
        except BaseException:
            connection.close()
            raise
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise translate(error, path) from error
    if found < len(migrations):
        connection.close()
        raise StoreError(f"{path} is of an earlier version of Claudius: run `claudius chat`, which migrates it")
    return connection


def _beside_or_alone(path: Path) -> sqlite3.Connection:
    """Open the database to read it, also where nothing can be written and nobody has it open. Raises: sqlite3.Error."""
    try:
        return open_reader(path)
    except sqlite3.Error as error:
        if not isinstance(translate(error, path), (StoreFull, StoreReadOnly)):
            raise
        return open_reader(path, is_alone=True)
