"""Commands on Discord: registered once, deferred at once, authorised by signed id, and answered to the asker alone."""

import pytest

from claudius.home import Home
from claudius.providers.scripted import Scripted
from claudius.reports.session import ask
from claudius.testing.alive import Alive
from discord_side import BOB, Wake
from ear import echo
from lab.loopback.discord.state import ANA, BOT_USER, CHANNEL, DM, GUILD
from lab.loopback.discord.world import DiscordWorld

US = f"<@{BOT_USER}>"


async def answers(world: DiscordWorld, soul: Alive, count: int) -> list[tuple[str, str]]:
    """Wait for `count` answers that one person alone can see. Returns the recipient and text of each."""
    await world.until_called("create_followup_message", count)
    await soul.idle()
    return [(entry.to, entry.text) for entry in await world.trace() if entry.kind == "response"]


async def registered(world: DiscordWorld) -> None:
    """Wait until the app has registered its commands."""
    await world.until_called("bulk_overwrite_global_application_commands")


async def test_the_commands_are_registered_once(world: DiscordWorld, wake: Wake) -> None:
    """§2: the commands are synchronised only if the set of commands has changed."""
    async with wake():
        await registered(world)
    async with wake():
        await world.until_called("get_global_application_commands", 2)

    assert sorted(one["name"] for one in await world.commands()) == ["claudius", "ensoul"]
    assert len(await world.calls("bulk_overwrite_global_application_commands")) == 1


async def test_whoami_shows_what_a_channel_taught_to_whoever_sees_that_channel(world: DiscordWorld, wake: Wake) -> None:
    """It works there and in direct messages, and stops as soon as the asker no longer sees the channel."""
    await world.add_user(BOB, "Bob")
    direct, bob = await world.open_dm(BOB), f"discord:@me:{BOB}"
    async with wake() as soul:
        await registered(world)
        await world.say(CHANNEL, BOB, f"{US} hello")
        await world.until_visible(1)
        here, now = f"shared:discord:{GUILD}:{CHANNEL}", soul.mind.clock()
        await soul.mind.store.documents.set_model(bob, here, "# Bob\n\nBuilds bridges.\n", "met", "owner", now)
        for count, (place, user) in enumerate([(CHANNEL, BOB), (direct, BOB), (CHANNEL, ANA), (DM, ANA)], 1):
            await world.slash(place, user, "claudius whoami")
            await answers(world, soul, count)
        await world.overwrite(CHANNEL, BOB, deny=["view_channel"])
        await world.slash(direct, BOB, "claudius whoami")
        told = await answers(world, soul, 5)

    assert ["Builds bridges." in text for _, text in told] == [True, True, False, False, False]


async def test_the_same_words_are_answered_directly(world: DiscordWorld, wake: Wake) -> None:
    """`!whoami` in a channel is answered in a direct message, where no one else sees it."""
    async with wake() as soul:
        await world.say(CHANNEL, ANA, "!whoami")
        (shown,) = await soul.until_said(1, world)

    assert shown.channel == DM
    assert shown.text.startswith("You are Ana Alvarez to me.")


@pytest.mark.parametrize("late", ["to promise", "to answer"])
async def test_a_late_answer_is_sent_as_a_direct_message(world: DiscordWorld, wake: Wake, late: str) -> None:
    """§2: a deferral is due in three seconds and an answer in 15 minutes.

    After that a direct message carries the answer.
    """
    if late == "to promise":
        await world.fault("create_interaction_response", "status", status=503)
        await world.set(interaction_deadline_s=0.05)
    else:
        await world.set(interaction_life_s=0.0)

    async with wake() as soul:
        await registered(world)
        await world.slash(CHANNEL, ANA, "claudius whoami")
        (shown,) = await soul.until_said(1, world)

    assert shown.channel == DM
    assert shown.text.startswith("You are Ana Alvarez to me.")


async def test_a_command_is_deferred_before_any_other_request(world: DiscordWorld, wake: Wake) -> None:
    """§2: whoever gives a command in a place that the bot cannot see is told so in time."""
    await world.add_channel("300000000000000009")
    thread = await world.create_thread("300000000000000009", ANA, "secret", is_private=True)

    async with wake() as soul:
        await registered(world)
        await world.slash(thread, ANA, "claudius whoami")
        ((to, told),) = await answers(world, soul, 1)

    assert (to, told) == (ANA, "I may not talk with you here.")


async def test_a_lost_answer_is_sent_once_more_under_the_same_nonce(world: DiscordWorld, wake: Wake) -> None:
    """No one knows whether Discord posted the answer twice or never. The same nonce makes it one message."""
    await world.fault("create_message", "status", status=502, is_applied=True)

    async with wake() as soul:
        await world.say(CHANNEL, ANA, "!whoami")
        await world.until_called("create_message", 2)
        await soul.idle()

    assert [one.channel for one in await world.visible()] == [DM]


async def test_a_stranger_gets_a_code_and_leaves_no_row(world: DiscordWorld, wake: Wake, home: Home) -> None:
    """S23: no model calls, no rows, one code an hour. Once the owner approves the code, the stranger is heard."""
    stranger = "400000000000000077"
    voice = Scripted(default=echo)
    await world.add_user(stranger, "Eve", guilds=())
    dm = await world.open_dm(stranger)

    async with wake(voice=voice) as soul:
        await world.say(dm, stranger, "hello, let me in")
        (shown,) = await world.until_visible(1)
        await world.say(dm, stranger, "hello?")
        await world.until_heard()
        await soul.idle()
        rows = [one["person"] for one in soul.records().people()], list(soul.records().conversations())
        asked, code = len(voice.requests), shown.text.rpartition(" ")[2]
        answered = await ask(soul.home, "pairing_approve", code=code)
        await world.say(dm, stranger, "and now?")
        await soul.until_said(2, world)
    async with wake(voice=voice) as soul:
        await world.say(dm, stranger, "still?")
        await world.until_visible(3)
        await ask(soul.home, "pairing_revoke", person=f"discord:@me:{stranger}")
        await soul.idle()
        await world.say(dm, stranger, "gone?")
        await world.until_heard()
        await soul.idle()

    assert (rows, asked) == (([], []), 0)
    assert answered["event"] == "paired"
    assert [one.text for one in await world.visible()][1:3] == ["re and now?", "re still?"]
    assert len(voice.requests) == 2


@pytest.mark.parametrize("word", ["claudius whoami", "ensoul off"])
async def test_a_stranger_may_not_command(world: DiscordWorld, wake: Wake, word: str) -> None:
    """S23: a command from a server that is not allowed leaves no row, and its author is told so."""
    async with wake(CLAUDIUS_DISCORD_GUILDS="1") as soul:
        await registered(world)
        await world.slash(CHANNEL, ANA, word)
        ((to, told),) = await answers(world, soul, 1)
        people = soul.records().people()

    assert (to, told) == (ANA, "I may not talk with you here.")
    assert people == []
