"""Locate everything on disk: `$CLAUDIUS_HOME` on this machine, and the soul and memory that ship with the package."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

import claudius
from claudius.errors import BadHome
from claudius.replacing import obey

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
        self.starts: Final = self.run / "starts"
        """The times of recent process starts, for the crash backoff."""
        self.logs: Final = root / "logs"
        self.backups: Final = root / "backups"
        """Verified copies of the database."""
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

    def create(self) -> None:
        """Create the directories, private to this user. Raises: BadHome if another user owns one or creation fails.

        What an interrupted command was replacing there is put in its place first.
        """
        obey(self.root)
        for directory in (self.root, self.soul, self.memory, self.state, self.run, self.logs, self.backups):
            try:
                directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
                found = directory.stat()
            except OSError as error:
                raise BadHome(f"{directory}: {error.strerror}; {_FIX}") from error
            if found.st_uid != os.geteuid():
                raise BadHome(f"{directory} belongs to user {found.st_uid}: {_FIX}")
            if stat.S_IMODE(found.st_mode) & 0o077:
                directory.chmod(DIRECTORY_MODE)


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
