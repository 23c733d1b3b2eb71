"""R24: messages edited, deleted and stopped before, during and after the turn that answers them."""

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import astuple
from typing import Any

from both import Side
from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Line, Reply, Scripted
from claudius.testing.adapter_contract.stage import BEN, CHANNEL, DM
from claudius.testing.alive import Alive
from ear import echo

STOPPED = "Stopped, as you asked."


class Slow:
    """A model that hangs on every message that says so and echoes any other, and records when it was asked."""

    def __init__(self) -> None:
        self.voice = Scripted(default=self._answer)
        self._asked = asyncio.Event()

    def _answer(self, request: Request) -> Reply:
        """Answer one request."""
        self._asked.set()
        return Line(hang=True) if "hang" in request.tail.rpartition('"text":"')[2] else echo(request)

    async def asked(self, count: int) -> None:
        """Wait until the model has been asked `count` times."""
        async with asyncio.timeout(20):
            while len(self.voice.requests) < count:
                self._asked.clear()
                await self._asked.wait()


def rows(soul: Alive, sql: str) -> list[tuple[Any, ...]]:
    """Query the database directly."""
    with closing(sqlite3.connect(f"file:{soul.home.database}?mode=ro", uri=True)) as kept:
        return kept.execute(sql).fetchall()


async def until(soul: Alive, sql: str, found: list[tuple[Any, ...]]) -> None:
    """Poll the database until it holds the expected value."""
    async with asyncio.timeout(20):
        while rows(soul, sql) != found:
            await asyncio.sleep(0.005)


HEARD = "SELECT content, json_extract(metadata, '$.edited'), json_extract(metadata, '$.deleted') FROM entry WHERE person <> ''"


async def test_a_message_edited_during_its_turn_restarts_the_turn_once(side: Side, home: Home) -> None:
    """The turn restarts with the new words; a second change waits, and memory is corrected."""
    slow = Slow()
    async with side.wake(home, slow.voice) as soul:
        message = await side.stage.say(DM, "hang one")
        await slow.asked(1)
        await side.stage.edit(DM, message, "hang two")
        await slow.asked(2)
        await side.stage.edit(DM, message, "three")
        await until(soul, "SELECT count(*) FROM inbox WHERE kind = 'edit' AND state = 'pending'", [(1,)])
        await side.stage.react(DM, message, "🛑")
        (shown,) = await soul.until_said(1, side.stage)

        assert shown.text.startswith(STOPPED)
        assert rows(soul, HEARD) == [("three", 1, None)]
        assert len(slow.voice.requests) == 2
        assert rows(soul, "SELECT DISTINCT state FROM inbox") == [("settled",)]


async def test_a_changed_message_is_answered_as_it_stands(side: Side, home: Home) -> None:
    """An edit before the turn replaces the waiting row in its place. An edit during the turn has the same result."""
    slow = Slow()
    async with side.wake(home, slow.voice) as soul:
        first = await side.stage.say(DM, "hang first")
        second = await side.stage.say(DM, "second")
        await slow.asked(1)
        await side.stage.edit(DM, second, "second, better")
        await side.stage.until_told()
        await side.stage.edit(DM, first, "first, better")
        shown = await soul.until_said(2, side.stage)

        assert [one.text for one in shown] == ["re first, better", "re second, better"]


async def test_a_message_edited_after_its_answer_is_amended_in_memory(side: Side, home: Home) -> None:
    """Memory is amended with a mark and there is no second reply. An edit that only unfolds a link changes nothing."""
    voice = Scripted(default=echo)
    async with side.wake(home, voice) as soul:
        message = await side.stage.say(CHANNEL, "one", calls=True)
        (shown,) = await soul.until_said(1, side.stage)
        await side.stage.unfurl(CHANNEL, message)
        await side.stage.edit(CHANNEL, message, "two", calls=True)
        await until(soul, HEARD, [("two", 1, None)])
        await side.stage.say(CHANNEL, "and?", thread=shown.thread)
        await soul.until_said(2, side.stage)

    assert [one.text for one in await side.stage.visible()] == ["re one", "re and?"]
    (history,) = [one.content for one in voice.requests[-1].history if '"two"' in one.content]
    assert '"edited":true' in history
    assert '"one"' not in history


