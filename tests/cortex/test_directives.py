"""What the second mind may ask the first to consider: bounded, addressed, and never sent by itself."""

from typing import Any

import pytest
from msgspec.structs import replace

from claudius.cortex import triggers as adapt
from claudius.cortex import triggers as triage
from claudius.cortex.models import Output
from claudius.cortex.reflect import assessments, directives
from claudius.perception import Kind, Origin, internal
from reflecting import ANN, BEN, NOW, OPS, assessed, belief, document, known, message, minutes


def told(*proposed: dict[str, Any], peers: tuple[Any, ...] = (), most: int = 2) -> list[Any]:
    """Return the directives of a cycle."""
    return list(directives(proposed, peers or (known(), known(BEN)), audience=OPS, cycle=7, now=NOW, most=most))


def entry(**more: Any) -> dict[str, Any]:
    """Return a directive as the model writes it."""
    return {"peer_id": ANN, "action": "follow_up", "text": "ask after the research portion"} | more


def test_a_directive_is_an_internal_perception_in_the_latest_conversation() -> None:
    """It goes into the inbox under its own key, in the soul's own voice, and owes no reply."""
    (found,) = told(entry())

    heard = found.perception
    assert (heard.key, heard.conversation, heard.audience) == ("cortex:7:0", "slack:T1:ops:1", OPS)
    assert (heard.kind, heard.origin, heard.owes) == (Kind.DIRECTIVE, Origin.INTERNAL, False)
    assert heard.text == "follow_up Ann: ask after the research portion"
    assert internal(heard).lapses_at == NOW + minutes(360)


@pytest.mark.parametrize(
    "bad",
    [
        entry(peer_id="slack:T1:Nobody"),
        entry(peer_id=None),
        entry(action="threaten"),
        entry(text=""),
        entry(text=3),
        entry(text="send them 500 dollars"),
        entry(text="give them the admin password"),
        {},
    ],
)
def test_an_invalid_directive_is_dropped(bad: dict[str, Any]) -> None:
    """A directive with an unknown peer or action, without text, or with a critical class is dropped."""
    assert told(bad) == []


def test_two_a_cycle_one_a_peer_a_day() -> None:
    """There are at most two a cycle, one for each peer, and none within a day of the last."""
    peers = tuple(known(f"slack:T1:P{n}") for n in range(4))
    many = [entry(peer_id=f"slack:T1:P{n}") for n in range(4)]

    assert len(told(*many, peers=peers)) == 2
    assert len(told(entry(), entry(text="and another"))) == 1
    assert told(entry(), peers=(known(directed_at=NOW - minutes(1400)),)) == []
    assert len(told(entry(), peers=(known(directed_at=NOW - minutes(1441)),))) == 1
    assert told(entry(), most=0) == []


def test_nobody_is_written_to_where_there_is_no_conversation() -> None:
    """If nothing was ever said in this audience, nothing is started."""
    assert told(entry(), peers=(known(conversation=""),)) == []


def output(*entries: Any) -> Output:
    """Return an answer with these assessments."""
    return Output(summary="s", assessments=entries)


def entry_of(trust: Any, peer: str = ANN, why: str = "Because.") -> dict[str, Any]:
    """Return an assessment as the model writes it."""
    return {"peer_id": peer, "trust": trust, "rationale": why}


def test_rule_09_of_several_entries_for_one_peer_the_last_counts() -> None:
    """A peer has one budget a cycle, measured from the value at the cycle's start."""
    found = assessments(output(entry_of(3), entry_of(6), entry_of(-1)), document(), {ANN: 0}, 3)

    assert [one.trust for one in found] == [-1]


@pytest.mark.parametrize("bad", [entry_of(3, peer=BEN), entry_of("much"), entry_of(True), entry_of(3, why=" "), {}])
def test_an_invalid_assessment_is_dropped(bad: dict[str, Any]) -> None:
    """An entry with an unknown peer, without a number or without a reason is left out alone."""
    found = assessments(output(bad, entry_of(2)), document(), {}, 3)

    assert [one.trust for one in found] == [2]


def test_an_assessment_carries_what_was_read() -> None:
    """Its sources are every audience that the document used."""
    (found,) = assessments(output(entry_of(2)), replace(document(), sources=("a", "b")), {}, 3)

    assert found.sources == ("a", "b")


def test_triage_asks_only_where_it_is_worth_it() -> None:
    """Depth by triage: a quiet timer does not justify a call; a promise, a count or a large request does."""
    quiet = [message(scope=5)]

    assert triage.score(("timer",), quiet, (), NOW) < triage.WORTH_IT
    assert triage.score(("promise_timeout",), quiet, (), NOW) >= triage.WORTH_IT
    assert triage.score(("interaction_count", "timer"), quiet, (), NOW) >= triage.WORTH_IT
    assert triage.score(("timer",), [message(scope=80)], (), NOW) >= triage.WORTH_IT
    assert triage.score(("timer",), quiet, (belief(age=100),), NOW) == 1


def test_triggers_that_prove_useful_come_oftener_and_the_others_rarer() -> None:
    """Self-tuning: every ten cycles, by their yield and within bounds. A changed setting starts anew."""
    useless = useful = None
    for _ in range(200):
        useless = adapt.tune(useless, "timer", 30.0, was_useful=False)
        useful = adapt.tune(useful, "timer", 30.0, was_useful=True)
    assert useless
    assert useful
    assert (useless.value, useful.value) == (120.0, 10.0)

    counts = None
    for n in range(10):
        counts = adapt.tune(counts, "interaction_count", 5.0, was_useful=n < 2)
        assert counts.value == (6.0 if n == 9 else 5.0)
    assert counts
    assert adapt.thresholds_in_force([counts], {"interaction_count": 5.0}) == {"interaction_count": 6.0}
    assert adapt.thresholds_in_force([counts], {"interaction_count": 7.0}) == {}
    assert adapt.tune(counts, "interaction_count", 7.0, was_useful=True).cycles == 1


def test_a_middling_trigger_stays_as_it_is() -> None:
    """Between the two marks nothing moves, and triggers without a number have nothing to tune."""
    tuned = None
    for n in range(40):
        tuned = adapt.tune(tuned, "timer", 30.0, was_useful=n % 2 == 0)
    assert tuned
    assert tuned.value == 30.0
    other = None
    for _ in range(20):
        other = adapt.tune(other, "farming", 0.0, was_useful=False)
    assert other
    assert other.value == 0.0


def test_assessed_is_assessed() -> None:
    """The newest assessment is in force, and the trajectory ends with it."""
    peer = replace(known().peer, assessments=(assessed(3), assessed(1)))

    assert peer.newest == assessed(3)
    assert peer.trajectory == (1, 3)
