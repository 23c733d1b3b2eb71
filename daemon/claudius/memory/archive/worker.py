"""The archive's life: round by round, off the reply path, whatever git says."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from claudius.memory.archive import files
from claudius.memory.archive.repository import Broken, GitBusy, GitFailed, Repository
from claudius.memory.archive.stream import Change
from claudius.memory.names import SOUL_STATE, model_path
from claudius.memory.store import Document, KeptFile, Store, Unarchived
from claudius.memory.user_models import read_state_document

T = TypeVar("T")

BATCH = 500
HALF_WRITTEN_S = 2.0
FIRST_WAIT_S, LAST_WAIT_S = 1.0, 600.0
LOOK_EVERY_S = 30.0
"""How often files are looked at for edits by hand, in seconds."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did."""

    committed: int = 0
    imported: int = 0
    held_back: tuple[str, ...] = ()
    """Files that somebody is writing just now, or that cannot be read as text: left for the next round."""


@dataclass(slots=True)
class _Ground:
    """What a round finds."""

    kept: dict[Document, KeptFile]
    held_back: set[Document] = field(default_factory=set)
    imported: int = 0


class Archive:
    """One worker. `run` it in a task, `wake` it after each commit, `close` it at the end."""

    def __init__(self, store: Store, memory: Path, backups: Path, *, clock: Callable[[], datetime]) -> None:
        """Export what `store` holds to the directory `memory`; a repository beyond repair goes to `backups`."""
        self._store = store
        self._repository = Repository(memory)
        self._root, self._backups, self._clock = memory, backups, clock
        self._began_s = time.time()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="claudius-archive")
        self._bell = asyncio.Event()
        self._is_prepared = False
        self._unindexed: dict[str, bytes | None] = {}
        self.problem: str | None = None
        """Why the last round failed, in one line; None where it did not."""

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
            except (GitFailed, OSError) as error:
                self._report(str(error))
                await asyncio.sleep(wait_s)
                wait_s = min(LAST_WAIT_S, wait_s * 2)
                continue
            self.problem, wait_s = None, FIRST_WAIT_S
            if done.committed < BATCH:
                await self._rest(HALF_WRITTEN_S if done.held_back else LOOK_EVERY_S)

    async def close(self) -> None:
        """Let the thread end."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def round(self) -> Round:
        """Import what was edited by hand, then commit what git does not hold yet, oldest first, `BATCH` at most.

        Raises: GitFailed, OSError, StoreError.
        """
        if not Repository.is_possible():
            self._report("git is not installed: portraits are kept, but not exported")
            return Round()
        await self._prepare()
        ground = _Ground({file.document: file for file in await self._store.archive_files()})
        await self._import_edits(ground)
        pending = [one for one in await self._store.unarchived(BATCH) if one.document not in ground.held_back]
        pending = await self._import_strangers(pending, ground)
        if pending:
            await self._commit(pending, ground)
        held_back = tuple(sorted(ground.kept[one].path for one in ground.held_back if one in ground.kept))
        return Round(len(pending), ground.imported, held_back)

    async def _prepare(self) -> None:
        if self._is_prepared:
            return
        try:
            await self._in_thread(lambda: self._repository.prepare(self._began_s))
        except Broken as error:
            await self._rebuild(str(error))
        known = await self._in_thread(self._repository.known)
        await self._store.archived(known, ())
        if await self._in_thread(self._repository.is_detached):
            log.warning("no branch is checked out in %s: versions are committed onto what is", self._root)
        self._is_prepared = True

    async def _rebuild(self, why: str) -> None:
        stamp = f"{self._clock():%Y%m%dT%H%M%SZ}"
        ground = _Ground({file.document: file for file in await self._store.archive_files()})
        await self._import_edits(ground)
        kept = await self._in_thread(lambda: self._repository.set_aside(self._backups, stamp))
        log.warning("the archive could not be read (%s): it is kept as %s and built anew", why, kept)
        await self._store.archive_anew()
        await self._in_thread(lambda: self._repository.prepare(self._began_s))

    async def _import_edits(self, ground: _Ground) -> None:
        for document, kept in ground.kept.items():
            found = await self._in_thread(lambda path=kept.path: files.read(self._root, path, time.time()))
            if found is None:
                await self._restore(kept)
            elif found.sha256 != kept.sha256:
                await self._import(document, kept.path, found, ground)

    async def _restore(self, kept: KeptFile) -> None:
        text = await self._store.document(kept.document)
        if text is not None and files.digest(text.encode()) == kept.sha256:
            await self._in_thread(lambda: files.write(self._root, kept.path, text.encode()))

    async def _import(self, document: Document, path: str, found: files.Found, ground: _Ground) -> None:
        if found.age_s < HALF_WRITTEN_S:
            ground.held_back.add(document)
            return
        try:
            text = found.content.decode()
        except UnicodeDecodeError:
            text = None
        if text is None or len(found.content) > files.AT_MOST_BYTES:
            log.warning("%s is not a text that can be taken over; it is left as it is", path)
            ground.held_back.add(document)
            return
        now = self._clock()
        if document.person:
            await self._store.set_model(document.person, document.audience, text, "edited by hand", "owner", now)
        else:
            for audience, key, value in read_state_document(text):
                await self._store.set_state(key, value, audience, now)
        ground.imported += 1

    async def _import_strangers(self, pending: Sequence[Unarchived], ground: _Ground) -> Sequence[Unarchived]:
        """A file that stands where ours is to be written, though we wrote none: somebody's words, unless they are ours."""
        places = {one.document: _path(one) for one in pending if one.document.person and one.document not in ground.kept}
        before = ground.imported
        for document, path in places.items():
            found = await self._in_thread(lambda path=path: files.read(self._root, path, time.time()))
            text = found.content.decode("utf-8", "replace") if found else ""
            if found and not await self._store.has_version(document, text):
                await self._import(document, path, found, ground)
        if ground.imported == before:
            return [one for one in pending if one.document not in ground.held_back]
        again = await self._store.unarchived(BATCH)
        return [one for one in again if one.document not in ground.held_back]

    async def _commit(self, pending: Sequence[Unarchived], ground: _Ground) -> None:
        kept = dict(ground.kept)
        changes = [await self._in_thread(lambda one=one: self._change(one, kept)) for one in pending]
        made = await self._in_thread(lambda: self._repository.commit(changes))
        final: dict[str, bytes | None] = {}
        for change in changes:
            final |= dict.fromkeys(change.removed) | dict(change.written)
        await self._in_thread(lambda: self._write(final))
        changed = [file for document, file in kept.items() if ground.kept.get(document) != file]
        await self._store.archived(made, changed)

    def _change(self, one: Unarchived, kept: dict[Document, KeptFile]) -> Change:
        """Return a revision's commit, and note in `kept` what the files are after it."""
        path, content = _path(one), one.markdown.encode()
        moved = self._moved(one, kept) if one.document.person else {}
        kept[one.document] = KeptFile(document=one.document, path=path, sha256=files.digest(content))
        return Change(
            revision=one.id,
            at=one.at,
            note=one.note,
            author=one.author,
            turn=one.turn,
            removed=tuple(moved),
            written=(*(pair for pair in moved.values() if pair[0] != path), (path, content)),
        )

    def _moved(self, one: Unarchived, kept: dict[Document, KeptFile]) -> dict[str, tuple[str, bytes]]:
        """Return the files of a person whose folder has another name now: old path to new path and content."""
        moved = {}
        for document, file in list(kept.items()):
            path = str(model_path(one.document.person, one.name, document.audience))
            if document.person != one.document.person or file.path == path:
                continue
            found = files.read(self._root, file.path, time.time())
            content = found.content if found else b""
            moved[file.path] = (path, content)
            kept[document] = KeptFile(document=document, path=path, sha256=files.digest(content))
        return moved

    def _write(self, final: Mapping[str, bytes | None]) -> None:
        self._unindexed |= final
        for path, content in final.items():
            if content is None:
                files.remove(self._root, path)
            else:
                files.write(self._root, path, content)
        try:
            self._repository.refresh_index(list(self._unindexed.items()))
        except GitBusy:
            log.info("the index is in use; it is brought up to date with the next round")
            return
        self._unindexed.clear()

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._bell.wait()
        except TimeoutError:
            return

    def _report(self, problem: str) -> None:
        if problem != self.problem:
            log.warning("not archived: %s", problem)
        self.problem = problem

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _path(one: Unarchived) -> str:
    document = one.document
    return str(model_path(document.person, one.name, document.audience)) if document.person else SOUL_STATE
