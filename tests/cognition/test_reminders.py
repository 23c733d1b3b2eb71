"""Explicit requests for a reminder are planned with the turn, whichever model answered, and come due once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from claudius.errors import BadRequest, DeliveryLater
from claudius.home import Home
from claudius.intent import Schedule
from claudius.memory.plans import MOST_OPEN
from claudius.providers.scripted import Line, Scripted
from claudius.testing.alive import Alive, alive
from minds import START, Clock, by_tag, until

ANA = "rehearsal:t:ana"
UTC_CLOCK = {"CLAUDIUS_CLOCK_TIMEZONE": "UTC"}
ASKED = "Please remind me in 10 minutes to stretch."


async def plans_after(home: Home, asked: str, said: str, settings: dict[str, str]) -> list[dict[str, Any]]:
    """Say one line and have the model answer with another. Returns the plans after that."""
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
    ],
)
async def test_a_reminder_is_planned_where_it_was_asked_for(
    home: Home, asked: str, said: str, due: datetime | None
) -> None:
    """A request or an answer with a time, not declined, makes one plan for the person; anything else makes none."""
    plans = await plans_after(home, asked, said, UTC_CLOCK)

    assert [datetime.fromisoformat(one["due_at"]) for one in plans] == ([due] if due else [])


async def test_the_hour_is_read_in_the_souls_zone(home: Home) -> None:
    """`at 17:00` is five o'clock in that zone: 22:00 UTC in a New York winter."""
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
    """Five o'clock for someone in Tokyo is 8:00 UTC. An unknown zone is ignored, and the soul's applies."""
    settings = {"CLAUDIUS_CLOCK_TIMEZONE": "America/New_York"}
    voice = Scripted(default=by_tag(external_dialogue="Yes."))
    async with alive(home, voice, clock=Clock(), settings=settings) as soul:
        await soul.network.hear("Remind me at 17:00.", zone=zone)
        await soul.network.until_visible(1)
        await soul.idle()
        plans = [one["due_at"][:16] for one in soul.records().plans()]

    assert plans == [due]


async def test_a_reminder_comes_once_at_its_time_even_after_a_restart(home: Home) -> None:
    """The plan outlives the process. When due it is said once, although the model would stay silent."""
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


async def test_a_reminder_is_said_even_if_the_model_stays_silent(home: Home) -> None:
    """The person who asked is owed it: a reply without a line is repaired, like any other that is owed."""
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


def promised(soul: Alive) -> list[tuple[str, int | None]]:
    """Return the status of each of the soul's promises and whether a plan will raise it, in order of creation."""
    rows = soul.records()._db.connection.execute("SELECT state, plan FROM promise WHERE side = 'mine' ORDER BY id")
    return [(state, plan) for state, plan in rows]


@pytest.mark.parametrize(
    ("said", "due"),
    [
        ("I'll remind you tomorrow at nine.", ["2026-01-06T09:00"]),
        ("I'll send it by 17:00.", ["2026-01-05T17:00"]),
        (
            "I'll send the draft by 17:00. I will have the bill for you tomorrow at ten.",
            ["2026-01-05T17:00", "2026-01-06T10:00"],
        ),
        ("I'll mail the paint's name tomorrow at nine. I'll send the bill tomorrow at nine.", ["2026-01-06T09:00"] * 2),
        ("I will look at it again in two hours.", []),
        ("I'll send it in a moment.", []),
        ("I'll send it tonight.", []),
        ("I'll send it tomorrow.", []),
        ("I will look at it at 17:00.", []),
        ("I'll bring it up on Friday.", []),
        ("I'll never send it on Friday.", []),
        ("I can send it by Friday?", []),
        ("If it dries, I'll send it by Friday.", []),
        ("You will send it by Friday.", []),
        ("I'll send it.", []),
    ],
)
async def test_what_the_soul_promises_by_a_time_is_planned(home: Home, said: str, due: list[str]) -> None:
    """What is to be delivered by a named hour or date is a plan. All else is none: an offer, a condition, a vague time."""
    plans = await plans_after(home, "It rains.", said, UTC_CLOCK)

    assert [one["due_at"][:16] for one in plans] == due


