"""The four conditions of a thought, each alone: what they depend on, and what they never depend on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claudius.psyche.attend import judge, salience
from claudius.psyche.events import NOTHING_HEARD, EventContext, Happening, PsycheState
from claudius.psyche_types import Arc, Edge, Numbers
from contracts.probes import gate

NEUTRAL = PsycheState(numbers=Numbers(at_s=0.0), edge=Edge(person="p", at_s=0.0))
ADDRESSED = Happening(kind="message", address="dm")

unit = st.floats(0, 1)


def row(text: str, address: str = "dm", **state: object) -> dict[str, object]:
    """Return a row of the gate probe."""
    return {"event": {"kind": "message", "address": address, "text": text}, "state": state}


def test_m13_without_meaning_there_is_no_thought() -> None:
    """M13: meaning below the threshold alone prevents a thought."""
    found = gate(row("the table stands in the hall", "thread", since_last_cognition_s=100))

    assert found["failed"] == ["M"]
    assert found["attention"] == "ignore"


def test_m13_what_is_trivial_is_not_thought_about() -> None:
    """M13: triviality alone prevents a thought."""
    found = gate(row("thanks!"))

    assert found["failed"] == ["trivial"]
    assert found["attention"] == "react"


def test_m13_too_soon_is_not_thought_about() -> None:
    """M13: the cooldown alone prevents a thought."""
    found = gate(row("does anyone know why?", "thread", since_last_cognition_s=20))

    assert found["failed"] == ["cooldown"]
    assert found["attention"] == "ignore"


def test_m13_without_a_choice_there_is_no_thought() -> None:
    """M13: an empty choice set alone prevents a thought."""
    found = gate(row("what broke?", can_speak=False))

    assert found["failed"] == ["choice"]
    assert found["choices"] == []
    assert found["attention"] == "ignore"


@given(
    energy=unit,
    drives=st.tuples(unit, unit, unit, unit, unit),
    warmth=st.floats(-1, 1),
    tension=unit,
    address=st.sampled_from(["dm", "mention", "command", "reply"]),
)
def test_m12_whatever_is_addressed_means_enough_in_every_state(
    energy: float, drives: tuple[float, float, float, float, float], warmth: float, tension: float, address: str
) -> None:
    """M12: an addressed event passes M in every state of energy, drives and stakes, by salience and without a rule."""
    standing = PsycheState(
        numbers=Numbers(at_s=0.0, energy=energy, drives=drives),
        edge=Edge(person="p", at_s=0.0, warmth=warmth, tension=tension),
    )

    found = judge(replace(ADDRESSED, address=address), standing, EventContext())

    assert "M" not in found.failed
    assert found.m >= found.theta


@given(st.integers(0, 500))
def test_m14_who_else_is_there_changes_nothing(present: int) -> None:
    """M14: presence is not a rule: the gate receives neither who is there nor how many."""
    one = gate(row("I'll push a fix after lunch", "thread"))
    crowd = row("I'll push a fix after lunch", "thread", present=present, members=["a"] * present)

    assert gate(crowd) == one
    assert {"present", "members"}.isdisjoint((*EventContext.__slots__, *Happening.__slots__, *PsycheState.__slots__))


def test_m11_each_claim_alone_can_be_the_strongest() -> None:
    """M11: people, topics, objects and inner concerns each have a salience; the highest counts."""
    passing = Happening(kind="message", address="ambient")
    hot = replace(NEUTRAL, arcs=((Arc(arc="a", label="a", stems=(), at_s=0.0, intensity=0.9), 1.0),))
    pressed = replace(NEUTRAL, numbers=Numbers(at_s=0.0, drives=(1.0, 0.0, 0.0, 0.0, 0.0)))

    person, topic = salience(ADDRESSED, NEUTRAL), salience(passing, hot)
    thing, inner = salience(replace(passing, has_attachments=True), NEUTRAL), salience(passing, pressed)

    assert person.person == max(person)
    assert topic.topic == max(topic)
    assert thing.object == max(thing)
    assert inner.inner == max(inner)


def test_a_milestone_claims_by_its_level() -> None:
    """Events: a milestone of a high level has more salience than one of a low level."""
    low, high = (Happening(kind="milestone", address="self", level=level) for level in (0.3, 0.9))

    assert salience(high, NEUTRAL).person == pytest.approx(0.9**1.5)
    assert salience(low, NEUTRAL).person < salience(high, NEUTRAL).person


@pytest.mark.parametrize(
    ("text", "address", "choice"),
    [
        ("what broke?", "ambient", "respond"),
        ("my dad died last week", "ambient", "disclose"),
        ("interesting numbers", "thread", "engage"),
        ("here is the api key", "ambient", "consult"),
    ],
)
def test_m13_there_is_a_choice_where_something_can_be_done(text: str, address: str, choice: str) -> None:
    """M13: what was heard offers each kind of choice."""
    assert choice in gate(row(text, address))["choices"]


def test_m13_the_souls_own_events_leave_the_choice_to_begin() -> None:
    """M13: a tick or a promise offers one choice: to initiate."""
    found = judge(Happening(kind="tick", address="self", heard=NOTHING_HEARD), NEUTRAL, EventContext())

    assert found.choices == ("initiate",)


def test_tiredness_raises_the_threshold() -> None:
    """Threshold: below .3 of energy a thought needs more meaning."""
    tired = replace(NEUTRAL, numbers=Numbers(at_s=0.0, energy=0.0))

    assert judge(ADDRESSED, tired, EventContext()).theta == pytest.approx(0.37)
    assert judge(ADDRESSED, NEUTRAL, EventContext()).theta == pytest.approx(0.32)
