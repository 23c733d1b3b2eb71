"""How a process looks for lanes of a store that it shares: nothing but the end of the process ends that."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from claudius.errors import StoreError
from claudius.memory.leases import LeaseStore, LeaseTimes
from claudius.runtime.lanes import Lanes
from claudius.runtime.roles import Leasing

TERMINAL, CHANNEL, COMMANDS = "terminal:local:main:", "slack:t:c:", "slack:t:c:!u"


class Shared:
    """Leases of which the test says what can be taken."""

    def __init__(self) -> None:
        self.times = LeaseTimes(renew_s=0.001, look_s=0.001)
        self.is_draining = False
        self.asked: list[list[str]] = []
        self.networks: tuple[str, ...] = ()
        self.free: list[str] = []
        self.mine: set[str] = set()
        self.looks = asyncio.Condition()

    async def take(self, networks: Sequence[str], most: int, wanted: Sequence[str] = ()) -> Sequence[str]:  # noqa: ARG002 - the protocol's
        """Give what is free and wanted."""
        async with self.looks:
            self.asked.append(list(wanted))
            self.networks = tuple(networks)
            self.looks.notify_all()
        taken = [one for one in wanted if one in self.free]
        self.mine |= set(taken)
        return taken

    async def renew(self, but: Sequence[str]) -> Sequence[str]:  # noqa: ARG002 - likewise
        """Lose nothing."""
        return ()

    async def tell(self, about: Mapping[str, str]) -> None:
        """Tell no one."""

    def is_held(self, conversation: str) -> bool:
        """Return whether it was taken."""
        return conversation in self.mine

    async def until_looked(self, times: int) -> None:
        """Wait for further looks."""
        wanted = len(self.asked) + times
        async with asyncio.timeout(5), self.looks:
            await self.looks.wait_for(lambda: len(self.asked) >= wanted)


def leasing(
    shared: Shared, wanted: dict[str, str], errors: list[StoreError], *, trouble: bool = False, is_paused: bool = False
) -> Leasing:
    """Return what looks for lanes, of which these are wanted at first."""
    lanes = SimpleNamespace(
        wanted=lambda: wanted, unread=(), stuck=lambda _: (), wake=lambda _: None, looking=asyncio.Event()
    )

    async def let_go() -> None:
        """Fail, if there is to be trouble."""
        if trouble:
            raise PermissionError("the log cannot be rewritten")

    return Leasing(
        cast("LeaseStore", shared),
        cast("Lanes", lanes),
        errors.append,
        lambda: ("slack", "terminal"),
        is_paused=lambda: is_paused,
        local={"terminal"},
        let_go=let_go,
    )


@pytest.mark.parametrize("is_paused", [False, True])
async def test_a_process_that_its_settings_pause_takes_no_lane_of_a_network(*, is_paused: bool) -> None:
    """It takes the terminal's, and those of the commands that it heard; the others are for the one who is awake."""
    shared = Shared()
    wanted = {TERMINAL: "", CHANNEL: "", COMMANDS: ""}
    looking = asyncio.create_task(leasing(shared, wanted, [], is_paused=is_paused).run())
    await shared.until_looked(1)
    looking.cancel()

    assert shared.networks == (("terminal",) if is_paused else ("slack", "terminal"))
    assert shared.asked[0] == ([COMMANDS, TERMINAL] if is_paused else [TERMINAL])


async def test_a_lane_of_this_machine_is_wanted_until_it_is_held() -> None:
    """No one else looks for it; of other networks those are taken that the server says are ready."""
    shared = Shared()
    looking = asyncio.create_task(leasing(shared, {TERMINAL: "", CHANNEL: ""}, []).run())
    await shared.until_looked(3)
    before = shared.asked[:]
    shared.free.append(TERMINAL)
    await shared.until_looked(4)
    looking.cancel()

    assert before == [[TERMINAL]] * len(before)
    assert shared.asked[-1] == []


async def test_a_home_that_cannot_be_written_to_does_not_end_the_looking() -> None:
    """What another process asks for is tried again at the next renewal."""
    shared, errors = Shared(), list[StoreError]()
    looking = asyncio.create_task(leasing(shared, {}, errors, trouble=True).run())
    await shared.until_looked(4)
    is_over = looking.done()
    looking.cancel()

    assert (is_over, errors) == (False, [])
