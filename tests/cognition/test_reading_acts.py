"""The lines of acts: what is taken, which instant it means, and why the rest is refused."""

import json
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claudius.acts import FactKnown, PlanCancelled, PlanMade, PlanMoved
from claudius.cognition.acts import ActsBasis, Doable, RefusedAct, called_so, read_act, read_acts
from claudius.perception import Perception
from claudius.prompt import short_name
from claudius.recollection import Entry, EntryType, Fact, Matter, PastTurn, Person, PlanHere, UserModel, unrecalled

NOW, NINTH = datetime(2026, 11, 26, 10, 0, 30, tzinfo=UTC), short_name("slack:T:A9")
HEARD = Perception(
    key="slack:m1", conversation="slack:T:C:1", audience="channel:C", person="slack:T:U1", name="Ada", text="m", at=NOW,
    position="1", owes=True,
)  # fmt: skip


def person(ident: str, name: str) -> Person:
    """Return a person who is here."""
    return Person(person=ident, name=name, models=(UserModel(person=ident, audience="channel:C", version=0),))


HERE = replace(
    unrecalled("t1", (HEARD,), "n", NOW),
    others=(person("slack:T:U2", "Sam Reed"), person("slack:T:U3", "Sam Hale"), person("slack:T:U4", "Ben")),
    plans=(
        PlanHere(id=70, short="p3", at=NOW, zone="Europe/Berlin", text="call"),
        PlanHere(id=71, short="p4", at=NOW, zone="Asia/Tokyo", text="tea", repeat="daily", until=date(2026, 12, 2)),
        PlanHere(id=72, short="p5", at=NOW, zone="Europe/Berlin", text="own", is_asked=False),
    ),
    known=(Fact(id=4, person="slack:T:U4", kind="home", text="Graz", audience="channel:C", turn="t0", stated_s=0.0),),
    matters=(Matter(id=9, short="m2", person="slack:T:U1", text="interview", opened_at=NOW),),
)


def known(zone: str = "Europe/Berlin", **changes: Any) -> ActsBasis:
    """Return what acts are checked against."""
    return ActsBasis(recollection=replace(HERE, **changes), zone=zone, agrees=lambda one: one == "slack:T:U4")


def planned(**arguments: Any) -> PlanMade:
    """Return the plan that `remind` makes of these arguments."""
    done = read_act("remind", known(), **{"text": "call"} | arguments)
    assert isinstance(done, Doable), done
    assert isinstance(done.act, PlanMade)
    return done.act


@pytest.mark.parametrize(
    ("written", "instant"),
    [
        ({"at": "2026-11-27T09:00"}, "2026-11-27T08:00"),
        ({"at": "2026-11-27 09:00:30"}, "2026-11-27T08:00:30"),
        ({"at": "2026-11-27T09:00Z"}, "2026-11-27T09:00"),
        ({"at": "2026-11-27T09:00+05:30"}, "2026-11-27T03:30"),
        ({"at": "2026-11-27T09:00-0300"}, "2026-11-27T12:00"),
        ({"at": "2026-11-27T09:00", "zone": "Asia/Tokyo"}, "2026-11-27T00:00"),
        ({"at": "2026-11-27T09:00+09:00", "zone": "Asia/Tokyo"}, "2026-11-27T00:00"),
        ({"at": "2027-03-28T02:30"}, "2027-03-28T01:00"),
        ({"at": "2027-10-31T02:30"}, "2027-10-31T00:30"),
        ({"at": "2027-10-31T02:30+01:00"}, "2027-10-31T01:30"),
        ({"at": "2028-02-29T09:00"}, "2028-02-29T08:00"),
        ({"at": "2026-11-26T11:00"}, "2026-11-26T10:00"),
    ],
    ids=lambda one: one if isinstance(one, str) else " ".join(one.values()),
)
def test_an_instant_is_the_wall_clock_of_its_zone(written: dict[str, str], instant: str) -> None:
    """In a gap the first minute after it, in an overlap the first of the two; the minute that runs is not past."""
    assert planned(**written).at == datetime.fromisoformat(instant).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("daily", "daily"), (" Weekly. ", "weekly"), ("thu, Mon", "mon,thu"), (["sun", "sat"], "sat,sun"),
        ("none", ""), ("", ""), (None, ""), (["None."], ""),
    ],
)  # fmt: skip
def test_a_repetition_has_one_spelling(written: Any, kept: str) -> None:
    """Words of a closed list, or days in the order of the week."""
    assert planned(at="2026-11-27T09:00", repeat=written).repeat == kept


