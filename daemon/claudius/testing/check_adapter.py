"""The contract of every adapter, ours or a stranger's, as numbered cases.

    @pytest.mark.parametrize("case", CASES, ids=str)
    async def test_my_adapter_keeps_the_contract(case, my_network):
        if lacking := case.needs - my_network.can:
            pytest.skip(f"no {', '.join(sorted(lacking))} there")
        await check_adapter(lambda: MyAdapter(my_network.url), my_network, case)

The network is a `Stage`: its people, driven by the case. The factory gives an adapter that does not listen yet.
Source: the chat design, section 8, whose numbers these are.
"""

from __future__ import annotations

from collections.abc import Callable

from claudius.runtime.adapter import Adapter
from claudius.testing.adapter_contract import admitting, hearing, speaking
from claudius.testing.adapter_contract.ground import CASES, Case
from claudius.testing.adapter_contract.stage import Stage

__all__ = ["CASES", "ROOMS", "Case", "check_adapter"]

ROOMS = (hearing, speaking, admitting)
"""Where the cases stand; importing them fills `CASES`."""


async def check_adapter(make: Callable[[], Adapter], network: Stage, case: Case) -> None:
    """Hold an adapter to one rule. Raises: AssertionError if it breaks it."""
    await case.run(make, network)
