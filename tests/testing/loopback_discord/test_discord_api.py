"""REST v10, as discord.py meets it: messages, nonces, threads, limits, refusals, faults."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable

import aiohttp
import discord
import pytest

from discord_ear import INTENTS, Ear
from lab.loopback.discord.state import ANA, BOT_USER, CHANNEL, DM, GUILD
from lab.loopback.discord.world import DiscordWorld

Listen = Callable[..., Awaitable[Ear]]
BEN = "400000000000000002"


async def place(ear: Ear, channel: str = CHANNEL) -> discord.TextChannel:
    """Give a channel, asked of the API."""
    return await ear.fetch_channel(int(channel))  # type: ignore[return-value]  # the tests name a text channel, thread or DM


async def test_a_message_goes_round(listen: Listen, world: DiscordWorld) -> None:
    """What a person says is heard; the answer is visible, recorded with its raw bytes, and echoed to the app."""
    ear = await listen()

    said = await world.say(CHANNEL, ANA, f"<@{BOT_USER}> Hello ✓ \u200d😀")
    await world.until_heard()
    (heard,) = ear.heard
    reply = await heard.reply("Hello yourself", suppress_embeds=True, allowed_mentions=discord.AllowedMentions.none())
    (shown,) = await world.until_visible(1, channel=CHANNEL)
    await world.until_heard()

    assert (str(heard.id), heard.content, heard.author.display_name) == (
        said,
        f"<@{BOT_USER}> Hello ✓ \u200d😀",
        "Ana Alvarez",
    )
    assert (shown.message, shown.text, shown.reference, shown.pings) == (str(reply.id), "Hello yourself", said, [])
    assert shown.flags == discord.MessageFlags(suppress_embeds=True).value
    assert b'"allowed_mentions"' in shown.raw
    assert [message.id for message in ear.heard] == [heard.id, reply.id]
    assert reply.id > heard.id


async def test_a_trace_holds_both_sides_in_order(listen: Listen, world: DiscordWorld) -> None:
    """The trace is what an oracle reads: who did what, which of it was lost, in one order."""
    ear = await listen()

    said = await world.say(DM, ANA, "one", deliver=False)
    dm = await place(ear, DM)
    sent = await dm.send("two")
    await sent.edit(content="two, better")
    await sent.add_reaction("👍")
    await world.edit(DM, said, "one, better")
    await sent.delete()

    trace = await world.trace()
    assert [(entry.by, entry.kind, entry.text) for entry in trace] == [
        ("person", "post", "one"),
        ("app", "post", "two"),
        ("app", "edit", "two, better"),
        ("app", "react", "👍"),
        ("person", "edit", "one, better"),
        ("app", "delete", "two, better"),
    ]
    assert [entry.is_delivered for entry in trace][:2] == [False, True]
    assert [message["content"] for message in await world.messages(DM)] == ["one, better"]


async def test_what_people_change_is_told(listen: Listen, world: DiscordWorld) -> None:
    """Edits, previews, deletions one by one and in bulk, reactions on and off arrive as the library names them."""
    ear = await listen()

    one, two, three = [await world.say(CHANNEL, ANA, word) for word in ("one", "two", "three")]
    await world.edit(CHANNEL, one, "one!")
    await world.unfurl(CHANNEL, one)
    await world.react(CHANNEL, one, ANA, "👍")
    await world.unreact(CHANNEL, one, ANA, "👍")
    await world.delete(CHANNEL, one)
    await world.bulk_delete(CHANNEL, [two, three])
    await world.until_heard()

    edit, unfurl = (event for name, event in ear.raw if name == "edit")
    assert [name for name, _ in ear.raw] == ["edit", "edit", "react", "unreact", "delete", "bulk_delete"]
    assert edit.data["content"] == unfurl.data["content"] == "one!"
    assert edit.data["edited_timestamp"] == unfurl.data["edited_timestamp"]
    assert {str(message) for message in ear.raw[-1][1].message_ids} == {two, three}


async def test_history_is_paged_by_snowflakes(listen: Listen, world: DiscordWorld) -> None:
    """`before`, `after` and `limit` page through a channel, as the library's own loop does."""
    ear = await listen()
    said = [await world.say(CHANNEL, ANA, str(number)) for number in range(250)]
    channel = await place(ear)

    newest = [str(message.id) async for message in channel.history(limit=3)]
    rest = [message.content async for message in channel.history(limit=None, after=discord.Object(int(said[49])))]
    older = [message.content async for message in channel.history(limit=2, before=discord.Object(int(said[10])))]

    assert newest == said[:-4:-1]
    assert rest == [str(number) for number in range(50, 250)]
    assert older == ["9", "8"]
    assert sorted(said, key=int) == said


