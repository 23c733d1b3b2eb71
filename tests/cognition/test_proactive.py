"""Writing first, row 13 of daimons: consent, quiet hours, caps and the other rules are code and cost no model call."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.cognition.proactive import A_DAY, A_WEEK, APART, FirstWordFacts, free_at, refusal
from claudius.home import Home
from claudius.intent import Schedule
from claudius.memory.turns import FirstWords
from claudius.perception import private, shared
from claudius.providers.scripted import Scripted
from claudius.runtime.scheduler import fire_due
from claudius.testing.alive import OWNER, Alive, alive
from minds import Clock, by_tag

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
DM, ANA = "rehearsal:t:dm-ana:", "rehearsal:t:ana"
ON = {"CLAUDIUS_PSYCHE_PROACTIVE": "1", "CLAUDIUS_CLOCK_TIMEZONE": "UTC"}


def ago(**by: float) -> datetime:
    """Return an instant before now."""
    return NOW - timedelta(**by)


def ground(**words: Any) -> FirstWordFacts:
    """Return conditions under which the soul may speak, changed by these."""
    return FirstWordFacts(
        is_wanted=True, has_consent=True, words=FirstWords(last_heard=words.pop("last_heard", ago(days=1)), **words)
    )


REFUSED = [
    (FirstWordFacts(is_wanted=False, has_consent=True), "off"),
    (FirstWordFacts(is_wanted=True, has_consent=False), "agreed"),
    (FirstWordFacts(is_wanted=True, has_consent=True, has_budget=False), "budget"),
    (ground(waiting=2), "waits"),
    (ground(here=(ago(hours=19),)), "20 hours"),
    (ground(here=(ago(hours=23),), last_heard=ago(hours=1)), "one a day"),
    (ground(here=(ago(days=6), ago(days=4), ago(days=2)), last_heard=ago(hours=1)), "this week"),
    (ground(everywhere=tuple(ago(minutes=n) for n in range(20))), "twenty"),
    (ground(here=(ago(days=2),), last_heard=ago(days=5)), "answered the last one"),
    (ground(here=(ago(days=12), ago(days=6)), last_heard=ago(days=20)), "answered the last one"),
    (ground(here=(ago(days=40), ago(days=30), ago(days=20)), last_heard=ago(days=50)), "before they write"),
]
ALLOWED = [
    ground(),
    ground(last_heard=None),
    ground(here=(ago(days=2),), last_heard=ago(days=1)),
    ground(here=(ago(days=3, minutes=1),), last_heard=ago(days=5)),
    ground(here=(ago(days=20), ago(days=7, minutes=1)), last_heard=ago(days=30)),
    ground(here=(ago(days=40), ago(days=30), ago(days=20)), last_heard=ago(hours=1)),
]


@pytest.mark.parametrize(("on", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_d13_what_keeps_the_soul_from_writing_first(on: FirstWordFacts, why: str) -> None:
    """13: each rule alone is enough, and the result names it."""
    assert why in refusal(on, NOW)


@pytest.mark.parametrize("on", ALLOWED)
def test_d13_these_conditions_allow_writing_first(on: FirstWordFacts) -> None:
    """13: consent, budget, distance and an answer (or time without one) permit it."""
    assert refusal(on, NOW) == ""


@pytest.mark.parametrize(
    ("last_heard", "wait"), [(None, 0), (ago(days=1), 0), (ago(minutes=30), 0), (ago(minutes=29), 1), (NOW, 30)]
)
def test_d13_nobody_is_interrupted(last_heard: datetime | None, wait: int) -> None:
    """13: it waits until half an hour after the person's last word, and is not lost by that."""
    assert free_at(FirstWords(last_heard=last_heard), NOW) - NOW == timedelta(minutes=wait)


