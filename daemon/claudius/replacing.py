"""Replace files of a home together: whenever it is killed, the next start finds all of the old or all of the new.

A note says what moves where, and is on the disk before anything moves. Whoever opens the home obeys the note that it
finds. Its author keeps it locked while it works, so that nobody looks at a home in between.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from claudius.errors import BadHome
from claudius.foreign import unquoted

Moves = Sequence[tuple[Path, Path]]


def note_of(root: Path) -> Path:
    """Return where the note of a replacement that is under way is. Pure."""
    return root / "state" / "replacing.json"


def incoming(root: Path) -> Path:
    """Make an empty directory in which to prepare what will be put in place. The caller holds the home's lock."""
    place = discard_incoming(root)
    place.mkdir(mode=0o700)
    return place


def discard_incoming(root: Path) -> Path:
    """Delete what a command that was interrupted had prepared, and put nowhere. The caller holds the home's lock."""
    place = root / "state" / "incoming"
    shutil.rmtree(place, ignore_errors=True)
    return place


def replace(root: Path, fresh: Mapping[Path, Path | None], aside: Path) -> None:
    """Put each fresh file or directory in its place; what is there moves to `aside`. None: that place stays empty.

    All of it is done, or nothing. The caller holds the home's lock. Raises: OSError; then nothing has changed.
    """
    moves = [(place, aside / place.name) for place in fresh if os.path.lexists(place)]
    moves += [(new, place) for place, new in fresh.items() if new]
    for new in filter(None, fresh.values()):
        for path in _within(new):
            _sync(path)
    note = note_of(root)
    draft = note.with_suffix(".new")
    with os.fdopen(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump([[str(path.relative_to(root)) for path in move] for move in moves], file)
        file.flush()
        os.fsync(file.fileno())
        draft.rename(note)
        _sync(note.parent)
        try:
            _carry_out(moves)
        except OSError:
            _take_back(moves)
            _end(note)
            raise
        _end(note)


def obey(root: Path) -> None:
    """Finish a replacement that was interrupted; wait for one that is under way. Raises: BadHome if that fails."""
    note = note_of(root)
    if not os.path.lexists(note):
        return
    try:
        file = note.open("r+", encoding="utf-8")
    except FileNotFoundError:
        return
    except OSError as error:
        raise _unfinished(note, error) from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            if note.exists() and os.path.samestat(os.fstat(file.fileno()), note.stat()):
                _carry_out([(root / source, root / target) for source, target in json.load(file)])
                _end(note)
        except (OSError, ValueError) as error:
            raise _unfinished(note, error) from error


def _unfinished(note: Path, error: Exception) -> BadHome:
    why = f"{error.strerror}: {error.filename}" if isinstance(error, OSError) else unquoted(error)
    what = "what an interrupted command was replacing is not in its place yet"
    return BadHome(f"{note}: {what} ({why}): mend that, then repeat the command")


def _carry_out(moves: Moves) -> None:
    """Make every move whose target is not there yet, in order; one whose target is there was made before."""
    for source, target in moves:
        if os.path.lexists(source) and not os.path.lexists(target):
            target.parent.mkdir(mode=0o700, exist_ok=True)
            source.rename(target)
    _sync_around(moves)


def _take_back(moves: Moves) -> None:
    for source, target in reversed(moves):
        if os.path.lexists(target) and not os.path.lexists(source):
            target.rename(source)
    _sync_around(moves)


def _end(note: Path) -> None:
    note.unlink()
    _sync(note.parent)


def _sync_around(moves: Moves) -> None:
    around = {path.parent for move in moves for path in move}
    for directory in around | {one.parent for one in around}:
        if directory.is_dir():
            _sync(directory)


def _within(path: Path) -> Iterator[Path]:
    """Yield a file, or everything in a directory and the directory itself."""
    for directory, _, names in os.walk(path):
        yield from (Path(directory) / name for name in names)
        yield Path(directory)
    if not path.is_dir():
        yield path


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