async def test_a_nonce_makes_one_message(listen: Listen, world: DiscordWorld) -> None:
    """The same nonce gives the first message, for a while; `ignored` and a later day make a second one."""
    ear = await listen()
    channel = await place(ear)

    first, second = await channel.send("Once", nonce="key-1"), await channel.send("Once", nonce="key-1")
    await world.shift_clock(600)
    late = await channel.send("Once", nonce="key-1")
    await world.set(nonce="ignored")
    again = await channel.send("Once", nonce="key-1")

    assert first.id == second.id
    assert len({first.id, late.id, again.id}) == 3
    assert [entry.nonce for entry in await world.visible()] == ["key-1"] * 3


@pytest.mark.parametrize("kind", ["status", "reset", "cut", "bad_json"])
async def test_a_send_that_was_applied_and_broken_off_is_healed_by_its_nonce(
    listen: Listen, world: DiscordWorld, kind: str
) -> None:
    """Whatever breaks the answer, the same nonce finds the message that is up already."""
    ear = await listen()
    channel = await place(ear)
    await world.fault("create_message", kind, is_applied=True, status=503)  # type: ignore[arg-type]  # one of the four

    try:
        await channel.send("Exactly once", nonce="n" * 25)
    except (discord.HTTPException, aiohttp.ClientError, ValueError, OSError, TypeError):
        await channel.send("Exactly once", nonce="n" * 25)

    calls = await world.calls("create_message")
    assert [(call.fault, call.is_applied) for call in calls] == [(kind, True), ("", True)]
    assert [message["content"] for message in await world.messages(CHANNEL)] == ["Exactly once"]


async def test_a_send_that_was_not_applied_leaves_nothing(listen: Listen, world: DiscordWorld) -> None:
    """A reset before the call is applied leaves no message; a 502 is tried again by the library itself."""
    ear = await listen()
    channel = await place(ear)

    await world.fault("create_message", "reset")
    with pytest.raises(aiohttp.ClientError):
        await channel.send("Never")
    await world.fault("create_message", "status", status=502, where={"channel_id": CHANNEL})
    await channel.send("At the second try")

    assert [message["content"] for message in await world.messages(CHANNEL)] == ["At the second try"]
    assert [call.status for call in await world.calls("create_message")] == [0, 502, 200]


async def test_a_call_can_hang_or_come_late(listen: Listen, world: DiscordWorld) -> None:
    """A hung call is never answered; a late one is."""
    ear = await listen()
    channel = await place(ear)
    await world.fault("create_message", "hang", is_applied=True)

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(channel.send("Into the void"), 0.2)
    await world.fault("create_message", "delay", delay_s=0.05, times=-1)
    await channel.send("Late")
    await world.heal()

    assert [entry.text for entry in await world.visible()] == ["Into the void", "Late"]


async def test_a_bucket_paces_the_library(listen: Listen, world: DiscordWorld) -> None:
    """The headers of a bucket are enough for the library to stay within it: all is sent, nothing is refused."""
    ear = await listen()
    channel = await place(ear)
    await world.limit("create_message", 5, 0.3)

    for number in range(12):
        await channel.send(str(number))

    calls = await world.calls("create_message")
    assert [entry.text for entry in await world.visible()] == [str(number) for number in range(12)]
    assert {call.status for call in calls} == {200}
    assert calls[-1].at - calls[0].at >= 0.6