@given(st.lists(st.floats(0.01, 60), max_size=40), st.floats(0.05, 40))
def test_d13_whatever_happened_the_caps_hold(days: list[float], heard: float) -> None:
    """Counted rule: at the earliest possible times, never more than one a day, three a week, or within twenty hours."""
    said: list[datetime] = []
    for at in sorted(NOW + timedelta(days=day) for day in days):
        words = FirstWords(here=tuple(said), everywhere=tuple(said), last_heard=at - timedelta(days=heard))
        if not refusal(FirstWordFacts(is_wanted=True, has_consent=True, words=words), at):
            said.append(at)

    for number, at in enumerate(said):
        later = said[number + 1 :]
        assert all(one - at >= APART for one in later[:1])
        assert sum(one - at < timedelta(days=1) for one in said[number:]) <= A_DAY
        assert sum(one - at < timedelta(days=7) for one in said[number:]) <= A_WEEK


async def consenting(soul: Alive, *people: str) -> None:
    """Record the consent of these people."""
    for person in people:
        await soul.mind.store.people.wish(person, proactive=True, now=soul.mind.clock())


async def due(soul: Alive, at: datetime, asked_by: str = "", process: str = "proactive") -> None:
    """Have something planned come due."""
    plan = Schedule(
        id=int(at.timestamp()), conversation=DM, at=at, text="The paint is dry.", process=process, audience=private(ANA),
        person=ANA, asked_by=asked_by,
    )  # fmt: skip
    await soul.mind.store.plans.plan(plan)
    soul.server.tick()


async def settled(soul: Alive, at: datetime) -> dict[str, Any]:
    """Wait until what came due is settled. Returns its row."""
    async with asyncio.timeout(20):
        while True:
            row = (
                soul.records()
                ._db.connection.execute(
                    "SELECT state, reason FROM inbox WHERE key LIKE 'due:schedule/' || ? || ':%'",
                    (int(at.timestamp()),),
                )
                .fetchone()
            )
            if row and row[0] == "settled":
                return {"state": row[0], "reason": row[1]}
            await asyncio.sleep(0.002)


@pytest.mark.parametrize(
    ("settings", "people", "hour", "reason"),
    [
        ({}, (ANA,), 12, "psyche.proactive is off"),
        (ON, (), 12, "nobody there has agreed"),
        (ON, (ANA,), 23, "quiet hours"),
    ],
    ids=["off", "no consent", "at night"],
)
async def test_d13_no_model_is_asked(
    home: Home, settings: dict[str, str], people: tuple[str, ...], hour: int, reason: str
) -> None:
    """13: unwanted, without consent or at night: no model call is made, and the reason is kept."""
    wall, voice = Clock(NOW.replace(hour=hour)), Scripted(default=by_tag())
    async with alive(home, voice, settings=settings, clock=wall, running=wall.running) as soul:
        await consenting(soul, *people)
        await due(soul, wall.now)
        row = await settled(soul, wall.now)
        planned = [datetime.fromisoformat(one["due_at"]) - wall.now for one in soul.records().plans()]
        calls = len(voice.requests)
        await soul.network.hear("Are you there?")
        await soul.network.until_visible(1)

    assert calls == 0
    assert reason in row["reason"]
    assert all(timedelta(hours=9) <= wait <= timedelta(hours=9, minutes=30) for wait in planned)
    assert len(planned) == (hour == 23)


async def test_d13_who_agreed_is_written_to_once_a_day(home: Home) -> None:
    """13: by day, with consent, the borrowed process writes in that audience.

    The second of the day is not considered.
    """
    wall, voice = Clock(NOW), Scripted(default=by_tag(external_dialogue="The paint is dry."))
    async with alive(home, voice, settings=ON, clock=wall, running=wall.running) as soul:
        await consenting(soul, ANA)
        await due(soul, wall.now)
        seen = [one.text for one in await soul.network.until_visible(1)]
        await soul.idle()
        wall.now += timedelta(hours=2)
        await due(soul, wall.now)
        row = await settled(soul, wall.now)

    assert seen == ["The paint is dry."]
    assert len(voice.requests) == 1
    assert "20 hours" in row["reason"]


