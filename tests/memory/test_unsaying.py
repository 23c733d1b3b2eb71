"""What was written from words that were deleted or edited away is erased after the acknowledgement, whatever happens."""

import asyncio
import json
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import closing
from typing import Any

import pytest

from claudius.home import Home
from claudius.memory import erasure
from claudius.memory.seen import Derived
from claudius.perception import DeleteExtra, EditExtra, Kind, Perception, private, shared
from claudius.provider import Event, Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import Alive, alive
from driven import reply
from living import kept

ANA = "rehearsal:t:ana"
HALL, OTHER = "rehearsal:t:hall:1", "rehearsal:t:den:1"
SETTINGS = {"CLAUDIUS_SOUL_STATE_INTERVAL": "1"}
HERON = "a heron nests in my attic"


async def changed(soul: Alive, key: str, text: str = "", n: int = 1, place: str = HALL) -> None:
    """Have a message of Ana's edited, or deleted where no text is left; return once that is acknowledged."""
    extra = EditExtra(of=key) if text else DeleteExtra(of=key)
    change = Perception(
        key=f"{key}-{n}", conversation=place, audience=shared(place) if place == HALL else private(ANA), person=ANA, name="Ana", text=text,
        at=soul.mind.clock(), kind=Kind.EDIT if text else Kind.DELETE, position=f"z{n:04d}", extra=extra,
    )  # fmt: skip
    assert await soul.server._intake.accept(change)


async def hear(
    soul: Alive, person: str, text: str, place: str = HALL, key: str = "", *, is_shared: bool = True
) -> None:
    """Have a person say something; return once it is answered."""
    await soul.network.hear(text, person=person, conversation=place, is_shared=is_shared, key=key)
    await soul.idle()


class Waiting(Scripted):
    """Answers with the birds that its prompt tells of, and holds the answer to some questions until it is let go."""

    def __init__(self, slow: str = "what is new", *first: str) -> None:
        """Hold what has these words; answer `first` at first."""
        super().__init__(first, default=lambda request: reply(f"I know of {birds(request)}."))
        self.slow, self.begun, self.go_on, self.asked = slow, asyncio.Event(), asyncio.Event(), 0

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Wait, then answer."""
        if self.slow in request.tail:
            self.asked += 1
            self.begun.set()
            await self.go_on.wait()
        async for event in super().complete(request):
            yield event


def birds(request: Request) -> str:
    """Return the birds of which a prompt tells."""
    return ", ".join(bird for bird in ("heron", "stork", "zebra") if bird in str(request)) or "none"


def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Have whoever looks for what is derived wait until the event is set."""
    go_on, find = threading.Event(), Derived.find

    def slowly(self: Derived, *words: Any) -> Any:
        """Wait, then look."""
        go_on.wait(20)
        return find(self, *words)

    monkeypatch.setattr(Derived, "find", slowly)
    return go_on


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Count how often the database is looked through; each count is of the changes that it was for."""
    found, undo = list[int](), erasure._WordsErased.undo

    async def counting(self: erasure._WordsErased) -> None:
        """Count, and do it."""
        found.append(len(self._changes))
        await undo(self)

    monkeypatch.setattr(erasure._WordsErased, "undo", counting)
    return found


async def test_a_change_is_acknowledged_before_anything_is_looked_for(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Networks give three seconds; what follows from an edit may take longer, and is done after that."""
    async with alive(home, Waiting(), settings=SETTINGS) as soul:
        await hear(soul, "ana", HERON, key="k")
        await hear(soul, "ben", "so?")
        before = kept(home, "heron")
        go_on = waiting(monkeypatch)
        await asyncio.wait_for(changed(soul, "k"), 5)
        held = kept(home, "heron")
        go_on.set()
        await soul.idle()

    assert set(before) >= {"outbox", "entry"}
    assert "outbox" in held
    assert kept(home, "heron") == []


