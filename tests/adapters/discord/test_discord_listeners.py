"""Several processes with one bot: all of them speak, one listens, and the next one goes on where it ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from claudius.adapters.discord.adapter import DiscordAdapter
from claudius.adapters.discord.sessions import Left, Logins
from claudius.errors import AdapterRefused, StoreFull
from claudius.perception import Perception
from claudius.runtime.adapter import Gap
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
    missed: list[float | None] = field(default_factory=list)
    """The gaps that were reported."""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Listen, until the role is lost; the gap of a new session is read, as a soul does."""
        self.missed.clear()
        task = asyncio.create_task(self.adapter.listen(self.ear.accept))
        try:
            await self.until_it_hears()
            if self.missed != [0.0]:
                await self.sweep()
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def until_it_hears(self) -> None:
        """Wait until the adapter is connected to the gateway."""
        async with asyncio.timeout(20):
            while not self.adapter.link.hears:
                await asyncio.sleep(0.01)

    async def sweep(self) -> None:
        """Read the history of the last hour."""
        async for swept in self.adapter.catch_up(Gap(since=datetime.now(UTC) - timedelta(hours=1))):
            for one in swept.perceptions:
                await self.ear.accept(one)

    def kept(self) -> dict[str, Any]:
        """Return the session as the role's row keeps it."""
        return dict(self.adapter.session())


@pytest.fixture
async def processes(make: Make, world: DiscordWorld) -> AsyncIterator[list[Process]]:
    """Start two processes that can speak."""
    await world.add_user(BOB, "bob")
    made = [Process(make()), Process(make())]
    for one in made:
        one.adapter.link.on_missed(one.missed.append)
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


async def test_listening_comes_and_goes_and_speaking_goes_on(world: DiscordWorld, processes: list[Process]) -> None:
    """A post under way when the role is lost is not cut, nothing is heard afterwards, and the role may come again."""
    one, _ = processes
    async with one.listening():
        first = await heard(one, world, "first")
        await world.fault("create_message", "delay", delay_s=0.3)
        speaking = asyncio.create_task(one.adapter.speak(answer(first, "under way")))
        await world.until_called("create_message", 1)
    await world.say(DM, ANA, "nobody listens")
    await speaking
    between = (one.adapter.link.connected, one.adapter.link.hears, one.adapter.link.unheard_s())
    await one.adapter.speak(answer(first, "in between", n=1, of=3))
    async with one.listening():
        await heard(one, world, "again")
        await one.adapter.speak(answer(first, "after", n=2, of=3))

    assert between == (True, False, None)
    assert [text for _, text in await said(world)] == ["under way", "in between", "after"]
    assert await world.sockets() == []


async def test_the_next_listener_resumes_and_is_told_what_was_missed(
    world: DiscordWorld, processes: list[Process]
) -> None:
    """What was said meanwhile comes by itself, from the last event stored; nothing is swept, no session is begun."""
    one, other = processes
    async with one.listening():
        await heard(one, world, "before", CHANNEL)
        kept = one.kept()
        await heard(one, world, "stored, and not yet in the role's row")
        await world.drop_sockets()
        await world.refuse_upgrades(-1)
    await world.say(CHANNEL, ANA, f"<@&{await world.add_role(GUILD, 'crew')}> missed")
    await world.refuse_upgrades(0)
    other.adapter.resume(kept)
    async with other.listening():
        await other.ear.until(2)
        live = await heard(other, world, "live")

    texts = {perception.text for perception in other.ear.heard.values()}
    assert texts == {"stored, and not yet in the role's row", "@crew missed", "live"}
    assert other.missed == [0.0]
    assert live.extra.guilds == (GUILD,)
    counts = await world.counts()
    assert (counts["identified"], counts["resumed"]) == (1, 1)


@pytest.mark.parametrize("ending", ["cancelled", "closed"])
async def test_a_good_end_leaves_a_session_that_can_be_resumed(
    world: DiscordWorld, processes: list[Process], ending: str
) -> None:
    """The socket is closed with a code after which Discord keeps the session."""
    one, other = processes
    async with one.listening():
        await heard(one, world, "before")
        if ending == "closed":
            await one.adapter.close()
    other.adapter.resume(one.adapter.session())
    await world.say(DM, ANA, "missed")
    async with other.listening():
        await other.ear.until(1)

    assert [perception.text for perception in other.ear.heard.values()] == ["missed"]
    assert (await world.counts())["identified"] == 1


async def test_what_another_process_heard_does_not_make_a_listener_look_deaf(
    world: DiscordWorld, processes: list[Process]
) -> None:
    """Between two times of listening the history went on; only what is said from then on is compared with it."""
    one, other = processes
    async with one.listening():
        await heard(one, world, "to the one")
        other.adapter.resume(one.adapter.session())
    async with other.listening():
        await heard(other, world, "to the other")
        one.adapter.resume(other.adapter.session())
    async with one.listening():
        one.adapter._probe._asked_at = 0.0  # as if it had not looked for long
        is_deaf = await one.adapter._probe.is_deaf(one.adapter._in().gateway)
        await heard(one, world, "to the one again")

    assert not is_deaf
    assert (await world.counts())["identified"] == 1


