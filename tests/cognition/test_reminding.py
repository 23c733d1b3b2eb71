"""What people ask to be reminded of in so many words is planned with the turn, whatever voice answered, and comes once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from claudius.home import Home
from claudius.intent import Schedule
from claudius.memory.plans import MOST_OPEN
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive
from minds import START, Clock, by_tag

ANA = "rehearsal:t:ana"
UTC_CLOCK = {"CLAUDIUS_CLOCK_TIMEZONE": "UTC"}
ASKED = "Please remind me in 10 minutes to stretch."


async def plans_after(home: Home, asked: str, said: str, settings: dict[str, str]) -> list[dict[str, Any]]:
    """Say one line and have it answered by another; return what is planned then."""
    async with alive(home, Scripted(default=by_tag(external_dialogue=said)), clock=Clock(), settings=settings) as soul:
        await soul.network.hear(asked)
        await soul.network.until_visible(1)
        await soul.idle()
        return [dict(one) for one in soul.records().plans()]


@pytest.mark.parametrize(
    ("asked", "said", "due"),
    [
        (ASKED, "I will remind you in ten minutes.", START + timedelta(minutes=10)),
        (ASKED, "Gladly.", START + timedelta(minutes=10)),
        (ASKED, "I won't forget.", START + timedelta(minutes=10)),
        ("Ping me when it is time.", "I'll ping you at 5 pm.", datetime(2026, 1, 5, 17, tzinfo=UTC)),
        ("Remind me tomorrow at 9:30.", "I'll remind you.", datetime(2026, 1, 6, 9, 30, tzinfo=UTC)),
        ("Can you remind us in 30 seconds?", "Of course.", START + timedelta(seconds=30)),
        (ASKED, "I cannot keep time here.", None),
        ("Remind me why we chose oak.", "Because it holds.", None),
        ("It rains.", "I will look at it in ten minutes.", None),
    ],
)
async def test_a_reminder_is_planned_where_it_was_asked_for(
    home: Home, asked: str, said: str, due: datetime | None
) -> None:
    """Asked for with a time, or answered with one, and not declined: one plan, for the person; else none."""
    plans = await plans_after(home, asked, said, UTC_CLOCK)

    assert [datetime.fromisoformat(one["due_at"]) for one in plans] == ([due] if due else [])


async def test_the_hour_is_read_in_the_souls_zone(home: Home) -> None:
    """`at 17:00` is five o'clock there: 22:00 UTC in a New York winter."""
    plans = await plans_after(home, "Remind me at 17:00.", "Yes.", {"CLAUDIUS_CLOCK_TIMEZONE": "America/New_York"})

    assert [one["due_at"][:16] for one in plans] == ["2026-01-05T22:00"]


@pytest.mark.parametrize(
    ("zone", "due"),
    [
        ("Asia/Tokyo", "2026-01-06T08:00"),
        ("Nowhere/Land", "2026-01-05T22:00"),
        ("../../etc/passwd", "2026-01-05T22:00"),
    ],
)
async def test_the_hour_is_the_speakers_own_where_the_network_tells_their_zone(home: Home, zone: str, due: str) -> None:
    """Five o'clock for someone in Tokyo is 8:00 UTC; a zone that there is none of is as none: the soul's holds."""
    settings = {"CLAUDIUS_CLOCK_TIMEZONE": "America/New_York"}
    voice = Scripted(default=by_tag(external_dialogue="Yes."))
    async with alive(home, voice, clock=Clock(), settings=settings) as soul:
        await soul.network.hear("Remind me at 17:00.", zone=zone)
        await soul.network.until_visible(1)
        await soul.idle()
        plans = [one["due_at"][:16] for one in soul.records().plans()]

    assert plans == [due]


async def test_a_reminder_comes_once_at_its_time_even_after_a_restart(home: Home) -> None:
    """The plan outlives the process; due, it is said although the voice would stay silent, and once only."""
    clock = Clock()
    async with alive(home, Scripted(default=by_tag()), clock=clock, settings=UTC_CLOCK) as soul:
        await soul.network.hear(ASKED)
        await soul.network.until_visible(1)
        await soul.idle()
    voice = Scripted(default=by_tag(external_dialogue="Stretch."))
    clock.forward(minutes=9)
    async with alive(home, voice, clock=clock, settings=UTC_CLOCK) as soul:
        soul.server.tick()
        await soul.idle()
        early = len(voice.requests)
        clock.forward(minutes=2)
        soul.server.tick()
        await soul.network.until_visible(1)
        await soul.idle()
        soul.server.tick()
        await soul.idle()
        said = [one.text for one in soul.network.visible]

    assert early == 0
    assert said == ["Stretch."]
    assert "remind me in 10 minutes to stretch" in voice.requests[0].tail


