"""Conformance 27 to 32 and 45 to 48: what is heard during a turn, how a turn is interrupted, and what is said then."""

import asyncio
from datetime import timedelta
from typing import Any

from claudius.cognition.craft import (
    Interruption,
    Turn,
    WorkingMemory,
    external_dialogue,
    mental_process,
)
from claudius.errors import Cut
from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Line, Scripted
from minds import DM, both, by_tag, heard, minds, say, standing, thinking, until


def echo(request: Request) -> str:
    """Answer with everything that was said, as one line."""
    return by_tag(external_dialogue="re " + " + ".join(heard(request)))(request)


def gated(reply: Any = echo) -> tuple[Scripted, asyncio.Event, asyncio.Event]:
    """Return a model whose first call waits, with the events that report the call and release it."""
    asked, opened = asyncio.Event(), asyncio.Event()

    class Waiting(Scripted):
        """A model that waits in its first call."""

        async def complete(self, request: Request) -> Any:
            """Wait in the first call."""
            is_first = not self.requests
            stream = Scripted.complete(self, request)
            if is_first:
                self.requests.append(request)
                asked.set()
                await opened.wait()
                self.requests.pop()
            async for event in stream:
                yield event

    return Waiting(default=reply), asked, opened


async def test_c27_three_perceptions_are_answered_in_order(home: Home) -> None:
    """27: without merging they are answered in order, integrated once each, with three replies."""
    async with minds(home, Scripted(default=echo)) as soul:
        for line in ("one", "two", "three"):
            await soul.network.hear(line)
        said = [one.text for one in await soul.network.until_visible(3)]
        entries = standing(soul)["entries"]

    assert said == ["re one", "re two", "re three"]
    assert [one["content"] for one in entries if one["entry_type"] == "userMessage"] == ["one", "two", "three"]


