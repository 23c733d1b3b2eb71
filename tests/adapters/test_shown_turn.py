"""What a message shows is read for its turn alone, as it stands then, and costs no call where there is nothing."""

import logging
import sqlite3
from collections.abc import Mapping
from contextlib import AsyncExitStack, closing
from typing import Any

import pytest

from both import BEN_ON_DISCORD, BEN_ON_SLACK, SIDES, Side, slack_side
from claudius.cognition.prompt.assembly import prompt_sha256
from claudius.cognition.prompt.snapshot import rebuild
from claudius.errors import TooLong
from claudius.home import Home
from claudius.memory.search import plain
from claudius.provider import Request
from claudius.providers.scripted import DEFAULT, Line, Reply, Scripted
from claudius.runtime import thread_backfill
from claudius.testing.adapter_contract.stage import BEN, CHANNEL, DM
from ear import echo
from lab.loopback.discord import state as on_discord
from lab.loopback.slack import state as on_slack
from lab.stages.discord import DiscordStage
from lab.stages.slack import SlackStage
from minds import until
from prompt_records import prompt_of, shown_in

FERRY = "The Brandholm ferry leaves at six"
CALLS = {"slack": ("conversations.history", "conversations.replies"), "discord": ("get_channel_messages",)}
"""What reads a channel or a thread."""


async def reads(side: Side) -> int:
    """Count the calls so far that read what stands above a message; others read what was missed (`inclusive`)."""
    world: Any = side.stage.world  # type: ignore[attr-defined] - both have one
    calls = [call for name in CALLS[side.stage.name] for call in await world.calls(name)]
    if side.stage.name == "slack":
        return sum("latest" in one.arguments and "inclusive" not in one.arguments for one in calls)
    return sum("before" in one.where for one in calls)


async def show(side: Side, text: str, words: str) -> tuple[str, str]:
    """Have Ana show the soul a text in her direct messages: a forward, or on Discord a reply. Give where it is, and it."""
    if isinstance(side.stage, SlackStage):
        post = await side.stage.say(CHANNEL, text, by=BEN)
        shared = {"is_share": True, "author_id": BEN_ON_SLACK, "author_name": "ben", "text": text}
        place = {"channel_id": "C1", "channel_team": on_slack.TEAM, "ts": post}
        await side.stage.world.say("D1", "U1", words, fields={"attachments": [shared | place]})
        return CHANNEL, post
    assert isinstance(side.stage, DiscordStage)
    post = await side.stage.say(DM, text)
    await side.stage.world.say(on_discord.DM, on_discord.ANA, words, reply_to=post)
    return DM, post


def last(voice: Scripted) -> str:
    """Return the newest prompt."""
    return prompt_of(voice.requests[-1])


def texts(home: Home) -> str:
    """Return everything that is kept as text: what was heard, working memory, moments, state and portraits."""
    tables = ("SELECT payload FROM inbox", "SELECT content FROM entry", "SELECT text FROM moment")
    return "\n".join(str(row) for sql in tables for row in query(home, sql))


