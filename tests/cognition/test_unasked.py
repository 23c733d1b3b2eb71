"""No one is written to unasked: one rule for every cause of a turn, applied to every utterance."""

import ast
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import claudius
from claudius.errors import Overloaded
from claudius.home import Home
from claudius.intent import Schedule
from claudius.perception import GOES_ON, Cause, Kind, Origin, Perception, cause_of, private, shared
from claudius.providers.scripted import Line, Scripted
from claudius.psyche.events import OWN
from claudius.testing.alive import Alive, alive
from lab.sample import perception
from minds import Clock, by_tag, standing, until

NIGHT = datetime(2026, 1, 5, 3, 5, tzinfo=UTC)
DM, ANA, ROOM = "rehearsal:t:dm-ana:", "rehearsal:t:ana", "rehearsal:t:room:"
AT_HOME = {"CLAUDIUS_CLOCK_TIMEZONE": "UTC"}
ON = AT_HOME | {"CLAUDIUS_PSYCHE_PROACTIVE": "1"}

ANSWERS, ASKED, JOINS, UNASKED = Cause
EXTERNAL, INTERNAL = Origin
RULINGS: dict[tuple[Origin, Kind], tuple[Cause, Cause]] = {
    # left: owed or asked for; right: neither, in a channel where the soul takes part, while talk goes on
    (EXTERNAL, Kind.MESSAGE): (ANSWERS, JOINS),
    (EXTERNAL, Kind.MENTION): (ANSWERS, JOINS),
    (EXTERNAL, Kind.COMMAND): (ANSWERS, JOINS),
    (EXTERNAL, Kind.REACTION): (ANSWERS, UNASKED),
    (EXTERNAL, Kind.EDIT): (ANSWERS, UNASKED),
    (EXTERNAL, Kind.DELETE): (ANSWERS, UNASKED),
    (EXTERNAL, Kind.JOIN): (ANSWERS, UNASKED),
    (EXTERNAL, Kind.LEAVE): (ANSWERS, UNASKED),
    (EXTERNAL, Kind.SILENCE): (ANSWERS, UNASKED),
    (EXTERNAL, Kind.TICK): (ANSWERS, UNASKED),
    (EXTERNAL, Kind.SCHEDULED): (ANSWERS, UNASKED),
    (EXTERNAL, Kind.DIRECTIVE): (ANSWERS, UNASKED),
    (EXTERNAL, Kind.NEWS): (ANSWERS, UNASKED),
    (EXTERNAL, Kind.TOOL): (ANSWERS, UNASKED),
    (INTERNAL, Kind.MESSAGE): (ASKED, UNASKED),
    (INTERNAL, Kind.MENTION): (ASKED, UNASKED),
    (INTERNAL, Kind.COMMAND): (ASKED, UNASKED),
    (INTERNAL, Kind.REACTION): (ASKED, UNASKED),
    (INTERNAL, Kind.EDIT): (ASKED, UNASKED),
    (INTERNAL, Kind.DELETE): (ASKED, UNASKED),
    (INTERNAL, Kind.JOIN): (ASKED, UNASKED),
    (INTERNAL, Kind.LEAVE): (ASKED, UNASKED),
    (INTERNAL, Kind.SILENCE): (ASKED, UNASKED),
    (INTERNAL, Kind.TICK): (ASKED, UNASKED),
    (INTERNAL, Kind.SCHEDULED): (ASKED, UNASKED),
    (INTERNAL, Kind.DIRECTIVE): (ASKED, UNASKED),
    (INTERNAL, Kind.NEWS): (ASKED, UNASKED),
    (INTERNAL, Kind.TOOL): (ASKED, UNASKED),
}
EVENTS = {"promise_due", "directive", "scheduled", "tick", "silence", "news", "milestone"}
"""The soul's own events, under the psyche's names for them. News alone is brought from outside."""


def heard(origin: Origin, kind: Kind, **more: Any) -> Perception:
    """Return a perception of this kind."""
    return perception("The paint is dry.", kind=kind, origin=origin, **more)


def test_every_kind_and_origin_has_a_ruling() -> None:
    """The test fails for a kind of perception, an origin or an own event without a ruling."""
    assert set(RULINGS) == set(product(Origin, Kind))
    assert EVENTS == OWN


