"""The archive worker: commits revisions to git in rounds, apart from the reply path.

`runtime` runs it as a task. When git fails, it retries with growing pauses; turns are not affected.
"""

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
from claudius.foreign import plain_message
from claudius.memory.archive import files
from claudius.memory.archive.changes import (
    ArchivedRevision,
    Batch,
    RoundStart,
    as_written,
    batch_of,
    token,
    write_files,
)
from claudius.memory.archive.remote import Remote, RemoteFailed
from claudius.memory.archive.repository import Broken, GitBusy, GitFailed, GitSlow, Repository
from claudius.memory.documents import (
    SOUL_STATE,
    USERS,
    Document,
    KeptFile,
    Unarchived,
    is_ours,
    read_state_document,
    short_id,
)
from claudius.memory.erasure import Beyond
from claudius.memory.store import Store

T = TypeVar("T")

BATCH, ANEW_BATCH = 500, 50
"""Changes in one round; the second is for a full rebuild, which runs while turns go on."""
FIRST_WAIT_S, LAST_WAIT_S = 1.0, 600.0
TIDY_AFTER = 500
"""Commits after which git is asked to pack its loose objects, if there are many."""
GATHER_S = 2.0
"""How long a wake waits for more changes, so that a busy hour costs few git rounds."""
REMOTE = "a copy of the history in git on another machine"
HALF_WRITTEN_S = 2.0
LOOK_EVERY_S = 30.0
"""How often files are checked for edits by hand, in seconds."""

log = logging.getLogger(__name__)


class Round(Struct, frozen=True):
    """What one round did."""

    committed: int = 0
    imported: int = 0
    held_back: tuple[str, ...] = ()
    """Files that are being written just now or cannot be read as text; they are left to the next round."""
    is_more: bool = False
    """Whether more changes already wait for git."""