async def test_what_was_not_undone_when_the_process_ended_is_undone_at_the_next_start(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The change is noted in the transaction that applies it, with the old words, until nothing is left of them."""
    with monkeypatch.context() as patched:
        go_on = waiting(patched)
        async with alive(home, Waiting(), settings=SETTINGS, clean=False) as soul:
            await hear(soul, "ana", HERON, key="k")
            await hear(soul, "ben", "so?")
            patched.setattr(erasure.Unsaying, "undo", undone_by_nobody)
            await changed(soul, "k")
            go_on.set()
        held = kept(home, "heron")
    async with alive(home, Waiting(), settings=SETTINGS), asyncio.timeout(20):
        while kept(home, "heron"):
            await asyncio.sleep(0.02)

    assert {"outbox", "unsaid"} <= set(held)
    assert kept(home, "heron") == []


@pytest.mark.parametrize("text", ["", "a stork nests in my attic"])
async def test_no_file_of_the_database_keeps_the_words_even_where_somebody_read_it(home: Home, text: str) -> None:
    """A reader holds the end of the write-ahead log up, and nobody waits for them; once they have read, it is emptied."""
    files = [home.database.with_name(f"{home.database.name}{end}") for end in ("", "-wal", "-shm")]
    async with alive(home, Waiting(), settings=SETTINGS) as soul:
        await hear(soul, "ana", HERON, key="k")
        with closing(sqlite3.connect(home.database)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM entry").fetchone()
            await changed(soul, "k", text)
            await hear(soul, "ben", "so?")
            before = [b"heron" in one.read_bytes() for one in files]
        async with asyncio.timeout(60):
            while any(b"heron" in one.read_bytes() for one in files):
                await asyncio.sleep(0.05)

    assert before[1]


async def undone_by_nobody(_: object) -> Any:
    """Wait for ever."""
    await asyncio.Event().wait()


async def test_an_edit_from_which_nothing_was_written_disturbs_nobody(home: Home) -> None:
    """A turn elsewhere goes on, and git stays as it is."""
    voice = Waiting("what is new", reply("Noted."))
    async with alive(home, voice, settings=SETTINGS, archives=True) as soul:
        archive = soul.server._archive
        assert archive
        await hear(soul, "ana", HERON, key="k")
        await archive.round()
        history = soul.mind.store.documents.history()
        await soul.network.hear("what is new?", person="ben", conversation=OTHER, is_shared=True)
        await asyncio.wait_for(voice.begun.wait(), 10)
        await changed(soul, "k", "a stork nests in my attic")
        while soul.server._forgetting.is_unsaying:
            await asyncio.sleep(0.01)
        voice.go_on.set()
        await soul.idle()

        assert voice.asked == 1
        assert soul.mind.store.documents.history() == history


async def test_a_flood_of_edits_is_undone_together(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Edits that come while an earlier one is undone are looked for once, and none of their words stays."""
    looked = counted(monkeypatch)
    voice = Waiting()
    async with alive(home, voice, settings=SETTINGS) as soul:
        await hear(soul, "ana", HERON, key="k")
        await hear(soul, "ben", "so?")
        go_on = waiting(monkeypatch)
        await changed(soul, "k", "edit 1 tells of a zebra", 1)
        while not looked:
            await asyncio.sleep(0.01)
        for n in range(2, 30):
            await changed(soul, "k", f"edit {n} tells of a goose", n)
        go_on.set()
        await soul.idle()

    assert (len(looked), looked[0], looked[-1]) == (2, 1, 28)
    assert kept(home, "heron", "zebra") == []


@pytest.mark.parametrize(("last", "told"), [("a stork nests in my attic", "stork"), ("", "none")])
async def test_each_change_of_what_runs_has_it_thought_again(home: Home, last: str, told: str) -> None:
    """An edit, then another or the deletion, while Ben's turn runs with the words in its prompt; what is left is told."""
    voice = Waiting()
    async with alive(home, voice, settings=SETTINGS) as soul:
        await hear(soul, "ana", HERON, key="k")
        await soul.network.hear("what is new?", person="ben", conversation=HALL, is_shared=True)
        for n, text in enumerate(("a zebra nests in my attic", last), 1):
            await asyncio.wait_for(voice.begun.wait(), 10)
            voice.begun.clear()
            await changed(soul, "k", text, n)
        await asyncio.wait_for(voice.begun.wait(), 10)
        voice.go_on.set()
        await soul.idle()

    assert kept(home, "heron", "zebra") == []
    assert "outbox" in kept(home, f"know of {told}.")


async def test_a_turn_elsewhere_that_ran_with_the_old_words_is_followed_once_it_has_ended(home: Home) -> None:
    """In another talk of Ana's her line is recalled while she edits it: it is answered, and what came of it goes then."""
    voice = Waiting("what is new", reply("Noted."))
    async with alive(home, voice, settings=SETTINGS) as soul:
        await hear(soul, "ana", HERON, "rehearsal:t:dm-ana:", key="k", is_shared=False)
        await soul.network.hear(
            "what is new of the nests in my attic?", person="ana", conversation="rehearsal:t:ana-2:"
        )
        await asyncio.wait_for(voice.begun.wait(), 10)
        await changed(soul, "k", "a stork nests in my attic", place="rehearsal:t:dm-ana:")
        while soul.server._forgetting.is_unsaying:
            await asyncio.sleep(0.01)
        waits = kept(home, "heron")
        voice.go_on.set()
        await soul.idle()
        answered = [one.text for one in soul.network.visible]
        async with asyncio.timeout(20):
            while kept(home, "heron"):
                await asyncio.sleep(0.05)

    assert "unsaid" in waits
    assert answered[-1] == "I know of heron."


PLACES: Mapping[str, tuple[str, Callable[[str], tuple[object, ...]]]] = {
    "psyche_arc": (
        "INSERT INTO psyche_arc (arc, body) VALUES (?, ?)",
        lambda turn: (turn, json.dumps({"label": "heron", "stems": ["heron"], "sources": [], "persons": []})),
    ),
    "psyche_arc.damaged": ("INSERT INTO psyche_arc (arc, body) VALUES (?, ?)", lambda turn: (turn, '{"label":"heron')),
    "conversation": (
        "UPDATE conversation SET process_memory = ? WHERE conversation = (SELECT conversation FROM turn WHERE turn = ?)",
        lambda turn: (json.dumps({"guess": "a heron"}), turn),
    ),
    "conversation.params": (
        "UPDATE conversation SET params = ? WHERE conversation = (SELECT conversation FROM turn WHERE turn = ?)",
        lambda turn: (json.dumps({"topic": "the heron"}), turn),
    ),
    "due": (
        """INSERT INTO due (kind, scheduled_for, conversation, key, params, text, audience, person, asked_by)
            SELECT 'schedule', '2099', conversation, 'p', ?, '', audience, '', '' FROM turn WHERE turn = ?""",
        lambda turn: (json.dumps({"target": "heron"}), turn),
    ),
    "step": (
        "UPDATE step SET purpose = 'summary', response = ? WHERE turn = ?",
        lambda turn: ("They talked of a heron.", turn),
    ),
}
"""What a soul writes beside its turns, and how a test writes it as if a turn had."""


@pytest.mark.parametrize("place", PLACES)
async def test_what_the_soul_keeps_beside_its_turns_goes_with_a_deleted_message(home: Home, place: str) -> None:
    """What it means to do, subjects, what a process keeps and was begun with: what holds the words is gone."""
    async with alive(home, Scripted(default=reply("I see.")), settings=SETTINGS) as soul:
        await hear(soul, "ana", HERON, key="k")
        change, values = PLACES[place]
        with closing(sqlite3.connect(home.database)) as made, made:
            (turn,) = made.execute("SELECT turn FROM turn").fetchone()
            assert made.execute(change, values(turn)).rowcount == 1
        before = kept(home, "heron")
        await changed(soul, "k")
        await soul.idle()

    assert place.partition(".")[0] in before
    assert kept(home, "heron") == []


async def test_an_edit_that_waited_for_a_turn_is_followed_by_its_lane(home: Home) -> None:
    """A second edit of a message that is being thought about waits; once its lane applies it, the words go."""
    voice = Waiting("nests")
    async with alive(home, voice, settings=SETTINGS) as soul:
        await soul.network.hear(HERON, person="ana", conversation=HALL, is_shared=True, key="k")
        await asyncio.wait_for(voice.begun.wait(), 10)
        voice.begun.clear()
        await changed(soul, "k", "a zebra nests in my attic", 1)
        await asyncio.wait_for(voice.begun.wait(), 10)
        await changed(soul, "k", "a stork nests in my attic", 2)
        voice.go_on.set()
        await soul.idle()

    assert kept(home, "heron", "zebra") == []
    assert "entry" in kept(home, "stork")


async def test_a_process_that_stops_in_the_middle_ends_what_it_reads_before_it_closes_that(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that looks for what is derived still reads when the loop is cancelled: its connection stays open."""
    begun, go_on, ended, find = asyncio.Event(), threading.Event(), list[object](), Derived.find
    loop = asyncio.get_running_loop()

    def slowly(self: Derived, *words: Any) -> Any:
        """Wait, then look."""
        loop.call_soon_threadsafe(begun.set)
        go_on.wait(20)
        ended.append(find(self, *words))
        return ended[-1]

    async with alive(home, Waiting(), settings=SETTINGS) as soul:
        await hear(soul, "ana", HERON, key="k")
        await hear(soul, "ben", "so?")
        monkeypatch.setattr(Derived, "find", slowly)
        await changed(soul, "k")
        await asyncio.wait_for(begun.wait(), 20)
        closing_down = asyncio.create_task(soul.server._roles.close("clock"))
        for _ in range(5):  # until it is cancelled
            await asyncio.sleep(0)
        go_on.set()
        await closing_down

    assert ended
    assert "unsaid" in kept(home, "heron")