async def test_a_429_is_waited_out_and_a_ban_is_not(listen: Listen, world: DiscordWorld) -> None:
    """After a 429 with `Via` the library comes again in time; the page of a ban is an error at once."""
    ear = await listen()
    channel = await place(ear)

    for scope in ("user", "global", "shared"):
        await world.fault("create_message", "rate_limit", retry_after_s=0.1, scope=scope)
        await channel.send(scope)
    await world.fault("create_message", "rate_limit", scope="cloudflare")
    with pytest.raises(discord.HTTPException) as banned:
        await channel.send("banned")

    calls = await world.calls("create_message")
    assert banned.value.status == 429
    assert [call.status for call in calls] == [429, 200, 429, 200, 429, 200, 429]
    assert all(after.at - before.at >= 0.1 for before, after in zip(calls[0:6:2], calls[1:6:2], strict=True))
    assert [entry.text for entry in await world.visible()] == ["user", "global", "shared"]


async def test_calls_above_a_limit_are_refused(listen: Listen, world: DiscordWorld) -> None:
    """Who does not read the headers gets a 429 with the time to wait, and nothing is applied."""
    ear = await listen()
    assert ear.user
    await world.limit("trigger_typing_indicator", 1, 60.0)
    url = f"{discord.http.Route.BASE}/channels/{CHANNEL}/typing"
    headers = {"Authorization": f"Bot {ear.http.token}"}

    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.post(url) as first,
        session.post(url) as second,
    ):
        refused = await second.json()

    assert (first.status, second.status) == (204, 429)
    assert first.headers["X-RateLimit-Remaining"] == "0"
    assert 0 < refused["retry_after"] <= 60
    assert second.headers["Content-Type"] == "application/json"
    assert await world.is_typing(CHANNEL)


async def test_text_has_its_limits(listen: Listen, world: DiscordWorld) -> None:
    """More than 2,000 UTF-16 units are 50035, nothing at all is 50006, a long nonce 50035; blanks are cut off."""
    ear = await listen()
    channel = await place(ear)

    for text, nonce, code in (
        ("x" * 2001, "n", 50035),
        ("😀" * 1001, "n", 50035),
        ("  ", "n", 50006),
        ("x", "n" * 26, 50035),
    ):
        with pytest.raises(discord.HTTPException) as no:
            await channel.send(text, nonce=nonce)
        assert no.value.code == code
    await channel.send("😀" * 1000 + "\n")

    assert [message["content"] for message in await world.messages(CHANNEL)] == ["😀" * 1000]


async def test_mentions_ping_whom_the_call_allows(listen: Listen, world: DiscordWorld) -> None:
    """`allowed_mentions` decides who is notified, whatever the text says."""
    ear = await listen()
    channel = await place(ear)
    text = f"@everyone <@{ANA}> <@&{GUILD}>"

    await channel.send(text, allowed_mentions=discord.AllowedMentions.none())
    await channel.send(text)

    quiet, loud = await world.visible()
    assert (quiet.text, quiet.pings) == (text, [])
    assert loud.pings == [ANA, GUILD, "everyone"]


async def test_a_thread_stands_on_its_message(listen: Listen, world: DiscordWorld) -> None:
    """A thread has the id of its message, is made once, and can be posted into; voice channels have none."""
    ear = await listen()
    said = await world.say(CHANNEL, ANA, "Let us talk")
    voice = await world.add_channel("300000000000000009", "voice", kind="voice")
    spoken = await world.say(voice, ANA, "here")
    channel = await place(ear)

    message = await channel.fetch_message(int(said))
    thread = await message.create_thread(name="talk", auto_archive_duration=1440)
    await thread.send("Gladly")
    with pytest.raises(discord.HTTPException) as twice:
        await ear.http.start_thread_with_message(int(CHANNEL), int(said), name="talk", auto_archive_duration=1440)
    with pytest.raises(discord.HTTPException) as nowhere:
        await ear.http.start_thread_with_message(int(voice), int(spoken), name="talk", auto_archive_duration=1440)

    again = await channel.fetch_message(int(said))
    assert str(thread.id) == said
    assert again.thread is not None
    assert (twice.value.code, nowhere.value.code) == (160004, 50024)
    assert [(one["type"], one["content"]) for one in await world.messages(said)] == [(21, ""), (0, "Gladly")]


