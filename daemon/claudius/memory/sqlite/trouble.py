"""Translate SQLite's errors into ours: full, read-only, damaged, or busy."""

from __future__ import annotations

import os
import resource
import sqlite3
import stat
from pathlib import Path

from claudius.errors import StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from claudius.memory.sqlite.backups import backups_of, newest_backup
from claudius.memory.sqlite.connection import siblings

_WRITE_FAILED = ("SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_TRUNCATE", "SQLITE_IOERR_FSYNC")
_FORBIDDEN = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR", "SQLITE_FORMAT")
_NEARLY_FULL_BYTES = 1 << 20


def translate(error: sqlite3.Error | UnicodeDecodeError, path: Path) -> StoreError:
    """Translate an SQLite error about the database at `path` into one of ours, with a one-line message."""
    if isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in str(error):
        return damaged(path, "is damaged (text that is none)")
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL" or (name in _WRITE_FAILED and _is_full(path)):
        return no_room(path)
    if name.startswith(_FORBIDDEN) or (name in _WRITE_FAILED and not os.access(path.parent, os.W_OK)):
        return forbidden(path)
    if name.startswith(_DAMAGED):
        return damaged(path, f"is damaged ({error})")
    if name.startswith("SQLITE_BUSY"):
        return StoreError(f"{path} is held by another process for too long; end it and try again")
    return StoreError(f"{path}: {error}")


def damaged(path: Path, what: str) -> StoreCorrupt:
    """Return an error that says that the database cannot be trusted, and which verified backup to restore."""
    backup = newest_backup(backups_of(path))
    if backup is None:
        fix = "there is no backup of it; put the undamaged file back, or move the whole home aside to begin anew"
    else:
        fix = f"newest verified backup: {backup}; run: claudius backup restore {backup} --yes"
    return StoreCorrupt(f"{path} {what}; {fix}")


def no_room(path: Path) -> StoreFull:
    """Return an error that says that there is no space left."""
    return StoreFull(f"{path}: no space left to write to; free some, nothing was accepted meanwhile")


def unwritable(path: Path) -> Path | None:
    """Return the first of the database's directory and files that is not writable; None if all are."""
    suspects = (path.parent, path, *(file for file in siblings(path) if file.exists()))
    return next((one for one in suspects if not os.access(one, os.W_OK)), None)


def forbidden(path: Path) -> StoreError:
    """Return an error that says who owns the unwritable path, its mode, and the fix."""
    place = unwritable(path) or path
    try:
        found = place.stat()
    except OSError as error:
        return StoreReadOnly(f"{place}: {error.strerror}; set CLAUDIUS_HOME to a directory of your own")
    mode = stat.S_IMODE(found.st_mode)
    return StoreReadOnly(
        f"{place} cannot be written (owner {found.st_uid}, mode {mode:04o}): run: chmod u+rwX {place}, "
        "or mount its file system for writing"
    )


def _is_full(path: Path) -> bool:
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit != resource.RLIM_INFINITY:
        return True
    try:
        space = os.statvfs(path.parent)
    except OSError:
        return False
    return space.f_bavail * space.f_frsize < _NEARLY_FULL_BYTES