async def test_a_promise_comes_at_its_time_and_delivery_closes_it(home: Home) -> None:
    """It was promised to somebody, so it comes at 18:30, uncalled, with `psyche.proactive` off, and only once."""
    clock, evening = Clock(), START.replace(hour=18, minute=30)
    said = by_tag(external_dialogue=lambda _: "Here it is." if clock() >= evening else "I'll send it at 18:30.")
    voice = Scripted(default=said)
    async with alive(home, voice, clock=clock, settings=UTC_CLOCK) as soul:
        await soul.network.hear("Do you have the drawing?")
        await soul.network.until_visible(1)
        await soul.idle()
        before = promised(soul)
        (plan,) = soul.records().plans()
        clock.now = evening
        soul.network.faults.append((DeliveryLater(60.0), False))
        soul.server.tick()
        await until(lambda: not soul.network.faults)
        undelivered = promised(soul)
    async with alive(home, Scripted(), clock=clock, settings=UTC_CLOCK) as soul:
        seen = await soul.network.until_visible(1)
        await soul.idle()
        after = promised(soul)
        left = list(soul.records().plans())

    assert before == [("open", plan["id"])]
    assert undelivered == before
    assert after == [("kept", plan["id"])]
    assert "I'll send it at 18:30." in plan["text"]
    assert [one.text for one in seen] == ["Here it is."]
    assert left == []


@pytest.mark.parametrize(
    ("asked", "said", "comes"),
    [
        ("Do you have the drawing?", "I'll send it at 23:30.", timedelta(hours=20)),
        ("Remind me at 23:30 to lock up.", "Yes, at 23:30.", timedelta(hours=11, minutes=30)),
    ],
    ids=["promised", "asked for"],
)
async def test_quiet_hours_hold_for_what_the_soul_promised_of_itself(
    home: Home, asked: str, said: str, comes: timedelta
) -> None:
    """A promise for 23:30 waits until after 08:00, and asks no model before; a reminder that was asked for comes at 23:30."""
    clock = Clock()
    voice = Scripted(default=by_tag(external_dialogue=lambda _: said if clock() == START else "It is time."))
    async with alive(home, voice, clock=clock, settings=UTC_CLOCK) as soul:
        await soul.network.hear(asked)
        await soul.network.until_visible(1)
        await soul.idle()
        while clock.now < START + timedelta(hours=22):
            clock.forward(minutes=15)
            soul.server.tick()
            await until(lambda: all(datetime.fromisoformat(one["due_at"]) > clock() for one in soul.records().plans()))
            await soul.idle()
            if len(voice.requests) > 1:
                break
        at, posts = clock.now - START, len(soul.network.visible)
        kept = [state for state, _ in promised(soul)]

    assert comes <= at <= comes + timedelta(minutes=45)
    assert (posts, kept) == (2, ["kept"])


@pytest.mark.parametrize(
    ("asked", "said", "again", "plans"),
    [
        ("Remind me tomorrow at nine to stretch.", "I'll remind you tomorrow at nine.", "So it is.", 1),
        ("Remind me tomorrow at nine to stretch.", "I'll remind you tomorrow.", "So it is.", 1),
        ("Remind me tomorrow at nine to stretch.", "Yes.", "I'll remind you tomorrow at nine.", 1),
        ("Remind me tomorrow at nine to stretch.", "Yes.", "I will help you stretch tomorrow at nine.", 1),
        ("Remind me tomorrow at nine to stretch.", "Yes.", "I will mail the bill tomorrow at nine.", 2),
        ("Remind me tomorrow at nine to stretch.", "I'll remind you. I'll send the bill by 17:00.", "So it is.", 2),
        ("It rains.", "I'll send the bill by 17:00.", "I'll send the bill by 17:00.", 1),
    ],
)
async def test_one_thing_at_one_time_is_one_plan(home: Home, asked: str, said: str, again: str, plans: int) -> None:
    """What was asked for and promised, at once or later, comes up once, and delivery closes every promise of it."""
    lines = iter((said, again))
    voice = Scripted(default=by_tag(external_dialogue=lambda _: next(lines, "It is time.")))
    clock = Clock()
    async with alive(home, voice, clock=clock, settings=UTC_CLOCK) as soul:
        for count, line in enumerate((asked, "You will not forget?"), 1):
            await soul.network.hear(line)
            await soul.network.until_visible(count)
            await soul.idle()
        planned = list(soul.records().plans())
        clock.now = START + timedelta(days=2)
        soul.server.tick()
        await soul.network.until_visible(2 + plans)
        await soul.idle()
        states = {state for state, _ in promised(soul)}

    assert [datetime.fromisoformat(one["due_at"]).hour for one in planned if "stretch" in one["text"]] in ([9], [])
    assert len(planned) == plans
    assert len(soul.network.visible) == 2 + plans
    assert states == {"kept"}