@pytest.mark.parametrize("void", ["expired", "elsewhere", "odd"])
async def test_a_void_session_is_begun_anew_and_the_gap_is_swept(
    world: DiscordWorld, processes: list[Process], void: str
) -> None:
    """Discord does not know it any more, or its address is dead, or it is none: the history is read."""
    one, other = processes
    async with one.listening():
        await heard(one, world, "before")
        kept = one.kept()
    await world.say(DM, ANA, "missed")
    if void == "expired":
        await world.expire_sessions()
    elif void == "elsewhere":
        kept["session"] = {**kept["session"], "gateway": "ws://127.0.0.1:9/"}
    else:
        kept["session"] = "what is this?"
    other.adapter.resume(kept)
    async with other.listening():
        assert other.missed == [None]
        await heard(other, world, "live")

    assert (await world.counts())["identified"] == 2


async def test_a_session_of_another_token_is_not_resumed(world: DiscordWorld, processes: list[Process]) -> None:
    """Neither the session nor the number of its logins is ours."""
    one, other = processes
    async with one.listening():
        kept = one.kept()
    other.adapter.resume({**kept, "token": "another", "logins": 990})
    async with other.listening():
        pass

    assert (await world.counts())["resumed"] == 0
    assert other.adapter.session()["logins"] == 1


async def test_what_is_not_stored_yet_is_told_again(world: DiscordWorld, processes: list[Process]) -> None:
    """The session is kept up to the last event before the first one that is not stored, whatever came after it."""
    one, other = processes
    async with one.listening():
        one.ear.troubles = [StoreFull()]
        await world.say(DM, ANA, "not stored")
        await heard(one, world, "stored")
        kept = one.kept()
    other.adapter.resume(kept)
    async with other.listening():
        await other.ear.until(2)

    assert [perception.text for perception in other.ear.heard.values()] == ["not stored", "stored"]


async def test_what_arrives_while_the_role_is_given_up_is_left_to_the_next_one(
    world: DiscordWorld, processes: list[Process]
) -> None:
    """What is being stored is stored to its end; nothing more is accepted, and the session does not pass over it."""
    one, other = processes
    begun, goes_on, texts = asyncio.Event(), asyncio.Event(), list[str]()

    async def accept(perception: Perception) -> bool:
        """Store slowly."""
        texts.append(perception.text)
        begun.set()
        await goes_on.wait()
        return await one.ear.accept(perception)

    listening = asyncio.create_task(one.adapter.listen(accept))
    await one.until_it_hears()
    await one.sweep()
    await world.say(DM, ANA, "under way")
    await begun.wait()
    listening.cancel()
    await asyncio.sleep(0)
    await world.say(DM, ANA, "too late")
    await world.until_heard()
    goes_on.set()
    await asyncio.gather(listening, return_exceptions=True)
    other.adapter.resume(one.adapter.session())
    async with other.listening():
        await other.ear.until(1)

    assert texts == ["under way"]
    assert [perception.text for perception in one.ear.heard.values()] == ["under way"]
    assert [perception.text for perception in other.ear.heard.values()] == ["too late"]


async def test_a_session_whose_own_gap_was_not_read_is_not_left(world: DiscordWorld, make: Make) -> None:
    """Whoever resumes sweeps nothing, so what was missed before the session must have been read."""
    adapter, ear = make(), Ear()
    listening = asyncio.create_task(adapter.listen(ear.accept))
    await adapter.link.tried()
    before = adapter.session()
    _ = [swept async for swept in adapter.catch_up(Gap(since=datetime.now(UTC)))]
    after = adapter.session()
    await adapter.close()
    await asyncio.wait_for(listening, 20)

    assert "session" not in before
    assert "session" in after
    assert before["logins"] == after["logins"] == 1


async def test_past_the_reserve_no_session_is_begun_until_the_next_day(
    world: DiscordWorld, processes: list[Process]
) -> None:
    """W6: the logins of a day are counted for the soul, whichever process made them."""
    one, other = processes
    async with one.listening():
        kept = one.kept()
    other.adapter.resume({**kept, "session": None, "logins": 951})
    task = asyncio.create_task(other.adapter.listen(other.ear.accept))
    async with asyncio.timeout(20):
        while "session starts" not in other.adapter.link.detail:
            await asyncio.sleep(0.01)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert (await world.counts())["identified"] == 1
    assert other.adapter.link.connected  # it still speaks


def test_logins_are_counted_by_the_day() -> None:
    """A count of an earlier day is worth nothing, one of today counts at least as much as one's own."""
    now = datetime(2026, 1, 5, 23, 59, tzinfo=UTC)
    logins = Logins(lambda: now)
    logins.add()
    logins.know("2026-01-04", 900)
    one = logins.today()
    logins.know("2026-01-05", 7)
    logins.add()
    many, rest_s = logins.today(), logins.rest_s()
    now = datetime(2026, 1, 6, tzinfo=UTC)

    assert (one, many, rest_s, logins.today()) == (1, 8, 60.0, 0)


def test_what_is_no_session_is_none() -> None:
    """A row of another shape is like an empty one."""
    assert Left.of({"token": 1}) == Left.of({}) == Left()


async def test_a_token_that_is_refused_ends_logging_in(make: Make) -> None:
    """It is named, as for a process that listens."""
    adapter = make(token="wrong")

    with pytest.raises(AdapterRefused, match="DISCORD_TOKEN"):
        await adapter.log_in()

    await adapter.close()
