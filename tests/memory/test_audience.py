"""Who can see a conversation: the small rule of the shared terminal."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from claudius.memory.audience import hearing_audience, joint, sees_everything
from claudius.perception import may_show, private, shared

TERMINAL = "terminal:local:main:x"
PEOPLE = st.sets(st.sampled_from(("terminal:local:a", "terminal:local:b", "terminal:local:c")), min_size=1)


@given(PEOPLE)
def test_one_speaker_is_private_several_are_one_audience(speakers: set[str]) -> None:
    """A terminal conversation belongs to its one speaker, or to all who ever spoke there."""
    one = min(speakers)

    found = hearing_audience(TERMINAL, private(one), speakers)

    assert found == (private(one) if len(speakers) == 1 else joint(TERMINAL))


@given(PEOPLE, PEOPLE)
def test_what_one_said_alone_is_not_shown_to_two(first: set[str], later: set[str]) -> None:
    """What was learned under one speaker's private label is hidden as soon as another has spoken."""
    speakers = first | later
    target = hearing_audience(TERMINAL, private(min(speakers)), speakers)
    members = {joint(TERMINAL): frozenset(speakers)}

    for person in speakers:
        assert may_show([private(person)], target, members) == (speakers == {person})


def test_other_networks_keep_the_audience_that_they_carry() -> None:
    """Only a terminal is shared by changing chairs: elsewhere the audience is the network's word."""
    both = ("slack:T:a", "slack:T:b")

    assert hearing_audience("slack:T:C:1", shared("slack:T:C:1"), both) == "shared:slack:T:C"
    assert hearing_audience("slack:T:D:", private("slack:T:a"), both) == private("slack:T:a")


def test_two_shared_terminals_are_two_audiences() -> None:
    """Who speaks in one shared terminal conversation has not seen the other."""
    assert joint("terminal:local:main:x") != joint("terminal:local:main:y")


def test_the_owner_sees_everything_only_where_he_is_alone() -> None:
    """Owner's sight needs the owner's own, private terminal."""
    assert sees_everything(private("terminal:local:tom"), is_owner=True)
    assert not sees_everything(joint(TERMINAL), is_owner=True)
    assert not sees_everything(private("terminal:local:as-ada"), is_owner=False)
