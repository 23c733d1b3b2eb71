"""What a channel taught the soul is shown in direct messages to those who can see that channel now, and to no one else.

Source: the design, section 6; the security design, section 5. No one lists a channel's members here.
"""

import contextlib
from datetime import UTC, datetime
from typing import Any

import pytest

from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive
from discord_side import BOB, Wake, said
from ear import echo
from lab.loopback.discord.faults import FaultKind
from lab.loopback.discord.state import ANA, BOT_USER, CHANNEL, GUILD
from lab.loopback.discord.world import DiscordWorld

US = f"<@{BOT_USER}>"
TAUGHT = "the Zephyr launch"
ELSEWHERE = "200000000000000009"
"""Another guild that the soul hears."""
BOTH: dict[str, Any] = {"options": {"guilds": (GUILD, ELSEWHERE)}, "CLAUDIUS_DISCORD_GUILDS": f"{GUILD},{ELSEWHERE}"}


async def taught(soul: Alive, world: DiscordWorld, channel: str) -> str:
    """Have the soul learn something where Ana speaks. Returns the place that taught it."""
    count = len(await world.visible())
    await world.say(channel, ANA, f"{US} hello")
    await soul.until_said(count + 1, world)
    place = soul.records().conversations()[0]["audience"]
    await soul.mind.store.documents.set_state("currentTopic", TAUGHT, place, datetime.now(UTC))
    return place


async def asked(soul: Alive, world: DiscordWorld, voice: Scripted, user: str) -> bool:
    """Send the soul a direct message. Returns whether what it was taught stood in the prompt."""
    count = len(await world.visible())
    await world.say(await world.open_dm(user), user, "hello")
    await soul.until_said(count + 1, world)
    return TAUGHT in voice.requests[-1].tail


async def test_what_a_channel_taught_shows_to_whoever_sees_it_and_writes_directly(
    world: DiscordWorld, wake: Wake
) -> None:
    """This includes people who never spoke there. It excludes another channel, whose members no one knows."""
    voice = Scripted(default=echo)
    await world.add_user(BOB, "bob")
    await world.add_channel("300000000000000002")

    async with wake(voice=voice) as soul:
        await taught(soul, world, CHANNEL)
        await world.say("300000000000000002", ANA, f"{US} and here?")
        await soul.until_said(2, world)
        sees = [await asked(soul, world, voice, user) for user in (ANA, BOB)]
        questions = await world.calls("get_guild_member")

    assert sees == [True, True]
    assert TAUGHT not in voice.requests[1].tail
    assert len(questions) == 3  # two ask what a person sees; one asks whether Bob, who never spoke, is in the guild


@pytest.mark.parametrize("what", ["view_channel", "read_message_history"])
async def test_a_person_who_cannot_read_the_channel_is_shown_nothing_of_it(
    world: DiscordWorld, wake: Wake, what: str
) -> None:
    """A permission that is taken away, or given back, counts from the next message on."""
    voice = Scripted(default=echo)
    await world.add_user(BOB, "bob")
    await world.overwrite(CHANNEL, GUILD, deny=[what])
    await world.overwrite(CHANNEL, BOT_USER, allow=["view_channel", "read_message_history"])
    role = await world.add_role(GUILD, "crew", users=[BOB])

    async with wake(voice=voice) as soul:
        await taught(soul, world, CHANNEL)
        before = await asked(soul, world, voice, BOB)
        await world.overwrite(CHANNEL, role, allow=[what])
        between = await asked(soul, world, voice, BOB)
        await world.overwrite(CHANNEL, role)
        after = await asked(soul, world, voice, BOB)

    assert (before, between, after) == (False, True, False)


@pytest.mark.parametrize("is_away", [False, True])
async def test_a_person_who_left_the_server_is_shown_nothing_from_then_on(
    world: DiscordWorld, wake: Wake, *, is_away: bool
) -> None:
    """They may still write from another server, but are not shown what they saw, also if they left while nobody heard."""
    voice = Scripted(default=echo)
    await world.add_guild(ELSEWHERE, "elsewhere", ANA, [BOT_USER])
    await world.add_user(BOB, "bob", guilds=(GUILD, ELSEWHERE))

    async with contextlib.AsyncExitStack() as lives:
        soul = await lives.enter_async_context(wake(voice=voice, **BOTH))
        await taught(soul, world, CHANNEL)
        before = await asked(soul, world, voice, BOB)
        if is_away:
            await lives.aclose()
        await world.leave(GUILD, BOB)
        if is_away:
            soul = await lives.enter_async_context(wake(voice=voice, **BOTH))
        after = await asked(soul, world, voice, BOB)

    assert (before, after) == (True, False)


@pytest.mark.parametrize("kind", ["hang", "status", "bad_json"])
async def test_nothing_is_shown_while_discord_does_not_answer(world: DiscordWorld, wake: Wake, kind: FaultKind) -> None:
    """The channel counts as closed while Discord has not answered, and is open again once it has."""
    voice = Scripted(default=echo)

    async with wake(voice=voice) as soul:
        await taught(soul, world, CHANNEL)
        before = await asked(soul, world, voice, ANA)
        await world.fault("get_guild_member", kind, status=503)
        between = await asked(soul, world, voice, ANA)
        after = await asked(soul, world, voice, ANA)

    assert (before, between, after) == (True, False, True)


@pytest.mark.parametrize("state", ["active", "archived"])
async def test_a_private_thread_is_a_place_of_its_own(world: DiscordWorld, wake: Wake, state: str) -> None:
    """What it taught is shown only to its members: not in its parent channel, nor to those who see only that."""
    voice = Scripted(default=echo)
    await world.add_user(BOB, "bob")
    thread = await world.create_thread(CHANNEL, ANA, "secret", is_private=True)
    await world.join_thread(thread, BOT_USER)

    async with wake(voice=voice) as soul:
        place = await taught(soul, world, thread)
        heard_in = await said(world)
        await world.say(CHANNEL, ANA, f"{US} and here?")
        await soul.until_said(2, world)
        above = TAUGHT in voice.requests[-1].tail
        if state == "archived":
            await world.archive(thread, ANA)
        sees = [await asked(soul, world, voice, user) for user in (ANA, BOB)]

    assert place == f"shared:discord:{GUILD}:{thread}"
    assert heard_in == [(thread, "re hello")]
    assert (above, sees) == (False, [True, False])


async def test_a_private_thread_is_answered_there_after_a_night_away(world: DiscordWorld, wake: Wake) -> None:
    """What was said there meanwhile is caught up with once, and is placed in the thread and not in its channel."""
    thread = await world.create_thread(CHANNEL, ANA, "secret", is_private=True)
    await world.join_thread(thread, BOT_USER)
    async with wake() as soul:
        await taught(soul, world, thread)
    await world.say(thread, ANA, f"{US} are you back?")

    async with wake() as soul:
        await soul.until_said(2, world)
        places = {one["conversation"] for one in soul.records().conversations()}

    assert [one for _, one in await said(world)] == ["re hello", "re are you back?"]
    assert places == {f"discord:{GUILD}:{thread}:{thread}"}
