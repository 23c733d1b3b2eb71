"""The topic `store.facts`: facts, matters and messages that somebody wants to be forgotten, one by one.

What a model heard somebody ask for is hidden first, and destroyed an hour later: it may have misheard. What they choose
from a list is destroyed at once. With it goes the message that it came from, where nothing else in force came from
there, and what was written from it: `erasure` follows its words. Source: the design of acts, section 10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from itertools import islice

from msgspec import Struct

from claudius.acts import FactKind, FactKnown
from claudius.intent import Intent
from claudius.memory.database import Core, Database, Row, dump, instant, stamp
from claudius.memory.erasing import Unsaid, note_unsaid
from claudius.memory.facts import bears_on, book_fact, day_of, ended_line, facts_of, open_matters
from claudius.memory.moments import find_moments
from claudius.memory.ranking import stemmed
from claudius.memory.seeing import Seeing, alone, ids_of
from claudius.memory.seen import BLANK
from claudius.perception import private
from claudius.recollection import Fact, Matter, ProcessState

HIDDEN = timedelta(hours=1)
"""How long what is asked to be forgotten can be brought back."""
MOST_LISTED, MOST_READ = 20, 20_000
FACT, MATTER, MOMENT = "fact", "matter", "moment"


class OfTheirs(Struct, frozen=True):
    """One thing that is kept of somebody, and that they may choose to have forgotten."""

    kind: str
    id: int
    text: str
    at: datetime | None = None
    """Of a message: when it was said."""


class FactStore:
    """What people want to be forgotten, and what they want back."""

    def __init__(self, core: Core, unsaid: Callable[[], None]) -> None:
        """`unsaid` is called when words are gone, so that what was written from them follows."""
        self._core, self._unsaid = core, unsaid

    def of_theirs(self, person: str, words: str, now: datetime, here: str) -> Sequence[OfTheirs]:
        """Return what is kept of a person and shares a word with these: facts, matters, then messages, newest first.

        Or what holds them all, letter by letter: a word alone does not tell its language, by which it would be stemmed.
        `here` is a channel that they are in.
        """
        stems, letters = frozenset(stemmed(words)), words.casefold().split()

        def holds(text: str) -> bool:
            return all(one in text.casefold() for one in letters)

        with self._core.snapshot() as db:
            asking = alone(person, now)
            seeing = Seeing(db, asking)
            if here:
                seeing.stand_in(here)
            ids = seeing.ids(seeing.canonical(person))
            facts = [
                one
                for one in facts_of(db, seeing, ids)
                if bears_on(one, stems) or holds(" ".join((one.text, one.about, *one.keys)))
            ]
            today = day_of(db, person, now)
            matters = [one for one in open_matters(db, ids, today) if seeing.may((one.audience,))]
            found = find_moments(db, dict.fromkeys(stems, 1.0), asking)
            own = (row for row in db.all("moments_told", ids=dump(ids), most=MOST_READ) if holds(row["text"]))
            named = islice((row for row in own if seeing.may((row["audience"],))), MOST_LISTED)
            said = {row["id"]: (row["text"], row["at_s"]) for row in named}
        hits = [one for one in found.moments.values() if one.id in found.hits and one.person in ids and not one.is_own]
        said |= {one.id: (one.text, one.at_s) for one in hits}
        told = [OfTheirs(FACT, one.id, _told(one, today)) for one in reversed(facts)]
        told += [
            OfTheirs(MATTER, one.id, one.text)
            for one in matters
            if stems.intersection(stemmed(one.text)) or holds(one.text)
        ]
        for number, (text, at_s) in sorted(said.items(), reverse=True):
            told.append(OfTheirs(MOMENT, number, text, datetime.fromtimestamp(at_s, now.tzinfo)))
        return told[:MOST_LISTED]

    async def told(self, person: str, text: str, turn: str, now: datetime, *, kind: FactKind = "other") -> None:
        """Keep what a person stated of themself outside of a turn, in their own audience, as a fact."""
        intent = Intent(
            turn=turn,
            conversation="",
            audience=private(person),
            person=person,
            at=now,
            nonce="",
            answers=(),
            version=None,
            process="",
            next_process=ProcessState(process=""),
            rung="silent",
        )
        await self._core.write(lambda db: book_fact(db, intent, FactKnown(person=person, kind=kind, text=text)))

    async def delete(self, chosen: Sequence[OfTheirs]) -> int:
        """Destroy what somebody chose of their own; return how much of it was there."""
        gone = await self._core.write(lambda db: sum(destroyed(db, one.kind, one.id) for one in chosen))
        if gone:
            self._unsaid()
        return gone

    async def keep(self, person: str, audience: str, name: str) -> str | None:
        """Bring back what was told here and is to be forgotten, by its `f7` or `m2`; return its words, else None."""
        kind = FACT if name[:1].lower() == "f" else MATTER

        def bring(db: Database) -> str | None:
            ids = dump(ids_of(db, person))
            named = "fact_of_name" if kind == FACT else "matter_of_name"
            row = db.one(named, ids=ids, audience=audience, short=int(name[1:]))
            if row is None:
                return None
            db.run("fact_back" if kind == FACT else "matter_back", id=row["id"])
            return str(row["text"])

        return await self._core.write(bring)

    def due(self, person: str, audience: str, now: datetime) -> Matter | None:
        """Return the newest matter of a person whose day has come, told in this audience and not raised yet."""
        with self._core.snapshot() as db:
            ids = ids_of(db, person)
            asked = {row["id"] for row in db.all("matters_raised", person=ids[0])}
            today = day_of(db, person, now)
            found = open_matters(db, ids, today)
        came = [one for one in found if one.when and one.when <= today and one.audience == audience]
        return max((one for one in came if one.id not in asked), key=lambda one: (one.when, one.id), default=None)

    async def raised(self, matter: int, now: datetime) -> None:
        """Note that the soul had a matter as its cause to write first: it has it once."""
        await self._core.write(lambda db: db.run("matter_raised", id=matter, at=stamp(now)))

    def next_destroyed(self) -> datetime | None:
        """Return when the next thing that is hidden is to be destroyed."""
        first = self._core.value("hidden_first")
        return instant(first) + HIDDEN if first else None

    async def destroy(self, now: datetime) -> None:
        """Destroy what was hidden an hour ago. Raises: StoreError."""
        before = stamp(now - HIDDEN)

        def write(db: Database) -> int:
            return sum(destroyed(db, row["kind"], row["id"]) for row in db.all("hidden_before", before=before))

        if await self._core.write(write):
            self._unsaid()


def _told(fact: Fact, today: date) -> str:
    text = f"{fact.about}: {fact.text}" if fact.about else fact.text
    return text if fact.holds_on(today) else ended_line(fact)


def destroyed(db: Database, kind: str, number: int) -> bool:
    """Destroy one thing with its message, and note its words, so that what was written from them goes; False = gone."""
    if kind == MOMENT:
        row = db.one("moment_to_forget", id=number)
    else:
        row = db.one("fact_to_forget" if kind == FACT else "matter_to_forget", id=number)
    if row is None:
        return False
    if kind == FACT:
        db.run("erase_fact", id=number)
    elif kind == MATTER:
        db.run("erase_matter", id=number)
    rows = () if kind == MOMENT else ((kind, str(number)),)
    for turn in filter(None, dict.fromkeys((row["turn"], row["hidden_by"]))):
        _take_out(db, row, turn, row if kind == MOMENT else _message(db, row, turn), rows)
    return True


def _take_out(db: Database, row: Row, turn: str, message: Row | None, rows: tuple[tuple[str, str], ...]) -> None:
    """Take the words out of a turn that told of them, or was asked to forget them, and of what was written there."""
    stays = bool(rows) and bool(db.one("told_in_turn", turn=turn, person=row["person"]))
    if message is not None and stays:
        db.run("moment_unkeyed", id=message["id"], keys=row["keys"])
    elif message is not None:
        db.run("moment_let_go", id=message["id"])
    place = db.one("place_of_turn", turn=turn)
    if place is None:
        return
    _blank_lines(db, place, row["text"])
    gone = message if message is not None and not stays else None
    words = [row["text"], row["about"], row["keys"], gone["text"] if gone else ""]
    change = Unsaid(
        **{name: place[name] for name in ("turn", "conversation", "number", "record", "at")},
        person=message["person"] if message is not None else row["person"],
        moment=gone["id"] if gone else 0,
        before="\n".join(words),
        now="",
        rows=rows,
        said=message["text"] if message is not None else "",
    )
    note_unsaid(db, change)


def _message(db: Database, row: Row, turn: str) -> Row | None:
    """Return the message that told something: of several in its turn the one that shares the most of its words."""
    said = db.all("moments_telling", turn=turn, ids=dump(ids_of(db, row["person"])))
    stems = frozenset(stemmed(row["text"]))
    return max(said, key=lambda one: (len(stems.intersection(stemmed(one["text"]))), one["id"]), default=None)


def _blank_lines(db: Database, place: Row, text: str) -> None:
    """Blank the lines of acts that hold a text; the turn's record is blanked with what follows from it."""
    where = {"conversation": place["conversation"], "number": place["number"]}
    written = dump(text)[1:-1]
    for row in db.all("acts_of_turn", **where):
        lines = [BLANK if text in line or written in line else line for line in row["content"].split("\n")]
        db.run("acts_blanked", **where, n=row["n"], content="\n".join(lines))
