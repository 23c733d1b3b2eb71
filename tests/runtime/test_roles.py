"""What one process at a time does, and how it looks for lanes of a store that it shares."""

import asyncio
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import cast

import pytest

from claudius.errors import StoreAway, StoreError
from claudius.memory.leases import LeaseStore, LeaseTimes, may
from claudius.runtime.lanes import Lanes
from claudius.runtime.roles import Leasing, Role, Roles


class Given:
    """Roles that the test gives and takes."""

    def __init__(self) -> None:
        self.free: set[str] = set()
        self.kept: set[str] = set()
        self.error: StoreError | None = None
        self.others_have = 0

    async def take(self, wanted: Sequence[str]) -> Sequence[str]:
        """Give what is free."""
        if self.error:
            raise self.error
        taken = [one for one in wanted if one in self.free]
        self.free -= set(taken)
        self.kept |= set(taken)
        return taken

    async def renew(self, roles: Sequence[str]) -> Sequence[str]:
        """Lose those that the test has withdrawn."""
        return [one for one in roles if one not in self.kept]

    async def give_back(self, roles: Sequence[str]) -> None:
        """Have them free again."""
        self.free |= set(roles)
        self.kept -= set(roles)

    async def others(self, role: str) -> int:
        """Return what the test says."""
        assert role == "listen/slack"
        return self.others_have

    def is_held(self, role: str) -> bool:
        """Return whether the test has not withdrawn it."""
        return role in self.kept


def shared(given: Given) -> LeaseStore:
    """Return leases with these roles, renewed at every look."""
    return cast("LeaseStore", SimpleNamespace(is_shared=True, roles=given, times=LeaseTimes(renew_s=0.0, look_s=0.001)))


class Work:
    """Counts how often it is under way."""

    def __init__(self) -> None:
        self.running = self.begun = 0
        self.ended = asyncio.Event()

    async def __call__(self) -> None:
        """Go on until cancelled."""
        self.begun += 1
        self.running += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.running -= 1
            self.ended.set()


def broken(error: StoreError) -> None:
    """Fail: the store works in this test."""
    raise AssertionError(error)


@pytest.mark.parametrize(
    ("role", "allowed", "is_allowed"),
    [
        ("clock", ("all",), True),
        ("clock", ("lanes",), False),
        ("listen/slack", ("listen",), True),
        ("listen/slack", ("listen/slack", "lanes"), True),
        ("listen/slack", ("listen/discord",), False),
        ("clock/vectors", ("clock",), True),
        ("clock", ("clo",), False),
        ("clock", (), False),
    ],
)
def test_a_setting_says_what_a_process_may_do(role: str, allowed: tuple[str, ...], *, is_allowed: bool) -> None:
    """A role is allowed by its name, by what it is a part of, or by `all`."""
    assert may(role, allowed) is is_allowed


async def test_where_one_process_has_the_store_each_work_begins_at_once() -> None:
    """There nothing is looked for: what is added runs until it is closed."""
    roles, work = Roles(LeaseStore(None), ("all",), broken), Work()
    roles.add(Role("clock", work))
    await asyncio.sleep(0)
    was_running, has = work.running, roles.has("clock")
    await roles.close()

    assert (was_running, has, work.running, roles.has("clock")) == (1, True, 0, False)


async def test_work_runs_while_its_role_is_held() -> None:
    """It begins when the role is free, ends when another process has it, and begins again when it is free again."""
    given, work, other = Given(), Work(), Work()
    roles = Roles(shared(given), ("clock",), broken)
    roles.add(Role("clock", work))
    roles.add(Role("archive", other))
    seen = []
    for free, is_taken_away in (((), False), (("clock", "archive"), False), ((), True), (("clock",), False)):
        given.free |= set(free)
        if is_taken_away:
            given.kept.clear()
        await roles.look()
        await asyncio.sleep(0)
        seen.append(work.running)
    await roles.close()

    assert seen == [0, 1, 0, 1]
    assert other.begun == 0  # not allowed here
    assert "clock" in given.free


async def test_a_role_past_its_lease_ends_although_nobody_can_be_asked() -> None:
    """By its own clock a process lets a role go that it could not renew."""
    given, work = Given(), Work()
    roles = Roles(shared(given), ("all",), lambda _: None)
    roles.add(Role("clock", work))
    given.free.add("clock")
    await roles.look()
    await asyncio.sleep(0)
    was_running = work.running
    given.error = StoreAway("gone")
    given.kept.clear()
    looking = asyncio.create_task(roles.run())
    async with asyncio.timeout(5):
        await work.ended.wait()
    looking.cancel()

    assert was_running == 1


