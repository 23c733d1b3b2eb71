"""The whole soul on Discord: each message is answered once, in its place, whatever fails on the way."""

import asyncio

import pytest

from claudius.compose import compose
from claudius.errors import AdapterRefused
from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.runtime.control import connect
from claudius.testing.alive import alive
from discord_side import Make, Wake, said
from ear import echo
from lab.loopback.discord.server import DiscordServer
from lab.loopback.discord.state import ANA, BOT_TOKEN, BOT_USER, CHANNEL, DM, GUILD
from lab.loopback.discord.world import DiscordWorld

US = f"<@{BOT_USER}>"


async def test_a_mention_in_a_thread_of_others_is_answered_there(world: DiscordWorld, wake: Wake) -> None:
    """A message in a thread is answered in that thread, and opens no other."""
    thread = await world.create_thread(CHANNEL, ANA, "plans")

    async with wake() as soul:
        await world.say(thread, ANA, f"{US} any ideas?")
        await soul.until_said(1, world)

    assert await said(world) == [(thread, "re any ideas?")]
    assert await world.calls("start_thread_from_message") == []


async def test_a_thread_that_is_there_already_is_used(world: DiscordWorld, wake: Wake) -> None:
    """If another opened the thread first, the answer goes into that thread."""
    async with wake() as soul:
        await world.hold_events()
        message = await world.say(CHANNEL, ANA, f"{US} hello")
        await world.create_thread(CHANNEL, ANA, "hello", message=message, deliver=False)
        await world.release_events()
        await soul.until_said(1, world)

    assert await said(world) == [(message, "re hello")]
    assert [call.code for call in await world.calls("start_thread_from_message")] == [160004]


@pytest.mark.parametrize("why", ["permission", "kind"])
async def test_without_threads_the_answer_is_a_reply_in_the_channel(world: DiscordWorld, wake: Wake, why: str) -> None:
    """If threads are refused (50013) or impossible there, the answer is a reply to the message in the channel."""
    if why == "kind":
        await world.add_channel("300000000000000009", kind="voice")
    else:
        await world.overwrite(CHANNEL, deny=["create_public_threads"])
    channel = "300000000000000009" if why == "kind" else CHANNEL

    async with wake() as soul:
        message = await world.say(channel, ANA, f"{US} hello")
        await soul.until_said(1, world)

    (shown,) = await world.visible()
    assert (shown.channel, shown.text, shown.reference) == (channel, "re hello", message)


async def test_a_thread_whose_opening_got_no_answer_is_opened_once(world: DiscordWorld, wake: Wake) -> None:
    """The thread was opened before the reset, so the second attempt finds it and the reply goes into it."""
    await world.fault("start_thread_from_message", "reset", is_applied=True)

    async with wake() as soul:
        message = await world.say(CHANNEL, ANA, f"{US} hello")
        await soul.until_said(1, world)

    assert await said(world) == [(message, "re hello")]
    assert len([one for one in await world.trace() if one.kind == "thread"]) == 1


async def test_a_post_that_a_crash_cut_off_is_visible_once(world: DiscordWorld, wake: Wake) -> None:
    """D6: the post was applied and the process ended before it learned so. The next process recognises the post."""
    await world.set(nonce="ignored")
    await world.fault("create_message", "hang", is_applied=True)
    async with wake(clean=False):
        message = await world.say(CHANNEL, ANA, f"{US} hello")
        await world.until_visible(1)

    async with wake() as soul:
        await world.say(DM, ANA, "still there?")
        await world.until_visible(2, channel="")
        await soul.idle()

    assert await said(world) == [(message, "re hello"), (DM, "re still there?")]


async def test_an_archived_thread_is_reopened(world: DiscordWorld, wake: Wake) -> None:
    """An archived thread is not a refusal, because posting unarchives it."""
    async with wake() as soul:
        thread = await world.say(CHANNEL, ANA, f"{US} hello")
        await soul.until_said(1, world)
        await world.archive(thread, ANA)
        await world.say(thread, ANA, f"{US} one more thing")
        await soul.until_said(2, world)

    assert await said(world) == [(thread, "re hello"), (thread, "re one more thing")]