async def test_posting_wakes_an_archived_thread(listen: Listen, world: DiscordWorld) -> None:
    """Posting into an archived thread opens it again unless it is locked; nothing else can be done there."""
    ear = await listen()
    thread = await world.create_thread(CHANNEL, ANA, "old", message=await world.say(CHANNEL, ANA, "long ago"))
    said = await world.say(thread, ANA, "dust")
    await world.archive(thread, ANA)
    place_of_dust = ear.get_partial_messageable(int(thread), guild_id=int(GUILD))

    with pytest.raises(discord.HTTPException) as closed:
        await place_of_dust.get_partial_message(int(said)).add_reaction("👍")
    await place_of_dust.send("Awake")
    is_archived = [one["thread_metadata"]["archived"] for one in await world.channels() if one["id"] == thread]
    await world.archive(thread, ANA, is_locked=True)
    with pytest.raises(discord.HTTPException) as locked:
        await place_of_dust.send("No more")

    assert (closed.value.code, locked.value.code) == (50083, 50083)
    assert is_archived == [False]


async def test_what_may_not_be_done_is_refused_by_its_code(listen: Listen, world: DiscordWorld) -> None:
    """Permissions, unknown places and others' messages: 50013, 50001, 10003, 10008, 50005, 50007."""
    ear = await listen()
    await world.add_user(BEN, "ben", takes_dms=False)
    said = await world.say(CHANNEL, ANA, "Mine")
    dm = await world.open_dm(BEN)
    codes = []

    async def code(doing: Awaitable[object]) -> None:
        """Note the code that refuses it."""
        with pytest.raises(discord.HTTPException) as no:
            await doing
        codes.append((no.value.status, no.value.code))

    channel = await place(ear)
    await code(channel.get_partial_message(int(said)).edit(content="Yours"))
    await code(channel.get_partial_message(int(said)).delete())
    await code(channel.fetch_message(1))
    await code(ear.fetch_channel(2))
    await code((await place(ear, dm)).send("Hello"))
    await world.overwrite(CHANNEL, deny=["send_messages", "create_public_threads"])
    await code(channel.send("Hello"))
    await code(ear.http.start_thread_with_message(int(CHANNEL), int(said), name="t", auto_archive_duration=60))
    await world.overwrite(CHANNEL, deny=["view_channel"])
    await code(channel.send("Hello"))
    await world.delete_channel(CHANNEL)
    await code(channel.send("Hello"))

    assert codes == [
        (403, 50005),
        (403, 50013),
        (404, 10008),
        (404, 10003),
        (403, 50007),
        (403, 50013),
        (403, 50013),
        (403, 50001),
        (404, 10003),
    ]


async def test_files_are_fetched_by_a_signed_url_that_runs_out(listen: Listen, world: DiscordWorld) -> None:
    """A file's bytes come back whole by its URL; a day later the URL is dead, and the message has a new one."""
    ear = await listen()
    content = bytes(range(256)) * 10
    said = await world.upload(DM, ANA, "all bytes.bin", content, text="Here")
    await world.until_heard()
    (file,) = ear.heard[0].attachments

    read = await file.read()
    await world.shift_clock(90_000)
    with pytest.raises(discord.NotFound):
        await file.read()
    fresh = await (await place(ear, DM)).fetch_message(int(said))

    assert (file.filename, file.size, read) == ("all bytes.bin", 2560, content)
    assert await fresh.attachments[0].read() == content


async def test_the_app_can_send_files(listen: Listen, world: DiscordWorld) -> None:
    """A form with files is taken apart, bytes whole; one that is too large is 40005."""
    ear = await listen()
    channel, content = await place(ear), b"\r\n--\x00\xff" * 100

    sent = await channel.send("See", file=discord.File(io.BytesIO(content), "odd.bin"))
    await world.set(file_bytes=10)
    with pytest.raises(discord.HTTPException) as large:
        await channel.send(file=discord.File(io.BytesIO(content), "odd.bin"))

    assert await sent.attachments[0].read() == content
    assert large.value.code == 40005


