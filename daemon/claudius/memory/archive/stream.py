"""Build the input of `git fast-import`: one commit for each revision, with its change note as the message. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import astuple

from claudius.memory.documents import Unarchived
from claudius.memory.names import is_ours

TRAILER = "Claudius-Revision"
REF = "refs/claudius/archive"
_CLAUDIUS = "Claudius <claudius@localhost>"
_OWNER = "owner <owner@localhost>"


class Change(Struct, frozen=True, kw_only=True):
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


class Known(Struct, frozen=True):
    """A revision that the history already holds."""

    commit: str
    paths: tuple[str, ...] = ()
    """The paths that it wrote."""


def fast_import(changes: Sequence[Change], parent: str | None) -> bytes:
    """Build one stream of the changes on top of `parent`, oldest first, each commit marked with its revision. Pure.

    The contents come first, path by path, because git stores each as a delta of the one before it in the stream.
    """
    marks = _marks(changes)
    blobs = (b"blob\nmark :%d\n%s" % (mark, _data(content)) for (_, content), mark in marks.items())
    parts = [f"reset {REF}\n", f"from {parent}\n" if parent else "", "\n"]
    commits = (_commit(change, marks) for change in changes)
    return b"".join([b"feature done\n", *blobs, "".join(parts).encode(), *commits, b"done\n"])


def _marks(changes: Sequence[Change]) -> dict[tuple[str, bytes], int]:
    """Number every content after the revisions, those of one path together, oldest first."""
    contents = dict.fromkeys(pair for change in changes for pair in change.written)
    first = 1 + max((change.revision for change in changes), default=0)
    return {pair: mark for mark, pair in enumerate(sorted(contents, key=lambda pair: pair[0]), first)}


def index_info(blobs: Mapping[str, str | None]) -> bytes:
    """Build the input of `git update-index --index-info`: path to blob; None removes the path. Pure."""
    lines = (f"0 {'0' * 40}\t{path}\n" if blob is None else f"100644 {blob}\t{path}\n" for path, blob in blobs.items())
    return "".join(lines).encode()


def blob_id(content: bytes) -> str:
    """Return the blob id that git gives this content. Pure."""
    return hashlib.sha1(b"blob %d\0%s" % (len(content), content), usedforsecurity=False).hexdigest()


def read_marks(text: str) -> dict[int, str]:
    """Parse what `--export-marks` wrote: revision to commit. Pure."""
    return {int(mark.removeprefix(":")): commit for mark, commit in (line.split() for line in text.splitlines())}


def read_tree(text: str) -> dict[str, str]:
    """Parse the NUL-separated lines of `ls-tree -r` or `ls-files -s`: path to blob, our own files only. Pure."""
    found = {}
    for line in filter(None, text.split("\0")):
        facts, _, path = line.partition("\t")
        if is_ours(path):
            found[path] = facts.split()[2 if " blob " in facts else 1]
    return found


def read_log(text: str) -> dict[str, Known]:
    """Parse commits, each after a NUL: a line `COMMIT TOKEN`, then its paths. Other people's have no token. Pure."""
    commits = ([line for line in one.splitlines() if line] for one in text.split("\0") if one)
    heads = ((first.split(), tuple(paths)) for first, *paths in commits)
    return {head[1]: Known(head[0], paths) for head, paths in heads if len(head) == 2}


def token(one: Unarchived) -> str:
    """Return the token that identifies a revision in the history. Pure.

    It joins number and hash, so it stays unique even after a restore.
    """
    whole = "\0".join((one.at.isoformat(), *astuple(one.document), str(one.version), one.note, one.markdown))
    return f"{one.id}.{hashlib.sha256(whole.encode()).hexdigest()[:12]}"


def _commit(change: Change, marks: Mapping[tuple[str, bytes], int]) -> bytes:
    instant = f"{int(change.at.timestamp())} +0000"
    author = _CLAUDIUS if change.author == "turn" else _OWNER
    head = f"commit {REF}\nmark :{change.revision}\nauthor {author} {instant}\ncommitter {_CLAUDIUS} {instant}\n"
    removed = "".join(f"D {path}\n" for path in change.removed)
    written = "".join(f"M 100644 :{marks[pair]} {pair[0]}\n" for pair in change.written)
    return head.encode() + _data(_message(change).encode()) + f"{removed}{written}\n".encode()


def _message(change: Change) -> str:
    note = " ".join(change.note.split()) or "updated"
    turn = f"Turn: {change.turn}\n" if change.turn else ""
    return f"{note}\n\n{turn}{TRAILER}: {change.token}\n"


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)