async def test_a_message_deleted_before_its_answer_gets_none(side: Side, home: Home) -> None:
    """A running turn is cancelled and its typing indicator ends; a waiting message is never taken.

    Others are answered.
    """
    slow = Slow()
    async with side.wake(home, slow.voice) as soul:
        first = await side.stage.say(DM, "hang first")
        second = await side.stage.say(DM, "second")
        await side.stage.say(DM, "third")
        await slow.asked(1)
        await side.stage.delete(DM, (first, second))
        (shown,) = await soul.until_said(1, side.stage)

        assert shown.text == "re third"
        assert rows(soul, "SELECT reason FROM inbox WHERE reason IS NOT NULL") == [("withdrawn",), ("withdrawn",)]
        assert not rows(soul, "SELECT 1 FROM inbox WHERE payload LIKE '%first%' OR payload LIKE '%second%'")


async def test_a_message_deleted_after_its_answer_is_forgotten(side: Side, home: Home) -> None:
    """Its words leave working memory, prompts, and the portrait that was written from them. What was posted stays."""
    learned = echo(Request(system="", history=(), tail='"text":"noted"', max_tokens=1)) + (
        "<user_model_check>true</user_model_check><user_model_update><![CDATA[# Ana\nLikes canaries.]]></user_model_update>"
    )
    voice = Scripted([learned], default=echo)
    async with side.wake(home, voice, CLAUDIUS_USER_MODEL_INTERVAL="1") as soul:
        message = await side.stage.say(DM, "canary")
        await soul.until_said(1, side.stage)
        await side.stage.delete(DM, (message,))
        await until(soul, HEARD, [("", None, 1)])
        await side.stage.say(DM, "and?")
        await soul.until_said(2, side.stage)

        assert len(await side.stage.visible()) == 2
        assert not [one for one in voice.requests[-1].history if '"canary"' in one.content]
        await until(soul, "SELECT count(*) FROM user_model WHERE markdown LIKE '%canaries%'", [(0,)])


async def test_the_deleted_first_message_of_a_thread_is_forgotten(side: Side, home: Home) -> None:
    """Slack leaves a tombstone there, and reports that as a change."""
    async with side.wake(home, Scripted(default=echo)) as soul:
        message = await side.stage.say(CHANNEL, "canary", calls=True)
        await soul.until_said(1, side.stage)
        await side.stage.delete(CHANNEL, (message,))
        await until(soul, HEARD, [("", None, 1)])

        assert len(await side.stage.visible()) == 1


async def test_stop_is_heard_ahead_of_the_queue(side: Side, home: Home) -> None:
    """`!stop` by the asker or a stop reaction on one's own message: one apology, then the next message is answered."""
    slow = Slow()
    async with side.wake(home, slow.voice) as soul:
        await side.stage.say(CHANNEL, "hello", calls=True)
        ((_, thread, *_),) = [astuple(one) for one in await side.stage.until_visible(1)]
        await side.stage.say(CHANNEL, "hang first", thread=thread)
        await slow.asked(2)
        await side.stage.say(CHANNEL, "!stop", by=BEN, thread=thread)
        await side.stage.until_told()
        assert len(await side.stage.visible()) == 1
        await side.stage.say(CHANNEL, "!stop", thread=thread)
        await side.stage.until_visible(2)
        message = await side.stage.say(DM, "hang second")
        await slow.asked(3)
        await side.stage.say(DM, "third")
        await side.stage.react(DM, message, "🛑")
        shown = (await side.stage.until_visible(4))[1:]
        await soul.idle()

        assert [one.text.startswith(STOPPED) for one in shown] == [True, True, False]
        assert (shown[0].where, shown[0].thread, shown[2].text) == (CHANNEL, thread, "re third")
        assert rows(soul, "SELECT DISTINCT state FROM inbox") == [("settled",)]


