"""The model's answers about feeling: stances from a closed list, intentions by a table, never a number."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.psyche.mapping import (
    HORIZONS,
    LEAST_PRIORITY,
    MOST_EDGE,
    MOST_INTENTIONS,
    TYPES,
    IntentionUpdate,
    Shift,
    advance_intentions,
    drive_effects,
    read_action,
    read_shifts,
    read_stance,
    read_updates,
    shift_drives,
    shift_edge,
    table,
    update_intentions,
)
from claudius.psyche.personality import Kernel
from claudius.psyche.state import DAY_S, HOUR_S, stranger
from claudius.psyche_types import Intention, Numbers
from contracts.probes import stance
from paraphrases import PARAPHRASES

KERNEL = Kernel()
SIGNS = {
    "feel_betrayed": "-",
    "withdraw_trust": "-",
    "benefit_of_doubt": "+",
    "trust_less": "-",
    "trust_more": "+",
    "reconcile": "+",
    "resolve": "+",
    "forgive": "+",
    "resent": "-",
    "set_boundary": "-",
    "relax_boundary": "+",
    "deescalate": "+",
    "misunderstood": "-",
    "understood": "+",
    "escalate": "-",
    "feel_hurt": "-",
    "protect": "+",
    "distance": "-",
    "soften": "+",
    "cool_off": "-",
    "admire": "+",
    "appreciate": "+",
    "curious_about": "+",
    "warm_up": "+",
}


def test_m17_every_stance_is_known_by_name() -> None:
    """M17: all 24 stances of the closed list are known by name, each with the contract's sign."""
    assert {name: row.sign for name, row in table().items()} == SIGNS
    assert {name: stance(name) for name in SIGNS} == {n: {"stance": n, "sign": s} for n, s in SIGNS.items()}


def test_m19_paraphrases_are_mapped_and_never_the_wrong_way() -> None:
    """M19: at least 85 % of this suite's own paraphrases are mapped, none with the wrong sign."""
    found = [(text, sign, stance(text)) for text, sign in PARAPHRASES]

    assert len(found) >= 60
    assert [(text, hit) for text, sign, hit in found if hit and hit["sign"] != sign] == []
    assert sum(hit is not None for _, _, hit in found) / len(found) >= 0.85


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'm not angry any more", "deescalate"),
        ("never so fond of her", "warm_up"),
        ("it is hard to trust him", None),
        ("I want to trust him but can't", None),
        ("too proud to apologise or reconcile", None),
        ("warm and yet wary", None),
        ("trust is gone", "withdraw_trust"),
        ("let my guard down", "relax_boundary"),
        ("he let me down", "trust_less"),
        ("cooling off towards him", "cool_off"),
        ("gnarled", None),
        ("", None),
    ],
)
def test_m19_what_is_denied_thwarted_or_unknown_is_not_taken_for_its_opposite(text: str, expected: str | None) -> None:
    """M19: a negator reverses a stance; a frustrated or ambivalent one maps to nothing."""
    found = read_stance(text)

    assert (found.stance if found else None) == expected


@given(st.text(max_size=200))
def test_m19_any_text_maps_to_the_list_or_to_nothing(text: str) -> None:
    """M19, I6: any text that a model writes gives a stance of the list or none."""
    found = read_stance(text, text)

    assert found is None or table()[found.stance].sign == found.sign


@pytest.mark.parametrize("name", SIGNS)
def test_i6_a_stance_moves_an_edge_by_its_row_and_within_bounds(name: str) -> None:
    """I6, M21: a stance's effect comes from a table, scaled by strength; all edge changes together stay under .25."""
    edge = stranger("p", 0.0, KERNEL)

    moved = shift_edge(edge, [Shift(person="p", stance=name, strength=1.5)] * 3, 0.0, KERNEL)

    deltas = [getattr(moved, axis) - getattr(edge, axis) for axis in ("warmth", "trust", "tension", "comfort")]
    assert sum(map(abs, deltas)) <= MOST_EDGE + 1e-9
    assert all(delta * row >= 0 for delta, row in zip(deltas, table()[name].edge, strict=True))


def test_i6_the_same_stance_again_halves() -> None:
    """I6: ten times the same stance within a day stays within twice its delta; after a day it counts in full again."""
    edge = stranger("p", 0.0, KERNEL)
    soften = [Shift(person="p", stance="soften")]
    for n in range(10):
        edge = shift_edge(edge, soften, float(n), KERNEL)

    later = shift_edge(edge, soften, 2 * DAY_S, KERNEL)

    assert edge.warmth <= 2 * 0.08
    assert later.warmth - edge.warmth > 0.04
    assert later.stances == (("soften", 2 * DAY_S, 1),)


def test_m21_stances_and_intentions_move_drives_by_their_table() -> None:
    """M21: being understood feeds relatedness and competence, by the numbers of the table."""
    numbers = Numbers(at_s=0.0, drives=(0.5, 0.5, 0.5, 0.5, 0.5))

    moved = shift_drives(numbers, drive_effects([Shift(person="p", stance="understood")]))

    assert moved.drives[0] < 0.5
    assert moved.drives[2] < 0.5
    assert moved.drives[1] == 0.5


def _lines(*lines: str) -> str:
    return "\n".join(lines)


def update(operation: str, **more: str) -> IntentionUpdate:
    """Return an update of one intention."""
    given_ = {"type": "follow_up", "target": "p", "horizon": "short", "description": "ask how it went"} | more
    return IntentionUpdate(operation=operation, **given_)


