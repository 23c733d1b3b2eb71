"""Several processes with one bot: all of them speak, one listens."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from claudius.adapters.discord.adapter import DiscordAdapter
from claudius.perception import Perception
from claudius.testing.adapter_contract.ground import answer
from discord_side import BOB, Make, said
from ear import Ear
from lab.loopback.discord.state import ANA, BOT_USER, CHANNEL, DM, GUILD
from lab.loopback.discord.world import DiscordWorld

US = f"<@{BOT_USER}>"


@dataclass
class Process:
    """What one process has of a network: an adapter that speaks, and may listen."""

    adapter: DiscordAdapter
    ear: Ear = field(default_factory=Ear)

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Listen, until the role is lost."""
        task = asyncio.create_task(self.adapter.listen(self.ear.accept))
        try:
            async with asyncio.timeout(20):
                while not self.adapter.link.hears:
                    await asyncio.sleep(0.01)
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def processes(make: Make, world: DiscordWorld) -> AsyncIterator[list[Process]]:
    """Start two processes that can speak."""
    await world.add_user(BOB, "bob")
    made = [Process(make()), Process(make())]
    for one in made:
        await one.adapter.log_in()
    yield made
    for one in made:
        await one.adapter.close()


async def heard(process: Process, world: DiscordWorld, text: str, where: str = DM) -> Perception:
    """Have Ana say something, and wait until the process has heard it."""
    message = await world.say(where, ANA, text)
    async with asyncio.timeout(20):
        while f"discord:{message}" not in process.ear.heard:
            await asyncio.sleep(0.01)
    return process.ear.heard[f"discord:{message}"]


async def test_a_process_that_only_speaks_opens_no_socket(world: DiscordWorld, processes: list[Process]) -> None:
    """Speaking needs REST alone: no socket is opened and no session begun, and every word finds its place."""
    one, other = processes
    async with one.listening():
        await heard(one, world, "is anybody there?", CHANNEL)
        in_thread = await heard(one, world, f"{US} hello", CHANNEL)
        direct = await heard(one, world, "hello")
    before = await world.counts()

    await other.adapter.speak(answer(in_thread, "in the thread"))
    receipt = await other.adapter.speak(answer(direct, "to you"))
    found = await other.adapter.find(answer(direct, "to you"), decided_at=datetime.now(UTC))
    context = await other.adapter.context(in_thread, 5)
    sees = await other.adapter.sees(f"discord:@me:{ANA}", [f"shared:discord:{GUILD}:{CHANNEL}"])
    await other.adapter.tell(f"discord:@me:{ANA}", "a word")
    await other.adapter.working(direct, on=True)
    await world.until_called("trigger_typing_indicator", 1)
    await other.adapter.take_back(direct.conversation, receipt)

    assert [text for _, text in await said(world)] == ["in the thread", "to you", "a word"]
    assert [one["content"] for one in await world.messages(DM)] == ["hello", "a word"]
    assert (found, sees) == (receipt, [f"shared:discord:{GUILD}:{CHANNEL}"])
    assert [one.text for one in context] == ["is anybody there?"]
    assert await world.counts() == before
    assert (other.adapter.link.connected, other.adapter.link.hears) == (True, False)
    assert other.adapter.link.unheard_s() is None


async def test_a_command_is_answered_in_place_by_who_only_speaks(world: DiscordWorld, processes: list[Process]) -> None:
    """The token of the interaction travels with the perception; the answer needs no socket."""
    one, other = processes
    async with one.listening():
        await world.until_called("bulk_overwrite_global_application_commands")
        await world.slash(CHANNEL, ANA, "claudius whoami")
        (command,) = await one.ear.until(1)
        await other.adapter.answer(command, "you are Ana")

    assert [(entry.to, entry.text) for entry in await world.trace() if entry.kind == "response"] == [
        (ANA, "you are Ana")
    ]


async def test_a_channel_that_was_closed_is_not_seen_by_who_only_speaks(
    world: DiscordWorld, processes: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    """W5: no socket tells of the change, so Discord is asked again."""
    monkeypatch.setattr("claudius.adapters.discord.gateway.LEARNED_S", 0.0)
    other, place = processes[1], f"shared:discord:{GUILD}:{CHANNEL}"
    before = await other.adapter.sees(f"discord:@me:{BOB}", [place])

    await world.overwrite(CHANNEL, GUILD, deny=["view_channel"])
    after = await other.adapter.sees(f"discord:@me:{BOB}", [place])

    assert (list(before), list(after)) == ([place], [])


async def test_what_another_process_heard_does_not_make_a_listener_look_deaf(
    world: DiscordWorld, processes: list[Process]
) -> None:
    """Between two times of listening the history went on; only what is said from then on is compared with it."""
    one, other = processes
    async with one.listening():
        await heard(one, world, "to the one")
    async with other.listening():
        await heard(other, world, "to the other")
    async with one.listening():
        one.adapter._probe._asked_at = 0.0  # as if it had not looked for long
        is_deaf = await one.adapter._probe.is_deaf(one.adapter._in().gateway)
        await heard(one, world, "to the one again")

    assert not is_deaf