async def test_a_stop_found_by_a_sweep_gets_no_answer_of_its_own(side: Side, home: Home) -> None:
    """It was said while no one listened: the message before it gets the apology, and the word itself no answer."""
    async with side.wake(home, Scripted(default=echo)) as soul:
        await side.stage.say(DM, "hello")
        await soul.until_said(1, side.stage)
    await side.stage.say(DM, "hang", deliver=False)
    await side.stage.say(DM, "!stop", deliver=False)
    voice = Scripted(default=echo)
    async with side.wake(home, voice) as soul:
        (_, shown) = await soul.until_said(2, side.stage)

    assert shown.text.startswith(STOPPED)
    assert voice.requests == []


async def test_an_owner_may_stop_what_another_asked(side: Side, home: Home) -> None:
    """The owner is recognised by signed id alone."""
    slow = Slow()
    async with side.wake(home, slow.voice, CLAUDIUS_OWNERS=side.stage.own_person) as soul:
        await side.stage.say(CHANNEL, "hello", by=BEN, calls=True)
        ((_, thread, *_),) = [astuple(one) for one in await side.stage.until_visible(1)]
        await side.stage.say(CHANNEL, "hang", by=BEN, thread=thread, calls=True)
        await slow.asked(2)
        await side.stage.say(CHANNEL, "!STOP", thread=thread, calls=True)
        shown = await soul.until_said(2, side.stage)

        assert shown[1].text.startswith(STOPPED)


async def test_what_was_asked_in_a_channel_is_stopped_from_that_channel(side: Side, home: Home) -> None:
    """Its thread may not exist yet. Another person's stop there stops nothing."""
    slow = Slow()
    async with side.wake(home, slow.voice) as soul:
        await side.stage.say(CHANNEL, "hang", calls=True)
        await slow.asked(1)
        await side.stage.say(CHANNEL, "!stop", by=BEN)
        await side.stage.until_told()
        assert not await side.stage.visible()
        await side.stage.say(CHANNEL, "!stop")
        (shown,) = await soul.until_said(1, side.stage)

        assert shown.text.startswith(STOPPED)


async def test_a_reaction_to_what_was_said_is_kept_and_undone(side: Side, home: Home) -> None:
    """It is stored with the turn that it judges, without a reply or a model call, and is removed with the reaction."""
    voice = Scripted(default=echo)
    async with side.wake(home, voice) as soul:
        message = await side.stage.say(CHANNEL, "hello", calls=True)
        (shown,) = await soul.until_said(1, side.stage)
        kept = "SELECT r.emoji, r.is_on FROM reaction r JOIN turn t ON t.turn = r.turn"
        await side.stage.react(CHANNEL, message, "👎")
        await side.stage.react(CHANNEL, shown.id, "👍", thread=shown.thread)
        await until(soul, kept, [("👍", 1)])
        await side.stage.react(CHANNEL, shown.id, "👍", thread=shown.thread, is_on=False)
        await until(soul, kept, [("👍", 0)])
        await side.stage.react(CHANNEL, shown.id, "👍", thread=shown.thread)
        await until(soul, kept, [("👍", 1)])
        await until(soul, "SELECT direction, reaction FROM interaction ORDER BY id", [("in", 0), ("out", 1)])
        await soul.idle()
        (turn,) = rows(soul, "SELECT turn FROM turn WHERE number = 1")
        with closing(soul.records()) as records:
            record = records.turn(turn[0])
        assert (len(voice.requests), len(await side.stage.visible())) == (1, 1)
        await side.stage.say(CHANNEL, "and?", thread=shown.thread, calls=True)
        await soul.until_said(2, side.stage)

    assert record is not None
    assert [one["emoji"] for one in record["reactions"]] == ["👍"]
    history = "".join(one.content for one in voice.requests[-1].history)
    assert history.count('"kind":"reaction"') == 3
    assert history.count('"removed":true') == 1


async def test_a_reaction_in_a_direct_message_costs_no_model(side: Side, home: Home) -> None:
    """Every message is owed an answer there, but a reaction is not a message."""
    voice = Scripted(default=echo)
    async with side.wake(home, voice) as soul:
        await side.stage.say(DM, "hello")
        (shown,) = await soul.until_said(1, side.stage)
        await side.stage.react(DM, shown.id, "❤️")
        await until(soul, "SELECT count(*), min(state) FROM inbox WHERE kind = 'reaction'", [(1, "settled")])
        await soul.idle()

        assert (len(voice.requests), len(await side.stage.visible())) == (1, 1)