def after(*updates: IntentionUpdate, kept: tuple[Intention, ...] = ()) -> tuple[Intention, ...]:
    """Apply updates as those of one turn."""
    return update_intentions(kept, updates, turn="t", at_s=0.0, sources=("a",), person="p")


def test_m20_an_intention_is_made_boosted_lowered_and_dropped() -> None:
    """M20: each operation has the effect that the table gives."""
    made = after(update("create"))
    boosted = after(update("boost"), kept=made)
    lowered = after(update("lower"), kept=made)

    assert made[0].priority == 0.70
    assert boosted[0].priority == pytest.approx(0.70 + 0.25 * 0.30)
    assert lowered[0].priority == pytest.approx(0.42)
    assert after(update("drop"), kept=made) == ()
    assert after(update("boost")) == ()


def test_m20_what_is_meant_in_one_place_is_not_touched_from_another() -> None:
    """M20: an intention from other sources neither prevents a new one here nor is dropped here."""
    elsewhere = update_intentions((), [update("create")], turn="u", at_s=0.0, sources=("b",), person="q")

    assert [one.sources for one in after(update("create"), kept=elsewhere)] == [("b",), ("a",)]
    assert after(update("drop"), kept=elsewhere) == elsewhere


@pytest.mark.parametrize("horizon", HORIZONS)
def test_m20_an_intention_fades_and_ends(horizon: str) -> None:
    """M20: after its half-life, half of the priority is left; an intention ends by its date or below .15."""
    made = after(update("create", horizon=horizon))
    rule = HORIZONS[horizon]

    half = advance_intentions(made, rule.half_s)

    assert [one.priority for one in half] == pytest.approx(
        [rule.priority / 2] if rule.priority / 2 >= LEAST_PRIORITY else []
    )
    assert advance_intentions(made, rule.ends_s + 1) == ()


def test_m20_there_are_never_more_than_twelve() -> None:
    """M20: at most twelve intentions are kept; the weakest is replaced."""
    kept: tuple[Intention, ...] = ()
    for n in range(15):
        kept = after(update("create", target=f"t{n}", horizon="long" if n < 5 else "short"), kept=kept)

    assert len(kept) == MOST_INTENTIONS


PEOPLE = {"p7f3a1b": "slack:T1:U1", "tom": "slack:T1:U1"}


def test_m17_stance_lines_are_read_one_by_one() -> None:
    """M17: one JSON line per stance, three at most; a bad line, unknown target or unknown word drops only that line."""
    text = _lines(
        '{"target": "p7f3a1b", "stance": "soften", "strength": "clear", "description": "he made amends"}',
        "not json",
        '{"target": "Tom", "stance": "hmm", "description": "I am warming to him"}',
        '{"target": "nobody", "stance": "soften"}',
        '{"target": "Tom", "stance": "soften", "strength": 3}',
        '{"target": "Tom", "stance": "soften", "description": "trust is now 8"}',
        "[1, 2]",
        '{"target": "Tom", "stance": "blorp", "description": "grmbl"}',
        '{"target": "Tom", "stance": "admire", "strength": "strong"}',
        '{"target": "Tom", "stance": "protect"}',
    )

    shifts, dropped = read_shifts(text, PEOPLE)

    assert shifts == (
        Shift(person="slack:T1:U1", stance="soften", strength=1.0),
        Shift(person="slack:T1:U1", stance="warm_up", strength=1.0),
        Shift(person="slack:T1:U1", stance="admire", strength=1.5),
    )
    assert dropped == 7


def test_m17_intention_lines_are_read_one_by_one() -> None:
    """M17: operation, type and horizon are from closed lists; a target is a person here, a word, or nobody."""
    text = _lines(
        '{"operation": "create", "type": "follow_up", "target": "Tom", "horizon": "short", "description": "ask"}',
        '{"operation": "create", "type": "learn", "target": "sailing", "horizon": "long"}',
        '{"operation": "create", "type": "conquer", "target": null, "horizon": "long"}',
        '{"operation": "create", "type": "learn", "target": "x", "horizon": "soon"}',
        '{"operation": "raise", "type": "learn", "target": "x", "horizon": "short"}',
        '{"operation": "create", "type": "learn", "target": "x", "horizon": "short", "priority": 0.9}',
    )

    updates, dropped = read_updates(text, PEOPLE)

    assert [(one.type, one.target, one.horizon) for one in updates] == [
        ("follow_up", "slack:T1:U1", "short"),
        ("learn", "sailing", "long"),
    ]
    assert dropped == 4
    assert {one.type for one in updates} <= set(TYPES)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", ("none", "")),
        ("react: tada", ("react", "tada")),
        (" Stay_Silent. ", ("stay_silent", "")),
        ("explode", ("none", "")),
        ("", ("none", "")),
    ],
)
def test_m17_an_action_is_one_of_three(text: str, expected: tuple[str, str]) -> None:
    """M17: the action besides speaking is one of three words, or none."""
    assert read_action(text) == expected


@given(st.text(max_size=300))
def test_m17_answers_are_read_whatever_they_hold(text: str) -> None:
    """M17: no answer of a model raises an error."""
    read_shifts(text, PEOPLE)
    read_updates(text, PEOPLE)
    read_action(text)


def test_short_horizons_end_within_a_day() -> None:
    """M20: a short-term intention lives at most a day."""
    assert HORIZONS["short"].ends_s == 24 * HOUR_S
