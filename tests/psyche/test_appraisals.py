"""Appraisals: one strict reader, one fixed table, and the laws that apply what it says."""

import pytest
from msgspec.structs import replace

from claudius.psyche.personality import Kernel
from claudius.psyche.state import STRENGTHS, apply_appraisal, appraised_edge, kinds, read_appraisal, stranger
from claudius.psyche_types import Appraisal, Numbers

ADA, BEN = "slack:T1:U1", "slack:T1:U2"
KINDS = [
    "nothing", "kindness", "thanks", "praise", "apology", "tease", "sarcasm", "criticism", "cold", "hurtful",
    "threat", "pressure", "crude", "confides", "farewell", "joy", "grief", "worry", "plea", "my_fault", "my_success",
]  # fmt: skip
READ = [
    ("nothing", "nothing", "clear", ADA),
    ("Joy.", "joy", "clear", ADA),
    ("  GRIEF ,  strong . ", "grief", "strong", ADA),
    ("**my_fault** (slight)", "my_fault", "slight", ADA),
    ("`joy`, of Ben", "joy", "clear", BEN),
    ("hurtful, clear, of Ben", "hurtful", "clear", BEN),
    ("cold, slight, of p2", "cold", "slight", BEN),
    ("joy, clear\njoy", "joy", "clear", ADA),
]
REFUSED = ["", "joy 0.9", "0.4", "happy", "joy, very", "joy, clear, of Zoe", "joy, clear, Ben", "joy\ngrief",
           "joy, clear, of Ben, now", "warmth: 3", '{"kind": "joy"}']  # fmt: skip


def test_the_table_has_every_kind_and_stays_in_range() -> None:
    """One closed table for everyone: no kind is missing, nothing leaves the range of an axis."""
    assert sorted(kinds()) == sorted(KINDS)
    assert all(-1.0 <= value <= 1.0 for row in kinds().values() for part in row.does for value in part)


@pytest.mark.parametrize(("line", "kind", "strength", "person"), READ)
def test_a_line_of_closed_words_is_read_whatever_its_case_stop_and_blanks(
    line: str, kind: str, strength: str, person: str
) -> None:
    """KIND, or with STRENGTH, or with STRENGTH and of WHOM."""
    found = read_appraisal([line], lambda name: {"ben": [BEN], "p2": [BEN]}.get(name, ()), ADA)

    assert found == Appraisal(person=person, kind=kind, strength=strength)


@pytest.mark.parametrize("line", REFUSED)
def test_anything_else_is_no_appraisal(line: str) -> None:
    """A number, an unknown word or name, a fourth part, another section's answer, two that differ: dropped whole."""
    assert read_appraisal([line], lambda name: {"ben": [BEN]}.get(name, ()), ADA) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_stronger_appraisal_never_moves_less(kind: str) -> None:
    """Strength is monotone for mood and for the view of the person."""
    moved = []
    for strength in STRENGTHS:
        one = Appraisal(person=ADA, kind=kind, strength=strength)
        numbers = apply_appraisal(Numbers(at_s=0.0), one, Kernel())
        edge = appraised_edge(replace(stranger(ADA, 0.0, Kernel()), tension=0.3), one, Kernel())
        moved.append((abs(numbers.valence - 0.10), abs(edge.warmth), abs(edge.tension - 0.3)))

    for parts in zip(*moved, strict=True):
        assert parts[0] <= parts[1] <= parts[2]
