"""The one thread that writes: everything queued goes into one transaction, and what fails fails alone."""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from msgspec import Struct

from claudius.errors import StoreError, StoreFull
from claudius.memory.sqlite.queries import Database

T = TypeVar("T")

log = logging.getLogger(__name__)


class _Job(Struct):
    run: Callable[[Database], Any]
    future: asyncio.Future[Any] | None
    about: Hashable = None
    is_last: bool = False
    is_alone: bool = False
    result: Any = None
    error: Exception | None = None


class Writer:
    """A writing life: group commits in one thread until stopped. Jobs run in the order they were given.

    Awaited jobs are committed at once, with everything that is queued by then: what is asked for in one step of the
    event loop goes to the thread together. The others ride along with the next awaited one, or are committed alone
    after `linger_s` seconds. The thread begins with the first job, and is woken for a commit only.
    """

    def __init__(
        self,
        database: Database,
        translate: Callable[[sqlite3.Error], StoreError],
        linger_s: float,
        *,
        relieve: Callable[[], bool] | None = None,
    ) -> None:
        """Own an open database from now on; `translate` makes our errors of SQLite's.

        Where a transaction finds no room and `relieve` makes some, it is written a second time.
        """
        self._database = database
        self._translate = translate
        self._linger_s = linger_s
        self._riding: list[_Job] = []
        """Jobs that nobody waits for, before the thread has them."""
        self._alone: asyncio.TimerHandle | None = None
        """Commits what is riding, should no awaited job come."""
        self._soon: asyncio.Handle | None = None
        """Commits what is riding, once everything that can run now has run."""
        self._jobs: queue.SimpleQueue[list[_Job]] = queue.SimpleQueue()
        self._relieve = relieve or (lambda: False)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._unwritten: Counter[Hashable] = Counter()
        """What the jobs that nobody waits for are about, until they are durable."""

    async def write(self, run: Callable[[Database], T], *, is_alone: bool = False) -> T:
        """Run a job and return its result once it is durable. Raises what the job raised, or StoreError.

        One that is to be `is_alone` runs in no transaction, after what was queued before it.
        """
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._put(_Job(run, future, is_alone=is_alone))
        return await future

    def later(self, run: Callable[[Database], Any], about: Hashable = None) -> None:
        """Queue a job that nobody waits for; its failure is logged. `about`: whose `flush` waits for it."""
        self._unwritten[about] += 1
        self._riding.append(_Job(run, None, about))
        if self._alone is None:
            self._alone = asyncio.get_running_loop().call_later(self._linger_s, self._hand_over)

    async def flush(self, *about: Hashable) -> bool:
        """Return once what was queued about these is durable; False, and at once, where nothing is."""
        if self._unwritten.keys().isdisjoint(about):
            return False
        await self.write(lambda _: None)
        return True

    async def stop(self, last: Callable[[Database], object] | None = None) -> None:
        """Commit what is queued and `last` after it, close the database, end the thread."""
        if self._thread is None and last is None:
            self._database.connection.close()
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._put(_Job(last or (lambda _: None), future, is_last=True))
        try:
            await future
        finally:
            if self._thread is not None:
                self._thread.join()

    def _put(self, job: _Job) -> None:
        """Queue a job for the thread: not by itself, for a thread that wakes takes the interpreter from the lanes."""
        self._riding.append(job)
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_soon(self._hand_over)

    def _hand_over(self) -> None:
        """Give the thread everything that is queued."""
        for handle in (self._alone, self._soon):
            if handle is not None:
                handle.cancel()
        self._alone = self._soon = None
        self._loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = threading.Thread(target=self._live, name="claudius-store-writer", daemon=True)
            self._thread.start()
        self._jobs.put(self._riding)
        self._riding = []

    def _live(self) -> None:
        is_last = False
        while not is_last:
            batch = self._jobs.get()
            while not self._jobs.empty():
                batch += self._jobs.get()
            is_last = any(job.is_last for job in batch)
            self._commit(batch)
            if is_last:
                self._database.connection.close()
            self._tell(batch)

    def _commit(self, batch: list[_Job]) -> None:
        """Make a batch durable in one transaction; what fails is undone, and told to the one who waits for it."""
        self._try([job for job in batch if not job.is_alone])
        for job in batch:
            if job.is_alone:
                self._run_alone(job)
        unwritten = [job for job in batch if isinstance(job.error, StoreFull) and not job.is_alone]
        if unwritten and self._relieve():
            for job in unwritten:
                job.error = None
            self._try(unwritten)

    def _try(self, batch: list[_Job]) -> None:
        connection = self._database.connection
        try:
            if not self._run_together(batch):
                connection.execute("BEGIN IMMEDIATE")
                for job in batch:
                    self._run_apart(job)
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            translated = self._translate(error)
            for job in batch:
                job.error = job.error or translated

    def _run_alone(self, job: _Job) -> None:
        """Run a job outside of any transaction."""
        try:
            job.result = job.run(self._database)
        except Exception as error:  # noqa: BLE001 - it belongs to the one who waits for the job
            job.error = self._translate(error) if isinstance(error, sqlite3.Error) else error

    def _run_together(self, batch: list[_Job]) -> bool:
        """Run and commit a batch as it is; where any job fails, undo it all and return False. The usual way."""
        connection = self._database.connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            for job in batch:
                job.result = job.run(self._database)
        except Exception:  # noqa: BLE001 - each job is run again, and its error is its own then
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            return False
        connection.execute("COMMIT")
        return True

    def _run_apart(self, job: _Job) -> None:
        """Run a job in a savepoint of its own, so that its failure is its own."""
        connection = self._database.connection
        connection.execute("SAVEPOINT job")
        try:
            job.result = job.run(self._database)
        except Exception as error:  # it belongs to the one who waits for the job
            if not connection.in_transaction:  # SQLite gave the whole transaction up: no job of the batch holds
                raise error if isinstance(error, sqlite3.Error) else sqlite3.OperationalError(str(error)) from error
            connection.execute("ROLLBACK TO job")
            job.error = self._translate(error) if isinstance(error, sqlite3.Error) else error
        connection.execute("RELEASE job")

    def _tell(self, batch: list[_Job]) -> None:
        assert self._loop is not None  # noqa: S101 - the one who gave the first job set it
        try:
            self._loop.call_soon_threadsafe(self._deliver, batch)
        except RuntimeError:  # the loop is closed: nobody waits any more, what is written is written
            log.debug("the event loop ended before the writer")

    def _deliver(self, batch: list[_Job]) -> None:
        for job in batch:
            if job.future is not None:
                _answer(job.future, job.result, job.error)
                continue
            self._unwritten[job.about] -= 1
            if not self._unwritten[job.about]:
                del self._unwritten[job.about]
            if job.error is not None:
                log.warning("a write that nobody waits for failed: %s", job.error)


def _answer(future: asyncio.Future[Any], result: object, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
