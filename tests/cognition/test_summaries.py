"""Folding: what leaves working memory is summarised, nothing is dropped unread, and the prefix breaks once."""

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from claudius.errors import Overloaded
from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Line, Scripted
from claudius.testing.alive import Alive, alive
from minds import Clock

GOOD = "<internal_monologue>hm</internal_monologue><external_dialogue>Yes.</external_dialogue>"
SUMMARY = "We spoke of bridges; Ana promised paint."
START = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


def voice(request: Request) -> str:
    """Answer turns, and summarise when asked."""
    return SUMMARY if request.purpose == "summary" else GOOD


async def say(soul: Alive, text: str) -> None:
    """Say one line and wait for its answer."""
    before = len(soul.network.visible)
    await soul.network.hear(text)
    await soul.network.until_visible(before + 1)


def kinds(request: Request) -> list[str]:
    """Return the kinds of the data lines in a request's history."""
    lines = re.findall(r"^\{\"kind\".*$", "\n".join(one.content for one in request.history), re.MULTILINE)
    return [str(json.loads(line)["kind"]) for line in lines]


async def test_what_expired_is_summarised_when_the_talk_is_taken_up_again(home: Home) -> None:
    """After 72 hours the entries become a summary at the start of the history, and are dropped."""
    clock, model = Clock(START), Scripted(default=voice)
    async with alive(home, model, clock=clock, running=clock.running) as soul:
        await say(soul, "The bridge rusts.")
        await say(soul, "I will paint it.")
        clock.now += timedelta(hours=73)
        await say(soul, "I am back.")
        await say(soul, "And stay.")
        entries = (soul.records().conversation("rehearsal:t:dm-ana:") or {})["entries"]

    assert [request.purpose for request in model.requests] == ["turn", "turn", "summary", "turn", "turn"]
    assert "The bridge rusts." in model.requests[2].history[0].content
    assert kinds(model.requests[3]) == ["summary"]
    assert kinds(model.requests[4])[0] == "summary"
    assert SUMMARY in model.requests[4].history[0].content
    assert [entry["content"] for entry in entries if entry["entry_type"] == "userMessage"] == [
        "I am back.",
        "And stay.",
    ]


async def test_without_a_model_nothing_expired_is_lost(home: Home) -> None:
    """If the summary cannot be made the entries stay, and the next turn tries again."""
    clock = Clock(START)

    def failing(request: Request) -> str | Overloaded:
        """Fail every summary until some hours later."""
        return (
            Overloaded() if request.purpose == "summary" and clock.now < START + timedelta(hours=80) else voice(request)
        )

    async with alive(home, Scripted(default=failing), clock=clock, running=clock.running) as soul:
        await say(soul, "The bridge rusts.")
        clock.now += timedelta(hours=73)
        await say(soul, "I am back.")
        kept = (soul.records().conversation("rehearsal:t:dm-ana:") or {})["entries"]
        clock.now += timedelta(hours=8)
        await say(soul, "Once more.")
        later = (soul.records().conversation("rehearsal:t:dm-ana:") or {})["entries"]

    assert any(entry["content"] == "The bridge rusts." for entry in kept)
    assert not any(entry["content"] == "The bridge rusts." for entry in later)


async def test_old_turns_are_folded_ahead_of_need_and_once(home: Home) -> None:
    """An idle conversation near its budget is folded in one step, and later turns share a stable prefix again."""
    model = Scripted(default=voice)
    settings = {"CLAUDIUS_HISTORY_BUDGET_TOKENS": "2000", "CLAUDIUS_MEMORY_WINDOW": "4"}
    async with alive(home, model, settings=settings) as soul:
        for number in range(40):
            await say(soul, f"{number} " + "x" * 300)
            await soul.idle()

    folds = [place for place, request in enumerate(model.requests) if request.purpose == "summary"]
    turns = [request for request in model.requests if request.purpose == "turn"]
    breaks = sum(
        not "".join(one.content for one in after.history).startswith("".join(one.content for one in before.history))
        for before, after in pairwise(turns)
    )
    assert 2 <= len(folds) <= 6
    assert breaks == len(folds)
    assert kinds(turns[-1])[0] == "summary"
    assert "left_out" not in kinds(turns[-1])


async def test_a_summary_in_tags_is_read_as_words(home: Home) -> None:
    """A model that answers in its step format still gives a summary, without any private part."""
    clock = Clock(START)
    tagged = "<internal_monologue>S1</internal_monologue><external_dialogue>We spoke.</external_dialogue>"

    def reply(request: Request) -> str:
        """Answer in tags, whatever is asked."""
        return tagged if request.purpose == "summary" else GOOD

    model = Scripted(default=reply)
    async with alive(home, model, clock=clock, running=clock.running) as soul:
        await say(soul, "one")
        clock.now += timedelta(hours=73)
        await say(soul, "two")

    assert "We spoke." in model.requests[2].history[0].content
    assert "S1" not in model.requests[2].history[0].content


async def test_a_fold_is_dropped_when_someone_speaks(home: Home) -> None:
    """Idle work never keeps a person waiting: a new message cancels it, and nothing is half-committed."""
    model = Scripted(default=lambda request: Line(hang=True) if request.purpose == "summary" else GOOD)
    settings = {"CLAUDIUS_HISTORY_BUDGET_TOKENS": "500", "CLAUDIUS_MEMORY_WINDOW": "2"}
    async with alive(home, model, settings=settings) as soul:
        for number in range(6):
            await say(soul, f"{number} " + "x" * 300)
            async with asyncio.timeout(20):
                while number > 2 and not model.open and soul.server.busy:
                    await asyncio.sleep(0.002)

    assert sum(request.purpose == "summary" for request in model.requests) >= 1
    assert len(soul.network.visible) == 6
