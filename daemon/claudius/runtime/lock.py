"""The lock of a home: its holder takes turns. It is held for life and never unlinked; a pid alone proves nothing."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Self

from msgspec import Struct

import claudius
from claudius.errors import AlreadyRunning, BadHome
from claudius.home import FILE_MODE, Home, discard_incoming, obey, write_all

if TYPE_CHECKING:
    from claudius.config import Secret

Role = Literal["daemon", "command"]
"""What the holder is: the daemon, or a command that woke the soul for as long as it runs."""


class Holder(Struct, frozen=True):
    """What the lock file says of the present or last holder."""

    pid: int
    role: str = ""
    unit: str = ""
    """The supervisor's name for the process; empty if there is none."""


class HomeLock:
    """An exclusive `flock` on `run/claudius.lock`."""

    def __init__(self, home: Home, role: Role = "command", *, unit: str = "") -> None:
        """Acquire the lock and record the holder. Raises: AlreadyRunning if it is held, BadHome on errors."""
        try:
            self._file = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
        except OSError as error:
            raise BadHome(f"{home.lock} cannot be opened ({error.strerror}): run: chmod u+rwX {home.run}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                found = holder(home)
                raise AlreadyRunning(found.pid if found else None, str(home.root)) from None
            raise BadHome(f"{home.lock}: {error.strerror}: move CLAUDIUS_HOME to a disk that can lock files") from error
        self._record = {"pid": os.getpid(), "role": role, "unit": unit, "version": claudius.__version__}
        self._write(self._record)
        try:
            obey(home.root)
            discard_incoming(home.root)
        except BaseException:
            self.release()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def sign(self, boot: str, now: datetime, fingerprints: Mapping[str, str]) -> None:
        """Add what is known once the soul wakes: the boot, its instant, and which tokens it holds."""
        self._write({**self._record, "boot": boot, "started_at": now.isoformat(), "tokens": dict(fingerprints)})

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._file < 0:
            return
        os.ftruncate(self._file, 0)
        os.close(self._file)
        self._file = -1

    def _write(self, record: Mapping[str, object]) -> None:
        content = json.dumps(record).encode()
        try:
            os.lseek(self._file, 0, os.SEEK_SET)
            write_all(self._file, content)
            os.ftruncate(self._file, len(content))
        except OSError as error:
            os.close(self._file)
            self._file = -1
            raise BadHome(f"the lock of this home cannot be written ({error.strerror}): free some space") from error


def fingerprints(secrets: Mapping[str, Secret]) -> dict[str, str]:
    """Return a short hash of each secret, so that two homes with the same token can be detected. Pure."""
    return {name: hashlib.sha256(secret.reveal().encode()).hexdigest()[:8] for name, secret in secrets.items()}


def holder(home: Home) -> Holder | None:
    """Return what the lock file says, or None if it says nothing. Does not tell whether the lock is held."""
    try:
        record = json.loads(home.lock.read_text())
        return Holder(int(record["pid"]), str(record.get("role", "")), str(record.get("unit", "")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def is_held(home: Home) -> bool:
    """Return whether a process holds the home now."""
    try:
        file = os.open(home.lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False
