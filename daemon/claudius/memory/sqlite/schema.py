"""Create, check, migrate and open the database file and its write-ahead log; translate SQLite's errors into ours.

SQLite silently stops reading the log at a damaged frame, so the log may hold committed work that SQLite will not read
back; such a database is refused. A power loss may tear the last transaction, which nobody was told is durable. Because
a transaction begins only once the one before it is durable, a torn one has nothing after it, whereas a damaged one has.
Source: https://sqlite.org/fileformat2.html#walformat
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
import resource
import shlex
import shutil
import sqlite3
import stat
import struct
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from claudius.errors import StoreCorrupt, StoreError, StoreFull, StoreReadOnly, StoreTooNew
from claudius.foreign import unquoted
from claudius.memory.sqlite.backups import back_up, backups_of, is_ours, newest_copy
from claudius.memory.sqlite.file import (
    APPLICATION_ID,
    add_functions,
    open_reader,
    open_writer,
    pragma,
    private_files,
    siblings,
    vacuum,
)

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">4I")
_FRAME_HEADER_BYTES = 24
_MAGIC = 0x377F0682


class Log(Struct, frozen=True):
    """The log on disk: its header, and for each frame of its generation whether a transaction ends there."""

    header: bytes
    is_readable: bool
    ends: tuple[tuple[int, bool], ...]
    """Frame number from 1, and whether it is the last of a transaction."""


def look(wal: Path) -> Log | None:
    """Read the log's headers; None if there is no log or it is empty."""
    try:
        with wal.open("rb") as file:
            header = file.read(_HEADER.size)
            if len(header) < _HEADER.size:
                return None
            magic, _, page_bytes, _, salt1, salt2, *checksum = _HEADER.unpack(header)
            is_readable = magic & ~1 == _MAGIC and _checksum(header[:24], big=bool(magic & 1)) == tuple(checksum)
            ends = []
            size = wal.stat().st_size
            step = _FRAME_HEADER_BYTES + (page_bytes if is_readable else 4096)
            for number, at in enumerate(range(_HEADER.size, size - step + 1, step), 1):
                file.seek(at)
                _, pages, one, two = _FRAME.unpack(file.read(_FRAME.size))
                if (one, two) == (salt1, salt2) or not is_readable:
                    ends.append((number, pages != 0))
    except FileNotFoundError:
        return None
    return Log(header, is_readable, tuple(ends))


def _checksum(data: bytes, *, big: bool) -> tuple[int, int]:
    words = struct.unpack(f"{'>' if big else '<'}{len(data) // 4}I", data)
    first = second = 0
    for even, odd in zip(words[::2], words[1::2], strict=True):
        first = (first + even + second) & 0xFFFFFFFF
        second = (second + odd + first) & 0xFFFFFFFF
    return first, second


VACUUM_TAKES = 3
"""Free space needed, as a multiple of the file's size: the copy, the log that it passes through, and a reserve."""
_CHECK_AT_MOST_BYTES = 32 << 20
"""A file up to this size is checked at every start; a larger one only after an unclean stop."""


@cache
def load_migrations(directory: Path) -> Mapping[int, str]:
    """Read the numbered migrations, once a process. Raises: ValueError if a number is missing or duplicated."""
    found: dict[int, str] = {}
    for file in sorted(directory.glob("*.sql")):
        match = re.match(r"(\d{4})_\w+\.sql$", file.name)
        if not match or int(match[1]) != len(found) + 1:
            raise ValueError(f"{file}: expected a migration number {len(found) + 1:04d}")
        found[len(found) + 1] = file.read_text("utf-8")
    return MappingProxyType(found)