async def test_a_reminder_that_the_model_meets_with_silence_is_said_all_the_same(home: Home) -> None:
    """Whoever asked is owed it: a reply without a line is repaired, as any other that is owed."""
    clock, agreed = Clock(), by_tag(external_dialogue="Yes.")
    silent = "<internal_monologue>Nothing.</internal_monologue>"
    voice = Scripted(default=lambda request: silent if clock() > START else agreed(request))
    async with alive(home, voice, clock=clock, settings=UTC_CLOCK) as soul:
        await soul.network.hear(ASKED)
        await soul.network.until_visible(1)
        await soul.idle()
        clock.forward(minutes=11)
        soul.server.tick()
        seen = await soul.network.until_visible(2)

    assert seen[1].text


async def test_a_promise_of_its_own_is_a_reason_to_write_first_and_no_more(home: Home) -> None:
    """Where the soul may write first, what it said it would do by a time is planned, for the gates to let through."""
    asked, said = "It rains.", "I will look at it again in two hours."

    planned = await plans_after(home, asked, said, UTC_CLOCK | {"CLAUDIUS_PSYCHE_PROACTIVE": "1"})

    assert [(one["process"], said in one["text"]) for one in planned] == [("proactive", True)]


async def fill(soul: Alive, count: int) -> None:
    """Let so many plans wait in Ana's conversation."""
    for n in range(1, count + 1):
        made = Schedule(id=n, conversation=f"{ANA.rpartition(':')[0]}:dm-ana:", at=START + timedelta(days=n), text="x")
        await soul.mind.store.plan(made)


@pytest.mark.parametrize("waiting", [MOST_OPEN - 1, MOST_OPEN])
async def test_a_reminder_past_the_hundredth_plan_is_refused_in_one_line(home: Home, waiting: int) -> None:
    """Whoever asked is told that it is not kept; `why` and the conversation hold the line; one fewer, and it is kept."""
    voice = Scripted(default=by_tag(external_dialogue="I will remind you."))
    async with alive(home, voice, clock=Clock(), settings=UTC_CLOCK) as soul:
        await fill(soul, waiting)
        await soul.network.hear(ASKED)
        await soul.network.until_visible(1)
        await soul.idle()
        said = [one.text for one in soul.network.visible]
        entries = (soul.records().conversation("rehearsal:t:dm-ana:") or {})["entries"]
        why = soul.records().turn(entries[-1]["turn"]) or {}
        plans = len(soul.records().plans())

    is_full = waiting == MOST_OPEN
    assert plans == MOST_OPEN
    assert [one for one in said if "cannot keep this one" in one] == said[1:]
    assert len(said) == (2 if is_full else 1)
    assert why["changes"]["reminder"].startswith("refused" if is_full else "2026")
    assert ("cannot keep this one" in entries[-1]["content"]) == is_full


async def test_a_plan_of_the_souls_own_past_the_hundredth_is_refused_quietly(home: Home) -> None:
    """Nobody asked for it, so nobody is told: the turn's changes say so, and the reply is as it was."""
    voice = Scripted(default=by_tag(external_dialogue="I will look at it in ten minutes."))
    settings = UTC_CLOCK | {"CLAUDIUS_PSYCHE_PROACTIVE": "1"}
    async with alive(home, voice, clock=Clock(), settings=settings) as soul:
        await fill(soul, MOST_OPEN)
        await soul.network.hear("It rains.")
        await soul.network.until_visible(1)
        await soul.idle()
        said = [one.text for one in soul.network.visible]
        entries = (soul.records().conversation("rehearsal:t:dm-ana:") or {})["entries"]
        why = soul.records().turn(entries[-1]["turn"]) or {}

    assert said == ["I will look at it in ten minutes."]
    assert why["changes"]["plans"] == "1 refused: 100 plans wait in this conversation already"
