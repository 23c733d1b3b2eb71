"""Continue the archive where another process, or another machine, left it.

The database says which revisions there are; a history counts if it holds nothing that the database does not know. From
the one that counts come the files of this home and the record of what git holds.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Protocol, TypeVar

from msgspec import Struct

from claudius.memory.archive import files
from claudius.memory.archive.changes import HistoryCommit, blob_id
from claudius.memory.archive.remote import Remote, RemoteFailed, Theirs
from claudius.memory.archive.repository import LOG_AT_MOST, GitBusy, Repository
from claudius.memory.documents import SOUL_STATE, USERS, Document, KeptFile, is_ours, short_id
from claudius.memory.store import Store

T = TypeVar("T")
log = logging.getLogger(__name__)
HALF_WRITTEN_S = 2.0
AT_ONCE = 50
"""Files that are read from git at a time, each of `files.AT_MOST_BYTES` at most."""


class InThread(Protocol):
    """Runs what blocks in the archive's thread."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        """Run it; return what it returns."""
        ...


def fits(line: Sequence[HistoryCommit], recorded: Container[str], pending: Container[str]) -> bool:
    """Return whether the revisions in a history are all recorded commits, or wait for git. Pure."""
    return all(not one.token or one.commit in recorded or one.token in pending for one in line)


def newest_of_ours(line: Sequence[HistoryCommit]) -> str | None:
    """Return the newest commit that is a revision. Pure."""
    return next((one.commit for one in line if one.token), None)


def text_of(found: files.FoundFile) -> str | None:
    """Return a file's text; None if it is too large, or no text. Pure."""
    if len(found.content) > files.AT_MOST_BYTES:
        return None
    try:
        return found.content.decode()
    except UnicodeDecodeError:
        return None


class Trees(Struct, frozen=True):
    """What git and the home hold, by path."""

    there: Mapping[str, str]
    """The blobs at the commit to continue from."""
    there_before: Mapping[str, str]
    """The blobs at its newest revision: what differs is a person's."""
    here_before: Mapping[str, str]
    """The blobs at this home's newest revision: a file that differs is a person's."""
    here: Mapping[str, files.FoundFile]
    """The files of this home that have the form of ours."""


