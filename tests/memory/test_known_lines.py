"""Which facts and matters a prompt shows, in which order, and by which words."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

import claudius.memory.facts as known
from claudius.cognition.prompt.present import fact_line, matter_line, plan_line
from claudius.memory.ranking import stemmed
from claudius.perception import Perception
from claudius.recollection import Entry, EntryType, Fact, Matter, PastTurn, PlanHere

ANA, BEN = "slack:T1:Ana", "slack:T1:Ben"
AT = datetime(2026, 3, 25, 9, tzinfo=UTC)
TODAY = AT.date()


def fact(n: int, kind: str, text: str, **more: Any) -> Fact:
    """Return the n-th fact."""
    values: dict[str, Any] = {"person": ANA, "audience": "a", "turn": f"t{n}", "stated_s": float(n), "short": f"f{n}"}
    return Fact(id=n, kind=kind, text=text, **values | more)


def matter(n: int, when: date | None, **more: Any) -> Matter:
    """Return the n-th matter."""
    return Matter(id=n, short=f"m{n}", person=ANA, text=f"voyage {n}", opened_at=AT, when=when, **more)


KNOWN = (
    fact(1, "constraint", "Allergic to walnuts"),
    fact(2, "home", "Lives in Leeds"),
    fact(3, "home", "Has a cottage in Wales"),
    fact(4, "name", "Ada"),
    fact(5, "taste", "Likes tea"),
    fact(6, "taste", "Hates spicy food", keys=("restaurant", "Thai")),
    fact(7, "other", "prefers trains", unchecked=True),
    fact(8, "constraint", "Coeliac", person=BEN),
    fact(9, "taste", "Likes sailing", person=BEN),
)


@pytest.mark.parametrize(
    ("heard", "shown"),
    [
        ("Good morning", "f1 f4 f3 f6 f5 f2 8"),
        ("A Thai place for tonight?", "f1 f4 f3 f6 f5 f2 8"),
        ("Are there trains, and does Ben like sailing?", "f1 f4 f3 f7 f6 f5 f2 8 9"),
    ],
)
def test_constraints_stand_first_then_what_bears_on_it_then_the_newest(heard: str, shown: str) -> None:
    """What no one confirmed, and what is of others, stands only where it shares a stem; only one's own has an id."""
    found = known.shown_facts(known.sorted_out(KNOWN, TODAY, ANA), ANA, stemmed(heard), is_bereaved=False)

    assert " ".join(one.short or str(one.id) for one in found) == shown


def test_a_key_goes_before_what_is_newer_where_there_is_little_room() -> None:
    """With room for one, the fact whose key was said is shown, and the constraints whatever room there is."""
    told = known.sorted_out((KNOWN[0], KNOWN[5], fact(10, "taste", "Likes tea with milk")), TODAY, ANA)
    found = known.shown_facts(told, ANA, stemmed("A Thai place?"), is_bereaved=False, room=36)

    assert [one.short for one in found] == ["f1", "f6"]


def test_the_room_is_bounded_and_no_constraint_of_ones_own_is_left_out() -> None:
    """However many there are; of those of others so many as have room, what bears on it first."""
    many = [fact(n, "constraint" if n % 9 == 0 else "taste", f"thing {n} " + "x" * 40) for n in range(100)]
    theirs = [fact(n, "constraint", f"Allergic to {n} {'fish' * (n == 100)}", person=BEN) for n in range(100, 160)]
    told = known.sorted_out([*many, *theirs], TODAY, ANA)
    found = known.shown_facts(told, ANA, stemmed("Is there fish?"), is_bereaved=False)

    assert sum(one.kind == "constraint" and one.person == ANA for one in found) == 12
    assert sum(len(one.text) for one in found if one.kind != "constraint") <= known.SHOWN_CHARS
    assert [one.id for one in found if one.person == BEN] == [100, *range(159, 123, -1)]


def past(content: str, query: str = "appraisal") -> Sequence[PastTurn]:
    """Return a history with one appraisal."""
    line = Entry(entry_type=EntryType.MENTAL_QUERY, content=content, at=AT, metadata={"query": query})
    return (PastTurn(turn="t", nonce="n", number=1, entries=(line,)),)