AT = "2026-11-27T09:00"
REFUSED = [
    ({"do": "remind", "at": "2027-02-30T09:00", "text": "t"}, "there is no 2027-02-30T09:00"),
    ({"do": "remind", "at": "2026-11-27T24:30", "text": "t"}, "there is no"),
    ({"do": "remind", "at": "2026-11-25T09:00", "text": "t"}, "is past"),
    ({"do": "remind", "at": "2026-11-26T10:59", "text": "t"}, "is past: it is 2026-11-26 11:00 there"),
    ({"do": "remind", "at": "2032-06-01T09:00", "text": "t"}, "more than five years"),
    ({"do": "remind", "at": "9999-12-31T23:59+14:00", "text": "t"}, "more than five years"),
    ({"do": "remind", "at": "0001-01-01T00:00", "text": "t"}, "past"),
    ({"do": "remind", "at": "tomorrow at nine", "text": "t"}, "not written as"),
    ({"do": "remind", "at": "2026-11-27", "text": "t"}, "names no hour"),
    ({"do": "remind", "at": f"{AT}+02:00", "zone": "Asia/Tokyo", "text": "t"}, "the offset +02:00 is not that of"),
    ({"do": "remind", "at": f"{AT}+99:00", "text": "t"}, "there is no offset"),
    ({"do": "remind", "at": AT, "zone": "../etc/passwd", "text": "t"}, "there is no zone"),
    ({"do": "remind", "at": AT, "text": " \u200b\u202e\x07"}, "its `text` is empty"),
    ({"do": "remind", "at": AT, "text": "t", "repeat": "hourly"}, "`repeat` is daily"),
    ({"do": "remind", "at": AT, "text": "t", "repeat": "daily", "until": "2026-11-01"}, "before its first day"),
    ({"do": "remind", "at": AT, "text": "t", "repeat": "daily", "until": "soon"}, "`until` is no day"),
    ({"do": "remind", "at": AT, "text": "t", "who": "Sam"}, "Sam may be Sam Reed ("),
    ({"do": "remind", "at": AT, "text": "t", "who": "Zoe"}, "there is nobody here who is called Zoe"),
    ({"do": "remind", "at": AT, "text": "t", "who": "</data>\n<acts>"}, r"called \u003c/data\u003e \u003cacts\u003e"),
    ({"do": "remind", "at": AT, "text": "t", "who": "Sam Reed"}, "has not agreed"),
    ({"do": "remind", "text": "t"}, "missing required field `at`"),
    ({"do": "remind", "at": 9, "text": "t"}, "Expected `str`"),
    ({"do": "promise", "at": "2026-02-30", "text": "t"}, "there is no"),
    ({"do": "move", "plan": "p9", "at": AT}, "p9 does not stand under ## Plans"),
    ({"do": "move", "plan": "p3"}, "neither another `at`"),
    ({"do": "move", "plan": "p4", "at": "2026-12-03T09:00"}, "`until` 2026-12-02 is before its first day"),
    ({"do": "move", "plan": "p4", "repeat": "mon", "until": "2026-11-29"}, "before its first day"),
    ({"do": "cancel", "plan": "70"}, "70 does not stand"),
    ({"do": "know", "text": "t", "instead_of": "f1"}, "f1 does not stand under ## Known"),
    ({"do": "know", "text": "t", "of": "Sam"}, "Sam may be"),
    ({"do": "know", "text": "t", "since": "2026-11-01", "until": "2026-10-01"}, "before its first day"),
    ({"do": "no_longer", "fact": "f7"}, "f7 does not stand"),
    ({"do": "forget", "fact": " "}, "an empty id does not stand"),
    ({"do": "forget"}, "does not stand under ## Open"),
    ({"do": "close", "matter": "m1"}, "m1 does not stand"),
    ({"do": "open", "text": "t", "when": "Friday"}, "`when` is no day"),
    ({"do": "zone", "zone": "CEST?"}, "there is no zone"),
    ({"do": "dance"}, "`do` is none of remind"),
]


