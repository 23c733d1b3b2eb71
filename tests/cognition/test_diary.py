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
from claudius.testing.alive import alive
from minds import Clock, by_tag, say

PAGE = "Ana hung the old bell with me; we were proud. She still owes me a rope."
KEYS = "keys: carillon, tower, Glockenturm"
ANA, HERE, ELSEWHERE = "rehearsal:t:ana", "rehearsal:t:dm-ana:", "rehearsal:t:dm-ana:later"


def voice(request: Request) -> str:
    """Answer turns, and write a page when a talk is over."""
    return f"{PAGE}\n{KEYS}" if request.purpose == "summary" else by_tag()(request)


async def test_a_page_is_found_by_a_key_and_gone_with_whom_it_tells_of(home: Home) -> None:
    """A20: one call writes it; nine days later a question that shares only a key brings it back, with its date."""
    model, clock = Scripted(default=voice), Clock()
    async with alive(home, model, clock=clock, running=lambda: clock().timestamp()) as soul:
        await say(soul, "The bronze is on its beam at last, I am happy.")
        clock.forward(days=4)
        tools = Tools(
            mind=soul.mind,
            home=home,
            now=clock(),
            zone=UTC,
            wake=lambda _: None,
            daimons=lambda: pytest.fail("no daimon is asked"),
            is_quiet=False,
        )
        assert await expire_memory(tools) == "1 conversations folded"
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
