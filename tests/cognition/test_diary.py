"""The diary: a talk that is over becomes a page of the soul's own, found again by its words and keys."""

import sqlite3
from contextlib import closing
from datetime import UTC

import pytest

from claudius.home import Home
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.runtime.jobs import Tools
from claudius.runtime.jobs.upkeep import expire_memory
from claudius.testing.alive import Alive, alive
from minds import Clock, by_tag, say

PAGE = "Ana hung the old bell with me; we were proud. She still owes me a rope."
KEYS = "keys: carillon, tower, Glockenturm"
ANA, HERE, ELSEWHERE = "rehearsal:t:ana", "rehearsal:t:dm-ana:", "rehearsal:t:dm-ana:later"


def voice(request: Request) -> str:
    """Answer turns, and write a page when a talk is over."""
    return f"{PAGE}\n{KEYS}" if request.purpose == "summary" else by_tag()(request)


def at_hand(soul: Alive) -> Tools:
    """Return what a job of the clock works with now."""
    return Tools(
        mind=soul.mind,
        home=soul.home,
        now=soul.mind.clock(),
        zone=UTC,
        wake=lambda _: None,
        daimons=lambda: pytest.fail("no daimon is asked"),
        is_quiet=False,
    )


async def test_a_page_is_found_by_a_key_and_gone_with_whom_it_tells_of(home: Home) -> None:
    """A20: one call writes it; nine days later a question that shares only a key brings it back, with its date."""
    model, clock = Scripted(default=voice), Clock()
    async with alive(home, model, clock=clock, running=lambda: clock().timestamp()) as soul:
        await say(soul, "The bronze is on its beam at last, I am happy.")
        clock.forward(days=4)
        assert await expire_memory(at_hand(soul)) == "1 conversations folded"
        written = clock()
        clock.forward(days=9)
        await say(soul, "Is a carillon worth the trouble?", conversation=ELSEWHERE)
        await say(soul, "My cat sleeps on the stove.", conversation=ELSEWHERE)
        asked, unrelated = [one.tail for one in model.requests if one.purpose == "turn"][1:3]
        shown = soul.records().conversation(HERE) or {}
        await soul.server._forgetting.forget(ANA, clock(), "owner")
        with closing(sqlite3.connect(f"file:{soul.home.database}?mode=ro", uri=True)) as kept:
            left = kept.execute("SELECT count(*) FROM moment WHERE person = ''").fetchone()

    assert [one.purpose for one in model.requests].count("summary") == 1
    assert f'"from":"I wrote on {written.day} January","text":"{PAGE}"' in asked
    assert "keys:" not in asked
    assert PAGE not in unrelated
    assert [(one["diary"], one["keys"]) for one in shown["diary"]] == [(PAGE, "carillon tower Glockenturm")]
    assert left == (0,)


async def test_a_talk_that_is_taken_up_again_in_time_is_written_nowhere(home: Home) -> None:
    """What has not expired is no page of a diary."""
    model, clock = Scripted(default=voice), Clock()
    async with alive(home, model, clock=clock, running=lambda: clock().timestamp()) as soul:
        await say(soul, "The bronze is on its beam at last.")
        clock.forward(days=2)
        await say(soul, "And it rings.")
        shown = soul.records().conversation(HERE) or {}

    assert [one.purpose for one in model.requests] == ["turn", "turn"]
    assert shown["diary"] == []


async def test_a_summary_that_comes_to_nothing_is_asked_for_once_a_day(home: Home) -> None:
    """Whatever the clock does each hour."""
    model, clock = Scripted(default=lambda it: "" if it.purpose == "summary" else by_tag()(it)), Clock()
    async with alive(home, model, clock=clock, running=lambda: clock().timestamp()) as soul:
        await say(soul, "The bronze is on its beam at last.")
        clock.forward(days=4)
        for _ in range(26):
            await expire_memory(at_hand(soul))
            clock.forward(hours=1)

    assert [one.purpose for one in model.requests].count("summary") == 2