def query(home: Home, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of a query."""
    with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as kept:
        return kept.execute(sql).fetchall()


def kept(home: Home) -> str:
    """Return everything that is kept as text, and the records of turns."""
    records = [plain(row) or b"" for (row,) in query(home, "SELECT kept FROM turn_record")]
    return texts(home) + str(records) + str(query(home, "SELECT body FROM outbox"))


async def test_the_last_lines_are_shown_in_one_turn_and_kept_nowhere(side: Side, home: Home) -> None:
    """They are in order and marked as others'; the next turn there does not have them, and no table does."""
    voice = Scripted(default=echo)
    async with side.wake(home, voice) as soul:
        await side.stage.say(CHANNEL, FERRY, by=BEN)
        await side.stage.say(CHANNEL, "no, at seven")
        await side.stage.until_told()
        await side.stage.say(CHANNEL, "who is right?", calls=True)
        (shown,) = await soul.until_said(1, side.stage)
        kept = texts(home)
        await side.stage.say(CHANNEL, "thank you", thread=shown.thread, calls=True)
        await soul.until_said(2, side.stage)
        why = soul.records()
        turns: list[Mapping[str, Any]] = [why.turn(turn) or {} for turn in turns_of(home)]
        again = [prompt_sha256(rebuild(one["snapshot"], why)) for one in turns]

    lines = shown_in(voice.requests[0])
    assert [(one["how"], one["text"]) for one in lines] == [("above", FERRY), ("above", "no, at seven")]
    assert lines[0]["from"] == "ben"
    assert lines[0]["who"] != lines[1]["who"]
    assert FERRY not in kept
    assert FERRY not in last(voice)
    assert again == [one["prompt_sha256"] for one in turns]


def turns_of(home: Home) -> list[str]:
    """Return the turns that asked a model."""
    return [turn for (turn,) in query(home, "SELECT DISTINCT turn FROM step WHERE purpose = 'turn' ORDER BY turn")]


async def test_a_forward_is_shown_once_and_kept_nowhere(side: Side, home: Home) -> None:
    """What another wrote is no word of Ana's; her own words are kept."""
    voice = Scripted(default=echo)
    async with side.wake(home, voice) as soul:
        await show(side, FERRY, "is that so?")
        await side.stage.until_visible(1 if side.stage.name == "slack" else 2)
        await soul.idle()
        kept = texts(home)

    assert FERRY in last(voice)
    assert "is that so?" in kept
    assert (FERRY in kept) == (side.stage.name == "discord")  # there she said it herself before


@pytest.mark.parametrize("becomes", ["deleted", "edited"])
async def test_what_changes_before_the_turn_is_shown_as_it_is(side: Side, home: Home, becomes: str) -> None:
    """A message that waits shows no text of a message that was deleted since, and of one that was edited the new one.

    What was forwarded stays as it was then: whoever reads the forward may not read the message where it was edited.
    """
    is_forward = side.stage.name == "slack"

    def answer(request: Request) -> Reply:
        """Hang where it is told to."""
        return Line(hang=True) if "hang" in request.tail.rpartition('"text":"')[2] else echo(request)

    voice = Scripted(default=answer)
    async with side.wake(home, voice) as soul:
        first = await side.stage.say(DM, "hang on")
        await until(lambda: bool(voice.requests))
        where, post = await show(side, FERRY, "is that so?")
        await until(lambda: "is that so?" in texts(home))
        if becomes == "deleted":
            await side.stage.delete(where, [post])
        else:
            await side.stage.edit(where, post, "It leaves at eight")
        await side.stage.until_told()
        await until(lambda: (FERRY in texts(home)) == (is_forward and becomes == "edited"))
        await side.stage.delete(DM, [first])
        await side.stage.until_visible(1 if is_forward or becomes == "deleted" else 2)
        await soul.idle()

    shown = shown_in(voice.requests[-1])
    if becomes == "edited":
        assert [one["text"] for one in shown] == [FERRY if is_forward else "It leaves at eight"]
    else:
        assert FERRY not in last(voice)
        assert [one.get("unread") for one in shown] == (
            [] if is_forward else ["the message that this answers was deleted"]
        )


async def test_a_post_that_was_deleted_is_not_shown(side: Side, home: Home) -> None:
    """What stands above is read when the turn runs."""
    voice = Scripted(default=echo)
    async with side.wake(home, voice) as soul:
        gone = await side.stage.say(CHANNEL, FERRY, by=BEN)
        changed = await side.stage.say(CHANNEL, "at sven", by=BEN)
        await side.stage.delete(CHANNEL, [gone])
        await side.stage.edit(CHANNEL, changed, "at seven")
        await side.stage.until_told()
        await side.stage.say(CHANNEL, "is that right?", calls=True)
        await soul.until_said(1, side.stage)

    assert [one["text"] for one in shown_in(voice.requests[-1])] == ["at seven"]


async def test_a_turn_without_anything_above_it_makes_no_call(side: Side, home: Home) -> None:
    """Direct messages and a thread that goes on read nothing; each mention outside a thread reads once."""
    voice = Scripted(default=echo)
    async with side.wake(home, voice) as soul:
        await side.stage.until_told()
        before = await reads(side)
        await side.stage.say(DM, "hello")
        await soul.until_said(1, side.stage)
        assert await reads(side) == before
        await side.stage.say(CHANNEL, "hello", calls=True)
        shown = (await side.stage.until_visible(2))[-1]
        await soul.idle()
        assert await reads(side) == before + 1
        await side.stage.say(CHANNEL, "and now?", thread=shown.thread)
        await soul.until_said(3, side.stage)
        assert await reads(side) == before + 1


async def test_a_channel_that_cannot_be_read_holds_nothing_up(
    side: Side, home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    """The mention is answered without it, and one line of the log says so."""
    voice = Scripted(default=echo)
    caplog.set_level(logging.INFO, logger=thread_backfill.log.name)
    async with side.wake(home, voice) as soul:
        await side.stage.say(CHANNEL, FERRY, by=BEN)
        await side.stage.until_told()
        await side.stage.refuse_history()
        await side.stage.say(CHANNEL, "is that right?", calls=True)
        (shown,) = await soul.until_said(1, side.stage)

    assert shown.text == "re is that right?"
    assert [one.message for one in caplog.records if one.name == thread_backfill.log.name] == [
        "what stands above was not read"
    ]


async def alert(side: Side, text: str, thread: str = "") -> str:
    """Have an app post, which may not talk to the soul."""
    if isinstance(side.stage, SlackStage):
        await side.stage.world.add_user("U0ALERTS", "alerts", is_bot=True, bot_id="B0ALERTS")
        return await side.stage.world.say(
            "C1", "U0ALERTS", text, thread_ts=thread or None, subtype="bot_message", username="Alerts"
        )
    assert isinstance(side.stage, DiscordStage)
    await side.stage.world.add_user("400000000000000009", "Alerts", is_bot=True)
    return await side.stage.world.say(thread or on_discord.CHANNEL, "400000000000000009", text)


async def test_an_alerts_thread_stays_in_sight(side: Side, home: Home) -> None:
    """Each turn in it shows the alert, and what the app writes later, whether or not the soul is mentioned again."""
    voice = Scripted(default=echo)
    async with side.wake(home, voice) as soul:
        thread = await side.stage.begin_thread(await alert(side, "Pump 4 stands still"))
        await side.stage.say(CHANNEL, "what does this mean?", thread=thread, calls=True)
        await soul.until_said(1, side.stage)
        await side.stage.say(CHANNEL, "and since when?", thread=thread)
        await soul.until_said(2, side.stage)
        await alert(side, "Pump 4 runs again", thread)
        await side.stage.until_told()
        await side.stage.say(CHANNEL, "and now?", thread=thread)
        await soul.until_said(3, side.stage)
        kept = texts(home)

    shown = [[one["text"] for one in shown_in(request)] for request in voice.requests]
    assert shown == [["Pump 4 stands still"], ["Pump 4 stands still"], ["Pump 4 stands still", "Pump 4 runs again"]]
    assert "Pump 4" not in kept


async def test_an_app_that_joins_a_thread_later_is_read(side: Side, home: Home) -> None:
    """A thread that was overheard is read again once a person writes in it who is not heard."""
    voice = Scripted(default=echo)
    async with side.wake(home, voice) as soul:
        thread = await side.stage.begin_thread(await side.stage.say(CHANNEL, FERRY, by=BEN))
        await side.stage.say(CHANNEL, "is that right?", thread=thread, calls=True)
        await soul.until_said(1, side.stage)
        await alert(side, "The ferry is late", thread)
        await side.stage.until_told()
        await side.stage.say(CHANNEL, "what does that mean?", thread=thread)
        await soul.until_said(2, side.stage)

    assert [one["text"] for one in shown_in(voice.requests[-1])] == ["The ferry is late"]
    assert last(voice).count(FERRY) == 1


async def test_our_own_post_above_is_shown_as_ours(side: Side, home: Home) -> None:
    """A person who asks about it in its channel asks about something that the soul said."""
    voice = Scripted(default=echo)
    async with side.wake(home, voice) as soul:
        await side.stage.say_as_us(CHANNEL, FERRY)
        await side.stage.until_told()
        await side.stage.say(CHANNEL, "is that right?", calls=True)
        await soul.until_said(1, side.stage)

    (shown,) = shown_in(voice.requests[-1])
    assert (shown["text"], shown["own"], "who" in shown) == (FERRY, True, False)


async def test_a_long_text_is_shown_head_and_tail(side: Side, home: Home) -> None:
    """All that one message shows takes no more room than the longest message, and the gap is named."""
    voice = Scripted(default=echo)
    async with side.wake(home, voice) as soul:
        for n in range(12):
            await side.stage.say(CHANNEL, f"first {n} {'x' * 1900} last {n}", by=BEN)
        await side.stage.until_told()
        await side.stage.say(CHANNEL, "is that right?", calls=True)
        await soul.until_said(1, side.stage)

    shown = shown_in(voice.requests[-1])
    assert [one["text"].split()[1] for one in shown] == [str(n) for n in range(2, 12)]
    assert all(one["cut"] and one["end"].endswith(f"last {n}") for n, one in enumerate(shown, 2))
    assert sum(len(one["text"]) + len(one["end"]) for one in shown) <= 16_000


async def test_a_prompt_that_is_too_long_shows_less(side: Side, home: Home) -> None:
    """What a short message shows is cut as a long message is, until the model takes it."""
    voice = Scripted([TooLong("too long")], default=echo)
    async with side.wake(home, voice) as soul:
        for n in range(10):
            await side.stage.say(CHANNEL, f"first {n} {'x' * 1900} last {n}", by=BEN)
        await side.stage.until_told()
        await side.stage.say(CHANNEL, "is that right?", calls=True)
        (shown,) = await soul.until_said(1, side.stage)

    first, second = (sum(len(one["text"]) for one in shown_in(request)) for request in voice.requests)
    assert shown.text == "re is that right?"
    assert second < first / 3


async def test_what_was_shown_of_a_person_is_forgotten_with_them(side: Side, home: Home) -> None:
    """The turn in which the soul read them, and what it said then, goes as well; what they said is not read again."""
    person = f"slack:T1:{BEN_ON_SLACK}" if side.stage.name == "slack" else f"discord:@me:{BEN_ON_DISCORD}"
    said = (
        "<internal_monologue>Ben wears a zirconhat.</internal_monologue><external_dialogue>He does.</external_dialogue>"
    )
    voice = Scripted([DEFAULT, said])
    async with side.wake(home, voice) as soul:
        await side.stage.say(CHANNEL, "hello", by=BEN, calls=True)
        await soul.until_said(1, side.stage)
        await side.stage.say(CHANNEL, "I wear a zirconhat", by=BEN)
        await side.stage.until_told()
        await side.stage.say(CHANNEL, "who does?", calls=True)
        await soul.until_said(2, side.stage)
        receipt = await soul.server._forgetting.forget(person, soul.mind.clock(), "owner")
        await soul.idle()
        await side.stage.say(CHANNEL, "who did?", calls=True)
        await soul.until_said(3, side.stage)
        why = soul.records()
        left = [str(why.turn(turn)) for turn in turns_of(home)] + [texts(home)]

    assert receipt["verified"] is True
    assert "zirconhat" not in last(voice)
    assert [one for one in left if "zirconhat" in one] == []


@pytest.mark.parametrize("when", ["live", "after a restart", "while nobody listened"])
@pytest.mark.parametrize("place", ["above", "answered", "previewed", "previewed, then taken down", "heard", "edited"])
async def test_what_was_shown_of_a_message_goes_with_it(side: Side, home: Home, place: str, when: str) -> None:
    """What the soul thought and wrote of it goes, whenever it went, though nobody had heard it; the rest stays."""
    said = (
        "<internal_monologue>Ben wears a zirconhat.</internal_monologue>"
        "<external_dialogue>A zirconhat.</external_dialogue>"
    )
    voice = Scripted([said], default=DEFAULT)
    async with AsyncExitStack() as lives:
        soul = await lives.enter_async_context(side.wake(home, voice))
        if "previewed" in place:
            post = await side.linked("Ben wears a zirconhat")
        else:
            post = await side.stage.say(CHANNEL, "I wear a zirconhat", by=BEN, calls=place in ("heard", "edited"))
        if place == "answered" and isinstance(side.stage, DiscordStage):
            await side.stage.world.say(
                on_discord.CHANNEL, on_discord.ANA, f"<@{on_discord.BOT_USER}> who?", reply_to=post
            )
        elif place in ("above", "answered"):
            await side.stage.say(CHANNEL, "who does?", calls=True)
        await soul.until_said(1, side.stage)
        before = kept(home)
        if when != "live":
            await lives.aclose()
        if when == "after a restart":
            soul = await lives.enter_async_context(side.wake(home, voice))
        world: Any = side.stage.world  # type: ignore[attr-defined] - both have one
        where, is_told = "C1" if side.stage.name == "slack" else on_discord.CHANNEL, when != "while nobody listened"
        if place == "previewed":
            await world.unfurl(where, post, "", deliver=is_told)
        elif place == "edited":
            await world.edit(where, post, "never mind", deliver=is_told)
        else:
            await world.delete(where, post, deliver=is_told)
        if not is_told:
            soul = await lives.enter_async_context(side.wake(home, voice))
        await side.stage.until_told()
        await until(lambda: "zirconhat" not in kept(home))
        await soul.idle()
        await side.stage.say(DM, "hello")
        await soul.until_said(2, side.stage)
        asked = [step for (step,) in query(home, "SELECT content FROM entry WHERE person IS NOT NULL")]

    assert "zirconhat" in before
    assert "zirconhat" not in last(voice)
    assert len(asked) == 2


async def test_a_history_that_may_not_be_read_is_no_deletion_of_what_was_heard(home: Home) -> None:
    """Discord shows it as an empty one."""
    async with SIDES["discord"]() as side:
        assert isinstance(side.stage, DiscordStage)
        async with side.wake(home, Scripted(default=DEFAULT)) as soul:
            await side.stage.say(CHANNEL, "I wear a zirconhat", by=BEN, calls=True)
            await soul.until_said(1, side.stage)
        await side.stage.world.overwrite(on_discord.CHANNEL, on_discord.BOT_USER, deny=["read_message_history"])
        async with side.wake(home, Scripted(default=DEFAULT)) as soul:
            await side.stage.until_told()
            await side.stage.say(DM, "hello")
            await soul.until_said(2, side.stage)
            await soul.idle()
        assert "zirconhat" in kept(home)


@pytest.mark.parametrize("author", [BEN_ON_SLACK, ""])
async def test_what_others_forwarded_of_a_person_is_not_read_again_once_they_are_forgotten(
    home: Home, author: str
) -> None:
    """Their old words, or no one knows whose, stand in another's post, which stays; its own words are shown."""
    shared = {"is_share": True, "author_id": author, "author_name": "ben", "text": "I wear a zirconhat"}
    place = {"channel_id": "C1", "channel_team": on_slack.TEAM, "ts": "1767225600.000100"}
    voice = Scripted(default=echo)
    async with slack_side() as side:
        assert isinstance(side.stage, SlackStage)
        async with side.wake(home, voice) as soul:
            await side.stage.say(CHANNEL, "hello", by=BEN, calls=True)
            await side.stage.until_visible(1)
            await side.stage.world.say("C1", "U1", "look at that", fields={"attachments": [shared | place]})
            await side.stage.say(CHANNEL, "who does?", calls=True)
            await soul.until_said(2, side.stage)
            await soul.server._forgetting.forget(f"slack:T1:{BEN_ON_SLACK}", soul.mind.clock(), "owner")
            await soul.idle()
            await side.stage.say(CHANNEL, "who did?", calls=True)
            await soul.until_said(3, side.stage)

    assert [["zirconhat" in prompt_of(one), "look at that" in prompt_of(one)] for one in voice.requests[1:]] == [
        [True, True],
        [False, True],
    ]


async def test_a_thread_that_could_not_be_read_once_is_read_by_the_next_turn(home: Home) -> None:
    """A failed read is no empty one: the alert is in sight again as soon as Slack answers."""
    voice = Scripted(default=echo)
    async with slack_side() as side:
        assert isinstance(side.stage, SlackStage)
        async with side.wake(home, voice) as soul:
            thread = await alert(side, "Pump 4 stands still")
            for n, text in enumerate(("what does this mean?", "and since when?", "and now?"), 1):
                if n == 2:
                    await side.stage.world.fault("conversations.replies", "error", error="missing_scope", times=1)
                await side.stage.say(CHANNEL, text, thread=thread, calls=n == 1)
                await soul.until_said(n, side.stage)

    shown = [[one["text"] for one in shown_in(request)] for request in voice.requests]
    assert shown == [["Pump 4 stands still"], [], ["Pump 4 stands still"]]
