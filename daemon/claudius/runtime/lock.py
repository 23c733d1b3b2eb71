"""The lock of a home: who holds it takes turns. Held for life, never unlinked; a pid alone proves nothing."""

from __future__ import annotations

import errno
import fcntl
import json
import os
from datetime import datetime
from typing import Self

import claudius
from claudius.errors import AlreadyRunning, BadHome
from claudius.home import FILE_MODE, Home


class HomeLock:
    """An exclusive `flock` on `run/claudius.lock`."""

    def __init__(self, home: Home) -> None:
        """Take it. Raises: AlreadyRunning if another process holds it, BadHome where files cannot be locked."""
        self._file = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise AlreadyRunning(holder(home), str(home.root)) from None
            raise BadHome(f"{home.lock}: {error.strerror}: move CLAUDIUS_HOME to a disk that can lock files") from error

    def __enter__(self) -> Self:
        """Hold it for a block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let it go."""
        self.release()

    def sign(self, boot: str, now: datetime) -> None:
        """Write who holds it: pid, boot, version and start time."""
        record = {"pid": os.getpid(), "boot": boot, "version": claudius.__version__, "started_at": now.isoformat()}
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, json.dumps(record).encode(), 0)

    def release(self) -> None:
        """Let it go."""
        os.ftruncate(self._file, 0)
        os.close(self._file)


def holder(home: Home) -> int | None:
    """Return the pid in the lock file; None where there is none."""
    try:
        return int(json.loads(home.lock.read_text())["pid"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