async def test_d13_night_is_night_where_the_person_is(home: Home) -> None:
    """13: noon in UTC is 21:00 in Tokyo, so what is due then waits for the morning there, 23:00 UTC."""
    wall, voice = Clock(NOW), Scripted(default=by_tag())
    async with alive(home, voice, settings=ON, clock=wall, running=wall.running) as soul:
        await consenting(soul, ANA)
        await soul.network.hear("Hello.", zone="Asia/Tokyo")
        await soul.network.until_visible(1)
        await soul.idle()
        wall.now += timedelta(hours=1)
        await due(soul, wall.now)
        row = await settled(soul, wall.now)
        planned = [datetime.fromisoformat(one["due_at"]) for one in soul.records().plans()]

    assert "quiet hours" in row["reason"]
    assert all(timedelta(0) <= at - NOW.replace(hour=23) <= timedelta(minutes=30) for at in planned)
    assert len(planned) == 1


async def test_d13_what_somebody_asked_for_comes_at_its_time(home: Home) -> None:
    """13: a reminder is consent: it comes at night, uncapped, with the setting off."""
    wall, voice = Clock(NOW.replace(hour=23)), Scripted(default=by_tag(external_dialogue="It is time."))
    async with alive(home, voice, clock=wall, running=wall.running) as soul:
        await due(soul, wall.now, asked_by=ANA)
        seen = [one.text for one in await soul.network.until_visible(1)]

    assert seen == ["It is time."]


@pytest.mark.parametrize(("answer", "is_obeyed"), [("Stop.", True), ("please stop", True), ("Stop the press!", False)])
async def test_whoever_says_stop_to_a_first_word_is_not_written_to_again(
    home: Home, answer: str, *, is_obeyed: bool
) -> None:
    """`stop` as the answer withdraws the consent, is answered, and asks no model. Other words are talk."""
    wall, voice = Clock(NOW), Scripted(default=by_tag(external_dialogue="The paint is dry."))
    async with alive(home, voice, settings=ON, clock=wall, running=wall.running) as soul:
        await consenting(soul, ANA)
        await due(soul, wall.now)
        await soul.network.until_visible(1)
        await soul.idle()
        wall.now += timedelta(hours=1)
        calls = len(voice.requests)
        await soul.network.hear(answer)
        seen = await soul.network.until_visible(2)
        await soul.idle()
        asked, may = len(voice.requests) - calls, soul.mind.store.people.wants_proactive(ANA)

    assert (asked, may) == ((0, False) if is_obeyed else (1, True))
    assert ("I write when you do" in seen[1].text) == is_obeyed


async def test_stop_is_talk_where_the_soul_did_not_write_first(home: Home) -> None:
    """In the middle of talk it is a word like any other, thought about and answered."""
    async with alive(home, Scripted(default=by_tag()), settings=ON) as soul:
        await consenting(soul, ANA)
        await soul.network.hear("Hello.")
        await soul.network.until_visible(1)
        await soul.network.hear("Stop.")
        await soul.network.until_visible(2)

        assert soul.mind.store.people.wants_proactive(ANA)


async def test_d13_what_nobody_answered_delays_the_next(home: Home) -> None:
    """13: for a day after an unanswered one the soul holds back the next, counted from the stored rows."""
    wall, voice = Clock(NOW), Scripted(default=by_tag(external_dialogue="The paint is dry."))
    async with alive(home, voice, settings=ON, clock=wall, running=wall.running) as soul:
        await consenting(soul, ANA)
        await soul.network.hear("Hello.")
        await soul.network.until_visible(1)
        await soul.idle()
        wall.now += timedelta(hours=1)
        await due(soul, wall.now)
        await soul.network.until_visible(2)
        await soul.idle()
        wall.now += timedelta(days=2)
        await due(soul, wall.now)
        row = await settled(soul, wall.now)

    assert "nobody has answered the last one" in row["reason"]


