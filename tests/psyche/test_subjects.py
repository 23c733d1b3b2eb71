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


TONGUES = {
    "german": (
        "Der Bus war heute wieder zu spät.", "Ich habe eine neue Lampe für die Küche gekauft.", "Der Hund hat die Nacht gebellt.",
        "Weißt du, wie man Risotto macht?", "Die Wahl ist im Mai, und ich weiß nicht wen.",
    ),
    "french": (
        "Le bus était encore en retard.", "J'ai acheté une lampe pour la cuisine.", "Comment est-ce que tu fais un risotto ?",
        "Le chien a aboyé toute la nuit.", "Les élections sont en mai et je ne vote pas pour lui.",
    ),
    "spanish": (
        "El autobús llegó tarde otra vez.", "He comprado una lámpara para la cocina.", "El perro ladró toda la noche.",
        "¿Sabes cómo preparar un risotto?", "Las elecciones son en mayo.",
    ),
    "japanese": (
        "バスがまた遅れました。", "台所のランプを買いました。", "リゾットの作り方を知っていますか。", "犬が一晩中吠えていました。",
        "選挙は五月です。",
    ),
}  # fmt: skip


@pytest.mark.parametrize("tongue", TONGUES)
def test_the_function_words_of_another_language_make_no_subject(tongue: str) -> None:
    """Articles, pronouns and endings return in every talk of a language: they say nothing of what it is about."""
    assert born(TONGUES[tongue]) is None


def test_a_talk_in_another_language_has_its_subject() -> None:
    """What is talked of in German is found, without its articles."""
    found = born(
        ("Der Kessel klopft nachts.", "Er klopft um elf.", "Jetzt klopft der Kessel lauter, und die Pumpe auch.")
    )

    assert found is not None
    assert set(found.label.split()) == {"kessel", "klopft"}


def test_what_returns_by_chance_in_a_long_talk_makes_no_subject() -> None:
    """One word in common is enough among short messages, and not among long ones about different things."""
    short = ("The kiln is cold.", "Why is the kiln cold?", "It broke down on Sunday.")
    long = (
        "At the fair we saw potters from six villages, a smith, two weavers, and somebody who makes brushes from badger hair by lamplight.",
        "Grandmother's recipe needs quinces, vinegar, cloves, bay, an iron pan, and patience until the syrup turns amber and begins to spit.",
        "It took the committee eleven letters, four maps and a lawyer to agree on hedges, gates, ditches and the badger under the chapel.",
    )

    assert born(short) is not None
    assert born(long) is None


def test_a_subject_is_fed_by_those_who_said_its_words() -> None:
    """Its persons are those whose words it holds: whoever only answered "why?" is not kept with it."""
    said = [Said("The kiln is cold.", 0.0, "ana"), Said("It broke?", 60.0, "ben")]

    found = birth("t2", Said("The kiln needs a new coil.", 120.0, "ana"), said, ROOM, "claudius")

    assert found is not None
    assert found.persons == ("ana",)