@pytest.mark.parametrize(("origin", "kind"), RULINGS)
def test_the_ruling_is_on_the_cause(origin: Origin, kind: Kind) -> None:
    """Owed or requested words pass however late, uncalled talk may join a live group, and the rest is unasked."""
    owed, uncalled = RULINGS[origin, kind]
    asked = {"asked_by": "x"} if origin is INTERNAL else {}
    is_asked, is_not = heard(origin, kind, extra=asked), heard(origin, kind, owes=False)
    years = timedelta(days=900)

    for participation in ("", "addressed", "group", "consume", "always"):
        assert cause_of(is_asked, participation, is_asked.at + years) is owed
        now = cause_of(is_not, participation, is_not.at)
        assert now is (uncalled if participation == "group" else UNASKED)
        assert cause_of(is_not, participation, is_not.at + GOES_ON + timedelta(seconds=1)) is UNASKED


def test_what_was_planned_in_answering_somebody_was_asked_for() -> None:
    """Such a plan may speak. What a network delivers cannot mark itself that way."""
    planned = {"in_answer": True}

    assert cause_of(heard(INTERNAL, Kind.SCHEDULED, owes=False, extra=planned), "", NIGHT) is ASKED
    assert cause_of(heard(EXTERNAL, Kind.MESSAGE, owes=False, extra=planned), "", NIGHT) is UNASKED


def test_an_event_cannot_mark_itself_as_asked_for() -> None:
    """What a network delivers cannot mark itself as asked for, and an own perception is not asked for by being owed."""
    assert cause_of(heard(EXTERNAL, Kind.MESSAGE, owes=False, extra={"asked_by": "x"}), "", NIGHT) is UNASKED
    assert cause_of(heard(INTERNAL, Kind.SCHEDULED, owes=True), "group", NIGHT) is UNASKED


@pytest.mark.parametrize("event", sorted(EVENTS))
def test_no_own_event_is_asked_for_by_its_name(event: str) -> None:
    """A due promise, news or a milestone is asked for only if a person who asked is named."""
    own = heard(INTERNAL, Kind.SCHEDULED, owes=False, extra={"event": event})

    assert cause_of(own, "group", own.at) is UNASKED


def test_a_turn_is_committed_in_one_place() -> None:
    """House rule: one function hands a turn to the store, so that no utterance goes around the ruling."""
    root = Path(claudius.__file__).parent
    found = set()
    for room in ("cognition", "runtime", "cortex", "claude_code"):
        for file in (root / room).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Attribute) and node.attr == "commit":
                    found.add(file.relative_to(root).as_posix())

    assert found == {"cognition/commit.py"}


def told(kind: Kind, **more: Any) -> Perception:
    """Return something that the soul perceives of itself in Ana's direct messages, at night."""
    values: dict[str, Any] = {
        "key": f"own:{kind}",
        "conversation": DM,
        "audience": private(ANA),
        "person": ANA,
        "name": "",
        "text": "follow_up Ana: ask for the portion",
        "at": NIGHT,
        "position": "9" * 20,
        "kind": kind,
        "origin": INTERNAL,
        "owes": False,
    }
    return Perception(**(values | more))


async def at_night(soul: Alive, clock: Clock, one: Perception) -> str:
    """Have the soul perceive something of its own at 03:05. Returns the outcome."""
    clock.now = NIGHT
    await soul.mind.store.inbox.accept((one,), clock())
    soul.server.wake(one.conversation)
    await soul.idle()
    row = soul.records()._db.connection.execute("SELECT state, reason FROM inbox WHERE key = ?", (one.key,)).fetchone()
    assert row[0] == "settled"
    return str(row[1] or "")


SPOKEN = [
    pytest.param(told(Kind.DIRECTIVE, extra={"action": "follow_up"}), id="directive"),
    pytest.param(told(Kind.SILENCE, extra={"process": "proactive"}), id="silence"),
    pytest.param(told(Kind.SCHEDULED), id="due of its own making"),
    pytest.param(told(Kind.SCHEDULED, extra={"process": "main_process"}), id="due with a process"),
    pytest.param(
        told(Kind.SCHEDULED, extra={"process": "proactive", "event": "milestone", "level": 0.9}), id="milestone"
    ),
    pytest.param(told(Kind.SCHEDULED, extra={"event": "promise_due"}), id="promise that nobody was given"),
]
"""What the soul would say about itself."""
OTHERS = [
    pytest.param(told(Kind.TICK), id="tick"),
    pytest.param(told(Kind.SCHEDULED, extra={"event": "news"}), id="news"),
    pytest.param(told(Kind.MESSAGE), id="a word to itself"),
    pytest.param(told(Kind.DIRECTIVE, conversation=ROOM, audience=shared(ROOM)), id="directive in a channel"),
]


