"""Plan one archive round, and write it as the input of `git fast-import`.

There is one commit for each revision, with its change note as the message. The worker calls `batch_of` to plan and
`write_files` to bring the directory to the result.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath

from msgspec import Struct, field
from msgspec.structs import astuple, replace

from claudius.memory.archive import files
from claudius.memory.documents import SOUL_STATE, Document, KeptFile, Unarchived, model_path, short_id

log = logging.getLogger(__name__)


class RoundStart(Struct):
    """The state that a round starts from: where documents lie, and which of them it must not touch."""

    kept: dict[Document, KeptFile]
    pending: Sequence[Unarchived]
    ours: dict[str, str] = field(default_factory=dict)
    """By path, the hash of each file that may be overwritten although no record of it is kept."""
    held_back: dict[Document, str] = field(default_factory=dict)
    """Documents whose file must not be touched, with its path."""
    imported: int = 0

    @property
    def places(self) -> list[tuple[Document, str]]:
        """Return where documents lie, and where this round will write them. Pure."""
        names = {one.document.person: one.name for one in self.pending if one.document.person}
        lying = [(document, file.path) for document, file in self.kept.items()]
        moving = [
            (document, str(model_path(document.person, names[document.person], document.audience)))
            for document in self.kept
            if document.person in names
        ]
        return list(dict.fromkeys((*lying, *moving, *((one.document, path_of(one)) for one in self.pending))))

    @property
    def gone(self) -> list[KeptFile]:
        """Return the files of documents that are not kept any more. Pure."""
        return [file for document, file in self.kept.items() if file.is_gone and document not in self.held_back]


class Batch(Struct):
    """The commits of a round, and the files as they are after them."""

    changes: list[RevisionCommit]
    kept: dict[Document, KeptFile]

    @property
    def final(self) -> dict[str, bytes | None]:
        """Return each path that the batch touches, with its final content; None means it is removed. Pure."""
        found: dict[str, bytes | None] = {}
        for change in self.changes:
            found |= dict.fromkeys(change.removed) | dict(change.written)
        return found


def path_of(one: Unarchived) -> str:
    """Return the path of a revision's document under the person's current name. Pure."""
    document = one.document
    return str(model_path(document.person, one.name, document.audience)) if document.person else SOUL_STATE


def as_written(one: Unarchived, paths: Iterable[str]) -> Unarchived:
    """Return a revision with the name under which one of these paths holds its document, if one does. Pure."""
    file, person = PurePosixPath(path_of(one)).name, short_id(one.document.person)
    for path in map(PurePosixPath, paths):
        if one.document.person and path.name == file and path.parent.name.endswith(person):
            return replace(one, name=path.parent.name.removesuffix(f"-{person}"))
    return one


def batch_of(root: Path, pending: Iterable[Unarchived], ground: RoundStart) -> Batch:
    """Plan the commits of these revisions, oldest first.

    The first commit also removes the files of documents that are gone. Reads files that move to another folder.
    """
    kept = {document: file for document, file in ground.kept.items() if file not in ground.gone}
    changes = [_change(root, one, kept, ground.held_back) for one in pending]
    gone = tuple(file.path for file in ground.gone)
    changes[0] = replace(changes[0], removed=(*gone, *changes[0].removed))
    return Batch(changes, kept)


def write_files(root: Path, batch: Batch, ground: RoundStart) -> None:
    """Bring the directory to the batch's final state, except for files that were edited by hand in the meantime."""
    before = {file.path: file.sha256 for file in ground.kept.values()} | ground.ours
    for path, content in batch.final.items():
        found = files.read(root, path, time.time())
        if found and found.sha256 not in (before.get(path), content and files.digest(content)):
            log.info("%s was edited by hand just now; it is taken over with the next round", path)
            batch.kept |= {document: file for document, file in ground.kept.items() if file.path == path}
        elif content is None:
            files.remove(root, path)
        else:
            files.write(root, path, content)


def _change(
    root: Path, one: Unarchived, kept: dict[Document, KeptFile], held_back: Container[Document]
) -> RevisionCommit:
    """Return a revision's commit, and update `kept` with the files as they are after it."""
    path, content = path_of(one), one.markdown.encode()
    moved = _moved(root, one, kept, held_back) if one.document.person else {}
    before = kept.get(one.document)
    if before and before.path != path and before.path not in moved:
        path = before.path  # edited by hand just now: it moves once that edit was taken over
    kept[one.document] = KeptFile(document=one.document, path=path, sha256=files.digest(content))
    return RevisionCommit(
        revision=one.id,
        token=token(one),
        at=one.at,
        note=one.note,
        author=one.author,
        turn=one.turn,
        removed=tuple(moved),
        written=(*(pair for pair in moved.values() if pair[0] != path), (path, content)),
    )


