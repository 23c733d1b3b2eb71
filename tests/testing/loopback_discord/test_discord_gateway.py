"""The gateway, as discord.py meets it: ready, resume, invalid sessions, intents, dead sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import discord
import pytest

from discord_ear import INTENTS, Ear
from lab.loopback.discord.server import DiscordServer
from lab.loopback.discord.state import ANA, BOT_TOKEN, BOT_USER, CHANNEL, DM, GUILD
from lab.loopback.discord.world import DiscordWorld

Listen = Callable[..., Awaitable[Ear]]


async def test_a_client_becomes_ready_with_its_guild_and_channels(listen: Listen, world: DiscordWorld) -> None:
    """READY names the bot, GUILD_CREATE brings channels and roles; the transport is compressed as it was asked for."""
    ear = await listen()

    (socket,) = await world.sockets()
    guild = ear.get_guild(int(GUILD))
    assert ear.user is not None
    assert str(ear.user.id) == BOT_USER
    assert guild is not None
    assert [str(channel.id) for channel in guild.text_channels] == [CHANNEL]
    assert guild.me.guild_permissions.send_messages
    assert not guild.me.guild_permissions.manage_messages
    assert socket["is_compressed"]


async def test_what_was_said_during_a_drop_is_replayed_in_order(listen: Listen, world: DiscordWorld) -> None:
    """A socket that is cut, closed with 4000, or told to reconnect is resumed: nothing lost, no new session."""
    ear = await listen()

    for number, cut in enumerate((world.drop_sockets, world.close_sockets, world.reconnect), start=2):
        await cut()
        for word in ("one", "two", "three"):
            await world.say(CHANNEL, ANA, f"{word} {number}")
        await world.until_connected(1, opened=number)
        await world.until_heard()

    counts = await world.counts()
    assert ear.texts == [f"{word} {number}" for number in (2, 3, 4) for word in ("one", "two", "three")]
    assert (counts["identified"], counts["resumed"]) == (1, 3)


async def test_an_invalid_session_loses_the_gap(listen: Listen, world: DiscordWorld) -> None:
    """After op 9 the client starts a new session, and what was said meanwhile is in the history alone."""
    ear = await listen()
    await world.say(CHANNEL, ANA, "before")
    await world.until_heard()

    await world.expire_sessions()
    await world.drop_sockets()
    gap = await world.say(CHANNEL, ANA, "in the gap")
    await world.until_connected(1, opened=3)
    await world.say(CHANNEL, ANA, "after")
    await world.until_heard()

    channel = ear.get_channel(int(CHANNEL))
    assert isinstance(channel, discord.TextChannel)
    found = [message.content async for message in channel.history(after=discord.Object(int(gap) - 1))]
    (lost,) = await world.until_fate("offline")
    assert ear.texts == ["before", "after"]
    assert found == ["in the gap", "after"]
    assert lost.message == gap
    assert (await world.counts())["identified"] == 2


async def test_an_invalid_session_that_can_be_resumed_loses_nothing(listen: Listen, world: DiscordWorld) -> None:
    """Op 9 with `d: true` is a RESUME."""
    ear = await listen()

    await world.invalidate(is_resumable=True)
    await world.say(CHANNEL, ANA, "meanwhile")
    await world.until_connected(1, opened=2)
    await world.until_heard()

    assert ear.texts == ["meanwhile"]
    assert (await world.counts())["resumed"] == 1


async def test_a_session_outlives_its_socket_for_a_while_only(listen: Listen, world: DiscordWorld) -> None:
    """A RESUME that comes too late, or after more events than are kept, gets an invalid session."""
    ear = await listen()

    await world.set(session_life_s=0.0)
    await world.drop_sockets()
    await world.until_connected(1, opened=3)
    await world.until_heard()

    assert ear.events.count("READY") == 2
    assert "RESUMED" not in ear.events


async def test_lost_doubled_and_shuffled_events(listen: Listen, world: DiscordWorld) -> None:
    """Events can be lost, come twice, and come in another order; each is written down."""
    ear = await listen()

    await world.lose_events(1, "MESSAGE_CREATE")
    await world.say(CHANNEL, ANA, "lost")
    await world.say(CHANNEL, ANA, "lost too", deliver=False)
    await world.double_events(1, "MESSAGE_CREATE")
    await world.say(CHANNEL, ANA, "twice")
    await world.hold_events()
    for word in ("1", "2", "3"):
        await world.say(CHANNEL, ANA, word)
    await world.release_events("reversed")
    await world.until_heard()

    assert ear.texts == ["twice", "twice", "3", "2", "1"]
    assert len(await world.until_fate("lost", 2)) == 2


async def test_a_deaf_socket_answers_heartbeats_and_brings_nothing(listen: Listen, world: DiscordWorld) -> None:
    """A deaf socket looks healthy; what was said is in the history alone."""
    ear = await listen()

    await world.sicken("deaf")
    said = await world.say(DM, ANA, "Can you hear me?")
    (socket,) = await world.sockets()
    await world.ask_heartbeat()
    await _until_beaten(world, int(socket["heartbeats"]) + 1)
    await world.heal()
    await world.say(DM, ANA, "And now?")
    await world.until_heard()

    assert ear.texts == ["And now?"]
    assert [one.message for one in await world.until_fate("deaf")] == [said]


async def _until_beaten(world: DiscordWorld, count: int) -> None:
    async with asyncio.timeout(10):
        while (await world.sockets())[0]["heartbeats"] < count:
            await asyncio.sleep(0.005)


async def test_a_zombie_is_left_for_a_new_socket(listen: Listen, world: DiscordWorld) -> None:
    """Without heartbeat acks the library closes the socket and resumes; what happened meanwhile comes after."""
    await world.set(heartbeat_ms=100, heartbeats_missed=1000.0)
    ear = await listen(heartbeat_timeout=0.3)

    await world.sicken("zombie")
    opened = (await world.counts())["opened"]
    await world.say(CHANNEL, ANA, "Anybody there?")
    await world.until_connected(1, opened=opened + 1)
    await world.until_heard()

    assert ear.texts == ["Anybody there?"]


async def test_a_client_that_does_not_beat_is_closed(listen: Listen, world: DiscordWorld) -> None:
    """The server closes a socket without heartbeats, but keeps its session; here it waits for none at all."""
    ear = await listen()

    await world.set(heartbeats_missed=0.0)
    await world.drop_sockets()
    await _until_opened(world, 4)
    await world.set(heartbeats_missed=2.0)
    await world.until_connected(1, opened=4)
    await world.say(CHANNEL, ANA, "Still here?")
    await world.until_heard()

    assert ear.texts == ["Still here?"]
    assert (await world.counts())["identified"] == 1


async def _until_opened(world: DiscordWorld, count: int) -> None:
    async with asyncio.timeout(10):
        while (await world.counts())["opened"] < count:
            await asyncio.sleep(0.005)


async def test_content_is_withheld_without_the_intent(listen: Listen, world: DiscordWorld) -> None:
    """Without MESSAGE_CONTENT only DMs, mentions and own messages say what they say; an edit too is empty."""
    intents = discord.Intents(guilds=True, guild_messages=True, dm_messages=True)
    ear = await listen(intents=intents)

    said = await world.say(CHANNEL, ANA, "To nobody")
    await world.say(CHANNEL, ANA, f"<@{BOT_USER}> to you")
    await world.say(DM, ANA, "In private")
    await world.edit(CHANNEL, said, "Still to nobody")
    await world.until_heard()

    assert ear.texts == ["", f"<@{BOT_USER}> to you", "In private"]
    assert [edit.data["content"] for _, edit in ear.raw] == [""]


async def test_events_need_their_intent_and_a_view_of_the_channel(listen: Listen, world: DiscordWorld) -> None:
    """Reactions without their intent, and messages of a channel that the bot does not see, are not told."""
    ear = await listen(intents=discord.Intents(guilds=True, guild_messages=True, message_content=True))

    said = await world.say(CHANNEL, ANA, "Seen")
    await world.react(CHANNEL, said, ANA, "👍")
    await world.say(DM, ANA, "A DM")
    await world.overwrite(CHANNEL, deny=["view_channel"])
    await world.say(CHANNEL, ANA, "Hidden")
    await world.until_heard()

    assert ear.texts == ["Seen"]
    assert not ear.raw


async def test_a_privileged_intent_must_be_switched_on(listen: Listen, world: DiscordWorld) -> None:
    """An intent that the portal does not grant closes with 4014, which the library names."""
    await world.set(privileges=[])

    with pytest.raises(discord.PrivilegedIntentsRequired):
        await listen(intents=INTENTS)


async def test_a_wrong_token_is_refused_at_once(listen: Listen, world: DiscordWorld) -> None:
    """A revoked token is a 401 at login, and a 4004 for a socket that is open."""
    ear = await listen()
    running = asyncio.create_task(ear.wait_for("disconnect", timeout=10), name="ear-disconnect")
    await asyncio.sleep(0)

    await world.revoke()
    await running
    with pytest.raises(discord.LoginFailure):
        await listen()


async def test_sessions_are_counted(listen: Listen, world: DiscordWorld) -> None:
    """`GET /gateway/bot` says how many starts are left; the last one spent ends all and changes the token."""
    await world.set(session_starts=2)
    ear = await listen()

    _, url, limit = await ear.http.get_bot_gateway()
    await listen()
    with pytest.raises(discord.ConnectionClosed, match="4004"):
        await listen()

    assert url.startswith("ws://127.0.0.1")
    assert (limit["total"], limit["remaining"]) == (2, 1)
    assert 0 < limit["reset_after"] <= 86_400_000


async def test_an_early_identify_gets_an_invalid_session(listen: Listen, world: DiscordWorld) -> None:
    """Two sessions cannot be started within `identify_every_s`; the library tries again until one can."""
    await world.set(identify_every_s=3600.0)
    await listen()

    second = asyncio.create_task(listen(), name="second-ear")
    await _until_opened(world, 3)
    before = await world.counts()
    await world.set(identify_every_s=0.0)
    ear = await second

    assert before["identified"] == 1
    assert (await world.counts())["identified"] == 2
    assert ear.is_ready()


async def test_an_upgrade_can_be_refused(listen: Listen, server: DiscordServer) -> None:
    """A refused upgrade is an error that the library waits out, or hands on where it may not reconnect."""
    ear = await listen()

    await server.world.refuse_upgrades(1)
    await server.world.drop_sockets()
    await server.world.until_connected(1, opened=2)

    assert ear.events.count("READY") == 1


def identify(**facts: Any) -> dict[str, Any]:
    """Make the frame that starts a session."""
    return {"op": 2, "d": {"token": BOT_TOKEN, "intents": 1, "properties": {}} | facts}


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        ([{"op": 99, "d": None}], 4001),
        (["{"], 4002),
        ([{"op": 1, "d": "x" * 5000}], 4002),
        ([{"op": 3, "d": {}}], 4003),
        ([identify(token="other")], 4004),
        ([identify(), identify()], 4005),
        ([identify(), *[{"op": 3, "d": {}}] * 120], 4008),
        ([identify(intents=1 << 30)], 4013),
        ([identify(intents=1 << 1)], 4014),
    ],
)
async def test_a_client_that_errs_is_closed_with_the_code_for_it(
    server: DiscordServer, frames: list[Any], code: int
) -> None:
    """What the library never sends is refused as the service does; an uncompressed transport is plain text."""
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{server.gateway_url}?v=10&encoding=json") as socket,
    ):
        assert (await socket.receive_json())["op"] == 10
        for frame in frames:
            await socket.send_str(frame if isinstance(frame, str) else json.dumps(frame))
        async for _ in socket:
            pass

        assert socket.close_code == code


async def test_a_half_open_socket_answers_nothing(server: DiscordServer) -> None:
    """It is read and never answered, a close as little as a heartbeat."""
    closed_with = []

    for health in ("live", "half_open"):
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(
                f"{server.gateway_url}?v=10&encoding=json", timeout=aiohttp.ClientWSTimeout(ws_close=0.1)
            ) as socket,
        ):
            await socket.receive_json()
            await server.world.sicken(health)
            await socket.close()
            closed_with.append(socket.close_code)

    assert closed_with == [1000, 1006]
