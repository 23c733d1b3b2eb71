"""The Discord adapter under discord.py, without a soul: what it hears, how it stays connected, and how it ends."""

import asyncio

import pytest
from msgspec.structs import replace

from claudius.adapters.discord.adapter import DiscordAdapter
from claudius.errors import AdapterRefused, OverBudget
from claudius.perception import Kind
from discord_side import BOB, QUICK, Make
from ear import Ear
from lab.loopback.discord.state import ANA, BOT_USER, CHANNEL, DM, GUILD
from lab.loopback.discord.world import DiscordWorld


async def test_a_reply_addresses_the_person_it_answers(world: DiscordWorld, ear: Ear) -> None:
    """A reply to someone else is not for us. A reply to us pings us and calls us."""
    await world.add_user(BOB, "bob")
    first = await world.say(CHANNEL, BOB, "what do you think?")
    to_bob = await world.say(CHANNEL, ANA, "I agree", reply_to=first)
    ours = await world.say(CHANNEL, BOT_USER, "so do I")
    to_us = await world.say(CHANNEL, ANA, "really?", reply_to=ours)
    await ear.until(3)

    assert ear.heard[f"discord:{to_bob}"].to_other
    assert not ear.heard[f"discord:{first}"].to_other
    called = ear.heard[f"discord:{to_us}"]
    assert (called.kind, called.to_other) == (Kind.MENTION, False)


async def test_a_message_in_an_unknown_thread_belongs_to_its_channel(world: DiscordWorld, ear: Ear) -> None:
    """The event does not carry the parent channel, so Discord is asked for it."""
    thread = await world.create_thread(CHANNEL, ANA, "plans", deliver=False)
    message = await world.say(thread, ANA, "anyone?")
    await ear.until(1)

    assert ear.heard[f"discord:{message}"].conversation == f"discord:{GUILD}:{CHANNEL}:{thread}"


async def test_a_message_over_the_budget_is_dropped(world: DiscordWorld, ear: Ear, adapter: DiscordAdapter) -> None:
    """OverBudget drops a message on purpose, so no sweep looks for it."""
    ear.troubles = [OverBudget()]

    await world.say(DM, ANA, "one too many")
    await world.say(DM, ANA, "fine")
    await ear.until(1)

    assert adapter._sweeping is None


@pytest.mark.parametrize("break_off", ["reconnect", "close", "reset"])
async def test_a_short_break_is_resumed(world: DiscordWorld, ear: Ear, adapter: DiscordAdapter, break_off: str) -> None:
    """A23: op 7, close 4000 and a reset are resumed without a new session, and nothing is swept for."""
    missed: list[float | None] = []
    adapter.link.on_missed(missed.append)

    await {
        "reconnect": world.reconnect,
        "close": world.close_sockets,
        "reset": lambda: world.drop_sockets(is_reset=True),
    }[break_off]()
    await world.say(DM, ANA, "in between")
    await ear.until(1)
    await world.until_connected(1, opened=2)

    counts = await world.counts()
    assert (counts["identified"], counts["resumed"]) == (1, 1)
    assert missed == []
    assert adapter.link.connected


async def test_a_first_socket_that_does_not_open_is_tried_again(world: DiscordWorld, make: Make) -> None:
    """The library fails if its first upgrade is refused; the adapter recovers."""
    adapter, ear = make(), Ear()
    await world.refuse_upgrades(2)

    listening = asyncio.create_task(adapter.listen(ear.accept))
    await world.until_connected()
    await world.say(DM, ANA, "hello")
    await ear.until(1)
    await adapter.close()
    await asyncio.wait_for(listening, 20)


async def test_a_deaf_socket_is_found_and_a_quiet_one_left_alone(
    world: DiscordWorld, ear: Ear, adapter: DiscordAdapter
) -> None:
    """A25: a socket with heartbeats and no events is checked against the history.

    Where no one speaks, nothing is done.
    """
    await world.say(DM, ANA, "hello")
    await ear.until(1)
    await world.until_called("get_channel_messages", 2)
    assert (await world.counts())["identified"] == 1

    missed = asyncio.Event()
    adapter.link.on_missed(lambda _: missed.set())
    await world.sicken("deaf")
    await world.say(DM, ANA, "do you hear me?")
    await asyncio.wait_for(missed.wait(), 20)
    await world.until_connected(1, opened=2)

    assert (await world.counts())["identified"] == 2


async def test_the_last_sessions_of_a_day_are_kept_back(world: DiscordWorld, make: Make) -> None:
    """Discord resets the token after 1,000 IDENTIFYs a day.

    With fewer than fifty left, the adapter waits and says so.
    """
    await world.set(session_starts=49)
    adapter = make()

    listening = asyncio.create_task(adapter.listen(Ear().accept))
    await asyncio.wait_for(adapter.link.tried(), 20)

    assert "49 session starts" in adapter.link.detail
    assert (await world.counts())["opened"] == 0
    await adapter.close()
    await asyncio.wait_for(listening, 20)


async def test_a_session_that_ends_too_often_is_not_begun_again(
    world: DiscordWorld, ear: Ear, adapter: DiscordAdapter
) -> None:
    """The session budget is checked before each further session, too."""
    await world.set(session_starts=50)

    await world.invalidate(is_resumable=False)
    async with asyncio.timeout(20):
        while "session starts" not in adapter.link.detail:
            await asyncio.sleep(0.01)

    assert (await world.counts())["identified"] == 1


async def test_a_discord_that_cannot_be_reached_is_tried_again(make: Make) -> None:
    """An unreachable server is not a refusal: the adapter says so and tries again until it is closed."""
    adapter = make(api_url="http://127.0.0.1:9/api/v10")

    listening = asyncio.create_task(adapter.listen(Ear().accept))
    await asyncio.wait_for(adapter.link.tried(), 20)

    assert not adapter.link.connected
    assert "cannot be reached" in adapter.link.detail
    await adapter.close()
    await asyncio.wait_for(listening, 20)


async def test_without_a_token_nothing_is_tried(make: Make, world: DiscordWorld) -> None:
    """The missing token is named before any call is made."""
    with pytest.raises(AdapterRefused, match="DISCORD_TOKEN"):
        await make(token="").listen(Ear().accept)

    assert await world.calls() == []


async def test_a_half_open_socket_does_not_hold_up_the_end(world: DiscordWorld, make: Make) -> None:
    """A25, A30: shutdown does not wait for a peer that never answers the close."""
    adapter = make()
    listening = asyncio.create_task(adapter.listen(Ear().accept))
    await adapter.link.tried()

    await world.sicken("half_open")
    await asyncio.wait_for(adapter.close(), 20)  # the library would wait for half a minute

    await asyncio.wait_for(listening, 20)


async def test_an_end_while_servers_are_still_told_leaves_nothing(world: DiscordWorld, make: Make) -> None:
    """A30: the library waits for servers after a login; if it is closed meanwhile, that wait ends too."""
    before = asyncio.all_tasks()
    adapter = make(timings=replace(QUICK, guild_ready_s=60.0))
    listening = asyncio.create_task(adapter.listen(Ear().accept))
    await world.until_connected(1)
    await world.until_heard()

    await adapter.close()
    await asyncio.wait_for(listening, 20)

    await asyncio.sleep(0)
    left = [task.get_coro().__qualname__ for task in asyncio.all_tasks() - before]  # type: ignore[union-attr] - as all
    assert "ConnectionState._delay_ready" not in left