@pytest.mark.parametrize("one", SPOKEN + OTHERS)
async def test_nobody_is_written_to_at_night_on_default_settings(home: Home, one: Perception) -> None:
    """At 03:05, to someone who never agreed, with `psyche.proactive` off, nothing is said for any cause."""
    clock, voice = Clock(), Scripted(default=by_tag(external_dialogue="Are you awake?"))
    async with alive(home, voice, clock=clock, settings=AT_HOME) as soul:
        await at_night(soul, clock, one)
        rows = soul.records()._db.connection.execute("SELECT count(*) FROM outbox").fetchone()[0]
        said = [
            one["content"]
            for one in standing(soul, one.conversation).get("entries", ())
            if one["entry_type"] == "externalDialog"
        ]

    assert (soul.network.visible, rows, said) == ([], 0, [])


@pytest.mark.parametrize("one", SPOKEN)
async def test_who_agreed_is_written_to_in_the_morning(home: Home, one: Perception) -> None:
    """With consent and permission nothing is said at 03:05, and after 08:00 it is said once."""
    clock, voice = Clock(), Scripted(default=by_tag(external_dialogue="Good morning."))
    async with alive(home, voice, clock=clock, settings=ON) as soul:
        await soul.mind.store.people.wish(ANA, proactive=True, now=clock())
        await at_night(soul, clock, one)
        early = len(soul.network.visible)
        planned = [datetime.fromisoformat(row["due_at"]) - NIGHT for row in soul.records().plans()]
        clock.forward(hours=5, minutes=30)
        soul.server.tick()
        seen = await soul.network.until_visible(1)
        await soul.idle()

    assert early == 0
    assert all(timedelta(hours=4, minutes=55) <= wait <= timedelta(hours=5, minutes=25) for wait in planned)
    assert len(planned) == 1
    assert [one.text for one in seen] == ["Good morning."]


@pytest.mark.parametrize("accepted", ["2026-01-05T21:45", "2026-01-05T16:30", "2026-01-06T00:30"])
async def test_a_directive_of_the_evening_waits_for_the_morning(home: Home, accepted: str) -> None:
    """Though its six hours end in the night, it is said after 08:00, and dropped only two hours after quiet hours end."""
    at = datetime.fromisoformat(accepted + "+00:00")
    one = told(Kind.DIRECTIVE, extra={"action": "follow_up", "lapses_at": at + timedelta(hours=6)}, at=at)
    clock, voice = Clock(), Scripted(default=by_tag(external_dialogue="Good morning."))
    async with alive(home, voice, clock=clock, settings=ON) as soul:
        await soul.mind.store.people.wish(ANA, proactive=True, now=clock())
        clock.now = at if at.hour != 16 else at.replace(hour=21, minute=10)  # the lane may be busy for hours
        await soul.mind.store.inbox.accept((one,), clock())
        soul.server.wake(DM)
        await soul.idle()
        early, calls = len(soul.network.visible), len(voice.requests)
        clock.now = datetime(2026, 1, 6, 8, 31, tzinfo=UTC)
        soul.server.tick()
        seen = await soul.network.until_visible(1)

    assert (early, calls) == (0, 0)
    assert [one.text for one in seen] == ["Good morning."]


@pytest.mark.parametrize(("hour", "said"), [(9, 1), (10, 0)])
async def test_a_directive_that_nobody_took_up_lapses_two_hours_after_the_night(
    home: Home, hour: int, said: int
) -> None:
    """One of 21:45 that a stopped soul finds at 09:59 is said; at 10:59 it has lapsed."""
    at = datetime(2026, 1, 5, 21, 45, tzinfo=UTC)
    one = told(Kind.DIRECTIVE, extra={"action": "follow_up", "lapses_at": at + timedelta(hours=6)}, at=at)
    clock, voice = Clock(), Scripted(default=by_tag(external_dialogue="Good morning."))
    clock.now = datetime(2026, 1, 6, hour, 59, tzinfo=UTC)
    async with alive(home, voice, clock=clock, settings=ON) as soul:
        await soul.mind.store.people.wish(ANA, proactive=True, now=clock())
        await soul.mind.store.inbox.accept((one,), clock())
        soul.server.wake(DM)
        await soul.idle()

    assert len(soul.network.visible) == said


