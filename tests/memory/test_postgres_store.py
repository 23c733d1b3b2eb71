"""The PostgreSQL store keeps the contract of every store, on a real server."""

from __future__ import annotations

import pytest

from claudius.memory.opening import StorePlace
from claudius.testing.check_store import CASES, Case, check_store


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_the_postgres_store_keeps_the_contract(case: Case, postgres_url: str) -> None:
    """Each numbered rule of `claudius.testing.check_store` holds."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - needs the extra `postgres`

    await check_store(case, lambda: PostgresStore(StorePlace(postgres_url)))