async def test_a_holder_knows_since_when_nobody_else_has_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only what lies between two looks that found no one else counts, and not what is near either of them."""
    given, loop = Given(), asyncio.get_running_loop()
    began_s, now_s = loop.time(), 0.0
    monkeypatch.setattr(loop, "time", lambda: began_s + now_s)
    roles = Roles(shared(given), ("all",), broken)
    roles.add(Role("listen/slack", Work(), places=2))
    given.free = {"listen/slack/1"}
    seen = []
    for now_s, given.others_have in ((0.0, 1), (100.0, 0), (200.0, 0), (300.0, 1)):  # noqa: B007 - the clock reads it
        await roles.look()
        seen.append([roles.was_alone("listen/slack", ago_s) for ago_s in (0.5, 50.0, 99.5, 150.0)])
    await roles.close()

    assert seen == [[False] * 4, [False] * 4, [False, True, False, False], [False] * 4]


async def test_what_was_known_of_others_ends_with_the_role(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a process did not have the role, another may have had it: nothing is known of that time."""
    given, loop = Given(), asyncio.get_running_loop()
    began_s, now_s = loop.time(), 0.0
    monkeypatch.setattr(loop, "time", lambda: began_s + now_s)
    roles = Roles(shared(given), ("all",), broken)
    roles.add(Role("listen/slack", Work(), places=2))
    given.free = {"listen/slack/1"}
    for now_s in (0.0, 20.0):  # noqa: B007 - the clock reads it
        await roles.look()
    given.kept.clear()
    await roles._end(["listen/slack/1"], "its lease is past")  # as `run` does
    now_s = 100.0
    await roles.look()
    given.free = {"listen/slack/1"}
    for now_s in (200.0, 220.0):  # noqa: B007 - likewise
        await roles.look()
    known = {at_s: roles.was_alone("listen/slack", now_s - at_s) for at_s in (10.0, 110.0, 210.0)}
    await roles.close()

    assert known == {10.0: False, 110.0: False, 210.0: True}


async def test_what_cannot_be_done_here_is_left_to_others() -> None:
    """A work that returns, as one whose token is refused, gives its role up for good; others of it go on elsewhere."""
    given = Given()

    async def refused() -> None:
        """Return at once."""

    roles = Roles(shared(given), ("all",), broken)
    roles.add(Role("listen/slack", refused, places=2))
    given.free = {"listen/slack/1"}
    await roles.look()
    await asyncio.sleep(0)
    await roles.look()
    await roles.look()

    assert given.free == {"listen/slack/1"}
    assert not roles.has("listen/slack")


async def test_work_that_the_store_fails_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the store is told, and the work goes on once it may work again."""
    monkeypatch.setattr("claudius.runtime.roles.AGAIN_S", 0.0)
    errors, begun = list[StoreError](), asyncio.Event()

    async def stumbles() -> None:
        """Fail once."""
        if not errors:
            raise StoreAway("gone")
        begun.set()
        await asyncio.Event().wait()

    roles = Roles(LeaseStore(None), ("all",), errors.append)
    roles.add(Role("clock", stumbles))
    async with asyncio.timeout(5):
        await begun.wait()
    await roles.close()

    assert len(errors) == 1


async def test_a_role_that_is_lost_while_others_are_given_up_is_no_error() -> None:
    """At a stop, the look that goes on beside finds that another process has a role that was to be given up next."""
    given, other = Given(), Work()
    given.free = {"archive", "clock"}
    leases = shared(given)
    roles = Roles(leases, ("all",), broken)

    async def ends_slowly() -> None:
        """Run until cancelled; meanwhile the other role is lost."""
        try:
            await asyncio.Event().wait()
        finally:
            given.kept.clear()
            await roles.look()

    roles.add(Role("archive", ends_slowly))
    roles.add(Role("clock", other))
    await roles.look()
    await asyncio.sleep(0)
    await roles.close()

    assert other.running == 0
    assert not roles.has("clock")


async def test_a_role_that_was_given_up_at_a_stop_is_not_taken_again() -> None:
    """Another process is to have it, although this one still looks while its turns end."""
    given, hears = Given(), Work()
    given.free = {"listen/slack"}
    leases = shared(given)
    roles = Roles(leases, ("all",), broken)
    roles.add(Role("listen/slack", hears))
    await roles.look()
    await asyncio.sleep(0)

    await roles.close("listen")
    await roles.look()

    assert hears.begun == 1
    assert given.free == {"listen/slack"}


async def test_work_that_does_not_end_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A role is given up although its work goes on for a while after it was cancelled."""
    monkeypatch.setattr("claudius.runtime.roles.END_S", 0.01)
    given, free = Given(), asyncio.Event()

    async def lingers() -> None:
        """End when the test says so."""
        try:
            await asyncio.Event().wait()
        finally:
            await free.wait()

    roles = Roles(shared(given), ("all",), broken)
    roles.add(Role("clock", lingers))
    given.free.add("clock")
    await roles.look()
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        await roles.close()
    free.set()

    assert "clock" in given.free


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