async def test_a_reply_that_may_not_be_posted_is_given_up(world: DiscordWorld, wake: Wake) -> None:
    """A19: the refusal is final and carries Discord's code. Others are answered."""
    async with wake() as soul:
        await world.hold_events()
        await world.say(CHANNEL, ANA, f"{US} hello")
        await world.overwrite(CHANNEL, deny=["send_messages_in_threads"])
        await world.release_events()
        await world.say(DM, ANA, "hi")
        await soul.until_said(1, world)
        kept = soul.records()
        dead = kept.dead()
        kept.close()

    assert await said(world) == [(DM, "re hi")]
    assert {one["reason"] for one in dead} == {"50013"}


async def test_typing_shows_where_the_message_is(world: DiscordWorld, wake: Wake) -> None:
    """A22: typing shows in the channel until there is a thread, then in the thread, and never if it is switched off."""
    async with wake() as soul:
        thread = await world.say(CHANNEL, ANA, f"{US} hello")
        await soul.until_said(1, world)
        await world.say(thread, ANA, "and?")
        await soul.until_said(2, world)
    shown = [one.channel for one in await world.trace() if one.kind == "typing"]
    async with wake(options={"is_typing_shown": False}) as soul:
        await world.say(DM, ANA, "hi")
        await soul.until_said(3, world)

    assert shown == [CHANNEL, thread]
    assert [one.channel for one in await world.trace() if one.kind == "typing"] == shown


async def test_a_guild_that_is_allowed_later_is_heard_from_then_on(
    home: Home, server: DiscordServer, world: DiscordWorld
) -> None:
    """An edit of `discord.guilds` needs no restart: people who were strangers a moment ago are heard."""
    env = {
        "DISCORD_TOKEN": BOT_TOKEN,
        "CLAUDIUS_DISCORD_API_URL": server.base_url,
        "CLAUDIUS_DISCORD_GATEWAY_URL": server.gateway_url,
        "CLAUDIUS_PROVIDERS": "rehearsal",
    }
    composed = await compose(home, env, networks=True)
    await composed.server.start()
    try:
        await composed.server.ready()
        await world.say(DM, ANA, "hello")
        (refused,) = await world.until_visible(1)
        before = await detail(home)
        home.config.write_text(f'[discord]\nguilds = ["{GUILD}"]\n', "utf-8")
        async with asyncio.timeout(10):
            while await detail(home):
                await asyncio.sleep(0.05)
        await world.say(DM, ANA, "who are you?")
        answered = (await world.until_visible(2))[1]
    finally:
        await composed.server.stop()

    assert "code" in refused.text
    assert "no server is allowed" in before
    assert GUILD in before
    assert "I am Claudius" in answered.text


async def detail(home: Home) -> str:
    """Return what status reports about Discord."""
    async with connect(home.socket) as connection:
        await connection.send({"op": "status"})
        status = await connection.receive() or {}
    return next(str(one["detail"]) for one in status["adapters"] if one["name"] == "discord")


async def test_a_missing_intent_is_named(home: Home, make: Make, world: DiscordWorld) -> None:
    """Close code 4014 names the intent to enable, and where."""
    await world.set(privileges=())

    async with alive(home, Scripted(default=echo), adapter=make()) as soul, asyncio.timeout(20):
        with pytest.raises(AdapterRefused, match="enable MESSAGE CONTENT INTENT"):
            await soul.server.wait()


async def test_an_edit_that_came_between_two_listeners_is_read_from_the_history(
    world: DiscordWorld, wake: Wake
) -> None:
    """No one was told of it: the words that it took away are found by no one, the new ones are; it answers nothing."""
    async with wake() as soul:
        message = await world.say(DM, ANA, "the pass phrase is heron")
        await soul.until_said(1, world)
    await world.edit(DM, message, "the pass phrase is secret", deliver=False)
    async with wake() as soul:
        async with asyncio.timeout(20):
            while "secret" not in str(soul.records().conversation(f"discord:@me:{DM}:")):
                await asyncio.sleep(0.01)
        await soul.idle()
        kept = str(soul.records().conversation(f"discord:@me:{DM}:"))

    assert "heron" not in kept
    assert await said(world) == [(DM, "re the pass phrase is heron")]