def open_database(path: Path, migrations: Mapping[int, str], backups: Path) -> sqlite3.Connection:
    """Open the database for writing: create or migrate it if needed, and check it. Raises: StoreError, typed."""
    wal, _ = siblings(path)
    try:
        if not _exists(path):
            create_database(path, migrations)
        if unwritable(path):  # before SQLite opens it: it would remove a log that it could read and not write
            raise forbidden(path)
        log = look(wal)
        connection = open_writer(path)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise translate(error, path) from error
    except OSError as error:
        raise no_room(path) if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else forbidden(path) from error
    try:
        found = check_identity(connection, path, migrations)
        check_log(connection, path, log)
        _check_pages(connection, path)
        with private_files():
            connection.execute("PRAGMA journal_mode = WAL")  # a copy has none: its readers would hold up who writes
        if found < len(migrations):
            back_up(path, backups, datetime.now(UTC))
            _migrate(connection, migrations, found)
        _make_room(connection, path)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        connection.close()
        raise translate(error, path) from error
    except BaseException:
        connection.close()
        raise
    return connection


def create_database(path: Path, migrations: Mapping[int, str]) -> None:
    """Create a new database in a temporary file and move it into place, so that a crash leaves all of it or nothing."""
    aside = path.with_name(f".new-{path.name}")
    with private_files():
        for file in (aside, *siblings(aside)):
            file.unlink(missing_ok=True)
        with closing(sqlite3.connect(aside, isolation_level=None)) as connection:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            _migrate(connection, migrations, 0)
        aside.rename(path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def empty_database(migrations: Mapping[int, str]) -> sqlite3.Connection:
    """Return an in-memory database with only the schema, which stands for a home that has no database yet."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.row_factory = sqlite3.Row
    _migrate(connection, migrations, 0)
    return connection


def check_identity(connection: sqlite3.Connection, path: Path, migrations: Mapping[int, str]) -> int:
    """Return the schema's version.

    Raises: StoreCorrupt if the file is not ours, StoreTooNew if it is of a later version.
    """
    application_id: int = pragma(connection, "application_id")
    version: int = pragma(connection, "user_version")
    if application_id != APPLICATION_ID:
        raise damaged(path, f"is not a database of Claudius (application id {application_id:#010x})")
    if version > len(migrations):
        raise StoreTooNew(
            f"{path} was written by a later version of Claudius (schema {version}, this one knows {len(migrations)}); "
            "run that version or a newer one"
        )
    return version


def check_pages(connection: sqlite3.Connection, path: Path) -> None:
    """Check every page of the database. Raises: StoreCorrupt, sqlite3.Error."""
    first: str = pragma(connection, "quick_check(1)")
    if first != "ok":
        raise damaged(path, f"is damaged ({first.splitlines()[-1]})")


async def check_database(path: Path) -> None:
    """Check every page, in a thread that ends when this is cancelled. Raises: StoreCorrupt, StoreError."""
    try:
        with closing(open_reader(path)) as reader:
            checking = asyncio.ensure_future(asyncio.to_thread(check_pages, reader, path))
            try:
                await asyncio.shield(checking)
            except asyncio.CancelledError:
                reader.interrupt()
                await asyncio.gather(checking, return_exceptions=True)
                raise
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise translate(error, path) from error


def _check_pages(connection: sqlite3.Connection, path: Path) -> None:
    is_small = pragma(connection, "page_count") * pragma(connection, "page_size") <= _CHECK_AT_MOST_BYTES
    has_boots = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'boot'").fetchone()
    last = connection.execute("SELECT clean FROM boot ORDER BY n DESC LIMIT 1").fetchone() if has_boots else None
    if is_small or (last is not None and not last["clean"]):
        check_pages(connection, path)


def check_log(connection: sqlite3.Connection, path: Path, before: Log | None) -> None:
    """Check that SQLite read all of the log that was there before it was opened. Raises: StoreCorrupt."""
    if before is None or not before.ends:
        return
    checkpoint = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if checkpoint["busy"]:  # another process, which checked the log, is writing it back; the other columns are -1
        return
    connection.execute("BEGIN IMMEDIATE")  # a process that restarts the log has written its new header by then
    connection.execute("ROLLBACK")
    after = look(siblings(path)[0])
    has_gone_on = after is not None and after.header != before.header  # another process restarted the log: it was read
    lost = [end for number, end in before.ends if number > checkpoint["log"]]  # the frames that SQLite found invalid
    if not has_gone_on and (not before.is_readable or True in lost[:-1]):  # a lost transaction with another after it
        raise damaged(path, "is damaged (its write-ahead log holds work that cannot be read)")


def check_new(path: Path) -> None:
    """Check that a database that is not there never was: nothing beside it tells of a life. Raises: StoreCorrupt."""
    if any(file.exists() and file.stat().st_size for file in siblings(path)[:1]):
        raise damaged(path, "is missing, though its write-ahead log stands there")
    root = path.parent.parent
    if sign := next(_signs_of_life(root), None):
        raise damaged(path, f"is missing, though a soul lived here: there is {sign.relative_to(root)}")


_AWAKE = b'"event": "awake'
"""Begins the log's line that a soul is awake."""


def _signs_of_life(root: Path) -> Iterator[Path]:
    """Yield what only a home has whose soul was awake once: unlike its texts, settings, and a log of failed starts."""
    for directory, names in ("memory", (".git", "users", "soul_state.md")), ("state", ("erasures.jsonl",)):
        yield from (found for name in names if (found := root / directory / name).exists())
    yield from (found for found in sorted((root / "backups").glob("*")) if is_ours(found.name))
    yield from (found for found in sorted((root / "logs").glob("claudius.log*")) if _AWAKE in found.read_bytes())


def _exists(path: Path) -> bool:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        if path.is_symlink():
            raise damaged(path, "is a link to a file that is not there") from None
        check_new(path)
        return False
    if size == 0:
        raise damaged(path, "is empty (0 bytes)")
    return True


def _make_room(connection: sqlite3.Connection, path: Path) -> None:
    """Rewrite an older file once, so that from now on its free pages can be returned in small steps.

    If the disk has no room for that, the file stays as it is, and `claudius doctor` says so.
    """
    if (
        not pragma(connection, "auto_vacuum")
        and shutil.disk_usage(path.parent).free > VACUUM_TAKES * path.stat().st_size
    ):
        with suppress(sqlite3.OperationalError):  # somebody is reading it, or there was less room than it seemed
            vacuum(connection)


def _migrate(connection: sqlite3.Connection, migrations: Mapping[int, str], found: int) -> None:
    add_functions(connection)
    for number in range(found + 1, len(migrations) + 1):
        try:
            connection.executescript(
                f"BEGIN IMMEDIATE;\n{migrations[number]}\nPRAGMA user_version = {number};\nCOMMIT;"
            )
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


_WRITE_FAILED = ("SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE", "SQLITE_IOERR_TRUNCATE", "SQLITE_IOERR_FSYNC")
_FORBIDDEN = ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR", "SQLITE_FORMAT")
_NEARLY_FULL_BYTES = 1 << 20


def translate(error: Exception, path: Path) -> StoreError:
    """Translate an SQLite error about the database at `path` into one of ours, with a one-line message."""
    if isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in str(error):
        return damaged(path, "is damaged (text that is none)")
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL" or (name in _WRITE_FAILED and _is_full(path)):
        return no_room(path)
    if name.startswith(_FORBIDDEN) or (name in _WRITE_FAILED and not os.access(path.parent, os.W_OK)):
        return forbidden(path)
    if name.startswith(_DAMAGED):
        return damaged(path, f"is damaged ({unquoted(error)})")
    if name.startswith("SQLITE_BUSY"):
        return StoreError(f"{path} is held by another process for too long; end it and try again")
    return StoreError(f"{path}: {unquoted(error)}")


def damaged(path: Path, what: str) -> StoreCorrupt:
    """Return an error that says that the database cannot be trusted, and which verified backup to restore."""
    copy = newest_copy(backups_of(path))
    if copy is None:
        fix = "there is no backup of it; put the undamaged file back, or move the whole home aside to start empty"
    else:
        fix = f"newest verified copy: {copy}; run: claudius backup restore {shlex.quote(str(copy))} --yes"
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
        return StoreReadOnly(f"{place}: {error.strerror}; set CLAUDIUS_HOME to a directory that you own")
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
