"""`PostgresStore`: the store in PostgreSQL, with one writer thread and one reader in the event loop's thread."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from copy import copy
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import psycopg

import claudius
from claudius.home import shipped
from claudius.memory.leases import LeaseStore, LeaseTally, LeaseTimes
from claudius.memory.opening import StorePlace
from claudius.memory.people import Mode, PeopleStore
from claudius.memory.postgres import dumps
from claudius.memory.postgres.codes import PostgresCodes
from claudius.memory.postgres.connection import PostgresConnection, PostgresDatabase, load_texts, ours, translate
from claudius.memory.postgres.erasure import PostgresErasure
from claudius.memory.postgres.inbox import PostgresInbox
from claudius.memory.postgres.lane import LaneCore, LaneInbox, LaneOutbox, LaneTurns, LaneWhispers
from claudius.memory.postgres.leases import PostgresLeases
from claudius.memory.postgres.records import PostgresRecords
from claudius.memory.postgres.schema import known, prepare
from claudius.memory.records import Records
from claudius.memory.sql.connection import Core, Database, Writer
from claudius.memory.sql.recall import Shelf
from claudius.memory.store import Store, Waiting
from claudius.memory.turns import TurnStore


class PostgresPeople(PeopleStore):
    """People as every process sees them now: nothing of who may talk is kept in memory."""

    async def access(self, person: str, place: str) -> tuple[bool, Mode | None]:
        (row,) = self._core.look("access", person=person, place=place)
        return bool(row["paired"]), row["mode"]


class PostgresWriter(Writer):
    """A writer that counts what `/metrics` shows."""

    tally: LeaseTally | None = None

    def _try(self, batch: list[Any]) -> None:
        super()._try(batch)
        if self.tally:
            self.tally.batches += 1
            self.tally.jobs += len(batch)
            self.tally.lock_wait_s = ours(self._database).lock_wait_s


_ENDS = ("turns_given_back", "lanes_given_back", "roles_left", "worker_ends")
LEAST_SILENT_S = 5.0
"""A shorter silence inside a transaction is that of a busy machine."""


def _lives(pid: int) -> bool:
    """Return whether another process of this machine has this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return pid != os.getpid()