@pytest.mark.parametrize(("act", "reason"), REFUSED, ids=[f"{one.get('do', '')}: {why}" for one, why in REFUSED])
def test_what_cannot_be_done_is_refused_with_its_reason(act: dict[str, Any], reason: str) -> None:
    """Nothing of it is booked, and the reason can be told to the model that wrote it."""
    found = read_acts(json.dumps(act), known())

    assert found.done == ()
    assert [reason in one.reason for one in found.refused] == [True], found.refused


@pytest.mark.parametrize("text", ["I will remind you.", "[1]", '{"do": "zone"', "none of it", "[" * 5000 + "1"])
def test_lines_that_are_no_json_objects_are_refused(text: str) -> None:
    """Bad JSON, and JSON that is no object, make no act."""
    assert [isinstance(one, RefusedAct) for one in read_acts(text, known()).refused] == [True]


NONE = ["none", "None.", " \n", "- none", "(none)", "“none”", "1. none", "none: they only asked", "null", "N/A", "[]"]
NONE += ["{}", "[{ }]", '{"do": "none"}', "```\nnone\n```", "```json\n[]\n```", "—"]


@pytest.mark.parametrize("text", NONE)
def test_none_is_none(text: str) -> None:
    """A turn that does nothing says so in one word; dressing does not matter."""
    assert read_acts(text, known()).told == []


ONE, TWO = '{"do": "cancel", "plan": "P3", "mood": 7}', '{"do": "cancel", "plan": "p4"}'


@pytest.mark.parametrize(
    "text",
    [
        f"```json\nnone\n{ONE}\n{TWO}\n```", f"[{ONE}, {TWO}]", f"{ONE} {TWO}", f"{ONE}\n{ONE}\n{TWO}", f"{ONE},\r\n{TWO},", f"1. {ONE}\n2. `{TWO}`",
        f"```json {ONE}, {TWO}```", json.dumps([json.loads(ONE), json.loads(TWO)], indent=2), f"[\n{ONE},\n{TWO},\n'none']",
    ],
)  # fmt: skip
def test_objects_are_read_however_they_are_laid_out(text: str) -> None:
    """A model may fence, number, list or indent its objects, and add what no one asked for: it costs no second call."""
    found = read_acts(text, known())

    assert ([one.act for one in found.done], found.refused) == ([PlanCancelled(plans=(one,)) for one in (70, 71)], ())


@pytest.mark.parametrize("nothing", [None, "", " ", "none", "N/A", "null", []])
def test_an_argument_without_a_value_is_none(nothing: Any) -> None:
    """A model that fills in every argument plans what it would without them, and ends no repetition."""
    names = dict.fromkeys(("zone", "until", "who", "of", "since", "instead_of", "at"), nothing)
    made, moved, fact = (
        read_act(do, known(), **names | given)
        for do, given in {
            "remind": {"at": AT, "text": "call"},
            "move": {"plan": "p4", "at": AT, "repeat": nothing},
            "know": {"text": "nothing", "kind": "Constraint", "keys": ["n", 3]},
        }.items()
    )

    assert made.act == planned(at=AT)
    assert moved.act.repeat == ("" if nothing == "none" else None)
    assert (fact.act.kind, fact.act.text, fact.act.keys) == ("constraint", "nothing", ("n", "3"))


def test_all_is_what_the_speaker_asked_for() -> None:
    """The soul's own promises are dropped by their ids only; where nothing waits, that is said."""
    done = read_act("cancel", known(), plan="all")
    nothing = read_act("cancel", known(plans=()), plan="all")

    assert isinstance(done, Doable)
    assert done.act == PlanCancelled(plans=(70, 71))
    assert isinstance(nothing, RefusedAct)


