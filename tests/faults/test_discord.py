"""R5 to R11, R25 and R26 on Discord: the same faults in Discord's own forms, each checked by the oracle."""

import asyncio
import random
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from both import Side, discord_side
from claudius.home import Home
from claudius.prompt import valid
from claudius.providers.scripted import Line, Scripted
from claudius.testing.adapter_contract.stage import CHANNEL, DM
from driven import CLAUDIUS, Machine, reply
from ear import echo
from judging import judged
from lab.loopback.discord import state
from lab.loopback.discord.faults import FaultKind
from lab.loopback.discord.server import DiscordServer
from lab.loopback.discord.world import DiscordWorld
from lab.stages.discord import PEOPLE, US, DiscordStage

pytestmark = pytest.mark.slow

PATIENCE_S = 60.0
LIVES = 5
TEXTS = {
    "the longest": "word " * 400,
    "one character": "x",
    "an override": "abc \u202egnp.exe\u202c end",
    "combining marks": "e" + "\u0301" * 1_900,
    "joined": "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466" * 150,
    "fences": "```py\n" + "x = 1\n" * 300 + "```",
}


@pytest.fixture
async def side() -> AsyncIterator[Side]:
    """Return a Discord side."""
    async with discord_side() as running:
        yield running


@pytest.fixture
def world(side: Side) -> DiscordWorld:
    """Return its people."""
    assert isinstance(side.stage, DiscordStage)
    return side.stage.world


async def test_r05_each_event_comes_again(side: Side, world: DiscordWorld, home: Home) -> None:
    """Twice live, in the history of a new session, after a restart and a day later: one reply each."""
    async with side.wake(home, Scripted(default=echo)) as soul:
        await world.double_events(8, "MESSAGE_CREATE")
        thread = await side.stage.say(CHANNEL, "in a channel", calls=True)
        await world.until_visible(1)
        for number in range(4):
            await side.stage.say(CHANNEL, f"in its thread {number}", thread=thread)
            await side.stage.say(DM, f"direct {number}")
        await world.until_visible(9, within_s=PATIENCE_S)
        await world.invalidate(is_resumable=False)
        await world.until_connected(1, opened=2, within_s=PATIENCE_S)
        await soul.idle()
    for later in (timedelta(0), timedelta(hours=25)):
        await world.shift_clock(later.total_seconds())
        async with side.wake(home, Scripted(default=echo)) as soul:
            await world.until_heard()
            await soul.idle()

    assert len(await world.visible()) == 9
    assert not await judged(side, home)


async def test_r06_a_shuffled_burst_is_answered_in_order(side: Side, world: DiscordWorld, home: Home) -> None:
    """Ten threads get three messages each during a turn, delivered in another order.

    Each thread keeps its own order.
    """
    slow = [Line(deltas=(reply(f"busy {n}"),), delay_s=2.0) for n in range(10)]
    threads = [await world.create_thread(state.CHANNEL, state.ANA, f"thread {n}") for n in range(10)]
    async with side.wake(home, Scripted(slow, default=echo)) as soul:
        for thread in threads:
            await side.stage.say(CHANNEL, "first", thread=thread, calls=True)
        await world.until_heard()
        await world.hold_events()
        for word in ("second", "third", "fourth"):
            for thread in threads:
                await side.stage.say(CHANNEL, word, thread=thread)
        await world.release_events("shuffled", seed=random.Random(6).randrange(1000))  # noqa: S311 - a test's order
        await world.until_visible(40, within_s=PATIENCE_S)
        await soul.idle()

    by_thread = {thread: [one.text for one in await world.visible() if one.channel == thread] for thread in threads}
    assert all(texts[1:] == ["re second", "re third", "re fourth"] for texts in by_thread.values())
    assert not await judged(side, home)


