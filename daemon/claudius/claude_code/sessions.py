"""Records which Claude Code sessions are ensouled: a small file each, because a hook cannot load a database."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from claudius.home import DIRECTORY_MODE, FILE_MODE, Home

UNUSED_S = 30 * 86_400.0
_ID = re.compile(r"[0-9A-Za-z-]{1,64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One session that was ensouled, or for which that was declined."""

    session: str
    project: str = ""
    on: bool = False
    owed: bool = False
    """Its next prompt is given the soul, whatever else was given."""
    prompt: str = ""
    """The last prompt typed, if the soul is to remember."""
    last_at: float = 0.0
    """Seconds since the epoch."""


def is_session(text: object) -> bool:
    """Return whether a text may be a session's id; nothing else becomes part of a path. Pure."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


class Sessions:
    """The sessions of one home."""

    def __init__(self, home: Home) -> None:
        """Keep the sessions in a directory of their own."""
        self._directory = home.sessions[0]

    def find(self, session: str) -> Session | None:
        """Return a session, or None if it is unknown or its file cannot be read."""
        if not is_session(session):
            return None
        try:
            found = json.loads((self._directory / f"{session}.json").read_text("utf-8"))
            return Session(**found)
        except (OSError, ValueError, TypeError):
            return None

    def keep(self, session: Session) -> None:
        """Store a session atomically. Raises: OSError."""
        if not is_session(session.session):
            return
        self._directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        path = self._directory / f"{session.session}.json"
        new = path.with_suffix(f".{os.getpid()}")
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE), "w", encoding="utf-8") as file:  # noqa: PTH123 - the mode from the first byte on
            json.dump(asdict(replace(session, last_at=time.time())), file)
        new.replace(path)

    def every(self) -> Iterator[Session]:
        """Yield every session, most recently used first."""
        names = [path.stem for path in self._directory.glob("*.json")] if self._directory.is_dir() else []
        found = [one for name in names if (one := self.find(name))]
        yield from sorted(found, key=lambda one: -one.last_at)

    def prune(self) -> None:
        """Delete sessions that nobody has used for 30 days."""
        for one in self.every():
            if time.time() - one.last_at > UNUSED_S:
                with suppress(OSError):
                    (self._directory / f"{one.session}.json").unlink()
