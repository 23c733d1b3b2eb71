"""A damaged database is refused with one helpful line, and so is each error of SQLite; memory is never silently empty. R18."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from claudius.errors import EXIT_CONFIG, EXIT_TRY_AGAIN, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from claudius.home import Home, shipped
from claudius.memory.database import Database
from claudius.memory.sqlite import SqliteRecords, SqliteStore
from claudius.memory.sqlite.backups import back_up
from claudius.memory.sqlite.file import open_reader
from claudius.memory.sqlite.schema import forbidden, translate
from contracts.store.ground import DM, NOW, exchange, heard

TURNS = 12
CHECKPOINTING = """
import fcntl, sys
shared = open(sys.argv[1], "r+b")
fcntl.lockf(shared, fcntl.LOCK_EX, 1, 121)
print("held", flush=True)
sys.stdin.read()
"""
"""Holds the lock of a process that writes the log back (byte 121: https://sqlite.org/walformat.html#wal_locks)."""


async def lived(home: Home, *, copy_to: Home | None = None) -> None:
    """Run a dozen turns in a home; `copy_to` receives the files as a crash would leave them."""
    store = SqliteStore(home.database)
    await store.start("boot-1", NOW)
    for n in range(TURNS):
        await exchange(store, heard(f"the {n}th " * 40, n=n))
    if copy_to:
        for file in home.state.iterdir():
            shutil.copy(file, copy_to.state / file.name)
    await store.close(clean=True)


async def refused(home: Home) -> StoreError:
    """Return why the home's database is refused."""
    with pytest.raises(StoreError) as caught:
        await SqliteStore(home.database).open()
    assert "\n" not in caught.value.message
    return caught.value


DAMAGES: dict[str, Callable[[Path], object]] = {
    "zero length": lambda path: path.write_bytes(b""),
    "no database": lambda path: path.write_text("Dear diary, " * 100),
    "cut in half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "cut in its first page": lambda path: path.write_bytes(path.read_bytes()[:100]),
    "first page gone": lambda path: path.write_bytes(bytes(4096) + path.read_bytes()[4096:]),
    "foreign": lambda path: _pragma(path, "application_id = 7"),
    "gone, its log left behind": lambda path: path.rename(path.with_name("claudius.db-wal")),
}


def _pragma(path: Path, setting: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA {setting}")


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_file_is_refused_and_left_as_it_is(home: Home, damage: str) -> None:
    """A corrupt, foreign or empty file is refused with exit 78 and one line on how to restore; it is not changed."""
    await lived(home)
    made = back_up(home.database, home.backups, NOW)
    DAMAGES[damage](home.database)
    before = home.database.read_bytes() if home.database.exists() else None

    error = await refused(home)

    assert isinstance(error, StoreCorrupt)
    assert error.exit_code == EXIT_CONFIG
    assert f"claudius backup restore {made.path} --yes" in error.message
    assert (home.database.read_bytes() if home.database.exists() else None) == before


async def test_without_a_backup_the_line_says_so(home: Home) -> None:
    """If no backup can be restored, the line says what is left to do."""
    await lived(home)
    home.database.write_bytes(b"")

    assert "there is no backup" in (await refused(home)).message


async def test_damage_found_while_running_is_named(home: Home) -> None:
    """A page that became unreadable raises StoreCorrupt where it is first read, and no wrong answer is given."""
    await lived(home)
    pages = bytearray(home.database.read_bytes())
    for page in range(4096, len(pages), 4096):
        pages[page : page + 200] = bytes(range(200))
    home.database.write_bytes(pages)

    with pytest.raises(StoreCorrupt):
        _read(home)


def _read(home: Home) -> object:
    with closing(SqliteRecords(home.database)) as records:
        return records.conversation(DM)


async def _opens(home: Home) -> int | None:
    """Return how many turns are found, or None if the database is refused."""
    store = SqliteStore(home.database)
    try:
        await store.start("boot-2", NOW)
        with closing(SqliteRecords(home.database)) as records:
            found = records.conversation(DM)
    except StoreCorrupt:
        return None
    finally:
        await store.close(clean=False)
    return found["turns"] if found else 0


async def test_a_log_of_another_generation_is_no_damage(home: Home) -> None:
    """Old frames behind the start of a new log are not mistaken for lost work."""
    store = SqliteStore(home.database)
    await store.start("boot-1", NOW)
    for n in range(TURNS):
        await exchange(store, heard("x" * 20_000, n=n))
    await store.core.write(lambda _: None)
    store.core.reader.connection.execute("PRAGMA query_only = 1")
    with closing(sqlite3.connect(home.database)) as beside:
        beside.execute("PRAGMA wal_checkpoint(RESTART)")
    await exchange(store, heard("last", n=99))
    crashed = Home(home.root.parent / "crashed")
    crashed.create()
    for file in home.state.iterdir():
        shutil.copy(file, crashed.state / file.name)
    await store.close(clean=True)

    assert await _opens(crashed) == TURNS + 1


@contextmanager
def checkpointing(home: Home) -> Iterator[None]:
    """Have another process hold the lock of a checkpoint for a block."""
    holds = [sys.executable, "-c", CHECKPOINTING, str(home.database.with_name("claudius.db-shm"))]
    with subprocess.Popen(holds, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdout
        assert daemon.stdout.readline() == b"held\n"
        yield
        daemon.communicate()


async def test_a_log_that_another_process_is_writing_back_is_no_damage(home: Home) -> None:
    """An owner's change opens the database while the daemon checkpoints; SQLite then tells nothing of the log."""
    store = SqliteStore(home.database)
    await store.start("boot-1", NOW)
    await exchange(store, heard("first", n=0))
    with checkpointing(home):
        beside = SqliteStore(home.database)
        await beside.open()
        await beside.close(clean=False)
    await store.close(clean=True)


async def test_records_of_a_home_without_a_past_are_empty(home: Home) -> None:
    """If nothing was ever kept, every query returns an empty result, and no file is created."""
    records = SqliteRecords(home.database)
    counts = records.counts(NOW)
    records.close()

    assert counts == {
        "inbox": {"pending": 0, "dead": 0},
        "outbox": {"pending": 0, "failed": 0},
        "turns": {"total": 0, "today": 0},
    }
    assert list(home.state.iterdir()) == []


async def test_records_of_an_earlier_schema_say_how_to_migrate(home: Home) -> None:
    """A reading command refuses an older schema and says what brings it up to date."""
    await lived(home)
    _pragma(home.database, f"user_version = {len(list((shipped('memory') / 'schema').glob('*.sql'))) - 1}")

    with pytest.raises(StoreError, match="migrates it"):
        SqliteRecords(home.database)


async def test_a_reader_needs_no_writer(home: Home) -> None:
    """Records open read-only without a writer, and write nothing."""
    await lived(home)
    with closing(open_reader(home.database)) as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM entry")


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
