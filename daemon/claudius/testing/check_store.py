"""The contract of every store, built-in or third-party, as numbered cases.

    @pytest.mark.parametrize("case", CASES, ids=str)
    async def test_my_store_keeps_the_contract(case, tmp_path):
        await check_store(case, lambda: MyStore(tmp_path / "kept"))

The factory returns an unopened store. Each case opens, closes and reopens stores as needed, all on the one path that
the factory names, which is new for each case.
"""

from __future__ import annotations

from collections.abc import Callable

from claudius.memory.store import Store
from claudius.testing.store_contract import (
    audit,
    codes,
    documents,
    erasure,
    inbox,
    ledger,
    life,
    moments,
    outbox,
    people,
    plans,
    psyche,
    turns,
    whispers,
)
from claudius.testing.store_contract.ground import CASES, Case, Ground

__all__ = ["CASES", "ROOMS", "Case", "check_store"]

ROOMS = (life, inbox, outbox, turns, people, documents, ledger, plans, psyche, moments, whispers, erasure, audit, codes)
"""The modules that hold the cases; importing them fills `CASES`."""


async def check_store(case: Case, make: Callable[[], Store]) -> None:
    """Check one rule on a store. Raises: AssertionError if the store breaks it."""
    await case.run(Ground(make))
