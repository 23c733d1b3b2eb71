"""Several workers on one PostgreSQL: each message is answered once, in order, whoever thinks and whoever dies."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from claudius.memory.database import StorePlace
from claudius.perception import Perception
from claudius.providers.scripted import Line
from claudius.runtime.commands.words import as_command
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from workers import START, TIMES, World


@dataclass(slots=True)
class Own(RehearsalAdapter):
    """A network of one machine, as its terminal."""

    is_local: bool = True


async def test_scale_what_a_terminal_said_is_answered_once_the_lease_of_a_dead_process_is_past(
    postgres_url: str, tmp_path: Path
) -> None:
    """A process that starts while its conversation is still leased to a dead one goes on looking for it."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack:
        ghost = PostgresStore(StorePlace(postgres_url), roles="lanes")
        await ghost.start("ghost", START)
        said = world.post(1, 0)
        await ghost.inbox.accept([said], START)
        await ghost.core.write(
            lambda db: db.connection.execute(
                "UPDATE lane SET worker = 'ghost', lease_until = clock_timestamp() + interval '1.5 s'"
            )
        )
        await ghost.close(clean=False)
        soul = await world.worker(stack, network=Own())
        held = await soul.mind.store.inbox.unfinished(said.conversation)
        await world.answered()

    assert len(held) == 1
    world.judge()


@dataclass(slots=True)
class Answering(RehearsalAdapter):
    """A network on which commands are answered."""

    answers: list[str] = field(default_factory=list)

    async def answer(self, perception: Perception, text: str) -> None:
        """Keep what a person is answered."""
        self.answers.append(f"{perception.text}: {text}")


async def test_scale_a_command_is_carried_out_once_by_whoever_has_its_lane(postgres_url: str, tmp_path: Path) -> None:
    """Heard by two processes it is done once; one whose process died before it was done is done by another."""
    world, networks = World(postgres_url, tmp_path), (Answering(), Answering())

    def answers() -> list[str]:
        """Return which commands were answered."""
        return [one.partition(":")[0] for network in networks for one in network.answers]

    async with AsyncExitStack() as stack:
        for network in networks:
            soul = await world.worker(stack, network=network)
        for n in range(3):
            said = replace(world.post(1, n), text="!whoami")
            for network in networks:
                assert network._accept
                await network._accept(said)
        await soul.mind.store.inbox.accept([as_command(replace(world.post(1, 4), text="!why"))], said.at)
        async with asyncio.timeout(30):
            while answers().count("why") < 1:
                await asyncio.sleep(0.01)

    assert sorted(answers()) == ["whoami"] * 3 + ["why"]


class Speaks(RehearsalAdapter):
    """A network to which every process can speak, whether it listens or not, as Slack and Discord."""

    logs_in = True


async def test_scale_a_process_that_ends_takes_nothing_new(postgres_url: str, tmp_path: Path) -> None:
    """While it waits for a slow turn of its own, the others take what comes."""
    world = World(postgres_url, tmp_path)
    async with AsyncExitStack() as stack, AsyncExitStack() as doomed:
        hears = await world.worker(stack, network=Speaks(), times=replace(TIMES, most=0))
        ending = await world.worker(doomed, network=Speaks())
        world.voices[-1].default = Line(hang=True)
        await world.offer(hears, world.post(0, 0))
        async with asyncio.timeout(60):
            while not world.calls():
                await asyncio.sleep(0.02)
        await world.worker(stack, network=Speaks())
        stopping = asyncio.create_task(doomed.aclose())
        while not ending.server._is_stopping:
            await asyncio.sleep(0.02)
        for n in range(1, 13):
            await world.offer(hears, world.post(n, 0))
        await world.until_visible(12)
        await stopping
        await world.answered()

    assert len(world.voices[1].requests) == 1
    world.judge()


async def test_scale_restarts_in_good_order_are_not_the_messages_fault(postgres_url: str, tmp_path: Path) -> None:
    """Three processes that are restarted while a slow turn runs did not fail at it: the fourth one answers."""
    world = World(postgres_url, tmp_path)
    said = world.post(1, 0)
    for n in range(3):
        async with AsyncExitStack() as stack:
            soul = await world.worker(stack)
            world.voices[-1].default = Line(hang=True)
            if not n:
                await world.offer(soul, said)
            async with asyncio.timeout(60):
                while world.calls() <= n:
                    await asyncio.sleep(0.02)
    async with AsyncExitStack() as stack:
        await world.worker(stack)
        await world.answered()

    world.judge()
