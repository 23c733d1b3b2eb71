"""Subjects are born of natural talk and not of chats about this and that: own sets, one of them never tuned on."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from claudius.psyche.arcs import REFERS_WITHIN_S, Said, birth
from claudius.psyche_types import Arc

HERE = Path(__file__).parent / "threads"
SETS = {name: tomllib.loads((HERE / f"{name}.toml").read_text("utf-8")) for name in ("tuning", "held_out")}
ROOM = "shared:a:b:c"


def born(talk: Sequence[str], gap_s: float = 60.0) -> Arc | None:
    """Return the first subject that is born in a talk."""
    said: list[Said] = []
    for n, text in enumerate(talk):
        now = Said(text, n * gap_s, f"person{n % 2}")
        if found := birth(f"t{n}", now, said, ROOM, "claudius"):
            return found
        said.append(now)
    return None


@pytest.mark.parametrize("name", SETS)
def test_four_of_five_natural_threads_have_a_subject(name: str) -> None:
    """Of threads of five messages, at least four in five give birth to a subject, also where nothing was tuned."""
    threads = SETS[name]["threads"]

    assert sum(born(one) is not None for one in threads) >= 0.8 * len(threads)


@pytest.mark.parametrize("name", SETS)
def test_no_chat_of_unrelated_messages_has_a_subject(name: str) -> None:
    """Five messages about five things give birth to none."""
    assert [one for one in SETS[name]["chats"] if born(one)] == []


def test_a_subject_bears_the_words_that_say_what_it_is_about() -> None:
    """The label and the stems are shared words beyond the everyday ones; the persons are those who spoke of it."""
    found = born(SETS["tuning"]["threads"][5])

    assert found is not None
    assert set(found.label.split()) <= {"bike", "chain", "cassette"}
    assert found.sources == (ROOM,)
    assert set(found.persons) == {"person0", "person1"}


def test_everyday_words_make_no_subject() -> None:
    """Messages that share only words such as good, day and work are about nothing in common."""
    talk = (
        "Good day, how was work?",
        "Work was good today.",
        "Good, a good day then!",
        "Same here, a good day at work.",
    )

    assert born(talk) is None


def test_what_refers_back_belongs_to_what_was_just_said_and_to_nothing_old() -> None:
    """`It` counts within the hour, not on another day."""
    talk = ("The kiln arrived at last.", "It weighs more than I do.", "Where would you put a kiln?")

    assert born(talk) is not None
    assert born(talk, gap_s=2 * REFERS_WITHIN_S) is None
