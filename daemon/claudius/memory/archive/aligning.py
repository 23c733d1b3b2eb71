"""Continue the archive in a home of a store that several processes share, after another home had the role.

The database says which revisions there are. This home's history counts if it holds nothing that the database does not
know; then what it lacks is committed to it. Else it is built anew.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Container, Iterator, Sequence
from functools import partial
from typing import Protocol, TypeVar

from claudius.memory.archive import files
from claudius.memory.archive.changes import HistoryCommit
from claudius.memory.archive.repository import LOG_AT_MOST, GitBusy, Repository
from claudius.memory.documents import SOUL_STATE, USERS, Document, KeptFile, is_ours, short_id
from claudius.memory.store import Store

T = TypeVar("T")
log = logging.getLogger(__name__)
HALF_WRITTEN_S = 2.0


class InThread(Protocol):
    """Runs what blocks in the archive's thread."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        """Run it; return what it returns."""


def fits(line: Sequence[HistoryCommit], recorded: Container[str], pending: Container[str]) -> bool:
    """Return whether the revisions in a history are all recorded commits, or wait for git. Pure."""
    return all(not one.token or one.commit in recorded or one.token in pending for one in line)


def text_of(found: files.FoundFile) -> str | None:
    """Return a file's text; None if it is too large, or no text. Pure."""
    if len(found.content) > files.AT_MOST_BYTES:
        return None
    try:
        return found.content.decode()
    except UnicodeDecodeError:
        return None


class Aligning:
    """Brings one home's history, and the record of its files, to what the database holds."""

    def __init__(
        self,
        store: Store,
        repository: Repository,
        in_thread: InThread,
        by_hand: Callable[[Document, str], Awaitable[None]],
    ) -> None:
        """Take over what people wrote by `by_hand`."""
        self._store, self._repository = store.documents, repository
        self._in_thread, self._by_hand, self._root = in_thread, by_hand, repository.root
        self.is_wanted, self._is_begun = store.is_shared, False
        """Whether another process may have archived since, in a home of its own."""
        self._documents: dict[tuple[str, str], Document] = {}
        self.last: tuple[int, str] | None = None
        """The last change that this process has committed, and its commit."""
        self.known_at_most = LOG_AT_MOST
        """How many of the newest commits may be changes that are recorded anew."""

    def begin(self) -> None:
        """Look again: others may have committed."""
        self._is_begun, self.last = False, None

    async def look(self, pending: Container[str]) -> bool:
        """Continue from where the archive was left, if this process just begins or another has built it anew.

        `pending`: the tokens of the changes that are committed next. Returns whether what git holds is recorded anew.
        Raises: GitBusy if a file is just being written; GitFailed, OSError, StoreError.
        """
        last = self.last
        if last and self._store.commit_of(last[0]) != last[1]:
            self._is_begun = False  # erased and built anew by another process
        if self._is_begun:
            return False
        head = await self._in_thread(self._repository.head)
        mine = await self._in_thread(lambda: self._repository.line(head))
        recorded = await self._store.archived_commits()
        if mine and fits(mine, recorded, pending):
            held = {one.commit for one in mine}
            missing = [change for commit, change in recorded.items() if commit not in held]
            if missing:
                await self._store.unarchive(min(missing))
                self.known_at_most = LOG_AT_MOST + sum(change >= min(missing) for change in recorded.values())
            await self._know_files(head)
        elif mine or recorded:
            log.warning("the history in %s is not that of what is kept: it is built anew", self._root)
            await self._build_anew()
        self._is_begun, self.last = True, None
        return True

    async def _build_anew(self) -> None:
        self._know()
        await self._in_thread(self._clear)
        await self._in_thread(self._repository.drop)
        await self._store.archive_anew()
        await self._in_thread(lambda: self._repository.prepare(0.0))

    async def _know_files(self, head: str | None) -> None:
        """Record which file of this home holds which document.

        A text that is no version ever is an edit by hand, unless it is the one that was written last: it may have been
        deleted since.
        """
        self._know()
        now_s, kept = time.time(), dict[Document, KeptFile]()
        before = {file.document: file.sha256 for file in self._store.archive_files()}
        there = await self._in_thread(lambda: self._repository.tree(head))
        paths = sorted(self._ours(), key=there.__contains__)  # of two files of a document, the one in git counts
        for path in paths:
            document, found = self._at(path), await self._in_thread(partial(files.read, self._root, path, now_s))
            text = text_of(found) if found else None
            if found is None or document is None or text is None:
                continue
            if found.sha256 != before.get(document) and not self._store.has_written(document, text, ever=True):
                if found.age_s < HALF_WRITTEN_S:
                    raise GitBusy(f"{path} is just being written")
                await self._by_hand(document, text)
            kept[document] = KeptFile(document=document, path=path, sha256=found.sha256)
        await self._store.archived({}, tuple(kept.values()), [one for one in before if one not in kept])
        lying = {file.path for file in kept.values()}
        for path in paths:
            if path not in lying and path not in there and self._at(path) in (None, *kept):
                await self._in_thread(partial(files.remove, self._root, path))

    def _clear(self) -> None:
        for path in self._ours():
            if self._at(path) is None:
                files.remove(self._root, path)

    def _know(self) -> None:
        known = [*self._store.known(), *(one.document for one in self._store.archive_files())]
        self._documents = {(short_id(one.person), short_id(one.audience)): one for one in known}

    def _at(self, path: str) -> Document | None:
        """Return the document whose file this is, under whatever name of its person; None if there is none."""
        if path == SOUL_STATE:
            return Document()
        _, folder, name = path.split("/")
        return self._documents.get((folder.rpartition("-")[2], name.removesuffix(".md").rpartition("-")[2]))

    def _ours(self) -> Iterator[str]:
        found = [self._root / SOUL_STATE, *(self._root / USERS).glob("*/*.md")]
        paths = (path.relative_to(self._root).as_posix() for path in found)
        return iter([path for path in paths if is_ours(path)])
