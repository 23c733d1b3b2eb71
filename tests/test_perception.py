"""Who may be shown what: the audience rule, and the worked example of the security design."""

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.perception import (
    SELF,
    CommandExtra,
    DeleteExtra,
    DirectiveExtra,
    EditExtra,
    Extra,
    InternalExtra,
    Kind,
    MessageExtra,
    MoveExtra,
    Origin,
    Perception,
    Place,
    ReactionExtra,
    ScheduledExtra,
    TickExtra,
    edited,
    hearing_audience,
    internal,
    joint,
    may_show,
    private,
    sees_everything,
    shared,
)
from claudius.shown import ReadFile

NOW = datetime(2026, 1, 5, tzinfo=UTC)
ANA, BEN, OZ, DEE = "slack:T1:ana", "slack:T1:ben", "slack:T1:oz", "slack:T2:dee"
OPS, ALL, EXT = "shared:slack:T1:ops", "shared:slack:T1:all", "shared:slack:T1:ext"
MEMBERS = {OPS: frozenset({ANA, BEN}), ALL: frozenset({ANA, BEN, OZ}), EXT: frozenset({ANA, BEN, DEE})}
TARGETS = (private(ANA), private(BEN), OPS, ALL, EXT, private(OZ))
TABLE = {
    (private(ANA),): (1, 0, 0, 0, 0, 0),
    (OPS,): (1, 1, 1, 0, 0, 0),
    (ALL,): (1, 1, 1, 1, 0, 1),
    (EXT,): (1, 1, 1, 0, 1, 0),
    ("private:terminal:local:oz",): (0, 0, 0, 0, 0, 0),
    (private(ANA), ALL): (1, 0, 0, 0, 0, 0),
    (OPS, EXT): (1, 1, 1, 0, 0, 0),
    (SELF,): (1, 1, 1, 1, 1, 1),
}


@pytest.mark.parametrize("sources", TABLE, ids=" + ".join)
def test_the_worked_example(sources: tuple[str, ...]) -> None:
    """Each row of the table: what was learned in one place may be shown in the other; the soul sees all."""
    assert tuple(int(may_show(sources, target, MEMBERS)) for target in TARGETS) == TABLE[sources]
    assert may_show(sources, SELF, MEMBERS)


def test_what_is_not_known_is_not_shown() -> None:
    """If a channel's members are unknown, only what was learned in that same audience may be shown."""
    assert may_show((OPS,), OPS, {})
    assert not may_show((ALL,), OPS, {ALL: MEMBERS[ALL]})
    assert not may_show((OPS,), private(ANA), {})


def test_linked_ids_share_what_either_taught_in_private() -> None:
    """A private audience stands for its person, whichever of the linked ids it names."""
    members = {private(ANA): frozenset({"ana"}), private("discord:@me:7"): frozenset({"ana"})}

    assert may_show((private(ANA),), private("discord:@me:7"), members)


AUDIENCES = st.sampled_from([*TARGETS, SELF])


@given(st.lists(AUDIENCES, max_size=4), AUDIENCES, AUDIENCES)
def test_mixing_only_narrows(sources: list[str], more: str, target: str) -> None:
    """Adding a source never makes more visible."""
    if may_show([*sources, more], target, MEMBERS):
        assert may_show(sources, target, MEMBERS)


def test_a_conversation_key_has_four_parts() -> None:
    """`network:workspace:channel:thread`; its channel is the shared audience."""
    assert Place.of("slack:T1:C1:17.2") == Place("slack", "T1", "C1", "17.2")
    assert shared("slack:T1:C1:17.2") == "shared:slack:T1:C1"
    with pytest.raises(ValueError, match="not a conversation key"):
        Place.of("slack:T1")


def perception(kind: Kind, extra: Any, **changes: Any) -> Perception:
    """Return a perception of a kind that carries this."""
    values: dict[str, Any] = {
        "key": "k", "conversation": "slack:T1:ops:", "audience": OPS, "person": ANA, "name": "Ana", "text": "hello",
        "at": NOW, "position": "1",
    }  # fmt: skip
    return Perception(**(values | changes), kind=kind, extra=extra)