async def test_r07_whatever_becomes_of_the_socket(side: Side, world: DiscordWorld, home: Home) -> None:
    """Cut, reset, closed, op 7, both forms of op 9, refused, deaf, half open: one answer each, one live socket."""
    troubles = [
        world.drop_sockets,
        lambda: world.drop_sockets(is_reset=True),
        world.close_sockets,
        world.reconnect,
        lambda: world.invalidate(is_resumable=True),
        lambda: world.invalidate(is_resumable=False),
        lambda: world.sicken("deaf"),
        lambda: world.sicken("half_open"),
    ]
    await world.set(heartbeat_ms=500)
    async with side.wake(home, Scripted(default=echo)) as soul:
        for number, trouble in enumerate(troubles):
            await side.stage.say(DM, f"mid-turn {number}")
            await trouble()
            await side.stage.say(DM, f"after {number}")
            await world.until_visible(2 * (number + 1), within_s=PATIENCE_S)
        await world.heal()
        await world.until_connected(1, within_s=PATIENCE_S)
        await soul.idle()
        sockets = await world.sockets()

    assert [one["health"] for one in sockets] == ["live"]
    assert not await judged(side, home)


async def test_r08_an_hour_away_a_hundred_messages_are_found(side: Side, world: DiscordWorld, home: Home) -> None:
    """No session can be resumed and nothing is redelivered: the sweep finds all, in a channel, threads and a DM."""
    async with side.wake(home, Scripted(default=echo)) as soul:
        threads = [await side.stage.say(CHANNEL, f"thread {n}", calls=True) for n in range(4)]
        await side.stage.say(DM, "hello")
        await world.until_visible(5, within_s=PATIENCE_S)
        await soul.idle()
    await world.expire_sessions()
    await world.shift_clock(3600)
    for number in range(20):
        await side.stage.say(CHANNEL, f"in the channel {number}", calls=True, deliver=False)
        await side.stage.say(DM, f"direct {number}", deliver=False)
        for thread in threads[:3]:
            await side.stage.say(CHANNEL, f"in a thread {number}", thread=thread, deliver=False)
    async with side.wake(home, Scripted(default=echo)) as soul:
        await world.until_visible(105, within_s=PATIENCE_S)
        await soul.idle()

    assert len(await world.visible()) == 105
    assert not await judged(side, home)


async def test_r09_a_process_that_dies_at_once_logs_in_once_a_life(tmp_path: Path) -> None:
    """Five processes die at the login after one IDENTIFY each. The next is held back before any, and logs this.

    Virtual time shows that fifty such processes make fewer than twenty logins an hour (test_r09_crash_loop.py).
    """
    async with DiscordServer() as server:
        await server.world.set(identify_every_s=0.0)
        machine = Machine(tmp_path)
        machine.scripted()
        machine.env |= {
            "DISCORD_TOKEN": state.BOT_TOKEN,
            "CLAUDIUS_DISCORD_API_URL": server.base_url,
            "CLAUDIUS_DISCORD_GATEWAY_URL": server.gateway_url,
            "CLAUDIUS_DISCORD_GUILDS": state.GUILD,
        }
        for life in range(1, LIVES + 1):
            process = await born(machine)
            await server.world.until_connected(1, opened=life, within_s=PATIENCE_S)
            process.kill()
            await process.wait()
        before = (await server.world.counts())["identified"]
        process = await born(machine)
        async with asyncio.timeout(PATIENCE_S):
            while not any("crash-loop brake" in event["event"] for event in machine.events()):
                await asyncio.sleep(0.02)
        after = (await server.world.counts())["identified"]
        process.kill()
        await process.wait()

    assert (before, after) == (LIVES, LIVES)


async def born(machine: Machine) -> asyncio.subprocess.Process:
    """Start the daemon."""
    return await asyncio.create_subprocess_exec(
        str(CLAUDIUS),
        "daemon",
        "run",
        env=machine.environment(),
        cwd=machine.user,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )


