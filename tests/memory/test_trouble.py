"""The one-line explanation of each SQLite error."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from claudius.errors import EXIT_CONFIG, EXIT_TRY_AGAIN, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from claudius.home import Home
from claudius.memory.sql.connection import Database
from claudius.memory.sqlite import SqliteStore
from claudius.memory.sqlite.schema import forbidden, translate
from contracts.store.ground import NOW, heard


def error_named(name: str) -> sqlite3.Error:
    """Return an error as SQLite's binding raises it."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = name
    return error


@pytest.mark.parametrize(
    ("name", "kind", "exit_code"),
    [
        ("SQLITE_FULL", StoreFull, EXIT_TRY_AGAIN),
        ("SQLITE_CORRUPT", StoreCorrupt, EXIT_CONFIG),
        ("SQLITE_CORRUPT_INDEX", StoreCorrupt, EXIT_CONFIG),
        ("SQLITE_NOTADB", StoreCorrupt, EXIT_CONFIG),
        ("SQLITE_IOERR_READ", StoreCorrupt, EXIT_CONFIG),
        ("SQLITE_IOERR_WRITE", StoreCorrupt, EXIT_CONFIG),
        ("SQLITE_READONLY", StoreReadOnly, EXIT_CONFIG),
        ("SQLITE_CANTOPEN", StoreReadOnly, EXIT_CONFIG),
        ("SQLITE_BUSY", StoreError, EXIT_CONFIG),
        ("SQLITE_CONSTRAINT_UNIQUE", StoreError, EXIT_CONFIG),
    ],
)
def test_each_error_has_its_kind_and_one_line(home: Home, name: str, kind: type[StoreError], exit_code: int) -> None:
    """A full disk is worth a retry; damage and missing write permission are not."""
    home.database.touch()

    found = translate(error_named(name), home.database)

    assert type(found) is kind
    assert found.exit_code == exit_code
    assert "\n" not in found.message
    assert str(home.state) in found.message


@pytest.mark.parametrize("free", [0, 1 << 30])
def test_a_failed_write_on_a_full_disk_is_no_damage(home: Home, monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    """SQLite reports some full disks as I/O errors: the free space decides which it was."""
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=free, f_frsize=1))

    found = translate(error_named("SQLITE_IOERR_WRITE"), home.database)

    assert isinstance(found, StoreFull) is (free == 0)


def test_a_directory_that_is_gone_is_named(home: Home) -> None:
    """If the directory is missing, the line says so, and which setting to change."""
    home.state.rmdir()

    assert "CLAUDIUS_HOME" in forbidden(home.database).message


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.mkdir(),
        lambda path: path.symlink_to(path.with_name("loop")),
        lambda path: path.symlink_to(path.with_name("nothing")),
    ],
    ids=["directory", "loop", "dead link"],
)
async def test_what_is_no_file_is_refused(home: Home, make: Callable[[Path], object]) -> None:
    """A directory or a dead link in the database's place is a one-line error, and stays in place."""
    (home.state / "loop").symlink_to(home.database)
    make(home.database)

    with pytest.raises(StoreError) as caught:
        await SqliteStore(home.database).open()
    assert "\n" not in caught.value.message
    assert home.database.is_symlink() or home.database.is_dir()


async def test_a_lock_held_too_long_is_named(home: Home) -> None:
    """If another process holds the lock too long, one write fails with a clear line; the next succeeds."""
    store = SqliteStore(home.database)
    await store.start("boot-1", NOW)
    store.core.writer._database.connection.execute("PRAGMA busy_timeout = 0")
    with closing(sqlite3.connect(home.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StoreError, match="held by another process"):
            await store.inbox.accept((heard(),), NOW)

    assert await store.inbox.accept((heard(),), NOW) == (True,)
    await store.close(clean=True)


async def test_a_transaction_that_sqlite_gave_up_fails_whole(home: Home) -> None:
    """If SQLite rolls back the whole transaction under a job, no job of it is reported as durable."""

    def give_up(db: Database) -> None:
        """End the transaction, then fail."""
        db.connection.execute("ROLLBACK")
        raise ValueError("gone")

    store = SqliteStore(home.database)
    await store.start("boot-1", NOW)
    with pytest.raises(StoreError, match="OperationalError"):
        await store.core.write(give_up)

    assert await store.inbox.accept((heard(),), NOW) == (True,)
    await store.close(clean=True)


async def test_a_write_that_nobody_waits_for_fails_aloud(home: Home, caplog: pytest.LogCaptureFixture) -> None:
    """The failure of an unawaited write is logged, and affects nothing else."""

    def stumble(_: Database) -> None:
        """Fail."""
        raise ValueError("stumbled")

    store = SqliteStore(home.database)
    await store.start("boot-1", NOW)
    store.core.writer.later(stumble)
    await store.inbox.accept((heard(),), NOW)
    await store.close(clean=True)

    assert "failed: ValueError" in caplog.text
    assert "in stumble" in caplog.text