def _moved(
    root: Path, one: Unarchived, kept: dict[Document, KeptFile], held_back: Container[Document]
) -> dict[str, tuple[str, bytes]]:
    """Return the files of a person whose folder name has changed: old path to new path and content."""
    moved = {}
    for document, file in list(kept.items()):
        if document.person != one.document.person or document in held_back:
            continue
        path = str(model_path(document.person, one.name, document.audience))
        if file.path == path:
            continue
        found = files.read(root, file.path, time.time())
        if found is None and document == one.document:
            moved[file.path] = (path, b"")  # its new text is written anyway
        if found is None or found.sha256 != file.sha256:
            continue  # gone, or just edited by hand: the next look handles it
        moved[file.path] = (path, found.content)
        kept[document] = KeptFile(document=document, path=path, sha256=found.sha256)
    return moved


TRAILER = "Claudius-Revision"
REF = "refs/claudius/archive"
_CLAUDIUS = "Claudius <claudius@localhost>"
_OWNER = "owner <owner@localhost>"


class RevisionCommit(Struct, frozen=True, kw_only=True):
    """One revision as a commit: the files that it removes and those that it writes, by path below the repository."""

    revision: int
    token: str
    """Distinguishes this revision from every other that ever had its number."""
    at: datetime
    note: str
    author: str
    turn: str | None
    removed: tuple[str, ...] = ()
    written: tuple[tuple[str, bytes], ...] = ()


class HistoryCommit(Struct, frozen=True):
    """One commit of a history."""

    commit: str
    token: str
    """Of the revision that it is; empty = it is somebody else's commit."""


class ArchivedRevision(Struct, frozen=True):
    """A revision that the history already holds."""

    commit: str
    paths: tuple[str, ...] = ()
    """The paths that it wrote."""


def fast_import(changes: Sequence[RevisionCommit], parent: str | None) -> bytes:
    """Build one stream of the changes on top of `parent`, oldest first, each commit marked with its revision. Pure.

    The contents come first, path by path, because git stores each as a delta of the one before it in the stream.
    """
    contents = dict.fromkeys(pair for change in changes for pair in change.written)
    first = 1 + max((change.revision for change in changes), default=0)  # the marks below are revisions
    marks = {pair: mark for mark, pair in enumerate(sorted(contents, key=lambda pair: pair[0]), first)}
    blobs = (b"blob\nmark :%d\n%s" % (mark, _data(content)) for (_, content), mark in marks.items())
    parts = [f"reset {REF}\n", f"from {parent}\n" if parent else "", "\n"]
    commits = (_commit(change, marks) for change in changes)
    return b"".join([b"feature done\n", *blobs, "".join(parts).encode(), *commits, b"done\n"])


def read_marks(text: str) -> dict[int, str]:
    """Parse what `--export-marks` wrote: revision to commit. Pure."""
    return {int(mark.removeprefix(":")): commit for mark, commit in (line.split() for line in text.splitlines())}


def read_log(text: str) -> dict[str, ArchivedRevision]:
    """Parse commits, each after a NUL: a line `COMMIT TOKEN`, then the state and path of each file it changed. Pure.

    Other people's commits have no token.
    """
    commits = ([line for line in one.splitlines() if line] for one in text.split("\0") if one)
    heads = ((first.split(), [line.partition("\t") for line in lines]) for first, *lines in commits)
    return {
        head[1]: ArchivedRevision(head[0], tuple(path for state, _, path in changed if state != "D"))
        for head, changed in heads
        if len(head) == 2
    }


def token(one: Unarchived) -> str:
    """Return the token that identifies a revision in the history. Pure.

    It joins number and hash, so it stays unique even after a restore.
    """
    whole = "\0".join((one.at.isoformat(), *astuple(one.document), str(one.version), one.note, one.markdown))
    return f"{one.id}.{hashlib.sha256(whole.encode()).hexdigest()[:12]}"


def _commit(change: RevisionCommit, marks: Mapping[tuple[str, bytes], int]) -> bytes:
    instant = f"{int(change.at.timestamp())} +0000"
    author = _CLAUDIUS if change.author == "turn" else _OWNER
    head = f"commit {REF}\nmark :{change.revision}\nauthor {author} {instant}\ncommitter {_CLAUDIUS} {instant}\n"
    removed = "".join(f"D {path}\n" for path in change.removed)
    written = "".join(f"M 100644 :{marks[pair]} {pair[0]}\n" for pair in change.written)
    note = " ".join(change.note.split()) or "updated"
    turn = f"Turn: {change.turn}\n" if change.turn else ""
    message = f"{note}\n\n{turn}{TRAILER}: {change.token}\n"
    return head.encode() + _data(message.encode()) + f"{removed}{written}\n".encode()


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)