@pytest.mark.parametrize(("who", "is_open"), [("ana", False), ("owner", True)])
async def test_a_channel_needs_its_owners_consent(home: Home, who: str, *, is_open: bool) -> None:
    """A person's own consent is for their direct messages. A channel needs its owner's consent, given there."""
    wall, voice = Clock(NOW), Scripted(default=by_tag(external_dialogue="The paint is dry."))
    channel = "rehearsal:t:c1:"
    async with alive(home, voice, settings=ON | {"CLAUDIUS_OWNERS": OWNER}, clock=wall, running=wall.running) as soul:
        await soul.network.hear("!proactive on", person=who, conversation=channel, is_shared=True)
        await soul.idle()
        wall.now += timedelta(hours=1)
        plan = Schedule(
            id=int(wall.now.timestamp()), conversation=channel, at=wall.now, text="The paint is dry.",
            process="proactive", audience=shared(channel), person=ANA,
        )  # fmt: skip
        await soul.mind.store.plans.plan(plan)
        soul.server.tick()
        row = await settled(soul, wall.now)
        await soul.idle()
        seen = [one.conversation for one in soul.network.visible]

    assert seen == ([channel] if is_open else [])
    assert ("nobody there has agreed" in (row["reason"] or "")) is not is_open


async def test_a_reminder_does_not_count_as_writing_first(home: Home) -> None:
    """What a person asked for is outside the caps, so it does not hold back a plan of the soul's own."""
    wall, voice = Clock(NOW), Scripted(default=by_tag(external_dialogue="The paint is dry."))
    async with alive(home, voice, settings=ON, clock=wall, running=wall.running) as soul:
        await consenting(soul, ANA)
        await due(soul, wall.now, asked_by=ANA, process="")
        await soul.network.until_visible(1)
        await soul.idle()
        wall.now += timedelta(hours=1)
        await due(soul, wall.now)
        seen = await soul.network.until_visible(2)

    assert len(seen) == 2


async def test_a_silence_is_noticed_once_where_something_is_owed(home: Home) -> None:
    """After days without them, an open promise of the soul is the reason. Without one nothing is asked."""
    wall, act = (
        Clock(NOW),
        {"do": "promise", "at": f"{NOW + timedelta(days=9):%Y-%m-%dT%H:%M}", "text": "draw the heron"},
    )
    drawn = by_tag(
        external_dialogue="I have it.", acts=lambda asked: json.dumps(act) if "Draw it" in asked.tail else "none"
    )
    voice = Scripted(default=drawn)
    async with alive(home, voice, settings=ON, clock=wall, running=wall.running, keeps_clock=True) as soul:
        await consenting(soul, ANA, "rehearsal:t:ben")
        for person, text in (("ana", "Draw it, please."), ("ben", "Hello.")):
            await soul.network.hear(text, person=person)
        await soul.network.until_visible(2)
        await soul.idle()
        before = len(voice.requests)
        for _ in range(14):
            wall.now += timedelta(hours=6)
            await soul.services.look(wall.now)
            await soul.idle()
            await fire_due(wall.now, soul.mind, soul.server.wake)
            await soul.idle()
        heard = [request for request in voice.requests[before:] if "draw the heron" in request.tail]
        said = [one.conversation for one in soul.network.visible[2:]]

    assert len(heard) == 1
    assert said == [DM]


async def test_a_strong_subject_is_raised_once_after_the_talk_has_ended(home: Home) -> None:
    """A milestone: the subject filled the talk, and half an hour after the last word the soul returns to it, once."""
    named = '{"do": "open", "text": "the release pipeline fails"}'
    wall, voice = Clock(NOW), Scripted(default=by_tag(external_dialogue="Let us look at the pipeline.", acts=named))
    async with alive(home, voice, settings=ON, clock=wall, running=wall.running) as soul:
        await consenting(soul, ANA)
        for number in range(9):
            await soul.network.hear(
                f"The release pipeline failed again, I am worried, please help me fix it #{number}!"
            )
            await soul.network.until_visible(number + 1)
            await soul.idle()
            wall.now += timedelta(minutes=1)
        (planned,) = soul.records().plans()
        asked = len(voice.requests)
        wall.now = datetime.fromisoformat(planned["due_at"])
        soul.server.tick()
        await soul.idle()
        async with asyncio.timeout(20):
            while not (again := [one for one in soul.records().plans() if one["id"] != planned["id"]]):
                await asyncio.sleep(0.002)
        early = len(voice.requests) - asked
        wall.now = datetime.fromisoformat(again[0]["due_at"])
        soul.server.tick()
        await soul.network.until_visible(10)
        await soul.idle()

        assert list(soul.records().plans()) == []

    assert early == 0
    assert datetime.fromisoformat(again[0]["due_at"]) - NOW == timedelta(minutes=38)
    assert "grown strong" in voice.requests[-1].tail
    assert "release pipeline" in voice.requests[-1].tail


