"""Every file that the store creates is private to its owner, whatever the process's umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from claudius.home import Home
from claudius.memory.sqlite import SqliteStore
from contracts.store.ground import NOW


@pytest.fixture(autouse=True)
def careless() -> Iterator[None]:
    """Set umask 000."""
    before = os.umask(0)
    yield
    os.umask(before)


def wide(root: Path) -> list[str]:
    """Return every file that others may access."""
    return [
        f"{path.name} {path.stat().st_mode:o}" for path in root.rglob("*") if stat.S_IMODE(path.stat().st_mode) & 0o077
    ]


async def test_a_database_that_was_opened_to_others_is_closed_again(home: Home) -> None:
    """A database file with a mode wider than 0600 is tightened when it is opened."""
    store = SqliteStore(home.database)
    await store.start("boot-1", NOW)
    await store.close(clean=True)
    home.database.chmod(0o666)

    store = SqliteStore(home.database)
    await store.start("boot-2", NOW)
    assert wide(home.root) == []
    await store.close(clean=True)