async def test_webhooks_and_bots_are_marked(listen: Listen, world: DiscordWorld) -> None:
    """A webhook's message has its id and no member; a bot's author is a bot."""
    ear = await listen()
    hook = await world.add_webhook(CHANNEL, "deploys")
    other = await world.add_user("400000000000000003", "echo", is_bot=True)

    await world.say(CHANNEL, hook, "Deployed")
    await world.say(CHANNEL, other, "Deployed, I hear")
    await world.until_heard()

    by_hook, by_bot = ear.heard
    assert (str(by_hook.webhook_id), by_hook.author.name, by_hook.author.bot) == (hook, "deploys", True)
    assert (by_bot.webhook_id, by_bot.author.bot) == (None, True)


async def test_members_and_their_rights_can_be_asked(listen: Listen, world: DiscordWorld) -> None:
    """One member can be fetched, with roles; all of them only with the privilege; nobody else's."""
    ear = await listen()
    await world.add_user(BEN, "ben", guilds=[])
    role = await world.add_role(GUILD, "keepers", ["manage_messages"], [ANA])
    await world.overwrite(CHANNEL, ANA, deny=["view_channel"])
    await world.until_heard()
    guild = ear.get_guild(int(GUILD))
    assert guild is not None

    ana = await guild.fetch_member(int(ANA))
    with pytest.raises(discord.NotFound) as stranger:
        await guild.fetch_member(int(BEN))
    with pytest.raises(discord.Forbidden) as privileged:
        await ear.http.get_members(int(GUILD), 10, None)

    channel = guild.get_channel(int(CHANNEL))
    assert channel is not None
    assert str(ana.top_role.id) == role
    assert ana.guild_permissions.administrator  # she owns the guild
    assert (stranger.value.code, privileged.value.code) == (10007, 50001)


async def test_the_bot_comes_into_guilds_and_is_thrown_out(listen: Listen, world: DiscordWorld) -> None:
    """A guild that it joins is told whole; one that it leaves is gone, and its channels with it."""
    ear = await listen()
    await world.add_guild("200000000000000002", "second", ANA)
    there = await world.add_channel("300000000000000002", "hall", guild="200000000000000002")

    await world.join("200000000000000002", BOT_USER)
    await world.say(there, ANA, "Welcome")
    await world.leave("200000000000000002", BOT_USER)
    await world.say(there, ANA, "Good riddance")
    await world.until_heard()

    assert ear.texts == ["Welcome"]
    assert [str(guild.id) for guild in ear.guilds] == [GUILD]


async def test_all_members_are_told_to_who_may_know_them(listen: Listen, world: DiscordWorld) -> None:
    """With the privilege and the intent the library learns of all members, and of those who come and go."""
    await world.set(privileges=["guild_members", "message_content"])
    ear = await listen(intents=INTENTS | discord.Intents(members=True))
    guild = ear.get_guild(int(GUILD))
    assert guild is not None
    at_first = {member.name for member in guild.members}

    await world.add_user(BEN, "ben", guilds=[])
    await world.join(GUILD, BEN)
    await world.leave(GUILD, ANA)
    await world.until_heard()

    assert at_first == {"claudius", "ana"}
    assert {member.name for member in guild.members} == {"claudius", "ben"}


async def test_a_private_thread_is_for_its_members(listen: Listen, world: DiscordWorld) -> None:
    """What is said in a private thread is told, and can be read, only after the bot was asked in."""
    ear = await listen()
    thread = await world.create_thread(CHANNEL, ANA, "secrets", is_private=True)
    await world.say(thread, ANA, "Not for you")

    with pytest.raises(discord.Forbidden) as no:
        await ear.fetch_channel(int(thread))
    await world.join_thread(thread, BOT_USER)
    await world.say(thread, ANA, "Welcome")
    await world.until_heard()

    assert no.value.code == 50001
    assert ear.texts == ["Welcome"]
    assert [message.content async for message in (await place(ear, thread)).history()] == ["Welcome", "Not for you"]
