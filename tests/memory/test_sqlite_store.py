"""The SQLite store keeps the contract of every store."""

from __future__ import annotations

import pytest

from claudius.home import Home
from claudius.memory.sqlite import SqliteStore
from claudius.testing.check_store import CASES, Case, check_store


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_the_sqlite_store_keeps_the_contract(case: Case, home: Home) -> None:
    """Each numbered rule of `claudius.testing.check_store` holds."""
    await check_store(case, lambda: SqliteStore(home.database))