async def test_a_plan_that_is_taken_back_takes_its_promise_back(home: Home) -> None:
    """A cancelled plan drops the promise, so nothing stays open that nothing will ever raise."""
    async with alive(
        home, Scripted(default=by_tag(external_dialogue="I'll send it by 17:00.")), clock=Clock(), settings=UTC_CLOCK
    ) as soul:
        await soul.network.hear("The bill?")
        await soul.network.until_visible(1)
        await soul.idle()
        (plan,) = soul.records().plans()
        assert await soul.mind.store.plans.cancel(plan["id"])

        assert promised(soul) == [("dropped", plan["id"])]


async def test_an_apology_keeps_no_promise(home: Home) -> None:
    """If no model answers at its time, the person gets one apology, and the promise stays open."""
    clock = Clock()
    said = by_tag(external_dialogue="I'll send it by 17:00.")
    voice = Scripted(default=lambda request: said(request) if clock() == START else Line(fault=BadRequest("no")))
    async with alive(home, voice, clock=clock, settings=UTC_CLOCK) as soul:
        await soul.network.hear("The bill?")
        await soul.network.until_visible(1)
        await soul.idle()
        clock.now = START.replace(hour=17)
        soul.server.tick()
        await soul.network.until_visible(2)
        await soul.idle()

        assert [state for state, _ in promised(soul)] == ["open"]


async def test_what_it_promises_in_a_turn_that_nobody_asked_for_is_its_own_plan(home: Home) -> None:
    """A reminder that promises another starts no chain of posts: the new one is only a reason to write first."""
    clock, voice = Clock(), Scripted(default=by_tag(external_dialogue="I will send it by noon on Friday."))
    async with alive(home, voice, clock=clock, settings=UTC_CLOCK) as soul:
        await soul.network.hear("It rains.")
        await soul.network.until_visible(1)
        await soul.idle()
        for _ in range(3):
            clock.forward(days=4)
            soul.server.tick()
            await until(lambda: all(datetime.fromisoformat(one["due_at"]) > clock() for one in soul.records().plans()))
            await soul.network.until_visible(2)
            await soul.idle()

    assert len(soul.network.visible) == 2


async def fill(soul: Alive, count: int) -> None:
    """Put this many plans into Ana's conversation."""
    for n in range(1, count + 1):
        made = Schedule(id=n, conversation=f"{ANA.rpartition(':')[0]}:dm-ana:", at=START + timedelta(days=n), text="x")
        await soul.mind.store.plans.plan(made)


@pytest.mark.parametrize("waiting", [MOST_OPEN - 1, MOST_OPEN])
async def test_a_reminder_past_the_hundredth_plan_is_refused_in_one_line(home: Home, waiting: int) -> None:
    """The person is told that it is not kept, and `why` and the conversation hold the line.

    With a plan less it is kept.
    """
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


async def test_a_promise_past_the_hundredth_plan_is_told_too(home: Home) -> None:
    """A promise in the soul's reply is refused aloud like a reminder, and no promise stays open for it."""
    voice = Scripted(default=by_tag(external_dialogue="I will send it by Friday."))
    async with alive(home, voice, clock=Clock(), settings=UTC_CLOCK) as soul:
        await fill(soul, MOST_OPEN)
        await soul.network.hear("It rains.")
        await soul.network.until_visible(1)
        await soul.idle()
        said = [one.text for one in soul.network.visible]

        assert said[0] == "I will send it by Friday."
        assert "cannot keep this one" in said[1]
        assert promised(soul) == []
