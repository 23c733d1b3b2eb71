"""The SQLite store keeps the contract of every store."""

from __future__ import annotations

import pytest

from claudius.home import Home
from claudius.memory.sqlite import SqliteStore
from contracts.store import CASES, Case, Ground


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_the_sqlite_store_keeps_the_contract(case: Case, home: Home) -> None:
    """Each numbered rule of `tests/contracts/store` holds."""
    await case.run(Ground(lambda: SqliteStore(home.database)))
