"""F15, W5: what an owner commands is in force for every process, whichever carries it out, or the answer says where."""

import asyncio
import socket
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from claudius.cognition.mind import Stage
from claudius.config.load import load, write_setting
from claudius.memory.database import StorePlace
from claudius.perception import Perception
from claudius.runtime.access import OwnerCode
from claudius.runtime.commands.places import PAUSED, RESUMED
from claudius.testing.alive import Alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from minds import until
from workers import LEASE_S, START, World

OWNER = {"CLAUDIUS_OWNERS": "rehearsal:t:p9"}
LOOKS = 5


class Answering(RehearsalAdapter):
    """A network that keeps what commands were answered, in one list for all workers."""

    def __init__(self, answers: list[str]) -> None:
        super().__init__()
        self.answers = answers

    async def answer(self, perception: Perception, text: str) -> None:  # noqa: ARG002 - the protocol's
        """Keep an answer."""
        self.answers.append(text)


class Slow(RehearsalAdapter):
    """A network in which a turn begins to think when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked, self.goes_on = asyncio.Event(), asyncio.Event()

    async def working(self, perception: Perception, *, on: bool) -> None:
        """Wait where a turn begins to think."""
        self.is_asked.set()
        await self.goes_on.wait()
        await super().working(perception, on=on)


async def command(world: World, soul: Alive, answers: list[str], text: str, *, by: int = 9) -> str:
    """Have a person give a command to one worker; return the answer, whichever gives it."""
    before = len(answers)
    asked = world.post(by, before)
    world.said.remove(asked)
    await world.offer(soul, replace(asked, text=text))
    await until(lambda: len(answers) > before)
    return answers[-1]


async def looked(souls: list[Alive]) -> int:
    """Wait until each worker has looked a few times; return how many lanes they hold."""
    tallies = [soul.mind.store.leases.tally for soul in souls]
    before = [one.looks for one in tallies]
    await until(lambda: all(one.looks >= looks + LOOKS for one, looks in zip(tallies, before, strict=True)))
    return sum(soul.mind.store.leases.tally.held for soul in souls)


async def test_scale_f15_a_pause_and_its_end_are_in_force_for_every_worker(postgres_url: str, tmp_path: Path) -> None:
    """One hears `!pause`, the other `!resume`: between them no one is answered or holds a lane; then all are answered."""
    world, answers = World(postgres_url, tmp_path), list[str]()
    async with AsyncExitStack() as stack:
        souls = [await world.worker(stack, network=Answering(answers), settings=OWNER) for _ in range(2)]
        paused = await command(world, souls[0], answers, "!pause")
        for n in range(8):
            await world.offer(souls[n % 2], world.post(n, 1))
        held = await looked(souls)
        answered, stages = len(world.visible), [soul.mind.stage() for soul in souls]
        status = await command(world, souls[1], answers, "!status")
        later = await world.worker(stack, settings=OWNER)
        await looked([later])
        answered += len(world.visible)
        resumed = await command(world, souls[1], answers, "!resume")
        await world.answered()
        after = [soul.mind.stage() for soul in souls]

    world.judge()
    assert (paused, resumed, held, answered) == (PAUSED, RESUMED, 0, 0)
    assert (stages, after) == ([Stage.REFUSING] * 2, [Stage.OPEN] * 2)
    assert "I am paused." in status
    assert not any(load(soul.home, {}).config.runtime.paused for soul in souls)


async def test_scale_f15_a_lane_that_is_given_up_as_the_soul_resumes_is_looked_at_again(
    postgres_url: str, tmp_path: Path
) -> None:
    """What waited was hidden when the worker looked last, and is not when it gives the lane up: it does not."""
    from claudius.memory.postgres import store as postgres_store  # noqa: PLC0415 - an extra

    asked = World(postgres_url, tmp_path).post(1, 1)
    store = postgres_store.PostgresStore(StorePlace(postgres_url), roles="lanes")
    await store.start("one", START)
    await store.inbox.accept((asked,), START)
    leases = store.leases
    assert leases
    await leases.take((), 1)
    await leases.pause()
    heard, hidden = await leases.heard(asked.conversation), await store.inbox.oldest(asked.conversation)
    await leases.resume()
    is_given_up = await leases.release(asked.conversation, heard)
    found = await store.inbox.oldest(asked.conversation)
    await store.close(clean=True)

    assert (hidden, is_given_up) == (None, False)
    assert found


async def test_scale_f15_a_worker_that_its_own_settings_pause_leaves_everything_to_the_others(
    postgres_url: str, tmp_path: Path
) -> None:
    """It gives up a lane in which something waits, and takes none but those of commands that it heard."""
    world, slow = World(postgres_url, tmp_path), Slow()
    async with AsyncExitStack() as stack:
        one = await world.worker(stack, network=slow, settings={"CLAUDIUS_RUNTIME_MERGE_WHILE_BUSY": "false"})
        await world.offer(one, world.post(1, 1))
        await slow.is_asked.wait()
        await world.offer(one, world.post(1, 2))
        write_setting(one.home, "runtime.paused", value=True)
        await until(lambda: one.mind.config().runtime.paused)
        slow.goes_on.set()
        await world.until_visible(1)
        await world.offer(one, world.post(2, 1))
        await until(lambda: not one.server.busy)
        held = await looked([one])
        await world.worker(stack)
        await world.answered(LEASE_S + 30)

    world.judge()
    assert (held, len(world.voices[0].requests)) == (0, 1)


async def test_scale_f15_resume_also_undoes_the_settings_of_the_worker_that_hears_it(
    postgres_url: str, tmp_path: Path
) -> None:
    """A soul that was paused on a file, and moved to a server since, goes on when its owner says so."""
    world, answers = World(postgres_url, tmp_path), list[str]()
    async with AsyncExitStack() as stack:
        soul = await world.worker(stack, network=Answering(answers), settings=OWNER)
        write_setting(soul.home, "runtime.paused", value=True)
        await until(lambda: soul.mind.config().runtime.paused)
        await world.offer(soul, world.post(1, 1))
        resumed = await command(world, soul, answers, "!resume")
        await world.answered()

    world.judge()
    assert resumed == RESUMED
    assert not load(soul.home, {}).config.runtime.paused


async def test_an_owner_is_told_on_which_machine_they_are_one(postgres_url: str, tmp_path: Path) -> None:
    """A code, and who became an owner by it, are one home's: the answers name the machine and what to do on the others."""
    world, answers = World(postgres_url, tmp_path), list[str]()
    async with AsyncExitStack() as stack:
        soul = await world.worker(stack, network=Answering(answers))
        code = OwnerCode(soul.home).make(datetime.now(UTC))
        wrong = await command(world, soul, answers, "!owner AAAAAAAA", by=5)
        right = await command(world, soul, answers, f"!owner {code}", by=5)

    for answer in (wrong, right):
        assert socket.gethostname() in answer
        assert "add rehearsal:t:p5 to `owners`" in answer
    assert load(soul.home, {}).config.owners == ("rehearsal:t:p5",)
