"""Locate everything on disk: `$CLAUDIUS_HOME` on this machine, and the soul and memory that ship with the package.

Files of a home are replaced together: whenever it is killed, the next start finds all of the old or all of the new. A
note says what moves where, and is on the disk before anything moves. Whoever opens the home obeys the note that it
finds. Its author keeps it locked while it works, so that nobody looks at a home in between.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

import claudius
from claudius.errors import BadHome
from claudius.foreign import unquoted

DIRECTORY_MODE = 0o700
FILE_MODE = 0o600
_FIX = "set CLAUDIUS_HOME to a directory that you own"


class Home:
    """The paths of one home. Nothing is created or read until `create` is called."""

    def __init__(self, root: Path) -> None:
        self.root: Final = root
        self.config: Final = root / "config.toml"
        self.env_file: Final = root / ".env"
        """The secrets, mode 0600."""
        self.soul: Final = root / "soul"
        """The owner's soul files; each overrides the shipped one of the same name."""
        self.memory: Final = root / "memory"
        """The git repository of user models and soul state."""
        self.state: Final = root / "state"
        self.database: Final = self.state / "claudius.db"
        self.run: Final = root / "run"
        """Files that live only as long as a process: lock, socket."""
        self.lock: Final = self.run / "claudius.lock"
        """The lock of the only process that may run turns."""
        self.socket: Final = self.run / "claudius.sock"
        """The control socket of that process."""
        self.lent: Final = self.run / "lent.json"
        self.starts: Final = self.run / "starts"
        """The times of recent process starts, for the crash backoff."""
        self.logs: Final = root / "logs"
        self.backups: Final = root / "backups"
        """Verified copies of the database."""
        self.models: Final = root / "models"
        """The model files that think in this home; made with the first of them."""
        self.sessions: Final = root / "claude-code" / "sessions", root / "claude-code" / "spool"
        """Where this user's Claude Code hooks keep session data, and spool it while the soul is not running."""

    @classmethod
    def of(cls, env: Mapping[str, str]) -> Home:
        """Return the home that `CLAUDIUS_HOME` names, by default `~/.claudius`. Raises: BadHome if there is no `~`."""
        named = env.get("CLAUDIUS_HOME") or "~/.claudius"
        try:
            return cls(Path(named).expanduser().absolute())
        except RuntimeError as error:
            raise BadHome(f"{named}: this user has no home directory; {_FIX}") from error

    def end_loan(self, session: str) -> bool:
        """End the loan to a session, or to any, that a sleeping soul would go on with. Return whether there was one."""
        with suppress(OSError, ValueError, LookupError, TypeError):  # a file that is no loan lends nothing
            if is_its := session in ("", json.loads(self.lent.read_bytes())["session"]):
                self.lent.unlink()
            return is_its
        return False

    def create(self) -> None:
        """Create the directories, private to this user. Raises: BadHome if another user owns one or creation fails.

        What an interrupted command was replacing there is put in its place first.
        """
        obey(self.root)
        for directory in (self.root, self.soul, self.memory, self.state, self.run, self.logs, self.backups):
            try:
                directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            except OSError as error:
                raise BadHome(f"{directory}: {error.strerror}; {_FIX}") from error
            if why := shut(directory):
                raise BadHome(why)
            if stat.S_IMODE(directory.stat().st_mode) & 0o077:
                directory.chmod(DIRECTORY_MODE)


def shut(directory: Path) -> str:
    """Return why a directory is not this user's, and what to do; empty if it is, or is not there."""
    try:
        owner = directory.stat().st_uid
    except OSError as error:
        return f"{directory}: {error.strerror}; {_FIX}" if isinstance(error, PermissionError) else ""
    return "" if owner == os.geteuid() else f"{directory} belongs to user {owner}: {_FIX}"


def write_all(file: int, content: bytes) -> None:
    """Write every byte to a descriptor: a single call may write only some, as on a disk that is nearly full.

    Raises: OSError; then some may be written.
    """
    left = memoryview(content)
    while left:
        left = left[os.write(file, left) :]


def write_private(path: Path, text: str) -> None:
    """Write a text file atomically, mode 0600: a reader sees the old file or the whole new one. Raises: OSError."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE), "w", encoding="utf-8") as file:  # noqa: PTH123 - the mode from the first byte on
        file.write(text)
    fresh.replace(path)


def shipped(what: Literal["soul", "memory", "console"]) -> Path:
    """Return the directory of what ships besides Python: the repository's in a checkout, else the wheel's copy."""
    package = Path(claudius.__file__).parent
    checkout = package.parents[1] / what
    is_checkout = (package.parents[1] / "pyproject.toml").is_file() and checkout.is_dir()
    return checkout if is_checkout else package / "_data" / what


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
