"""Backups are verified before they count as backups, and a migration makes one first."""

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from claudius.errors import StoreCorrupt, StoreError
from claudius.home import Home, shipped
from claudius.memory.sqlite import SqliteRecords, SqliteStore, backups
from claudius.memory.sqlite.backups import back_up, discard, newest_copy, sum_of, verify
from claudius.memory.sqlite.schema import load_migrations, open_database
from contracts.store.ground import DM, NOW, Ground, awake, exchange, heard

MIGRATIONS = load_migrations(shipped("memory") / "schema")
LATER = {**MIGRATIONS, len(MIGRATIONS) + 1: "CREATE TABLE later (a TEXT) STRICT;"}
BROKEN = {**MIGRATIONS, len(MIGRATIONS) + 1: "CREATE TABLE half (a TEXT) STRICT;\nINSERT INTO nowhere VALUES (1);"}


async def lived(home: Home) -> None:
    """Run one turn in a home."""
    async with awake(Ground(lambda: SqliteStore(home.database))) as store:
        await exchange(store, heard())


async def test_a_backup_holds_what_the_database_holds_beside_its_writer(home: Home) -> None:
    """A copy is made while a store is open, and reads like the original."""
    async with awake(Ground(lambda: SqliteStore(home.database))) as store:
        await exchange(store, heard())
        made = back_up(home.database, home.backups, NOW)
        await exchange(store, heard(n=2))

    assert made.is_verified
    assert newest_copy(home.backups) == made.path
    with closing(SqliteRecords(made.path)) as records:
        found = records.conversation(DM)
    assert found is not None
    assert found["turns"] == 1


async def test_a_copy_that_lacks_rows_is_no_backup(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy with fewer rows than the original is deleted, and the failure is reported."""
    await lived(home)
    counted = iter([{"turn": 2}, {"turn": 1}])
    monkeypatch.setattr(backups, "row_counts", lambda _: next(counted))

    with pytest.raises(StoreCorrupt, match="rows"):
        back_up(home.database, home.backups, NOW)
    assert list(home.backups.iterdir()) == []


@pytest.mark.parametrize("damage", ["cut", "foreign", "text", "gone"])
async def test_a_damaged_backup_is_not_verified(home: Home, damage: str) -> None:
    """Verification opens the copy and looks at every page."""
    await lived(home)
    path = back_up(home.database, home.backups, NOW).path
    match damage:
        case "cut":
            path.write_bytes(path.read_bytes()[:8192])
        case "foreign":
            with closing(sqlite3.connect(path)) as connection:
                connection.execute("PRAGMA application_id = 1")
        case "text":
            path.write_text("no database")
        case "gone":
            path.unlink()

    assert not verify(path).is_verified


async def test_a_byte_that_changed_is_found_though_every_page_reads(home: Home) -> None:
    """Each copy has a sha256 file as `sha256sum -c` reads it, so that changes which SQLite cannot see are found."""
    await lived(home)
    made = back_up(home.database, home.backups, NOW)
    told, sha256 = sum_of(made.path).read_text(), hashlib.sha256(made.path.read_bytes()).hexdigest()
    before = verify(made.path)

    with closing(sqlite3.connect(made.path)) as connection, connection:
        connection.execute("UPDATE entry SET content = 'You owe me money.'")

    assert told.split() == [sha256, made.path.name]
    assert before.is_verified
    assert before.has_sum
    after = verify(made.path)
    assert [name for name, ok in after.checks.items() if not ok] == ["sha256"]


async def test_a_copy_goes_with_its_sum(home: Home) -> None:
    """Deleting a copy also deletes its sum file."""
    await lived(home)

    discard(back_up(home.database, home.backups, NOW).path)

    assert list(home.backups.iterdir()) == []


async def test_an_older_database_is_backed_up_then_migrated(home: Home) -> None:
    """Before a migration the database is copied and the copy verified; afterwards both can be opened."""
    await lived(home)

    open_database(home.database, LATER, home.backups).close()

    copy = newest_copy(home.backups)
    assert copy is not None
    assert _version(copy) == len(MIGRATIONS)
    assert _version(home.database) == len(LATER)


async def test_a_migration_that_fails_changes_nothing(home: Home) -> None:
    """Each migration is one transaction: a failing one leaves the schema as it was."""
    await lived(home)

    with pytest.raises(StoreError, match="OperationalError SQLITE_ERROR"):
        open_database(home.database, BROKEN, home.backups)

    assert _version(home.database) == len(MIGRATIONS)
    with closing(sqlite3.connect(home.database)) as connection:
        assert connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'half'").fetchone() is None


async def test_a_database_of_today_is_not_backed_up_at_each_start(home: Home) -> None:
    """Without a migration no copy is made."""
    await lived(home)
    open_database(home.database, MIGRATIONS, home.backups).close()

    assert list(home.backups.iterdir()) == []


def _version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found
