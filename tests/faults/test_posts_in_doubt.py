"""R8, R10, R11, R25: a network that is away, posts that were made and not told, too many of them, and our own echo."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lab.loopback.slack.faults import FaultKind
from lab.loopback.slack.records import Entry
from lab.loopback.slack.state import BOT_USER
from lab.loopback.slack.world import SlackWorld
from slack_daemon import MENTION, PATIENCE_S, is_owed, slack_daemon

THREADS, DIRECT, EACH = 4, 4, 12


@pytest.mark.slow
async def test_r08_a_hundred_messages_are_found(tmp_path: Path) -> None:
    """A hundred are in a channel, in threads and in DMs, none delivered, some from people new to the soul."""
    async with slack_daemon(tmp_path) as daemon:
        slack = daemon.slack
        await daemon.start()
        threads = [await slack.say("C1", "U1", f"{MENTION} thread {number}") for number in range(THREADS)]
        await slack.until_visible(THREADS, within_s=PATIENCE_S)
        await daemon.drained(heard=THREADS)
        await daemon.stop()
        said = await talk_unheard(slack, threads)
        await daemon.start()
        await slack.until_visible(THREADS + len(said), within_s=PATIENCE_S)
        await daemon.drained(heard=THREADS + len(said))
        await daemon.stop()

        assert len(said) == 100
        told = [one for one in await slack.deliveries() if one.ts in said and one.event in ("message", "app_mention")]
        assert {one.fate for one in told} == {"lost"}
        assert not await daemon.judged()


async def talk_unheard(slack: SlackWorld, threads: list[str]) -> set[str]:
    """Say messages without any event. Returns their timestamps."""
    direct, said = [], set()
    for person in range(2, DIRECT + 2):
        await slack.add_user(f"U{person}", f"person {person}")
        direct.append((await slack.open_dm(f"U{person}"), f"U{person}"))
    for number in range(EACH):
        for thread in threads:
            said.add(await slack.say("C1", "U1", f"in a thread {number}", thread_ts=thread, deliver=False))
        for channel, user in direct:
            said.add(await slack.say(channel, user, f"direct {number}", deliver=False))
    for number in range(100 - EACH * (THREADS + DIRECT)):
        said.add(await slack.say("C1", "U1", f"{MENTION} in the channel {number}", deliver=False))
    return said


async def test_r08_a_kill_before_the_sweep_is_over_loses_nothing(tmp_path: Path) -> None:
    """A live message after the gap is followed by a kill: the next sweep still reads what came before it."""
    async with slack_daemon(tmp_path) as daemon:
        slack = daemon.slack
        await slack.add_user("U2", "ben")
        new = await slack.open_dm("U2")
        await daemon.start()
        await slack.say("D1", "U1", "hello")
        await slack.until_visible(1, within_s=PATIENCE_S)
        await daemon.drained(heard=1)
        await daemon.stop()
        await slack.say("D1", "U1", "missed", deliver=False)
        await slack.say(new, "U2", "missed, by somebody new", deliver=False)
        await slack.fault("conversations.history", "hang", times=99)
        await slack.fault("users.conversations", "hang", times=99)
        await daemon.start()
        await slack.say("D1", "U1", "after")
        await slack.say(new, "U2", "after, by somebody new")
        await slack.until_fate("acked", 3, within_s=PATIENCE_S)
        await daemon.kill()
        await slack.heal()
        await daemon.start()
        await slack.until_visible(5, within_s=PATIENCE_S)
        await daemon.drained(heard=5)
        await daemon.stop()

        assert not await daemon.judged()


pytestmark = pytest.mark.slow

ENDINGS: tuple[tuple[FaultKind, str], ...] = (
    ("reset", ""),
    ("hang", ""),
    ("status", ""),
    ("cut", ""),
    ("bad_json", ""),
    ("error", "fatal_error"),
    ("error", "internal_error"),
    ("error", "service_unavailable"),
    ("error", "request_timeout"),
)


async def test_r10_one_copy_however_the_answer_is_lost(tmp_path: Path) -> None:
    """The answer is lost in every way, before and after the post was applied, each in its own conversation."""
    async with slack_daemon(tmp_path) as daemon:
        slack = daemon.slack
        await daemon.start()
        cases = [(kind, error, is_applied) for kind, error in ENDINGS for is_applied in (True, False)]
        for number, (kind, error, is_applied) in enumerate(cases, 2):
            await slack.add_user(f"U{number}", f"person {number}")
            direct = await slack.open_dm(f"U{number}")
            facts = {"error": error} if error else {}
            await slack.fault("chat.postMessage", kind, is_applied=is_applied, where={"channel": direct}, **facts)
            await slack.say(direct, f"U{number}", "hello")
        await slack.until_visible(len(cases), within_s=PATIENCE_S)
        await daemon.drained(heard=len(cases))
        await daemon.stop()

        assert len(await slack.visible()) == len(cases)
        assert sum(bool(call.fault) for call in await slack.calls("chat.postMessage")) == len(cases)
        assert not await daemon.judged()


async def test_r10_what_can_never_be_proved_is_given_up_and_reported(tmp_path: Path) -> None:
    """If no one may read the history, no second copy is posted. After its time the post is dead and in status."""
    async with slack_daemon(tmp_path) as daemon:
        slack = daemon.slack
        await slack.add_user("U2", "ben")
        other = await slack.open_dm("U2")
        await slack.fault("conversations.history", "error", error="missing_scope", times=999)
        for channel, is_applied in (("D1", True), (other, False)):
            await slack.fault("chat.postMessage", "status", is_applied=is_applied, where={"channel": channel})
        await daemon.start()
        await slack.say("D1", "U1", "hello")
        await slack.say(other, "U2", "hello")
        await daemon.until(
            lambda: len(daemon.rows("SELECT 1 FROM outbox WHERE reason LIKE 'unproven%'")) == 2, what="two doubts"
        )
        await daemon.stop()
        later = (datetime.now(UTC) + timedelta(hours=25)).isoformat()
        await daemon.start(env={"CLAUDIUS_CLOCK": later})
        await daemon.drained(heard=2)
        status = await daemon.status()
        await daemon.stop()

        assert daemon.rows("SELECT DISTINCT state, reason FROM outbox") == [("dead", "unproven")]
        assert (status["outbox"]["failed"], status["inbox"]["dead"]) == (2, 2)
        assert [entry.channel for entry in await slack.visible()] == ["D1"]
        broken = await daemon.judged()
        assert [rule.partition(":")[0] for rule in broken] in (["O1", "O6"], ["O1"])


RETRY_AFTER_S = 3


async def test_r11_nothing_is_posted_before_the_time_named(tmp_path: Path) -> None:
    """After a 429 with Retry-After, the next call to that method waits that long, and the reply arrives once."""
    async with slack_daemon(tmp_path) as daemon:
        slack = daemon.slack
        await slack.fault("chat.postMessage", "rate_limit", retry_after_s=RETRY_AFTER_S)
        await daemon.start()
        await slack.say("D1", "U1", "hello")
        await slack.until_visible(1, within_s=PATIENCE_S)
        await daemon.drained(heard=1)
        await daemon.stop()

        calls = await slack.calls("chat.postMessage")
        assert len(calls) == 2
        assert calls[1].at - calls[0].at >= RETRY_AFTER_S
        assert not await daemon.judged()


async def test_r11_many_replies_through_a_narrow_channel(tmp_path: Path) -> None:
    """Thirty replies for a channel that takes a few posts at a time each arrive once, in their thread, in order."""
    async with slack_daemon(tmp_path) as daemon:
        slack = daemon.slack
        await slack.limit("chat.postMessage", 4, 1.0, is_by_channel=True)
        await daemon.start()
        for number in range(10):
            thread = await slack.say("C1", "U1", f"{MENTION} one of {number}")
            for word in ("two", "three"):
                await slack.say("C1", "U1", f"{word} of {number}", thread_ts=thread)
        await slack.until_visible(30, within_s=PATIENCE_S)
        await daemon.drained(heard=30)
        await daemon.stop()

        refused = [call for call in await slack.calls("chat.postMessage") if call.status == 429]
        assert refused
        assert not await daemon.judged()


OTHER, TURNS = "U7", 3


def is_owed_to_people(entry: Entry) -> bool:
    """Return whether an answer is owed, which is so for people, and never for bots."""
    return entry.user not in (BOT_USER, OTHER) and is_owed(entry)


async def test_r25_our_own_words_are_not_heard(tmp_path: Path) -> None:
    """They are ignored by user id, by bot id alone and under another name, live and in a sweep's history."""
    async with slack_daemon(tmp_path) as daemon:
        slack = daemon.slack
        await daemon.start()
        thread = await slack.say("C1", "U1", f"{MENTION} hello")
        await slack.until_visible(1, within_s=PATIENCE_S)
        for deliver in (True, False):
            for channel, thread_ts in (("C1", thread), ("C1", None), ("D1", None)):
                for subtype, username in ((None, None), ("bot_message", None), ("bot_message", "Hal")):
                    await slack.say(
                        channel,
                        BOT_USER,
                        f"{MENTION} echo",
                        thread_ts=thread_ts,
                        subtype=subtype,
                        username=username,
                        deliver=deliver,
                    )
        await slack.until_quiet(within_s=PATIENCE_S)
        await daemon.stop()
        await daemon.start()
        await slack.say("D1", "U1", "last")
        await slack.until_visible(2, within_s=PATIENCE_S)
        await daemon.until(lambda: daemon.rows("SELECT 1 FROM heard WHERE channel = 'T1:C1'"), what="a sweep")
        await daemon.drained(heard=2)
        await daemon.stop()

        assert daemon.rows("SELECT count(*) FROM inbox") == [(2,)]
        assert len(await slack.visible()) == 2
        assert not await daemon.judged(is_owed_to_people)


