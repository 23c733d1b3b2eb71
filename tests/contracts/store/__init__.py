"""The contract of both stores, as numbered cases.

    @pytest.mark.parametrize("case", CASES, ids=str)
    async def test_the_store_keeps_the_contract(case, tmp_path):
        await case.run(Ground(lambda: SqliteStore(tmp_path / "claudius.db")))

The factory returns an unopened store. Each case opens, closes and reopens stores as needed, all on the one path that
the factory names, which is new for each case.
"""

from contracts.store import (
    audit,
    calls,
    codes,
    documents,
    erasure,
    facts,
    inbox,
    ledger,
    life,
    moments,
    outbox,
    people,
    pins,
    plans,
    psyche,
    turns,
    whispers,
)
from contracts.store.ground import CASES, Case, Ground

__all__ = ["CASES", "ROOMS", "Case", "Ground"]

ROOMS = (
    life, inbox, outbox, turns, people, documents, ledger, plans, psyche, moments, whispers, erasure, audit, codes,
    facts, calls, pins,
)  # fmt: skip
"""The modules that hold the cases; importing them fills `CASES`."""