def says(text: str) -> Sequence[Perception]:
    """Return one message."""
    return (Perception(key="k", conversation="c", audience="a", person=ANA, name="", text=text, at=AT, position=""),)


@pytest.mark.parametrize(
    ("appraised", "query", "heard", "is_alone"),
    [
        ("grief, strong", "appraisal", "She died in March.", True),
        ("Grief", "appraisal", "Er fehlt mir.", True),
        ("grief, strong", "appraisal", "何を食べようか？", False),
        ("joy", "appraisal", "She is here.", False),
        ("grief", "acts", "She is here.", False),
    ],
)
def test_in_grief_nothing_but_constraints_stands_there(
    appraised: str, query: str, heard: str, *, is_alone: bool
) -> None:
    """Unless something is asked."""
    bare = known.is_bereaved(past(appraised, query), says(heard))
    found = known.shown_facts(known.sorted_out(KNOWN, TODAY, ANA), ANA, stemmed("tea"), is_bereaved=bare)

    assert bare is is_alone
    assert {one.kind for one in found} == ({"constraint"} if is_alone else {one.kind for one in KNOWN[:6]})


def test_matters_that_are_due_stand_first_and_at_most_three() -> None:
    """The newest that is due before the older, then those without a day, then the nearest to come; none that is far."""
    days = [timedelta(days=n) for n in (-15, -3, -1, 2, 6, 8)]
    every = [*(matter(n, TODAY + day) for n, day in enumerate(days)), matter(6, None)]
    spoken_of = known.shown_matters(every[:1], stemmed("that voyage"), TODAY)

    assert [one.short for one in known.shown_matters(every, (), TODAY)] == ["m2", "m1", "m6"]
    assert [one.short for one in known.shown_matters(every[3:6], (), TODAY)] == ["m3", "m4"]
    assert [one.short for one in spoken_of] == ["m0"]
    assert len(every) <= known.MOST_MATTERS


@pytest.mark.parametrize(
    ("days", "line"),
    [
        (-5, "m1 voyage 1, was on Friday"),
        (0, "m1 voyage 1, is today"),
        (2, "m1 voyage 1, is on Friday"),
        (-12, "m1 voyage 1, was on 13 March"),
        (None, "m1 voyage 1"),
    ],
)
def test_a_matter_is_told_by_its_day(days: int | None, line: str) -> None:
    """By the day of the week while it is near."""
    when = None if days is None else TODAY + timedelta(days=days)

    assert matter_line(matter(1, when), TODAY) == line


def test_a_fact_is_told_by_its_id_its_words_and_its_dates() -> None:
    """Another's begins with their name; one about a person who is not here with that one's."""
    dog = fact(9, "kin", "Has\na dog", about="Tom", until=TODAY)
    ended = fact(1, "constraint", "Vegetarian", ended_at=AT, why="doctor's orders", since=date(2025, 1, 2))

    assert fact_line(KNOWN[0], "Ada") == "f1 Allergic to walnuts"
    assert fact_line(KNOWN[3], "Ada") == "f4 called Ada"
    assert fact_line(fact(8, "constraint", "Coeliac", short=""), "Ben") == "Ben: Coeliac"
    assert fact_line(dog, "Ada") == "f9 Tom: Has a dog, until 2026-03-25"
    assert fact_line(KNOWN[6], "Ada") == "f7 prefers trains (unchecked)"
    assert known.ended_line(ended) == "Vegetarian (since 2025-01-02, until 2026-03-25: doctor's orders)"


def test_a_plan_by_another_clock_than_the_present_names_its_zone() -> None:
    """Its hour is that of its own zone: whoever reads it must not take it for the hour here."""
    call = PlanHere(id=1, short="p3", at=datetime(2026, 11, 27, 0, tzinfo=UTC), zone="Asia/Tokyo", text="call")

    assert plan_line(call, "Asia/Tokyo") == "p3 Fri 27 Nov 9:00: call"
    assert plan_line(call, "Europe/Rome") == "p3 Fri 27 Nov 9:00 Asia/Tokyo: call"
