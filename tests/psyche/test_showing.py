"""What the owner may see of the psyche: numbers beside words, and a picture that depends only on its data."""

from pathlib import Path

import pytest

from claudius.psyche.change import Change, Event
from claudius.psyche.personality import Kernel
from claudius.psyche.showing import explained, numbered, shown
from claudius.psyche.state import DAY_S, Axes, Stimulus, advance, advance_edge
from claudius.psyche_types import DRIVES, Arc, Edge, Numbers, Psyche
from claudius.reports.life import lanes_of, moves_of
from driven import Machine

KIND = Stimulus(axes=Axes(0.7, 0.4, 0.7, 0.6, 0.4), tone=0.7)


def rows(count: int) -> list[dict[str, object]]:
    """Return a trace of this many kindnesses, an hour apart."""
    psyche, made = Psyche(), []
    for n in range(count):
        event = Event(
            at_s=n * 3600.0, kind="message", address="dm", person="p<1>", name="Ana", stimulus=KIND, importance=0.3
        )
        change = Change(
            turn=f"t{n}", audience="a", event=event, compiled=Kernel(), outcome="think" if n % 2 else "react"
        )
        folded = change.fold(psyche)
        psyche = Psyche(numbers=folded.numbers, edges=folded.edges)
        edges = [
            {"person": one.person, "warmth": one.warmth, "trust": one.trust, "tension": one.tension}
            for one in folded.edges
        ]
        arcs = [{"arc": "a", "at_s": n * 3600.0, "intensity": 0.2 * n, "bias": 0.0}] if n else None
        mine: dict[str, object] = {"turn": f"t{n}", "person": "p<1>", "inputs": dict(folded.inputs)}
        after = {name: getattr(folded.numbers, name) for name in Numbers.__struct_fields__}
        made.append({**mine, "after": after, "edges": edges, "arcs": arcs, "traits": folded.traits})
    return made


def test_between_two_turns_the_curves_follow_the_laws() -> None:
    """A relation and a subject fade as the laws say, and have no curve before their first turn."""
    moves = moves_of(rows(2))
    curves = {curve.name: curve for lane in lanes_of(moves, {"a": "the bridge"}, 0.0) for curve in lane.curves}
    [edge] = moves[1].edges
    later = moves[1].at_s + 2 * DAY_S

    assert curves["warmth"].value(later) == advance_edge(edge, later, Kernel()).warmth < edge.warmth
    assert curves["the bridge"].value(later) == pytest.approx(0.1)
    assert curves["the bridge"].value(0.0) is None
    assert curves["valence"].value(later) == advance(moves[1].numbers, later).valence
    assert curves["valence"].value(-1.0) is None


def test_what_is_shown_stands_at_that_instant() -> None:
    """`psyche show` prints the numbers as of now, not as of their last change."""
    numbers = Numbers(at_s=0.0, valence=-0.9, energy=0.2)
    arc = Arc(arc="a", label="bridges", stems=("bridge",), at_s=0.0, intensity=0.8, sources=("private:p",))
    psyche = Psyche(numbers=numbers, edges=(Edge(person="p", at_s=0.0, warmth=0.6, name="Ana"),), arcs=(arc,))

    found = shown(psyche, (), "", 2 * DAY_S)

    assert found["energy"] == advance(numbers, 2 * DAY_S).energy
    assert found["mood"]["words"] == "even"
    assert found["drives"].keys() == set(DRIVES)
    assert found["relationships"][0]["words"] == "fond"
    assert found["arcs"][0]["intensity"] == pytest.approx(0.4)
    assert found["at"] == "1970-01-03T00:00:00Z"


def test_a_turn_without_the_psyche_has_nothing_to_explain() -> None:
    """`why` adds no line for a turn without the psyche."""
    assert (explained({"outcome": "think"}), numbered({"outcome": "think"})) == ("", "")


def test_the_commands_show_and_explain(tmp_path: Path) -> None:
    """`psyche show` and `why` read what a turn left, in words and in numbers."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada"})
    machine.scripted()
    turn = machine.ok("chat", "--once", "Hello there, how are you?", "--json").json["turn"]
    thanks = machine.ok("chat", "--once", "thank you", "--json").json

    found = machine.ok("psyche", "show", "--json").json
    why = machine.ok("why", turn)
    replay = machine.run("replay", thanks["turn"])

    assert {
        "energy", "mood", "drives", "arcs", "relationships", "at", "emotional_state", "appraisals", "kernel_hash",
    } <= found.keys()  # fmt: skip
    assert [one["person"] for one in found["relationships"]] == ["terminal:local:ada"]
    assert "It thought about a direct message of significant weight" in why.stdout
    assert "meaning 0." in why.stdout
    assert (thanks["provider"], thanks["model"], thanks["verb"]) == (None, None, "acknowledged")
    assert thanks["usage"]["output_tokens"] == 0
    assert (replay.code, "no model was asked" in replay.stderr) == (1, True)


def test_a_temper_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    """`soul check` names the fault in soul.md's head; a threshold that could leave a message unanswered stops the start."""
    machine = Machine(tmp_path)
    machine.ok("soul", "check")
    (machine.home / "soul").mkdir(parents=True, exist_ok=True)
    (machine.home / "soul" / "soul.md").write_text(
        "+++\n[psyche]\nmixture = { pirate = 1.0 }\n+++\n# Bo\n\nYou are Bo.\n"
    )

    checked = machine.run("soul", "check")
    weighed = machine.run("-c", "CLAUDIUS_PSYCHE_THRESHOLD=0.5 claudius config check", command="bash")

    assert checked.code == 1
    assert "no template 'pirate'" in checked.stdout
    assert weighed.code in {1, 78}
    assert "PSYCHE_THRESHOLD" in weighed.shown
