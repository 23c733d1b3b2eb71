"""REST v10, as discord.py meets it: messages, nonces, threads, limits, refusals, faults."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp
import discord
import pytest
from discord import app_commands

from discord_ear import Ear
from lab.loopback.discord.state import ANA, CHANNEL
from lab.loopback.discord.world import DiscordWorld

Listen = Callable[..., Awaitable[Ear]]
BEN = "400000000000000002"


async def place(ear: Ear, channel: str = CHANNEL) -> discord.TextChannel:
    """Give a channel, asked of the API."""
    return await ear.fetch_channel(int(channel))  # type: ignore[return-value]  # the tests name a text channel, thread or DM


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


async def test_what_may_not_be_done_is_refused_by_its_code(listen: Listen, world: DiscordWorld) -> None:
    """Permissions, unknown places and others' messages: 50013, 50001, 10003, 10008, 50007."""
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
        (403, 50013),
        (404, 10008),
        (404, 10003),
        (403, 50007),
        (403, 50013),
        (403, 50013),
        (403, 50001),
        (404, 10003),
    ]


def teach(ear: Ear, answer: Callable[[discord.Interaction], Awaitable[None]]) -> None:
    """Have the client answer `/claudius forget who`."""
    group = app_commands.Group(name="claudius", description="Claudius")

    @group.command(name="forget", description="Forget somebody")
    async def forget(interaction: discord.Interaction, who: str) -> None:
        """Be the command."""
        interaction.extras["who"] = who
        await answer(interaction)

    ear.tree.add_command(group)


async def test_an_answer_that_comes_too_late_fails(listen: Listen, world: DiscordWorld) -> None:
    """Without an answer within the deadline the person is told so, and the late one is refused with 10062."""
    ear = await listen()
    late: asyncio.Future[discord.HTTPException] = asyncio.get_running_loop().create_future()

    async def answer(interaction: discord.Interaction) -> None:
        """Answer the command."""
        async with asyncio.timeout(10):
            while (await world.trace())[-1].kind != "failed":
                await asyncio.sleep(0.005)
        with pytest.raises(discord.NotFound) as no:
            await interaction.response.defer()
        late.set_result(no.value)

    teach(ear, answer)
    await world.set(interaction_deadline_s=0.05)
    await ear.tree.sync()
    await world.slash(CHANNEL, ANA, "claudius forget", {"who": "x"})

    assert (await late).code == 10062
    assert await world.visible() == []


async def test_a_token_lives_a_quarter_of_an_hour_and_is_answered_once(listen: Listen, world: DiscordWorld) -> None:
    """A second first answer is 40060; after 15 minutes the token is worth nothing."""
    ear = await listen()
    codes: asyncio.Future[tuple[int, int]] = asyncio.get_running_loop().create_future()

    async def answer(interaction: discord.Interaction) -> None:
        """Answer the command."""
        await interaction.response.defer()
        again = discord.InteractionResponse(interaction)
        with pytest.raises(discord.HTTPException) as twice:
            await again.defer()
        await world.shift_clock(901)
        with pytest.raises(discord.HTTPException) as old:
            await interaction.followup.send("Too late")
        codes.set_result((twice.value.code, old.value.code))

    teach(ear, answer)
    await ear.tree.sync()
    await world.slash(CHANNEL, ANA, "claudius forget", {"who": "x"})

    assert await asyncio.wait_for(codes, 10) == (40060, 50027)
