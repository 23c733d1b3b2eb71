"""A sentence typed in pieces: one reply answers all of it, in direct messages; whoever has said a whole one waits not."""

import asyncio
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from case_rows import Row, rows
from claudius.cognition.turn_state import is_more
from claudius.intent import Schedule
from claudius.memory.inbox import Pending
from claudius.perception import Kind, MessageExtra, Origin, ScheduledExtra, private
from claudius.provider import Request
from claudius.providers.scripted import Line, Scripted
from claudius.runtime import lane as grouping
from claudius.shown import How, Quoted
from ear import echo
from lab.loopback.slack.world import SlackWorld
from lab.sample import NOW, perception
from slack_side import Wake, said

PUMP = "which pump did we order?"


@pytest.mark.parametrize("row", rows("commands", "fragments"))
async def test_a_sentence_in_pieces(row: Row, slack: SlackWorld, wake: Wake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fragments of a direct message are answered once; whatever else is said waits for nothing."""
    row.knows_only("answers", "prompt_has", "waits_s_at_most", "or")
    (count,), says = row.right["answers"], row.input["says"]
    place = row.input["place"]
    if len(says) == 1 or place != "dm":  # whoever waited here would wait for ever
        monkeypatch.setattr(grouping, "FRAGMENT_S", 3600.0)
    await slack.add_user("U2", "ben")
    await slack.join("C1", "U2")
    channel = await slack.open_dm("U1") if place == "dm" else "C1"
    voice, thread = Scripted(default=echo), None
    async with wake(voice=voice) as soul:
        if place == "own thread":
            thread = await slack.say("C1", "U1", "<@U0BOT> what do we need?")
            await slack.until_visible(1)
            await slack.say("C1", "U2", "Rims, I think.", thread_ts=thread)
            await slack.until_visible(2)
        before = len(await said(slack))
        for one in says:
            if isinstance(one, dict) and "gap_s" in one:
                await asyncio.sleep(one["gap_s"])
                continue
            ((who, text),) = one.items() if isinstance(one, dict) else (("ada", one),)
            user = {"ada": "U1", "ben": "U2"}[who]
            await slack.say(channel, user, text.replace("{bot}", "U0BOT"), thread_ts=thread)
        await soul.until_said(before + count, slack)

    assert len(await said(slack)) == before + count
    prompt = voice.requests[-1].tail + "".join(one.content for one in voice.requests[-1].history)
    assert [words for words in row.right.get("prompt_has", ()) if words not in prompt] == []


async def test_a_second_piece_begins_the_turn_anew(
    slack: SlackWorld, wake: Wake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piece that comes while the first one is being thought about, before a word is out, is answered with it."""
    monkeypatch.setattr(grouping, "FRAGMENT_S", 0.0)
    asked = asyncio.Event()

    def answers(request: Request) -> str | Line:
        """Hang until everything is asked."""
        asked.set()
        return echo(request) if PUMP in request.tail else Line(hang=True)

    direct = await slack.open_dm("U1")
    voice = Scripted(default=answers)
    async with wake(voice=voice) as soul:
        await slack.say(direct, "U1", "quick question")
        await asked.wait()
        await slack.say(direct, "U1", PUMP)
        await soul.until_said(1, slack)

    assert len(await said(slack)) == 1
    assert "quick question" in voice.requests[-1].tail


@pytest.mark.parametrize(
    ("text", "goes_on"),
    [
        ("quick question", True), ("well,", True), ("so:", True), ("ich hätte da", True), ("なるほど", True),
        ("Which pump?", False), ("明白了。", False), ("क्या हुआ।", False), ("ماذا؟", False), ("done (really.)", False),
        ("nice 👍", False), ("nice :thumbsup:", False), ("", False), ("x" * 41, False),
    ],
)  # fmt: skip
def test_what_looks_like_a_piece(text: str, *, goes_on: bool) -> None:
    """A piece is short and has no end mark of any script, and no emoji; it may answer another message."""
    answers = MessageExtra(shown=(Quoted(how=How.ANSWERED, text="The pump?"),))

    assert [grouping.is_fragment(perception(text, **more)) for more in ({}, {"extra": answers})] == [goes_on] * 2


DIRECT: dict[str, Any] = {"conversation": "slack:T1:D1:D1", "audience": "private:slack:T1:U1", "person": "slack:T1:U1"}


def mind_of(waiting: list[Pending], mode: object = "direct") -> Any:
    """Return what grouping needs of a mind in whose one conversation these wait."""

    async def unfinished(_: str) -> list[Pending]:
        """Return what waits."""
        return waiting

    async def join(group: list[Pending]) -> Pending:
        """Join them."""
        return replace(group[0], further=tuple(group[1:]))

    inbox = SimpleNamespace(unfinished=unfinished, join=join)
    runtime = SimpleNamespace(merge_while_busy=mode)
    return SimpleNamespace(store=SimpleNamespace(inbox=inbox), config=lambda: SimpleNamespace(runtime=runtime))


def waits(n: int, text: str, *, heard_at: datetime = NOW, **changes: Any) -> Pending:
    """Return what Ada said in her direct messages, as it waits."""
    return Pending(seq=n, perception=perception(text, n=n, **(DIRECT | changes)), turn=str(n), heard_at=heard_at)


async def test_what_the_clock_brings_is_answered_by_itself() -> None:
    """A reminder of the same person is neither joined with what they say, nor does it wait or give way."""
    due: dict[str, Any] = {"kind": Kind.SCHEDULED, "origin": Origin.INTERNAL, "extra": ScheduledExtra(asked_by="x")}
    said, reminder = waits(1, "Which pump?"), waits(2, "call mum", **due)

    assert await grouping.next_turn(said, mind_of([said, reminder]), NOW) == said
    assert await grouping.next_turn(reminder, mind_of([reminder, waits(3, "ok?")]), NOW) == reminder
    assert not grouping.goes_on([reminder.perception], mind_of([]))
    assert not is_more(reminder.perception, DIRECT["person"])


async def test_nobody_waits_for_a_clock_that_was_set_back() -> None:
    """A piece that was heard before a start, an hour ahead of the clock of today, is answered at once."""
    said = waits(1, "quick question", heard_at=NOW + timedelta(hours=1))

    assert await grouping.next_turn(said, mind_of([said]), NOW) == said
    fresh = replace(said, heard_at=NOW)
    assert await grouping.next_turn(fresh, mind_of([fresh]), NOW) == grouping.Retry(grouping.FRAGMENT_S)


def test_a_full_group_and_other_places_wait_for_nothing() -> None:
    """Ten pieces are answered, whatever follows; merging of what waits makes no place one of pieces."""
    pieces = [waits(n, "and").perception for n in range(grouping.TOGETHER)]

    assert grouping.goes_on(pieces[1:], mind_of([]))
    assert not grouping.goes_on(pieces, mind_of([]))
    assert not grouping.goes_on([perception("and")], mind_of([], mode=True))
    assert not grouping.goes_on(pieces[1:], mind_of([], mode=False))


async def test_a_reminder_costs_no_turn_that_is_under_way(slack: SlackWorld, wake: Wake) -> None:
    """While a piece is thought about, a reminder comes due: both are answered, each with one call."""
    asked, opened = asyncio.Event(), asyncio.Event()

    class Gated(Scripted):
        """A model that waits in its first call."""

        async def complete(self, request: Request) -> Any:
            """Wait until it is opened."""
            asked.set()
            await opened.wait()
            async for event in Scripted.complete(self, request):
                yield event

    direct, voice = await slack.open_dm("U1"), Gated(default=echo)
    async with wake(voice=voice) as soul:
        await slack.say(direct, "U1", "quick question")
        await asked.wait()
        (running,) = [lane.hearing for lane in soul.server._lanes._lanes.values() if lane.hearing]
        conversation = next(iter(soul.server._lanes._lanes))
        person = "slack:T1:U1"
        values: dict[str, Any] = {"id": 7, "at": soul.mind.clock(), "text": "call mum", "in_answer": True}
        plan = Schedule(conversation=conversation, audience=private(person), person=person, asked_by="x", **values)
        await soul.mind.store.plans.plan(plan)
        soul.server.tick()
        async with asyncio.timeout(5.0):
            while not running.arrived.is_set():
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        opened.set()
        await soul.until_said(2, slack)

    assert len(voice.requests) == len(await said(slack)) == 2