async def test_c28_pending_is_complete_from_the_first_line(home: Home) -> None:
    """28 ✗: two perceptions wait when the turn starts: `pending` holds them, without the one that started the turn."""
    seen: list[list[str]] = []
    ready, go = asyncio.Event(), asyncio.Event()

    async def look(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Read what waits before anything else."""
        if turn.perception.text == "zero":
            ready.set()
            await go.wait()
        else:
            seen.append([one.text for one in turn.pending])
        turn.say("ok")
        return memory

    async with minds(home, Scripted(), **both(look)) as soul:
        await soul.network.hear("zero")
        await ready.wait()
        for line in ("one", "two", "three"):
            await soul.network.hear(line)
        go.set()
        await soul.network.until_visible(4)

    assert seen == [["two", "three"], ["three"], []]


async def test_c29_queue_leaves_the_turn_alone(home: Home) -> None:
    """29: with QUEUE a perception that arrives during a turn does not disturb it, and `pending` grows."""
    seen: list[tuple[bool, list[str]]] = []

    async def watch(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Think and then look."""
        memory, line = await turn.think(memory, external_dialogue())
        await turn.look()
        seen.append((turn.interrupted, [one.text for one in turn.pending]))
        turn.say(line)
        return memory

    voice, asked, opened = gated()
    async with minds(home, voice, **both(watch)) as soul:
        await soul.network.hear("one")
        await asked.wait()
        await soul.network.hear("two")
        opened.set()
        said = [one.text for one in await soul.network.until_visible(2)]

    assert said == ["re one", "re two"]
    assert seen == [(True, ["two"]), (False, [])]


async def test_yield_keeps_the_thought_and_answers_both_together(home: Home) -> None:
    """YIELD: the turn stops at its next think.

    Thoughts are committed without speech, and the next turn answers both.
    """
    voice, asked, opened = gated()
    async with minds(home, voice, **both(thinking, interruption=Interruption.YIELD)) as soul:
        await soul.network.hear("one")
        await asked.wait()
        await soul.network.hear("two")
        opened.set()
        said = [one.text for one in await soul.network.until_visible(1)]
        await soul.idle()
        entries, counts = standing(soul)["entries"], soul.records().counts(soul.mind.clock())

    assert said == ["re one + two"]
    assert [(one["entry_type"], one["content"]) for one in entries] == [
        ("internalMonologue", "It was asked."),
        ("userMessage", "one"),
        ("userMessage", "two"),
        ("internalMonologue", "It was asked."),
        ("externalDialog", "re one + two"),
    ]
    assert counts["inbox"] == {"pending": 0, "dead": 0}


async def test_replace_keeps_nothing_and_answers_both_together(home: Home) -> None:
    """REPLACE: the model call is cancelled and nothing is committed. The message goes into the next turn."""
    voice, asked, _ = gated()
    async with minds(home, voice, **both(thinking, interruption=Interruption.REPLACE)) as soul:
        await soul.network.hear("one")
        await asked.wait()
        await soul.network.hear("two")
        said = [one.text for one in await soul.network.until_visible(1)]
        await soul.idle()
        entries = standing(soul)["entries"]

    assert said == ["re one + two"]
    assert voice.open == 0
    assert [one["content"] for one in entries] == ["one", "two", "It was asked.", "re one + two"]


async def test_a_burst_is_answered_in_one_reply_if_configured(home: Home) -> None:
    """`runtime.merge_while_busy`: what one person said during a turn is fenced one by one and answered once."""
    voice, asked, opened = gated()
    settings = {"CLAUDIUS_RUNTIME_MERGE_WHILE_BUSY": "1"}
    async with minds(home, voice, settings=settings) as soul:
        await soul.network.hear("one")
        await asked.wait()
        for line in ("two", "three", "four"):
            await soul.network.hear(line)
        opened.set()
        said = [one.text for one in await soul.network.until_visible(2)]
        await soul.idle()
        entries, counts = standing(soul)["entries"], soul.records().counts(soul.mind.clock())
        turn = soul.records().turn(entries[-2]["turn"]) or {}

    assert said == ["re one", "re two + three + four"]
    assert [one["content"] for one in entries if one["entry_type"] == "userMessage"] == ["one", "two", "three", "four"]
    assert len(turn["perceptions"]) == 3
    assert counts["inbox"] == {"pending": 0, "dead": 0}


async def test_c30_what_is_not_owed_is_consumed_without_a_process(home: Home) -> None:
    """30: if `integrate` returns nothing to think about, the talk is kept, no process runs and no model is asked."""
    voice = Scripted(default=echo)
    async with minds(home, voice) as soul:
        before = await soul.network.hear("hello")
        await soul.network.until_visible(1)
        state = standing(soul)
        heard_only = soul.network
        perception = type(before)(
            **{name: getattr(before, name) for name in before.__struct_fields__}
            | {"key": "k2", "text": "aside", "owes": False, "position": "9"}
        )
        await heard_only._accept(perception)  # type: ignore[misc]  # what a network does
        await soul.idle()
        after = standing(soul)

    assert len(voice.requests) == 1
    assert (after["process"], after["invocation_count"]) == (state["process"], state["invocation_count"])
    assert [one["content"] for one in after["entries"]][-1] == "aside"


async def test_c31_c32_a_perception_names_its_process_and_has_its_own_role(home: Home) -> None:
    """31 ✗, 32: a perception that names process and params is routed so.

    Internal ones are the soul's own in the history.
    """
    got: list[dict[str, Any]] = []

    async def remind(turn: Turn, memory: WorkingMemory, **params: Any) -> WorkingMemory:
        """Say what it was given."""
        got.append(params)
        turn.say("Remember.")
        return memory

    voice = Scripted(default=echo)
    async with minds(home, voice, remind=mental_process()(remind)) as soul:
        await say(soul, "hello")
        await soul.mind.store.plans.plan(plan_of(soul, "the kettle", process="remind", params={"n": [1, {"a": 2}]}))
        soul.server.tick()
        await soul.network.until_visible(2)
        await say(soul, "and then?")
        entries = standing(soul)["entries"]

    assert got == [{"n": [1, {"a": 2}]}]
    kinds = [(one["entry_type"], one["content"]) for one in entries]
    assert ("userMessage", "hello") in kinds
    assert ("perception", "the kettle") in kinds
    history = voice.requests[-1].history
    assert "the kettle" in "".join(one.content for one in history if one.role == "assistant")
    assert "hello" in "".join(one.content for one in history if one.role == "user")


def plan_of(soul: Any, text: str, **changes: Any) -> Any:
    """Return a plan that is due now and was made while answering Ana."""
    from claudius.intent import Schedule  # noqa: PLC0415 - beside its only use

    values = {"id": 7, "conversation": DM, "at": soul.mind.clock(), "text": text, "audience": "private:rehearsal:t:ana"}
    return Schedule(**(values | {"person": "rehearsal:t:ana", "in_answer": True} | changes))


async def test_c45_a_streamed_line_is_one_message_that_grew(home: Home) -> None:
    """45 ✗: streamed speech is one message that grows and is completed before the turn is settled."""

    async def talk(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Speak while thinking and then add a line."""
        memory, _ = await turn.speak(memory)
        turn.say("And one more thing.")
        return memory

    reply = "<external_dialogue>A line that grows.</external_dialogue>"
    settings = {"CLAUDIUS_PIPELINE_STREAM": "rehearsal"}
    voice = Scripted([Line(deltas=tuple(reply[at : at + 5] for at in range(0, len(reply), 5)))])
    async with minds(home, voice, settings=settings, **both(talk)) as soul:
        await say(soul, "m")
        seen = list(soul.network.visible)

    assert [(one.text, one.is_complete) for one in seen] == [("A line that grows.\n\nAnd one more thing.", True)]


async def test_c46_an_abort_in_mid_stream_is_marked(home: Home) -> None:
    """46 ✗: a stream that breaks off ends in the same message, marked, and its entry says so."""

    async def talk(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Speak while thinking."""
        memory, _ = await turn.speak(memory)
        return memory

    reply = ("<external_dialogue>The first half", " of a line", " that never")
    settings = {"CLAUDIUS_PIPELINE_STREAM": "rehearsal"}
    voice = Scripted([Line(deltas=reply, fault=Cut(), after=3)])
    async with minds(home, voice, settings=settings, **both(talk)) as soul:
        said = await say(soul, "m")
        entries = standing(soul)["entries"]

    assert len(said) == 1
    assert said[0].endswith(" …")
    assert entries[-1]["content"] == said[0]
    assert entries[-1]["metadata"] == {"truncated": True}


async def test_c47_a_closed_conversation_hears_nothing_of_its_own(home: Home) -> None:
    """47 ✗: `turn.close()` withdraws its plans, and what comes due later lapses until someone addresses the soul."""

    async def bye(turn: Turn, memory: WorkingMemory) -> WorkingMemory:
        """Plan or close the conversation when told to, and say a word."""
        if turn.perception.text == "plan":
            turn.schedule("never", after=timedelta(hours=1))
        turn.say("ok")
        if turn.perception.text == "bye":
            turn.close()
        return memory

    async with minds(home, Scripted(), **both(bye)) as soul:
        await say(soul, "plan", "bye")
        await soul.mind.store.plans.plan(plan_of(soul, "after the end"))
        soul.server.tick()
        await until(lambda: [one for one in soul.records().plans() if one["lapsed_at"]])
        lapsed = [one for one in soul.records().plans() if one["lapsed_at"]]
        before = [one["content"] for one in standing(soul)["entries"]]
        await say(soul, "hello again")
        await soul.mind.store.plans.plan(plan_of(soul, "now heard", id=8))
        soul.server.tick()
        await soul.network.until_visible(len(soul.network.visible) + 1)

    assert [one["text"] for one in lapsed] == ["after the end"]
    assert before == ["plan", "ok", "bye", "ok"]