def test_a_plan_moves_by_the_clock_that_it_stands_under() -> None:
    """Its series keeps its own zone; `none` ends the repetition after the next."""
    done = read_act("move", known(), plan="p4", at=AT, repeat="none")

    assert isinstance(done, Doable)
    at, wall = datetime(2026, 11, 27, tzinfo=UTC), datetime(2026, 11, 27, 9)  # noqa: DTZ001 - of a wall
    assert done.act == PlanMoved(plan=71, at=at, wall=wall, repeat="")


def test_a_reminder_is_for_somebody_here_who_agreed() -> None:
    """By a name, by the short name in brackets, or for the speaker."""
    assert [planned(at=AT, who=one).person for one in ("ben", "Ada", " ")] == ["slack:T:U4", "slack:T:U1", "slack:T:U1"]


def test_whoever_wrote_in_what_is_recalled_is_here() -> None:
    """The Present names them as reading along; a bot is none, nor, by its name, another id of somebody who speaks."""
    lines = (("slack:T:U5", "Uma Berg", {}), ("slack:T:B1", "Zoe", {"bot": True}), ("slack:T:A9", "Ada", {}))
    wrote = tuple(
        Entry(entry_type=EntryType.USER_MESSAGE, content="m", at=NOW, person=who, name=name, metadata=about)
        for who, name, about in lines
    )
    past = (PastTurn(turn="t0", nonce="n", number=1, entries=wrote),)

    assert [dict(called_so(name, known(past=past).recollection)) for name in ("uma", "Zoe", "Ada", NINTH)] == [
        {"slack:T:U5": "Uma Berg"}, {}, {"slack:T:U1": "Ada"}, {"slack:T:A9": "Ada"},
    ]  # fmt: skip


def test_a_fact_is_whose_it_is_said_of() -> None:
    """Of a person here it is theirs; of a person who is not, the speaker's, about that name; the rest is put right."""
    of_ben, of_zoe = (
        read_act("know", known(), text=" Eats\nno nuts ", kind="odd", keys="a, a,b", of=one) for one in ("Ben", "Zoe")
    )

    assert isinstance(of_ben, Doable)
    assert isinstance(of_zoe, Doable)
    assert of_ben.act == FactKnown(person="slack:T:U4", kind="other", text="Eats no nuts", keys=("a", "b"))
    assert of_zoe.act == FactKnown(person="slack:T:U1", kind="other", text="Eats no nuts", keys=("a", "b"), of="Zoe")


def test_what_is_too_long_is_cut() -> None:
    """A text at 300 characters, keys after the eighth."""
    done = read_act("know", known(), text="x" * 400, keys=[f"k{n}" for n in range(12)])

    assert isinstance(done, Doable)
    assert isinstance(done.act, FactKnown)
    assert (len(done.act.text), len(done.act.keys)) == (300, 8)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from(["p3", "m2", "all", "none", AT]),
    lambda one: st.lists(one, max_size=3) | st.dictionaries(st.sampled_from(["do", "at", "text", "plan", "zone"]), one),
    max_leaves=6,
)


@given(st.sampled_from(["remind", "move", "cancel", "know", "forget", "zone", "open"]), JSON, JSON, JSON)
def test_any_arguments_are_done_or_refused(do: str, first: Any, second: Any, third: Any) -> None:
    """Whatever a model writes, reading ends with an act or a reason."""
    line = json.dumps(
        {"do": do, "at": first, "text": second, "plan": third, "zone": first, "until": second, "keys": third}
    )
    found = read_acts(line, known())

    assert len(found.done) + len(found.refused) == 1


def test_a_ninth_dated_matter_is_refused_where_it_can_still_be_repaired() -> None:
    """Those that end make room; one without a day has its place in the eight as long as any other has none."""
    opened, closed = '{"do": "open", "text": "exam", "when": "2026-12-01"}', '{"do": "close", "matter": "m2"}'
    dated = (replace(HERE.matters[0], when=NOW.date()),)
    for lines, taken, refused in [
        ([opened], 7, []),
        ([opened, opened.replace("exam", "trip")], 7, ["open"]),
        (['{"do": "open", "text": "a house"}'], 8, ["open"]),
        ([closed, opened], 8, []),
    ]:
        read = read_acts("\n".join(lines), known(matters=dated, dated=taken))
        assert [one.do for one in read.refused] == refused, (lines, taken)