@pytest.mark.parametrize("nonce", ["honoured", "ignored"])
async def test_r10_one_copy_however_the_answer_is_lost(side: Side, world: DiscordWorld, home: Home, nonce: str) -> None:
    """The answer is lost in every way, before and after the post is applied, with an honoured and an ignored nonce."""
    # an ignored nonce does not help, because the library itself asks again after a 502
    endings: list[FaultKind] = ["reset", "cut", "bad_json", *(["status"] if nonce == "honoured" else [])]
    cases = [(kind, is_applied) for kind in endings for is_applied in (True, False)]
    await world.set(nonce=nonce)
    async with side.wake(home, Scripted(default=echo)) as soul:
        for number, (kind, is_applied) in enumerate(cases, 1):
            await world.fault("create_message", kind, is_applied=is_applied)
            await side.stage.say(DM, f"hello {number}")
            await world.until_visible(number, within_s=PATIENCE_S)
            await soul.idle()

    assert [one.text for one in await world.visible()] == [f"re hello {n}" for n in range(1, len(cases) + 1)]
    assert not await judged(side, home)


async def test_r11_a_rate_limit_drops_nothing(side: Side, world: DiscordWorld, home: Home) -> None:
    """After a 429 or on a narrow route no call is made before its time, and all replies arrive in order."""
    await world.fault("create_message", "rate_limit", retry_after_s=1.0)
    async with side.wake(home, Scripted(default=echo)) as soul:
        await side.stage.say(DM, "first")
        await world.until_visible(1, within_s=PATIENCE_S)
        first, second, *_ = await world.calls("create_message")
        await world.limit("create_message", 5, 1.0)
        for number in range(20):
            await side.stage.say(DM, f"m{number}")
        await world.until_visible(21, within_s=PATIENCE_S)
        await soul.idle()

    assert second.at - first.at >= 1.0
    assert [one.text for one in await world.visible()][1:] == [f"re m{number}" for number in range(20)]
    assert not await judged(side, home)


async def test_r25_our_own_words_are_not_heard(side: Side, world: DiscordWorld, home: Home) -> None:
    """They are ignored by user id, live and in the history. Another bot is not answered past its budget."""
    other = "400000000000000007"
    await world.add_user(other, "parrot", is_bot=True)
    settings = {"CLAUDIUS_BOTS_ALLOW": f"discord:@me:{other}", "CLAUDIUS_BOTS_TURNS": "3"}
    async with side.wake(home, Scripted(default=echo), **settings) as soul:
        thread = await side.stage.say(CHANNEL, "hello", calls=True)
        await world.until_visible(1)
        for deliver in (True, False):
            await world.say(thread, state.BOT_USER, f"{US} echo", deliver=deliver)
            await world.say(state.DM, state.BOT_USER, "echo", deliver=deliver)
        for number in range(8):
            await world.say(thread, other, f"{US} ping {number}")
        await side.stage.say(DM, "and I?")
        await world.until_visible(5, within_s=PATIENCE_S)
        await soul.idle()
    async with side.wake(home, Scripted(default=echo), **settings) as soul:
        await world.until_heard()
        await soul.idle()

    assert len(await world.visible()) == 5
    people = set(PEOPLE.values())
    assert not await judged(side, home, counts=lambda entry: entry.user in people)


async def test_r26_odd_texts_are_kept_exactly_and_split_right(side: Side, world: DiscordWorld, home: Home) -> None:
    """Messages have any length that Discord allows, and a reply of ten thousand characters is split at 2,000."""
    voice = Scripted([reply("one\n\n```py\n" + "x = 1\n" * 2_000 + "```")], default=reply("yes"))
    async with side.wake(home, voice) as soul:
        await side.stage.say(DM, "go on")
        for text in TEXTS.values():
            await side.stage.say(DM, text)
        await world.until_visible(len(TEXTS) + 7, within_s=PATIENCE_S)
        await soul.idle()
        with_entries = soul.records()
        kept = with_entries.conversation(f"discord:@me:{state.DM}:")
        with_entries.close()

    posts = [one.text for one in await world.visible()]
    assert all(len(post.encode("utf-16-le")) // 2 <= 2000 for post in posts)
    assert kept is not None
    heard = [one["content"] for one in kept["entries"] if one["entry_type"] == "userMessage"]
    assert heard == ["go on", *map(valid, TEXTS.values())]
    assert not await judged(side, home)