class Aligning:
    """Brings one home to the history that counts, and its commits to the remote."""

    def __init__(
        self,
        store: Store,
        repository: Repository,
        remote: Remote | None,
        in_thread: InThread,
        by_hand: Callable[[Document, str], Awaitable[None]],
    ) -> None:
        """Take over what people wrote by `by_hand`."""
        self._store, self._repository, self._remote = store.documents, repository, remote
        self._in_thread, self._by_hand, self._root = in_thread, by_hand, repository.root
        self._is_shared, self._is_begun = store.leases.is_shared, False
        self._documents: Mapping[tuple[str, str], Document] = {}
        self.last: tuple[int, str] | None = None
        """The last change that this process has committed, and its commit."""
        self.known_at_most = LOG_AT_MOST
        """How many of the newest commits may be changes that are recorded anew."""

    @property
    def is_wanted(self) -> bool:
        """Whether anybody else may write the history: another process, or who commits at the remote."""
        return self._is_shared or self._remote is not None

    def begin(self) -> None:
        """Look again: others may have committed, and pushed."""
        self._is_begun, self.last = False, None
        if self._remote:
            self._remote.begin()

    async def look(self, pending: Container[str]) -> bool:
        """Continue from where the archive was left, by whomever, if this process just begins or others have committed.

        `pending`: the tokens of the changes that are committed next. Returns whether what git holds is recorded anew.
        Raises: GitFailed, OSError, StoreError; not if the remote fails.
        """
        with ExitStack() as undo:
            undo.callback(self.begin)  # else what was fetched and not taken over would count as known
            is_anew = await self._look(pending)
            undo.pop_all()
        return is_anew

    async def _look(self, pending: Container[str]) -> bool:
        theirs, last = await self._fetched(), self.last
        if self._is_shared and last and await self._store.commit_of(last[0]) != last[1]:
            self._is_begun = False  # erased and built anew by another process
        if self._is_begun and theirs is None:
            return False
        head = await self._in_thread(self._repository.head)
        mine = await self._in_thread(lambda: self._repository.line(head))
        recorded = await self._store.archived_commits()  # read after the fetch: what was pushed was recorded before
        line = await self._chosen(theirs, mine, recorded, pending)
        if not line and (mine or recorded):
            log.warning("the history in %s is not that of what is kept: it is built anew", self._root)
            await self._build_anew()
        held = {one.commit for one in line or ()}
        missing = [change for commit, change in recorded.items() if commit not in held]
        if line and missing:
            await self._store.unarchive(min(missing))
            self.known_at_most = LOG_AT_MOST + sum(change >= min(missing) for change in recorded.values())
        if line and (self._is_shared or line[0].commit != head):
            await self.adopt(line, mine)
        self._is_begun, self.last = True, None
        return True

    async def push(self) -> None:
        """Bring what was committed to the remote, if its newest commit is still the one that this process knows."""
        remote, head = self._remote, await self._in_thread(self._repository.head)
        if remote is None or not remote.is_in_step or head == remote.base:
            return
        if head is None:  # everything was erased, and the remote is to know it
            await self._in_thread(self._repository.begin_empty)
            head = await self._in_thread(self._repository.head)
        newest = head or ""
        try:
            await self._in_thread(lambda: remote.push(self._repository, newest))
        except RemoteFailed as error:
            self._note(remote, error)

    async def _chosen(
        self,
        theirs: Theirs | None,
        mine: Sequence[HistoryCommit],
        recorded: Container[str],
        pending: Container[str],
    ) -> Sequence[HistoryCommit] | None:
        """Return the history to continue from: the remote's, else ours; None if neither is that of what is kept."""
        remote = self._remote
        if remote and theirs and theirs.tip not in {one.commit for one in mine}:
            if fits(theirs.line, recorded, pending):
                await self._in_thread(lambda: remote.keep(self._repository))
                return theirs.line
            await self._in_thread(lambda: remote.leave(self._repository))
            if not remote.is_ours(theirs, recorded, {one.token for one in mine if one.token}):
                why = "it holds the history of another soul: empty it, or name another repository"
                self._note(remote, RemoteFailed(f"{remote.shown}: {why}"))
            else:
                log.warning("%s is rewritten: what others may have committed there is not kept", remote.shown)
        return mine if fits(mine, recorded, pending) else None

    async def _fetched(self) -> Theirs | None:
        """Return the remote's history if it is to be asked now, has one that is not known, and answers."""
        remote = self._remote
        if remote is None or remote.waits_s:
            return None
        try:
            if remote.is_in_step and await self._in_thread(lambda: remote.tip(self._repository)) == remote.base:
                remote.has(remote.base)
                return None
            head = await self._in_thread(self._repository.head)
            theirs = await self._in_thread(lambda: remote.fetch(self._repository, head))
        except RemoteFailed as error:
            self._note(remote, error)
            return None
        remote.has(theirs.tip if theirs else None)
        return theirs

    def _note(self, remote: Remote, error: RemoteFailed) -> None:
        """Note that the remote failed: what is archived at home goes on."""
        if remote.failed(error):
            log.warning("not copied to the remote: %s", error)

    async def _build_anew(self) -> None:
        await self.clear()
        await self._in_thread(self._repository.drop)
        await self._store.archive_anew()
        await self._in_thread(lambda: self._repository.prepare(0.0))

    async def adopt(self, line: Sequence[HistoryCommit], mine: Sequence[HistoryCommit]) -> None:
        """Continue from the newest commit of `line`, where this home has `mine`.

        What a person wrote, in a file of this home or in a commit there, becomes a version first. If it is interrupted
        anywhere, it begins again. Raises: GitBusy if a file is just being written; GitFailed, OSError, StoreError.
        """
        await self._know()
        trees = await self._in_thread(lambda: self._trees(line, mine))
        await self._edited_here(trees)
        await self._edited_there(trees)
        kept = await self._in_thread(lambda: self._write(trees))
        before = [file.document for file in await self._store.archive_files()]
        await self._store.archived({}, tuple(kept.values()), [one for one in before if one not in kept])
        tip, at = line[0].commit, mine[0].commit if mine else None
        if tip != at:
            await self._in_thread(lambda: self._repository.take(tip, at))

    async def clear(self) -> None:
        """Delete the files of documents that are not kept any more, before a history is built anew."""
        await self._know()
        await self._in_thread(self._clear)

    def _clear(self) -> None:
        for path in self._ours():
            if self._at(path) is None:
                files.remove(self._root, path)

    async def _know(self) -> None:
        known = [*await self._store.known(), *(one.document for one in await self._store.archive_files())]
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

    def _trees(self, line: Sequence[HistoryCommit], mine: Sequence[HistoryCommit]) -> Trees:
        now_s, of = time.time(), self._repository
        found = ((path, files.read(self._root, path, now_s)) for path in self._ours())
        return Trees(
            there=of.tree(line[0].commit),
            there_before=of.tree(newest_of_ours(line)),
            here_before=of.tree(newest_of_ours(mine)),
            here={path: file for path, file in found if file},
        )

    async def _edited_here(self, trees: Trees) -> None:
        for path, found in trees.here.items():
            document, text = self._at(path), text_of(found)
            is_written = blob_id(found.content) in (trees.here_before.get(path), trees.there.get(path))
            if is_written or document is None or text is None:
                continue
            if await self._store.has_written(document, text, ever=True):
                continue
            if found.age_s < HALF_WRITTEN_S:
                raise GitBusy(f"{path} is just being written")
            await self._by_hand(document, text)

    async def _edited_there(self, trees: Trees) -> None:
        changed = [path for path, blob in trees.there.items() if is_ours(path) and trees.there_before.get(path) != blob]
        for n in range(0, len(changed), AT_ONCE):
            some = changed[n : n + AT_ONCE]
            contents = await self._in_thread(partial(self._contents, some, trees))
            for path, content in zip(some, contents, strict=True):
                document, text = self._at(path), None if content is None else text_of(files.FoundFile(content, 0.0))
                if document and text is not None and not await self._store.has_written(document, text, ever=False):
                    await self._by_hand(document, text)

    def _contents(self, paths: Sequence[str], trees: Trees) -> list[bytes | None]:
        return self._repository.contents([trees.there[path] for path in paths], files.AT_MOST_BYTES)

    def _write(self, trees: Trees) -> dict[Document, KeptFile]:
        """Bring the files to the commit to continue from; return where its documents lie."""
        kept: dict[Document, KeptFile] = {}
        paths = sorted(path for path in trees.there if ".git" not in path.casefold().split("/"))
        for n in range(0, len(paths), AT_ONCE):
            some = paths[n : n + AT_ONCE]
            for path, content in zip(some, self._contents(some, trees), strict=True):
                if content is None:
                    log.warning("left out, because it is larger than %s bytes: %s", files.AT_MOST_BYTES, path)
                    content = trees.here[path].content if path in trees.here else b""  # noqa: PLW2901 - what stays
                else:
                    self._write_one(path, content, trees)
                if is_ours(path) and (document := self._at(path)):
                    kept[document] = KeptFile(document=document, path=path, sha256=files.digest(content))
        for path in trees.here.keys() - trees.there.keys():
            document = self._at(path)
            if document is None or document in kept:  # erased, or written under another name since
                files.remove(self._root, path)
        for path in trees.here_before.keys() - trees.there.keys() - trees.here.keys():
            found = files.read(self._root, path, time.time())
            if found and blob_id(found.content) == trees.here_before[path]:
                files.remove(self._root, path)
        return kept

    def _write_one(self, path: str, content: bytes, trees: Trees) -> None:
        found = trees.here.get(path) or files.read(self._root, path, time.time())
        is_left = found is not None and (
            text_of(found) is None if is_ours(path) else blob_id(found.content) != trees.here_before.get(path)
        )
        if not is_left and (found is None or found.content != content):
            files.write(self._root, path, content)
