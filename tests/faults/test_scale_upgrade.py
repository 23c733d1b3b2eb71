"""F11: two releases side by side, a migration in between, and one release too old."""

import asyncio
import shutil
from pathlib import Path

import psycopg
import pytest

from claudius.errors import StoreTooNew, TryAgain
from claudius.home import shipped
from claudius.memory.database import StorePlace
from claudius.memory.leases import LeaseTimes
from claudius.memory.postgres.schema import known, migrations, oldest_beside
from claudius.memory.postgres.store import PostgresStore
from contracts.store.ground import DM, NOW, heard
from driven import Machine

EXPANDS = "-- oldest: {oldest}\nALTER TABLE person ADD COLUMN colour text COLLATE \"C\" NOT NULL DEFAULT '';\n"
CONTRACTS = "-- oldest: {oldest}\nALTER TABLE person DROP COLUMN colour;\n"
BASE = known(shipped("memory"))
"""The schema of this release; the tests add later ones."""
TIMES = LeaseTimes(lease_s=3.0, renew_s=1.0, look_s=0.05)


def release(root: Path, *later: str) -> Path:
    """Return the directory of a release that has these migrations."""
    made = root / f"memory-{len(later)}"
    shutil.copytree(shipped("memory"), made)
    for n, text in enumerate(later, BASE + 1):
        (made / "postgres" / f"{n:04d}_later.sql").write_text(text)
    return made


def worker(url: str, memory: Path | None = None) -> PostgresStore:
    """Return the store of a worker of a release."""
    return PostgresStore(StorePlace(url), memory=memory, times=TIMES, roles="lanes")


async def test_scale_f11_releases_run_side_by_side_until_one_is_too_old(postgres_url: str, tmp_path: Path) -> None:
    """W9: beside a migration that says so, the release before goes on; the one before that loses its lanes, and ends."""
    new = release(tmp_path, EXPANDS.format(oldest=BASE))
    newest = release(
        tmp_path, EXPANDS.format(oldest=BASE), f"-- oldest: {BASE + 1}\nALTER TABLE person ADD COLUMN size bigint;\n"
    )
    old = worker(postgres_url)
    await old.start("old", NOW)
    await old.inbox.accept([heard()], NOW)
    middle = worker(postgres_url, new)
    await middle.start("middle", NOW)
    assert await old.leases.take((), 16) == [DM]
    await old.leases.renew()  # beside the first migration it goes on
    last = worker(postgres_url, newest)
    await last.start("last", NOW)
    with pytest.raises(StoreTooNew, match="later version"):
        await old.leases.renew()
    assert await old.leases.take((), 16) == []
    assert await middle.leases.take((), 16) == [DM]
    late = worker(postgres_url)
    with pytest.raises(StoreTooNew, match="later version"):
        await late.open()
    for store in (old, middle, last):
        await store.close(clean=True)

    with psycopg.connect(postgres_url) as made:
        assert made.execute("SELECT schema, oldest FROM release").fetchone() == (BASE + 2, BASE + 1)


async def test_scale_f11_a_contracting_migration_waits_for_older_processes(postgres_url: str, tmp_path: Path) -> None:
    """What would break an older process at work does not run; its machine is named; once it has ended, it runs."""
    first, second = EXPANDS.format(oldest=BASE), CONTRACTS.format(oldest=BASE + 2)
    new, newest = release(tmp_path, first), release(tmp_path, first, second)
    old = worker(postgres_url, new)
    await old.start("old", NOW)
    refused = worker(postgres_url, newest)
    with pytest.raises(TryAgain, match="would break: end it"):
        await refused.open()
    await old.close(clean=True)
    then = worker(postgres_url, newest)
    await then.open()
    await then.close(clean=False)

    with psycopg.connect(postgres_url) as made:
        assert made.execute("SELECT schema, oldest FROM release").fetchone() == (BASE + 2, BASE + 2)


async def test_scale_f11_one_process_migrates_and_the_others_wait(postgres_url: str, tmp_path: Path) -> None:
    """Many processes of a new release start at once: the migration runs once, and all of them begin."""
    await _once(worker(postgres_url))
    new = release(tmp_path, EXPANDS.format(oldest=BASE))

    await asyncio.gather(*(_once(worker(postgres_url, new)) for _ in range(4)))

    with psycopg.connect(postgres_url) as made:
        assert made.execute("SELECT schema FROM release").fetchone() == (BASE + 1,)


async def _once(store: PostgresStore) -> None:
    await store.open()
    await store.close(clean=False)


def test_scale_f11_a_release_that_is_too_old_ends_with_78(postgres_url: str, tmp_path: Path) -> None:
    """A running process sees within a renewal that it is too old, and ends with 78 and one line; it starts no more."""
    machine = Machine(tmp_path, env={"CLAUDIUS_STORE_URL": postgres_url, "CLAUDIUS_WORKER_LEASE_S": "3"})
    with machine.foreground() as process:
        machine.until_logged("awake")
        with psycopg.connect(postgres_url, autocommit=True) as made:
            made.execute("UPDATE release SET schema = 99, oldest = 99")
        said, _ = process.communicate(timeout=30)
        code = process.returncode
    again = machine.run("chat", "--once", "Hello")

    assert (code, again.code) == (78, 78)
    assert b"later version" in said
    assert "later version" in again.stderr


def test_scale_f11_every_migration_says_who_may_write_beside_it() -> None:
    """Each later version of the schema names the oldest release that may write beside it."""
    found = migrations(shipped("memory"))

    assert all(oldest_beside(number, text) <= number for number, text in found.items())