async def test_r25_a_bot_that_answers_everything_meets_silence(tmp_path: Path) -> None:
    """A named bot is answered within its budget and then no more. People are still answered."""
    settings = {"CLAUDIUS_BOTS_ALLOW": f"slack:T1:{OTHER}", "CLAUDIUS_BOTS_TURNS": str(TURNS)}
    async with slack_daemon(tmp_path, **settings) as daemon:
        slack = daemon.slack
        await slack.add_user(OTHER, "parrot", is_bot=True, bot_id="B7")
        await slack.join("C1", OTHER)
        await daemon.start()
        thread = await slack.say("C1", OTHER, f"{MENTION} ping 0")
        for number in range(1, TURNS + 1):
            await slack.until_visible(number, within_s=PATIENCE_S)
            await slack.say("C1", OTHER, f"{MENTION} ping {number}", thread_ts=thread)
        for number in range(TURNS + 1, 3 * TURNS):
            await slack.say("C1", OTHER, f"{MENTION} ping {number}", thread_ts=thread)
        await slack.until_quiet(within_s=PATIENCE_S)
        await slack.say("C1", "U1", f"{MENTION} and I?", thread_ts=thread)
        await slack.until_visible(TURNS + 1, within_s=PATIENCE_S)
        await daemon.drained(heard=TURNS + 1)
        await daemon.stop()

        assert len(await slack.visible()) == TURNS + 1
        assert "timeout" not in {one.fate for one in await slack.deliveries()}
        assert not await daemon.judged(is_owed_to_people)
