"""The contract of every adapter, built-in or third-party, as numbered cases.

    @pytest.mark.parametrize("case", CASES, ids=str)
    async def test_my_adapter_keeps_the_contract(case, my_network):
        if lacking := case.needs - my_network.can:
            pytest.skip(f"no {', '.join(sorted(lacking))} there")
        await check_adapter(lambda: MyAdapter(my_network.url), my_network, case)

The network is a `Stage`: its people, driven by the case. The factory returns an adapter that is not listening yet.
Source: the chat design, section 8, which numbers the cases.
"""

from __future__ import annotations

from collections.abc import Callable

from claudius.runtime.adapter import Adapter
from claudius.testing.adapter_contract import admitting, hearing, speaking
from claudius.testing.adapter_contract.ground import CASES, Case
from claudius.testing.adapter_contract.stage import Stage

__all__ = ["CASES", "ROOMS", "Case", "check_adapter"]

ROOMS = (hearing, speaking, admitting)
"""The modules that hold the cases; importing them fills `CASES`."""


async def check_adapter(make: Callable[[], Adapter], network: Stage, case: Case) -> None:
    """Check one rule on an adapter. Raises: AssertionError if the adapter breaks it."""
    await case.run(make, network)