class PostgresStore(Store):
    """The store of a process that takes turns, or of an owner's edit beside it. `open` or `start`, then `close` it."""

    writer: ClassVar[type[Writer]] = PostgresWriter

    def __init__(  # noqa: PLR0913 - all but one have a default
        self,
        place: StorePlace,
        *,
        memory_files: Path = Path(),
        memory: Path | None = None,
        linger_s: float = 0.2,
        relieve: Callable[[], bool] = lambda: False,
        times: LeaseTimes | None = None,
        clock: Callable[[], float] = time.monotonic,
        roles: str = "all",
        home: str = "",
    ) -> None:
        """Set the place; nothing is opened yet.

        `memory_files` is the directory of the archive; `memory`, `linger_s` and `relieve` are those of `SqliteStore`;
        `clock` is monotonic, in seconds; `roles`: what it may do, `home`: the path of its home, for those who look.
        """
        name, times = place.shown, times or LeaseTimes()
        self._silent_s = max(LEAST_SILENT_S, times.lease_s / 4)
        self._connect = partial(PostgresConnection, place, self._silent_s)
        super().__init__(Core(name, self._connect, partial(translate, name=name)))
        self.inbox, self.people = PostgresInbox(self.core), PostgresPeople(self.core)
        self.codes = PostgresCodes(self.core)
        self.erasure = PostgresErasure(self.core)
        self.leases: LeaseStore | None = PostgresLeases(self, times, clock=clock, home=home)
        self._lease_s, self._home = times.lease_s, home
        self.place, self._roles, self._configuration = place, roles, times.configuration
        self._memory_files = memory_files
        self._memory = memory or shipped("memory")
        self.schema = known(self._memory)
        """The newest schema that this release knows."""
        self._linger_s = linger_s
        self._relieve = relieve

    async def open(self) -> None:
        """Connect; create the tables if there are none. Raises: StoreCorrupt, StoreTooNew, StoreError."""
        core = self.core
        if core.is_open:
            return
        queries = load_texts(self._memory)
        with ExitStack() as undo:
            try:
                writes = undo.enter_context(closing(self._connect()))
                prepare(writes, self._memory, core.name)
                reads = undo.enter_context(closing(self._connect()))
                writes.limit(2 * self._silent_s)  # it may have to wait for one that fell silent
                reads.limit(self._silent_s, in_loop=True)
            except psycopg.Error as error:
                raise core.translate(error) from error
            undo.pop_all()
        writer, reader = PostgresDatabase(writes, queries), PostgresDatabase(reads, queries)
        counting = self.writer(writer, core.translate, self._linger_s, relieve=self._relieve)
        if self.leases and isinstance(counting, PostgresWriter):
            counting.tally = self.leases.tally
        core.open(counting, reader)

    async def start(self, boot: str, now: datetime) -> Waiting:
        """Begin as one worker of perhaps many: what stands under a lease that is not past stays as it is."""
        await self.open()
        waiting = await super().start(boot, now)
        here = {"worker": boot, "host": socket.gethostname(), "home": self._home}

        def begin(db: Database) -> bool:
            set_up = {"schema": self.schema, "configuration": self._configuration, "wall_s": time.time()}
            set_up |= {"soul": self.leases.souls.in_force if self.leases else ""}
            set_up |= {"pid": os.getpid(), "version": claudius.__version__, "roles": self._roles}
            before = db.one("worker_before", worker=boot, host=here["host"])
            db.run("worker_begins", **here, **set_up)
            db.run("workers_before", **here, lease_s=self._lease_s)
            db.run("rates_past")
            db.run("early_past")
            db.run("rests_void", worker=boot, lease_s=self._lease_s)
            is_fine = bool(db.value("lanes_held")) or before is None or bool(before["clean"]) or _lives(before["pid"])
            if isinstance(self.leases, PostgresLeases):
                self.leases.read_clock(db)
                self.leases.see_server(db)
            return is_fine

        is_fine = await self.core.write(begin)
        return Waiting(conversations=waiting.conversations, was_clean=waiting.was_clean or is_fine)

    async def close(self, *, clean: bool) -> None:
        """Give every lane back, if `clean`, and close."""
        boot = self.core.boot
        try:
            if self.core.is_open and clean and boot:
                await self.core.write(lambda db: [db.run(one, worker=boot) for one in _ENDS])
                if self.leases:
                    await self.leases.tell({})
        finally:
            await super().close(clean=clean)

    @property
    def shelf(self) -> Shelf:
        """The past turns that this process has at hand."""
        turns = self.turns
        assert isinstance(turns, TurnStore)  # noqa: S101 - made above
        return turns.shelf

    def of_lane(self, core: LaneCore) -> Store:
        """Return this store as the holder of one lane writes to it."""
        lane = copy(self)
        turns = self.turns
        assert isinstance(turns, TurnStore)  # noqa: S101 - made above
        lane.core = core
        lane.inbox, lane.outbox = LaneInbox(core), LaneOutbox(core)
        lane.turns, lane.whispers = LaneTurns(core, turns), LaneWhispers(core, turns.claims)
        return lane

    async def check(self) -> None:
        """Read every row once in a separate thread. Raises: StoreError."""
        await asyncio.to_thread(self._read_all)

    async def give_back(self, pages: int) -> int:  # noqa: ARG002 - the protocol's
        return 0  # autovacuum is the server's

    def back_up(self, directory: Path, now: datetime) -> Path | None:
        is_there = shutil.which("pg_dump") is not None  # else the server's operator makes copies
        return dumps.back_up(self.place, directory, now, self._memory).path if is_there else None

    def records(self) -> Records:
        return PostgresRecords(self.place, self._memory_files, memory=self._memory)

    def _read_all(self) -> None:
        try:
            with closing(self._connect()) as connection:
                for table, *_ in PostgresDatabase(connection, {}).tables():
                    connection.execute(f'SELECT count(*) AS rows FROM "{table}"')  # noqa: S608 - names of our own schema
        except psycopg.Error as error:
            raise self.core.translate(error) from error