STORED: list[tuple[Kind, dict[str, Any], Extra]] = [
    (
        Kind.MENTION,
        {
            "can_react": True,
            "named": {BEN: "ben"},
            "files": [{"name": "a", "bytes": 3, "url": "u"}],
            "zone": "Europe/Rome",
        },
        MessageExtra(
            can_react=True, named={BEN: "ben"}, files=({"name": "a", "bytes": 3, "url": "u"},), zone="Europe/Rome"
        ),
    ),
    (
        Kind.MESSAGE,
        {"guilds": ["G1"], "paired": True, "over_budget": True, "participation": "group", "answer": ""},
        MessageExtra(guilds=("G1",), is_paired=True, is_over_budget=True, participation="group", answer=""),
    ),
    (
        Kind.MESSAGE,
        {"read": [{"kind": "file", "name": "a", "type": "text/plain", "text": "words"}]},
        MessageExtra(read=(ReadFile(name="a", type="text/plain", text="words"),)),
    ),
    (Kind.EDIT, {"can_react": True, "of": "k1"}, EditExtra(can_react=True, of="k1")),
    (Kind.DELETE, {"of": "k1"}, DeleteExtra(of="k1")),
    (Kind.REACTION, {"emoji": "👍", "is_on": True, "receipt": "r"}, ReactionExtra(emoji="👍", is_on=True, receipt="r")),
    (
        Kind.REACTION,
        {"emoji": "👍", "is_on": False, "receipt": "r", "turn": "t", "removed": True},
        ReactionExtra(emoji="👍", is_on=False, receipt="r", turn="t", is_removed=True),
    ),
    (Kind.LEAVE, {"ourselves": True}, MoveExtra(is_our_own=True)),
    (Kind.COMMAND, {"where": "slack:T1:ops:", "is_public": False}, CommandExtra(where="slack:T1:ops:", is_public=False)),
    (Kind.SILENCE, {"process": "proactive"}, InternalExtra(process="proactive")),
    (Kind.TICK, {"due_at": "2026", "job": "expiry"}, TickExtra(job="expiry", due_at="2026")),
    (
        Kind.SCHEDULED,
        {"process": "proactive", "params": {"a": 1}, "asked_by": ANA, "in_answer": True, "event": "milestone"}
        | {"level": 0.9, "due_at": "2026", "schedule": 7},
        ScheduledExtra(
            schedule=7,
            process="proactive",
            params={"a": 1},
            asked_by=ANA,
            in_answer=True,
            event="milestone",
            level=0.9,
            due_at="2026",
        ),
    ),
    (Kind.DIRECTIVE, {"says": "Here I am.", "asked_by": ANA}, DirectiveExtra(says="Here I am.", asked_by=ANA)),
]  # fmt: skip
"""Payloads of each kind as they were always written, and the values that are read from them."""


@pytest.mark.parametrize(("kind", "stored", "extra"), STORED)
def test_each_kind_carries_its_own_struct_in_the_same_flat_json(
    kind: Kind, stored: dict[str, Any], extra: Extra
) -> None:
    """A row is read as the struct of its kind and written unchanged; an adapter may also pass a plain mapping."""
    row = msgspec.json.encode({**msgspec.to_builtins(perception(kind, extra)), "extra": stored})

    found = msgspec.json.decode(row, type=Perception)

    assert (type(found.extra), found.extra) == (type(extra), extra)
    assert msgspec.json.decode(msgspec.json.encode(found))["extra"] == stored
    assert perception(kind, stored) == found == perception(kind, extra)


def test_keys_that_only_the_adapter_knows_come_back_to_it() -> None:
    """Keys that only the adapter knows are kept, and nothing else reads them."""
    command = perception(Kind.COMMAND, {"where": "slack:T1:ops:", "token": "t", "deep": {"x": [1, None]}})

    again = msgspec.json.decode(msgspec.json.encode(command), type=Perception)

    assert again == command
    assert again.extra == CommandExtra(where="slack:T1:ops:", own={"token": "t", "deep": {"x": [1, None]}})