OTHER_ID = "rehearsal:t:anna"
ROOM = "rehearsal:t:c1:"


@pytest.mark.parametrize(
    ("places", "audience", "yes"),
    [
        ((f"{ROOM}one", f"{ROOM}two"), (shared(ROOM), shared(ROOM)), (ROOM.rstrip(":"),)),
        ((DM, "rehearsal:t:dm-anna:"), (private(ANA), private(OTHER_ID)), (ANA, OTHER_ID)),
        ((f"{DM}one", f"{DM}two"), (private(ANA), private(ANA)), (ANA,)),
    ],
    ids=["two threads of a channel", "two ids of a person", "two conversations with a person"],
)
async def test_d13_the_caps_are_those_of_the_person_or_the_channel(
    home: Home, places: tuple[str, str], audience: tuple[str, str], yes: tuple[str, ...]
) -> None:
    """13: one a day per person and per channel, in however many conversations; the second asks no model."""
    wall, voice = Clock(NOW), Scripted(default=by_tag(external_dialogue="The paint is dry."))
    async with alive(home, voice, settings=ON, clock=wall, running=wall.running) as soul:
        for person in ("ana", "anna"):
            await soul.network.hear("Hello.", person=person)
        await soul.network.until_visible(2)
        await soul.idle()
        await soul.mind.store.people.link(ANA, OTHER_ID)
        await consenting(soul, *yes)
        asked, rows = len(voice.requests), []
        for n, (place, whose) in enumerate(zip(places, audience, strict=True)):
            wall.now += timedelta(hours=1)
            plan = Schedule(
                id=int(wall.now.timestamp()), conversation=place, at=wall.now, text=f"Paint {n} is dry.",
                process="proactive", audience=whose, person=whose.removeprefix("private:"),
            )  # fmt: skip
            await soul.mind.store.plans.plan(plan)
            soul.server.tick()
            rows.append(await settled(soul, wall.now))
            await soul.idle()

        assert len(voice.requests) == asked + 1
    assert rows[0]["reason"] is None
    assert "20 hours" in rows[1]["reason"]


async def test_d13_what_falls_due_at_one_instant_is_judged_in_turn(home: Home) -> None:
    """13: six plans for six threads of a channel ring at once, as after a night without power: one is said, one asked."""
    wall, voice = Clock(NOW), Scripted(default=by_tag(external_dialogue="The paint is dry."))
    async with alive(home, voice, settings=ON, clock=wall, running=wall.running) as soul:
        await consenting(soul, ROOM.rstrip(":"))
        for n in range(6):
            plan = Schedule(
                id=100 + n, conversation=f"{ROOM}t{n}", at=wall.now, text=f"Paint {n} is dry.", process="proactive",
                audience=shared(ROOM), person=ANA,
            )  # fmt: skip
            await soul.mind.store.plans.plan(plan)
        for _ in range(2):
            soul.server.tick()
            async with asyncio.timeout(20):
                while [one for one in soul.records().plans() if datetime.fromisoformat(one["due_at"]) <= wall.now]:
                    await asyncio.sleep(0.002)
            await soul.idle()
            wall.now += timedelta(minutes=31)
        seen = [one.text for one in soul.network.visible]

    assert seen == ["The paint is dry."]
    assert len(voice.requests) == 1
