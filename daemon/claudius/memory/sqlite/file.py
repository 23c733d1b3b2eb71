"""Open the database file with private permissions and durable settings."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from claudius.home import FILE_MODE
from claudius.memory.database import Connection
from claudius.memory.ranking import stemmed

APPLICATION_ID = 0x436C6475
"""`Cldu` in the file's header marks the database as ours."""

BUSY_MS = 5000
_CACHE_KIB = 4 * 1024
ONCE_KIB = 512
"""Cache size for a reader that reads everything once and rereads nothing."""
_STATEMENTS = 256
_umask = threading.RLock()


@contextmanager
def private_files() -> Iterator[None]:
    """Make every file created in the block private to the owner, whatever the process's umask is."""
    with _umask:
        before = os.umask(0o077)
        try:
            yield
        finally:
            os.umask(before)


def open_writer(path: Path) -> sqlite3.Connection:
    """Open an existing database for writing. Raises: sqlite3.Error."""
    with private_files():
        connection = _connect(path, "rw")
        with ExitStack() as undo:
            undo.callback(connection.close)
            add_functions(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute("PRAGMA temp_store = MEMORY")  # else a statement's undo log is a file, made each time
            connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            connection.execute(
                "BEGIN IMMEDIATE"
            )  # creates -wal and -shm now, under our umask, and shows if it may write
            connection.execute("ROLLBACK")
            undo.pop_all()
    for file in (path, *siblings(path)):
        with suppress(FileNotFoundError):
            if file.stat().st_mode & 0o077:
                file.chmod(FILE_MODE)
    return connection


def add_functions(connection: sqlite3.Connection) -> None:
    """Register the functions that the triggers of the schema call."""

    def indexed(text: str, name: str, audience: int) -> str:
        return " ".join([f"{stem}:{audience}" for stem in stemmed(text, name)])

    connection.create_function("stemmed", 3, indexed, deterministic=True)


def vacuum(connection: Connection) -> None:
    """Rewrite the whole file through a copy on disk; the current `temp_store` would keep that copy in memory.

    Raises: sqlite3.Error.
    """
    connection.execute("PRAGMA temp_store = FILE")
    try:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # applies from now on, if the file is older
        connection.execute("VACUUM")
    finally:
        connection.execute("PRAGMA temp_store = MEMORY")


def open_reader(path: Path, *, cache_kib: int = _CACHE_KIB, is_alone: bool = False) -> sqlite3.Connection:
    """Open an existing database for reading, beside the writer. Raises: sqlite3.Error.

    Even to read, SQLite makes a write-ahead log and its shared index where there is none. With `is_alone` it makes
    nothing and takes no lock: only for a file that nobody has open, where nothing can be written.
    """
    wal, _ = siblings(path)
    alone = "ro&vfs=unix-none" if wal.exists() and wal.stat().st_size else "ro&immutable=1"
    with private_files():
        connection = _connect(path, alone if is_alone else "ro")
        with ExitStack() as undo:
            undo.callback(connection.close)
            if is_alone:
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")  # its own index of the log, in memory
            connection.execute(f"PRAGMA cache_size = -{cache_kib}")
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
            undo.pop_all()
    return connection


def siblings(path: Path) -> tuple[Path, Path]:
    """Return the paths of the write-ahead log and of its index. Pure."""
    return path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=BUSY_MS / 1000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=_STATEMENTS,
    )
    connection.row_factory = sqlite3.Row
    return connection


def pragma(connection: Connection, name: str) -> Any:
    """Return what a pragma of one value says, or of a check its first finding. Raises: sqlite3.Error."""
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return value