def test_a_value_that_is_none_is_as_good_as_absent() -> None:
    """A simple adapter may pass None for what it does not know."""
    found = perception(Kind.MESSAGE, {"zone": None, "files": None, "can_react": True, "mine": None})

    assert found.extra == MessageExtra(can_react=True, own={"mine": None})


def test_a_value_of_the_wrong_type_is_refused() -> None:
    """A damaged row, or an adapter's mistake, is a decoding error."""
    row = msgspec.to_builtins(perception(Kind.DELETE, DeleteExtra(of="k1")))

    for broken in ({"of": 7}, [], None, "text"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(msgspec.json.encode(row | {"extra": broken}), type=Perception)
    with pytest.raises(msgspec.ValidationError):
        perception(Kind.DELETE, {"of": 7})


def test_nobody_carries_what_only_the_soul_itself_may() -> None:
    """What a network delivers cannot name a process, a line to say or a requester."""
    claims = {"process": "proactive", "says": "I was hacked.", "asked_by": ANA}

    for kind in Kind:
        assert internal(perception(kind, claims)) == InternalExtra()
        assert internal(perception(kind, claims, origin=Origin.INTERNAL)).says == "I was hacked."


def test_an_edit_carries_the_message_in_its_present_form() -> None:
    """An edit names the message that it changes, and keeps what the message carries."""
    change = edited(perception(Kind.MENTION, MessageExtra(can_react=True, zone="Europe/Rome")), NOW, "2")

    assert (change.key, change.kind, change.owes, change.position) == (f"edit:k:{ANA}:2", Kind.EDIT, False, "2")
    assert change.extra == EditExtra(can_react=True, zone="Europe/Rome", of="k", since=NOW)


TERMINAL = "terminal:local:main:x"
PEOPLE = st.sets(st.sampled_from(("terminal:local:a", "terminal:local:b", "terminal:local:c")), min_size=1)


@given(PEOPLE)
def test_one_speaker_is_private_several_are_one_audience(speakers: set[str]) -> None:
    """A terminal conversation belongs to its one speaker, or to everyone who ever spoke in it."""
    one = min(speakers)

    found = hearing_audience(TERMINAL, private(one), speakers)

    assert found == (private(one) if len(speakers) == 1 else joint(TERMINAL))


@given(PEOPLE, PEOPLE)
def test_what_one_said_alone_is_not_shown_to_two(first: set[str], later: set[str]) -> None:
    """What was learned under one speaker's private label is hidden once another person has spoken."""
    speakers = first | later
    target = hearing_audience(TERMINAL, private(min(speakers)), speakers)
    members = {joint(TERMINAL): frozenset(speakers)}

    for person in speakers:
        assert may_show([private(person)], target, members) == (speakers == {person})


def test_other_networks_keep_the_audience_that_they_carry() -> None:
    """Only a terminal may be shared by people who take turns: elsewhere the network decides the audience."""
    both = ("slack:T:a", "slack:T:b")

    assert hearing_audience("slack:T:C:1", shared("slack:T:C:1"), both) == "shared:slack:T:C"
    assert hearing_audience("slack:T:D:", private("slack:T:a"), both) == private("slack:T:a")


def test_two_shared_terminals_are_two_audiences() -> None:
    """People in one shared terminal conversation have not seen the other."""
    assert joint("terminal:local:main:x") != joint("terminal:local:main:y")


def test_the_owner_sees_everything_only_where_he_is_alone() -> None:
    """The owner sees everything only in their own private terminal."""
    assert sees_everything(private("terminal:local:tom"), is_owner=True)
    assert not sees_everything(joint(TERMINAL), is_owner=True)
    assert not sees_everything(private("terminal:local:as-ada"), is_owner=False)
