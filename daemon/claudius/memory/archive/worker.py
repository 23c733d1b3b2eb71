"""The archive's life: round by round, off the reply path, whatever git says."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from claudius.errors import StoreError
from claudius.memory.archive import files
from claudius.memory.archive.changes import Batch, Ground, batch_of, write_files
from claudius.memory.archive.repository import Broken, GitBusy, GitFailed, GitSlow, Repository
from claudius.memory.archive.stream import blob_id, token
from claudius.memory.documents import Document, KeptFile, Unarchived
from claudius.memory.store import Store
from claudius.memory.user_models import read_state_document

T = TypeVar("T")

BATCH, ANEW_BATCH = 500, 50
"""Changes of one round; and where all of them are committed anew, beside turns that go on."""
HALF_WRITTEN_S = 2.0
FIRST_WAIT_S, LAST_WAIT_S = 1.0, 600.0
TIDY_AFTER = 500
"""Commits after which git is asked to pack its loose objects, if there are many."""
GATHER_S = 2.0
"""How long a wake waits for more to come, so that a lively hour costs a few rounds of git."""
LOOK_EVERY_S = 30.0
"""How often files are looked at for edits by hand, in seconds."""

log = logging.getLogger(__name__)


class Round(Struct, frozen=True):
    """What one round did."""

    committed: int = 0
    imported: int = 0
    held_back: tuple[str, ...] = ()
    """Files that somebody is writing just now, or that cannot be read as text: left for the next round."""


class Archive:
    """One worker. `run` it in a task, `wake` it after each commit, `close` it at the end."""

    def __init__(
        self,
        store: Store,
        memory: Path,
        backups: Path,
        *,
        clock: Callable[[], datetime],
        gather_s: float = GATHER_S,
    ) -> None:
        """Export what `store` holds to the directory `memory`; a repository beyond repair goes to `backups`.

        A round begins `gather_s` seconds after the first wake.
        """
        self._store = store
        self._repository = Repository(memory)
        self._root, self._backups, self._clock, self._gather_s = memory, backups, clock, gather_s
        self._began_s = time.time()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="claudius-archive")
        self._bell = asyncio.Event()
        self._is_prepared = self._is_known = self._is_aligned = False
        self._next_look_s = 0.0
        self._untidy = 0
        self._anew_batch = 0
        self._one_at_a_time = asyncio.Lock()
        self.next_look: datetime | None = None
        """When the next round begins, at the latest."""
        self.problem: str | None = None
        """Why the last round failed, in one line; None where it did not."""

    @property
    def _batch(self) -> int:
        return self._anew_batch or BATCH

    def wake(self) -> None:
        """Have it look soon: something may have been written."""
        self._bell.set()

    async def run(self) -> None:
        """Archive for ever: after each wake, and now and then for edits by hand; after a failure in 1 s … 10 min."""
        wait_s = FIRST_WAIT_S
        while True:
            self._bell.clear()
            try:
                done = await self.round()
            except (GitFailed, OSError, StoreError) as error:
                self._report(str(error))
                await asyncio.sleep(wait_s)
                wait_s = min(LAST_WAIT_S, wait_s * 2)
                continue
            self.problem, wait_s = None, FIRST_WAIT_S
            if done.committed < self._batch:
                await self._rest(HALF_WRITTEN_S if done.held_back else LOOK_EVERY_S)

    async def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def round(self) -> Round:
        """Take over what was edited by hand, then commit what git does not hold yet, oldest first, `BATCH` at most.

        Raises: GitFailed, OSError, StoreError.
        """
        if not Repository.is_possible():
            self._report("git is not installed: portraits are kept, but not exported")
            return Round()
        async with self._one_at_a_time:
            return await self._guarded()

    @asynccontextmanager
    async def halted(self) -> AsyncIterator[Callable[[Sequence[str]], Awaitable[None]]]:
        """Let no round begin for a block; give what builds the whole history anew, without these persons' folders.

        Raises: GitFailed, OSError, StoreError.
        """
        async with self._one_at_a_time:
            if Repository.is_possible():
                with suppress(GitFailed):
                    await self._guarded()  # what was edited by hand is taken over before it could be lost
            yield self._anew

    async def _anew(self, persons: Sequence[str]) -> None:
        await self._in_thread(lambda: self._repository.discard(persons))
        await self._store.archive_anew()
        self._is_prepared = self._is_known = self._is_aligned = False
        self._anew_batch = ANEW_BATCH
        try:
            while Repository.is_possible() and (await self._guarded()).committed == ANEW_BATCH:
                pass
        finally:
            self._anew_batch = 0

    def searched(self) -> dict[str, Any] | None:
        """Return what a search of every object needs; None where there is no history."""
        return self._repository.searched()

    async def _guarded(self) -> Round:
        try:
            return await self._round()
        except (GitBusy, GitSlow):
            raise
        except GitFailed:
            self._is_prepared = self._is_aligned = False  # looked at from the ground up next time
            raise

    async def _round(self) -> Round:
        if not self._is_prepared:
            await self._prepare()
        ground = await self._look()
        if not self._is_known:
            await self._recognise(ground)
        if not self._is_aligned:
            await self._in_thread(self._repository.align_index)
            self._is_aligned = True
        pending = [one for one in await self._store.unarchived(self._batch) if one.document not in ground.held_back]
        if pending:
            await self._commit(pending, ground)
        paths = ground.paths
        held_back = tuple(sorted(paths[document] for document in ground.held_back))
        return Round(len(pending), ground.imported, held_back)

    async def _prepare(self) -> None:
        try:
            await self._in_thread(lambda: self._repository.prepare(self._began_s))
        except Broken as error:
            stamp = f"{self._clock():%Y%m%dT%H%M%SZ}"
            kept = await self._in_thread(lambda: self._repository.set_aside(self._backups, stamp))
            log.warning("the archive could not be read (%s): it is kept as %s and built anew", error, kept)
            await self._in_thread(lambda: self._repository.prepare(self._began_s))
        if await self._in_thread(self._repository.head) is None and await self._store.archive_files():
            self._next_look_s = 0.0
            await self._look()  # what was edited by hand is taken over before all is written anew
            await self._store.archive_anew()
        if await self._in_thread(self._repository.is_detached):
            log.warning("no branch is checked out in %s: versions are committed onto what is", self._root)
        self._is_prepared = True

    async def _recognise(self, ground: Ground) -> None:
        """Record what the history holds already, though a crash kept us from recording it."""
        known = await self._in_thread(self._repository.known)
        made = {one.id: known[token(one)] for one in ground.pending if token(one) in known}
        await self._store.archived(made, ())
        self._is_known = len(ground.pending) < self._batch or not made

    async def _look(self) -> Ground:
        """Compare files with what we wrote last, and take over what a hand has changed.

        Now and then all of them; else those of the persons whose portraits are to be written.
        """
        pending = await self._store.unarchived(self._batch)
        is_due = time.monotonic() >= self._next_look_s
        persons = None if is_due else sorted({one.document.person for one in pending})
        kept = {file.document: file for file in await self._store.archive_files(persons)}
        ground = Ground(kept=kept, pending=pending)
        paths = ground.paths
        for document, found in (await self._in_thread(partial(self._read, paths))).items():
            before = kept.get(document)
            if found is None:
                await self._restore(before)
            elif before is None or found.sha256 != before.sha256:
                await self._take_over(
                    KeptFile(document=document, path=paths[document], sha256=found.sha256), found, ground
                )
        if is_due:
            self._next_look_s = time.monotonic() + (HALF_WRITTEN_S if ground.held_back else LOOK_EVERY_S)
        return ground

    def _read(self, paths: Mapping[Document, str]) -> dict[Document, files.Found | None]:
        now_s = time.time()
        return {document: files.read(self._root, path, now_s) for document, path in paths.items()}

    async def _restore(self, kept: KeptFile | None) -> None:
        text = await self._store.document(kept.document) if kept else None
        if kept and text is not None and files.digest(text.encode()) == kept.sha256:
            content, path = text.encode(), kept.path
            await self._in_thread(lambda: files.write(self._root, path, content))

    async def _take_over(self, file: KeptFile, found: files.Found, ground: Ground) -> None:
        document, text = file.document, _text(found)
        newest = await self._store.document(document)
        if text == newest or any(one.document == document and one.markdown == text for one in ground.pending):
            pass  # our own words, written just before a crash
        elif found.age_s < HALF_WRITTEN_S:
            ground.held_back.add(document)
            return
        elif text is None:
            log.warning("%s is not a text that can be taken over; it is left as it is", file.path)
            ground.held_back.add(document)
            return
        else:
            await self._by_hand(document, text)
            ground.imported += 1
        ground.kept[document] = file
        await self._store.archived({}, (file,))

    async def _by_hand(self, document: Document, text: str) -> None:
        now = self._clock()
        if document.person:
            await self._store.set_model(document.person, document.audience, text, "edited by hand", "owner", now)
            return
        for audience, key, value in read_state_document(text):
            await self._store.set_state(key, value, audience, now)

    async def _commit(self, pending: Sequence[Unarchived], ground: Ground) -> None:
        batch, made = await self._in_thread(lambda: self._write_and_commit(pending, ground))
        changed = [file for document, file in batch.kept.items() if ground.kept.get(document) != file]
        gone = [document for document in ground.kept if document not in batch.kept]
        await self._store.archived(made, changed, gone)
        self._untidy += len(made)
        if self._untidy >= TIDY_AFTER:
            self._untidy = 0
            await self._in_thread(self._repository.tidy)

    def _write_and_commit(self, pending: Sequence[Unarchived], ground: Ground) -> tuple[Batch, dict[int, str]]:
        """Make the commits, write the files, show the commits: cut off anywhere, the next round knows its own work."""
        batch = batch_of(self._root, pending, ground)
        parent = self._repository.head()
        made = self._repository.prepare_commits(batch.changes, parent)
        write_files(self._root, batch, ground)
        self._repository.publish(made[batch.changes[-1].revision], parent)
        self._refresh_index(batch.final)
        return batch, made

    def _refresh_index(self, final: Mapping[str, bytes | None]) -> None:
        blobs = {path: None if content is None else blob_id(content) for path, content in final.items()}
        try:
            self._repository.refresh_index(blobs)
        except GitFailed as error:
            log.info("the index is brought up to date with the next round: %s", error)
            self._is_aligned = False

    async def _rest(self, seconds: float) -> None:
        self.next_look = self._clock() + timedelta(seconds=seconds)
        try:
            async with asyncio.timeout(seconds):
                await self._bell.wait()
        except TimeoutError:
            return
        await asyncio.sleep(self._gather_s)

    def _report(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("not archived: %s", problem)
        self.problem = problem

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _text(found: files.Found) -> str | None:
    if len(found.content) > files.AT_MOST_BYTES:
        return None
    try:
        return found.content.decode()
    except UnicodeDecodeError:
        return None
