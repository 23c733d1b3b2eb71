"""Where a child of ours lives: an empty working directory, system prompts by file, and no transcript left behind."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from claudius.errors import Unavailable
from claudius.home import DIRECTORY_MODE, FILE_MODE, Home

PROMPTS_KEPT = 8


class Places:
    """The directories of one transport in one home, private to this user."""

    def __init__(self, home: Home, name: str, environ: Mapping[str, str]) -> None:
        """Make them, and delete what a killed daemon left. Raises: Unavailable if they cannot be made."""
        self._root = home.run / name
        config = environ.get("CLAUDE_CONFIG_DIR") or str(Path(environ.get("HOME") or "~").expanduser() / ".claude")
        self._transcripts = Path(config) / "projects"
        try:
            for directory in (self._root, self._prompts, self._sessions, self.cwd):
                directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            for left in self.cwd.iterdir():
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
        except OSError as error:
            raise Unavailable(f"{self._root} cannot be used: {error.strerror}") from error
        for session in list(self._sessions.iterdir()):
            self.forget(session.name)

    @property
    def cwd(self) -> Path:
        """The empty directory that a child works in."""
        return self._root / "empty"

    @property
    def _prompts(self) -> Path:
        return self._root / "system"

    @property
    def _sessions(self) -> Path:
        return self._root / "sessions"

    def system_file(self, system: str) -> Path:
        """Write a system prompt once and return its file; only the newest few are kept."""
        path = self._prompts / (hashlib.sha256(system.encode("utf-8", "surrogatepass")).hexdigest()[:32] + ".md")
        if not path.exists():
            new = path.with_suffix(f".{os.getpid()}")
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE), "w", encoding="utf-8") as file:  # noqa: PTH123 - the mode from the first byte on
                file.write(system)
            new.replace(path)
            for old in sorted(self._prompts.glob("*.md"), key=lambda file: file.stat().st_mtime)[:-PROMPTS_KEPT]:
                old.unlink(missing_ok=True)
        return path

    def note(self, session: str) -> None:
        """Remember that a transcript of this session will be written, so that it is deleted whatever happens."""
        (self._sessions / session).touch(mode=FILE_MODE)

    def forget(self, session: str) -> None:
        """Delete a session's transcript."""
        for found in self._transcripts.glob(f"*/{session}*"):
            with suppress(FileNotFoundError):
                shutil.rmtree(found) if found.is_dir() and not found.is_symlink() else found.unlink()
        (self._sessions / session).unlink(missing_ok=True)
