"""Observation: what is appended, and that nothing else happens."""

from typing import Any

from msgspec.structs import asdict, replace

from claudius.cortex.asking import name_of
from claudius.cortex.beliefs import activity, build, ranked
from claudius.cortex.models import CortexEvent, Part
from claudius.cortex.observe import MOST_EVENTS, OBSERVED, Buffer, Seen
from claudius.cortex.triggers import fullest
from claudius.ledger_types import Grounds
from claudius.observed import MessageHeard, ModelAnswered, Sent
from claudius.prompt import nested_line
from reflecting import ANN, BEN, DM, NOW, OPS, assessed, belief, known, line, message

WHERE: dict[str, Any] = {"turn": "t", "conversation": "slack:T1:ops:1", "audience": OPS, "timestamp": NOW}
SEEN = MessageHeard(
    **WHERE, peer_id=ANN, direction="in", channel_type="channel", event_id="e", scope=3, preview="words"
)
SHOWN: tuple[Seen, ...] = (
    SEEN,
    Sent(**WHERE, recipient="c", chars=3, peer_id=ANN, direction="out", channel_type="channel", receipt="r"),
    ModelAnswered(**WHERE, model="m", tokens_in=1, tokens_out=1, stop_reason="end_turn"),
)


def test_fr_cx_01_three_handlers_append_what_they_see() -> None:
    """FR-CX-01: three hooks keep peer, direction, time and channel type until a cycle consumes them."""
    rung: list[bool] = []
    buffer = Buffer(lambda: rung.append(True))

    for one in SHOWN:
        assert buffer.observe(one) is None  # type: ignore[func-returns-value] - that it returns nothing is the rule

    assert {kind.point for kind in OBSERVED} == {"loop.on_message", "loop.after_send", "loop.after_llm"}
    assert len(buffer.events) == len(rung) == 3
    kept = buffer.events[0]
    assert (kept.peer_id, kept.direction, kept.timestamp, kept.channel_type) == (ANN, "in", NOW, "channel")
    assert "preview" not in asdict(kept)


def test_the_oldest_go_where_there_are_too_many() -> None:
    """At most 2,000 events wait, and dropped events are counted."""
    buffer = Buffer()
    for n in range(MOST_EVENTS + 10):
        buffer.observe(replace(SEEN, turn=str(n)))

    assert len(buffer.events) == MOST_EVENTS
    assert buffer.events[0].turn == "10"
    assert buffer.dropped == 10


def test_a_pass_takes_the_fullest_audiences() -> None:
    """Events are split by audience: flagged audiences first, then the fullest, three at most."""
    events = [message(n, audience=f"a{n % 4}") for n in range(10)]

    assert fullest(events, 3) == ("a0", "a1", "a2")
    assert fullest(events, 3, first=("a3",)) == ("a3", "a0", "a1")


def test_peers_pointed_out_come_first_then_the_busiest() -> None:
    """A cycle shows eight peers: flagged ones first, then by number of events."""
    events = tuple(message(n, peer=f"p{n % 10}") for n in range(25))

    shown = ranked(Part(audience=OPS, events=events, flags={"p9": ("farming",)}), 8)

    assert shown[0] == "p9"
    assert len(shown) == 8
    assert shown[1:6] == ("p0", "p1", "p2", "p3", "p4")


def test_nfr_cx_02_the_document_holds_summaries_only() -> None:
    """NFR-CX-02: it has exactly these keys, and no audience, whole message or secret of ours."""
    part = Part(audience=DM, events=(message(),), flags={ANN: ("first contact",)})
    one = known(timeline=(line(1, preview="my key is sk-ant-12345678"), line(2)))
    grounds = Grounds(audience=DM, peers=(one,), beliefs=(belief(),), summary="Before.")

    found = build(part, grounds, trigger="timer", soul="# S", now=NOW, budget_tokens=2000, secrets=("sk-ant-12345678",))

    assert set(found.content) == {"trigger", "soul", "previous_summary", "beliefs", "lessons", "peers", "activity"}
    (shown,) = found.content["peers"]
    assert set(shown) == {"peer_id", "name", "info_score", "trust", "trajectory", "rationale", "flags", "timeline"}
    assert set(shown["timeline"][0]) == {"at", "dir", "scope", "preview"}
    text = nested_line(found.content)
    assert "sk-ant" not in text
    assert DM not in text
    assert OPS not in text
    assert found.sources == (DM, OPS)
    assert found.evidence == (1, 2)


def test_what_is_cut_does_not_count_as_read() -> None:
    """Over its budget the document drops timelines, previews, lessons and then peers, in this order."""
    part = Part(audience=OPS, events=tuple(message(n, peer=f"p{n % 8}") for n in range(40)))
    peers = tuple(known(f"p{n}", lines=10) for n in range(8))
    grounds = Grounds(audience=OPS, peers=peers)

    sizes = {}
    for tokens in (4000, 1500, 700, 300):
        found = build(part, grounds, trigger="timer", soul="", now=NOW, budget_tokens=tokens)
        assert len(nested_line(found.content)) <= 4 * tokens
        sizes[tokens] = (
            len(found.content["peers"]),
            len(found.content["peers"][0]["timeline"]),
            "preview" in found.content["peers"][0]["timeline"][0],
        )

    assert sizes[4000] == (8, 10, True)
    assert sizes[1500][:2] == (8, 5)
    assert sizes[700][2] is False
    assert sizes[300][0] < 8


def test_what_the_first_mind_did_is_counted() -> None:
    """Activity counts messages, calls and tokens."""
    events = [
        message(),
        CortexEvent(timestamp=NOW, audience=OPS, turn="t", tokens=15),
        CortexEvent(timestamp=NOW, audience=OPS, turn="t", tokens=1),
    ]

    assert activity(events) == {"events": 1, "llm_calls": 2, "tokens": 16}


def test_the_souls_name_is_read_off_its_first_heading() -> None:
    """The second mind is told which soul it belongs to."""
    assert name_of("# Claudius, Artifex Maximus\n\n## Persona") == "Claudius"
    assert name_of("no heading") == "this soul"


def test_an_assessment_shown_counts_as_read() -> None:
    """Whatever the model sees adds its sources to what the model writes."""
    peer = known()
    seen = replace(peer, peer=replace(peer.peer, assessments=(assessed(3, sources=("private:x", OPS)),)))

    found = build(
        Part(audience=OPS, events=(message(),)),
        Grounds(audience=OPS, peers=(seen, known(BEN))),
        trigger="timer",
        soul="",
        now=NOW,
        budget_tokens=2000,
    )

    assert found.sources == ("private:x", OPS)
    assert found.content["peers"][0]["trust"] == 3