class Archive:
    """One archive worker. `run` it in a task, `wake` it after each commit, `close` it at the end."""

    def __init__(
        self,
        store: Store,
        memory: Path,
        backups: Path,
        *,
        clock: Callable[[], datetime],
        gather_s: float = GATHER_S,
        repository: Repository | None = None,
        remote: Remote | None = None,
        holds: Callable[[], bool] = lambda: True,
    ) -> None:
        """Export what `store` holds to the directory `memory`; a repository beyond repair is moved to `backups`.

        A round begins `gather_s` seconds after the first wake. `remote` gets a copy of the history. Where several
        processes share the store, one at a time archives: `holds` returns whether it is this one. A test may pass a
        `repository` of its own.
        """
        self._store = store
        self._repository = repository or Repository(memory)
        self._root, self._backups, self._clock, self._gather_s = memory, backups, clock, gather_s
        self._began_s = time.time()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="claudius-archive")
        self._bell = asyncio.Event()
        self._remote, self._holds = remote, holds
        self._is_prepared = self._is_known = self._is_aligned = False
        self._is_begun = not store.is_shared
        """Whether this home's history is known to be that of the store: another process may have archived since."""
        self._last: tuple[int, str] | None = None
        """The last change that this process has committed, and its commit."""
        self._next_look_s = 0.0
        self._untidy = 0
        self._is_anew = self._is_halted = False
        self._one_at_a_time = asyncio.Lock()
        self.next_look: datetime | None = None
        """When the next round begins at the latest."""
        self.problem: str | None = None
        """Why the last round failed, in one line; None if it succeeded."""
        self.rests = False
        """Whether nothing is archived here, because another process erases somebody."""

    @property
    def _batch(self) -> int:
        return ANEW_BATCH if self._is_anew else BATCH

    def wake(self) -> None:
        """Make the worker look soon, because something may have been written."""
        self._bell.set()

    @property
    def remote_problem(self) -> str | None:
        """What keeps commits from the remote, in one line; None if nothing does."""
        return self._remote.problem if self._remote and self._holds() else None

    def begin(self) -> None:
        """Believe nothing of an earlier round: another process may have archived since."""
        self._is_prepared = False

    async def run(self) -> None:
        """Archive until cancelled: after each wake, and periodically for edits by hand.

        After a failure it waits 1 s, growing to 10 min.
        """
        self.begin()
        wait_s = FIRST_WAIT_S
        while True:
            self._bell.clear()
            try:
                done = await self.round()
            except (GitFailed, OSError, StoreError) as error:
                self._report(plain_message(error))
                await asyncio.sleep(wait_s)
                wait_s = min(LAST_WAIT_S, wait_s * 2)
                continue
            self.problem, wait_s = None, FIRST_WAIT_S
            if not done.is_more:
                remote_s = self._remote.waits_s if self._remote else LOOK_EVERY_S
                await self._rest(HALF_WRITTEN_S if done.held_back else min(LOOK_EVERY_S, max(1.0, remote_s)))

    async def close(self) -> None:
        """Let the thread end after the job that it is running; jobs that wait are dropped, an exchange is cut off."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._remote:
            self._repository.interrupt()

    async def round(self) -> Round:
        """Take over edits by hand, then commit up to `BATCH` changes that git lacks, oldest first.

        Raises: GitFailed, OSError, StoreError.
        """
        if not self._repository.is_possible():
            self._report("git is not installed: portraits are kept, but not exported")
            return Round()
        if self.rests or self._has_nothing():
            return Round()
        async with self._one_at_a_time:
            done = await self._guarded()
            if self._holds() and self._store.documents.history() != self._repository.history:
                log.info("the history is written anew, without what was deleted or edited")
                await self._anew(())
            return done

    def _has_nothing(self) -> bool:
        """Return whether there is nothing to archive yet: git is begun with the first portrait or state."""
        if self._is_prepared or self._remote or self._store.is_shared or any(self._root.glob("*")):
            return False
        return not (self._store.documents.archive_files() or self._store.documents.unarchived(1))

    @asynccontextmanager
    async def halted(self) -> AsyncIterator[Callable[[Sequence[str]], Awaitable[None]]]:
        """Stop rounds for the duration of the block; other processes rest meanwhile, whoever has the role.

        Yields a function that rebuilds the whole history, without the folders of the persons given to it. Raises:
        GitFailed, OSError, StoreError.
        """
        async with self._one_at_a_time:
            self._is_halted = True
            try:
                if self._store.is_shared:
                    self.begin()
                if self._repository.is_possible():
                    with suppress(GitFailed):
                        await self._guarded()  # edits by hand are taken over before they could be lost
                yield self._anew
            finally:
                self._is_halted = False

    async def _anew(self, persons: Sequence[str]) -> None:
        await self._discard(persons)
        await self._store.documents.archive_anew()
        self._is_prepared = self._is_known = self._is_aligned = False
        self._is_anew = True
        try:
            while self._repository.is_possible() and (await self._guarded()).is_more:
                pass
        finally:
            self._is_anew = False
        if self._remote and self._repository.is_possible():
            self._remote.begin()
            await self._guarded()

    async def _discard(self, persons: Sequence[str]) -> None:
        """Delete the history, these persons' files, and every file as we wrote it: it may hold what is erased."""
        ours = self._store.documents.archive_files()

        def discard() -> None:
            self._repository.discard(persons)
            for file in ours:
                found = files.read(self._root, file.path, time.time())
                if found and found.sha256 == file.sha256:
                    (self._root / file.path).unlink(missing_ok=True)

        await self._in_thread(discard)

    async def let_go(self, persons: Sequence[str]) -> None:
        """Delete the history in this home, and these persons' files, because another process erases them.

        Until `rests` is taken back nothing is archived here.
        """
        self.rests = True
        self._repository.interrupt()
        async with self._one_at_a_time:
            await self._discard(persons)
            self._repository.is_interrupted = self._is_prepared = self._is_known = self._is_aligned = False

    def beyond(self) -> list[Beyond]:
        """Return what a receipt of an erasure must name of the remote."""
        if self._remote is None:
            return []
        if self._remote.is_in_step and not self._remote.problem:
            of = "clones of {}, and what its host keeps of commits that were rewritten there"
            return [Beyond(of.format(REMOTE), of.format(self._remote.shown))]
        why = self._remote.problem or "it was not asked"
        of = "the history at {}, which could not be rewritten yet; that is tried again"
        return [Beyond(of.format(REMOTE), f"{of.format(self._remote.shown)} ({why})")]

    def searched(self) -> dict[str, Any] | None:
        """Return what a search of every git object needs; None if there is no history."""
        return self._repository.searched()

    def _may_record(self) -> bool:
        """Return whether nobody else archives now: this process has the role, or it erases somebody and all rest."""
        return self._is_halted or self._holds()

    async def _guarded(self) -> Round:
        try:
            return await self._round()
        except (GitBusy, GitSlow):
            raise
        except GitFailed:
            self._is_prepared = self._is_aligned = False  # prepare and align again next time
            raise

    async def _round(self) -> Round:
        if not self._is_prepared:
            await self._prepare()
        if self._is_anew:
            return await self._commit_all()
        await self._take_over()
        done = await self._commit_all()
        if self._remote and not self._remote.waits_s and self._may_record():
            await self._mirror(self._remote)
        return done

    async def _mirror(self, remote: Remote) -> None:
        """Copy the history to the remote. A failure is noted: what is archived at home goes on."""
        recorded = {} if remote.is_in_step else await self._store.documents.archived_commits()
        try:
            await self._in_thread(lambda: remote.mirror(self._repository, recorded))
        except RemoteFailed as error:
            if remote.failed(error):
                log.warning("not copied to the remote: %s", error)

    async def _commit_all(self) -> Round:
        first = ground = await self._look()
        if not self._is_aligned:
            await self._in_thread(self._repository.align_index)
            self._is_aligned = True
        if first.imported:
            ground = await self._look()  # what was taken over is committed with the rest
        # Commit only what this look has read: a later version's file was compared with nothing.
        pending = [one for one in ground.pending if one.document not in ground.held_back]
        committed = await self._commit(pending, ground) if pending else 0
        held_back = first.held_back | ground.held_back
        return Round(
            committed,
            first.imported,
            tuple(sorted(held_back.values())),
            is_more=committed > 0 and (committed < len(pending) or len(ground.pending) == self._batch),
        )

    async def _prepare(self) -> None:
        try:
            await self._in_thread(lambda: self._repository.prepare(self._began_s))
        except Broken as error:
            stamp = f"{self._clock():%Y%m%dT%H%M%SZ}"
            kept = await self._in_thread(lambda: self._repository.set_aside(self._backups, stamp))
            log.warning("the archive could not be read (%s): it is kept as %s and rebuilt", plain_message(error), kept)
            await self._in_thread(lambda: self._repository.prepare(self._began_s))
        written = any(file.sha256 for file in self._store.documents.archive_files())
        is_new = not self._store.is_shared and await self._in_thread(self._repository.head) is None
        if is_new or self._is_anew:
            history = self._store.documents.history()  # what goes from now on may be in what is written
            await self._in_thread(lambda: self._repository.begin_history(history))
        if is_new and written:
            self._next_look_s = 0.0
            await self._look()  # edits by hand are taken over before everything is rewritten
            await self._store.documents.archive_anew()
        if await self._in_thread(self._repository.is_detached):
            log.warning("no branch is checked out in %s: versions are committed onto what is", self._root)
        self._is_begun, self._last = not self._store.is_shared, None
        if self._remote:
            self._remote.begin()
        self._is_prepared = True

    async def _take_over(self) -> None:
        """Where several homes share the store, make sure that this one's history is the one that goes on.

        It is if it holds the last change that any of them committed; else it is built anew.
        """
        if self._last and self._store.documents.commit_of(self._last[0]) != self._last[1]:
            self._is_begun = not self._store.is_shared  # erased and built anew by another process
        if self._is_begun:
            return
        mine = await self._in_thread(lambda: self._repository.line(self._repository.head()))
        last = self._store.documents.last_commit()
        commits = [one.commit for one in mine]
        since = mine[: commits.index(last)] if last in commits else mine
        pending = {token(one) for one in self._store.documents.unarchived(self._batch)}
        if (last and last not in commits) or any(one.token not in ("", *pending) for one in since):
            log.warning("the history in %s is not that of what is kept: it is built anew", self._root)
            await self._clear()
            await self._in_thread(self._repository.drop)
            await self._store.documents.archive_anew()
            await self._in_thread(lambda: self._repository.prepare(0.0))
        self._is_begun, self._last, self._is_known = True, None, False

    async def _clear(self) -> None:
        """Remove the files of documents, whatever their person was called, and take over what people wrote there.

        Raises: GitBusy if one is just being written.
        """
        known = [*self._store.documents.known(), *(one.document for one in self._store.documents.archive_files())]
        by_name = {(short_id(one.person), short_id(one.audience)): one for one in known}
        for path in [self._root / SOUL_STATE, *(self._root / USERS).glob("*/*.md")]:
            name = path.relative_to(self._root).as_posix()
            found = await self._in_thread(partial(files.read, self._root, name, time.time()))
            text = text_of(found) if found else None
            if found is None or text is None or not is_ours(name):
                continue
            ids = path.parent.name.rpartition("-")[2], path.stem.rpartition("-")[2]
            document = Document() if name == SOUL_STATE else by_name.get(ids)
            is_ours_still = partial(self._repository.holds, name, found.content)
            if document and not (
                self._store.documents.has_written(document, text, ever=True) or await self._in_thread(is_ours_still)
            ):
                if found.age_s < HALF_WRITTEN_S:
                    raise GitBusy(f"{name} is just being written")
                await self._by_hand(document, text)
            await self._in_thread(partial(files.remove, self._root, name))

    async def _look(self) -> RoundStart:
        """Compare files with what we wrote last, and take over edits by hand.

        Compares all files from time to time, otherwise only those of persons whose portraits are about to be written.
        """
        pending = self._store.documents.unarchived(self._batch)
        is_due = time.monotonic() >= self._next_look_s
        persons = None if is_due else sorted({one.document.person for one in pending})
        kept = {file.document: file for file in self._store.documents.archive_files(persons)}
        ground = RoundStart(kept=kept, pending=pending)
        new: dict[Document, KeptFile] = {}
        for document, path, found in await self._in_thread(partial(self._read, ground.places)):
            before = kept.get(document)
            is_recorded = before is not None and before.path == path
            if found is None and before is None:  # a record precedes its file, or a crash hides the file
                new[document] = KeptFile(document=document, path=path, sha256="")
            elif found is None:
                await self._restore(before if is_recorded else None)
            elif before is None or not is_recorded or found.sha256 != before.sha256:
                await self._compare(document, path, found, ground)
        if new:
            ground.kept |= new
            await self._store.documents.archived({}, tuple(new.values()))
        if is_due:
            self._next_look_s = time.monotonic() + (HALF_WRITTEN_S if ground.held_back else LOOK_EVERY_S)
        return ground

    def _read(self, places: Sequence[tuple[Document, str]]) -> list[tuple[Document, str, files.FoundFile | None]]:
        now_s = time.time()
        return [(document, path, files.read(self._root, path, now_s)) for document, path in places]

    async def _restore(self, kept: KeptFile | None) -> None:
        text = self._store.documents.document(kept.document) if kept else None
        if kept and text is not None and files.digest(text.encode()) == kept.sha256:
            content, path = text.encode(), kept.path
            await self._in_thread(lambda: files.write(self._root, path, content))

    async def _compare(self, document: Document, path: str, found: files.FoundFile, ground: RoundStart) -> None:
        """Take over a text that a person wrote, unless it is our own text that a crash left unrecorded.

        If the path has no record, any version may be ours; if it has one, an old version was put back by hand.
        """
        before, text = ground.kept.get(document), text_of(found)
        is_recorded = before is not None and before.path == path
        if text is None or not self._store.documents.has_written(document, text, ever=not is_recorded):
            if text is None and found.age_s >= HALF_WRITTEN_S:
                log.warning("%s is not a text that can be taken over; it is left as it is", path)
            is_gone = not is_recorded and self._store.documents.document(document) is None  # linked or erased meanwhile
            if text is None or is_gone or found.age_s < HALF_WRITTEN_S:
                ground.held_back[document] = path
                return
            await self._by_hand(document, text)
            ground.imported += 1
        ground.ours[path] = found.sha256
        if before is None or is_recorded:
            ground.kept[document] = file = KeptFile(document=document, path=path, sha256=found.sha256)
            await self._store.documents.archived({}, (file,))

    async def _by_hand(self, document: Document, text: str) -> None:
        now = self._clock()
        if document.person:
            await self._store.documents.set_model(
                document.person, document.audience, text, "edited by hand", "owner", now
            )
            return
        for audience, key, value in read_state_document(text):
            await self._store.documents.set_state(key, value, audience, now)

    async def _commit(self, pending: Sequence[Unarchived], ground: RoundStart) -> int:
        """Commit these and return how many.

        If git already holds some of them, left unrecorded by a crash, only those are recorded.
        """
        known = {} if self._is_known else await self._in_thread(self._repository.known)
        self._is_known = False
        batch, made = await self._in_thread(lambda: self._write_and_commit(pending, ground, known))
        changed = [file for document, file in batch.kept.items() if ground.kept.get(document) != file]
        gone = [document for document in ground.kept if document not in batch.kept]
        if not self._may_record():
            raise GitBusy("another process archives now")
        await self._store.documents.archived(made, changed, gone)
        if made:
            self._last = max(made.items())
        self._is_known = known.keys().isdisjoint(map(token, pending)) or len(ground.pending) < self._batch
        self._untidy += len(made)
        if self._untidy >= TIDY_AFTER:
            self._untidy = 0
            await self._in_thread(self._repository.tidy)
        return len(made)

    def _write_and_commit(
        self, pending: Sequence[Unarchived], ground: RoundStart, known: Mapping[str, ArchivedRevision]
    ) -> tuple[Batch, dict[int, str]]:
        """Create the commits, write the files, publish the commits.

        After an interruption at any point, the next round recognises its own work.
        """
        parent = self._repository.head()
        held = _in_git(pending, known)
        batch = batch_of(self._root, held or pending, ground)
        made = {one.id: known[token(one)].commit for one in held} or self._repository.prepare_commits(
            batch.changes, parent
        )
        write_files(self._root, batch, ground)
        if not held:
            self._repository.publish(made[batch.changes[-1].revision], parent)
        try:
            self._repository.align_index()
        except GitFailed as error:
            log.info("the index is brought up to date with the next round: %s", error)
            self._is_aligned = False
        return batch, made

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


def _in_git(pending: Sequence[Unarchived], known: Mapping[str, ArchivedRevision]) -> list[Unarchived]:
    """Return the revisions that the history holds, of each document up to the first that it lacks. Pure.

    Each carries the name that its person had when it was committed, which may have changed since.
    """
    held: list[Unarchived] = []
    lacking: set[Document] = set()
    for one in pending:
        if token(one) in known and one.document not in lacking:
            held.append(as_written(one, known[token(one)].paths))
        else:
            lacking.add(one.document)
    return held


def text_of(found: files.FoundFile) -> str | None:
    """Return a file's text; None if it is too large, or no text. Pure."""
    if len(found.content) > files.AT_MOST_BYTES:
        return None
    try:
        return found.content.decode()
    except UnicodeDecodeError:
        return None