@pytest.mark.parametrize("is_first", [True, False], ids=["the check first", "the directive first"])
async def test_a_look_inward_drops_no_directive(home: Home, is_first: bool) -> None:  # noqa: FBT001 - a case of the table
    """The soul's own idle check in that conversation is no one's message: what was to be said there is still said."""
    noon = NIGHT.replace(hour=12)
    directive = told(Kind.DIRECTIVE, extra={"action": "follow_up", "lapses_at": noon + timedelta(hours=6)}, at=noon)
    check = told(Kind.SCHEDULED, key="due:soul_state_check:1", text="", at=noon, extra={"process": "looking_inward"})
    check, directive = (
        replace(check, position="7" * 20 if is_first else "9" * 20),
        replace(directive, position="8" * 20),
    )
    clock, voice = Clock(), Scripted(default=by_tag(external_dialogue="Good day."))
    clock.now = noon
    async with alive(home, voice, clock=clock, settings=ON) as soul:
        await soul.mind.store.people.wish(ANA, proactive=True, now=clock())
        await soul.mind.store.inbox.accept((check, directive), clock())
        soul.server.wake(DM)
        await soul.idle()
        seen = [one.text for one in soul.network.visible]

    assert seen == ["Good day."]


async def test_what_was_begun_before_the_night_is_judged_when_it_would_be_said(home: Home) -> None:
    """A thought that runs from 20:59 into the quiet hours ends in silence, and is repeated in the morning."""
    clock = Clock()

    def slow(request: Any) -> str:
        """Take two minutes."""
        clock.forward(minutes=2)
        return by_tag(external_dialogue="The paint is dry.")(request)

    async with alive(home, Scripted(default=slow), clock=clock, settings=ON) as soul:
        await soul.mind.store.people.wish(ANA, proactive=True, now=clock())
        clock.now = NIGHT.replace(hour=20, minute=59)
        plan = Schedule(
            id=7,
            conversation=DM,
            at=clock(),
            text="The paint is dry.",
            process="proactive",
            audience=private(ANA),
            person=ANA,
        )
        await soul.mind.store.plans.plan(plan)
        soul.server.tick()
        await until(lambda: [row for row in soul.records().plans() if row["id"] != 7])
        await soul.idle()
        (again,) = soul.records().plans()
        kept = [one["entry_type"] for one in standing(soul)["entries"]]

        assert soul.network.visible == []

    assert datetime.fromisoformat(again["due_at"]).hour == 8
    assert "externalDialog" not in kept


async def test_the_soul_does_not_join_talk_that_is_over(home: Home) -> None:
    """In a channel where the soul takes part it may join what it hears live, and only keeps what it hears late."""
    clock, voice = Clock(), Scripted(default=by_tag(external_dialogue="A new coat, I would say."))
    async with alive(home, voice, clock=clock, settings=AT_HOME) as soul:
        seen = []
        for number, late in enumerate((timedelta(hours=5), timedelta(0))):
            clock.forward(hours=1)
            assert soul.network._accept
            spoken = perception(
                "Does anybody know why the old bridge rusts again?", key=f"r:{number}", conversation=ROOM, audience=shared(ROOM),
                person=ANA, at=clock() - late, position=f"{number:020d}", owes=False,
                extra={"participation": "group", "address": "thread"},
            )  # fmt: skip
            await soul.mind.store.inbox.accept((spoken,), clock())
            soul.server.wake(ROOM)
            await soul.idle()
            seen.append(len(soul.network.visible))
        kept = [one["content"] for one in standing(soul, ROOM)["entries"] if one["entry_type"] == "userMessage"]

    assert seen == [0, 1]
    assert len(kept) == 2


async def test_an_owed_message_is_answered_however_late(home: Home) -> None:
    """After an outage from the evening into the night the answer comes at 03:05, because it is an answer."""
    clock = Clock()
    clock.now = NIGHT - timedelta(minutes=10)
    voice = Scripted([Line(fault=Overloaded("down"))], default=by_tag(external_dialogue="Here I am."))
    async with alive(home, voice, clock=clock, settings=AT_HOME) as soul:
        await soul.network.hear("Are you there?")
        seen = await soul.network.until_visible(1)

    assert [one.text for one in seen] == ["Here I am."]
