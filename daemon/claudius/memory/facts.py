"""Keep what people are known by and what is open in their lives, and choose what a prompt shows of it.

A model reads a fact out of what somebody says; here it is entered, ended or hidden, and found again. Nothing here
understands language: what is shown beside the constraints shares a stem or a key with what is heard. Below it stands
who somebody is to the soul: one document, and its one wording, wherever a person or an owner asks.
Source: the design of acts, sections 4, 5 and 10.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from itertools import accumulate, chain
from operator import attrgetter, itemgetter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from claudius.acts import MOST_KEYS, TEXT_CHARS, FactEnded, FactKnown, Forgotten, MatterClosed, MatterOpened
from claudius.intent import WHAT, Intent
from claudius.memory.database import Database, Decoding, Row, dump, instant, maybe_instant, parse, parse_object, stamp
from claudius.memory.ranking import questions, stemmed
from claudius.memory.seeing import Seeing, canonical
from claudius.perception import TERMINAL, Origin, Perception, Place, internal, private
from claudius.prompt import short_name, valid
from claudius.receipts import changed, dropped
from claudius.recollection import MOST_MATTERS, STATE_DEFAULTS, Fact, Matter, PastTurn, StateKey
from claudius.recurrence import zone_named

CONSTRAINT, NAME = "constraint", "name"
NEWEST_OF = (NAME, "home", "work")
"""Kinds of which the newest always stands beside the constraints."""
SHOWN_CHARS, LINE_CHARS = 600, 60
"""Room for the facts of a prompt, and again for the constraints of others; for the line of `NEWEST_OF`."""
MATTERS_SHOWN = 3
PAST_DAYS, COMING_DAYS = 14, 7
"""How long after its day, or after it was opened without one, and how long before, a matter is shown unasked."""
OPEN_DAYS, UNDATED_DAYS = 30, 60
"""How long a matter stays open after its day, or after it was opened without one."""
GRIEF = "grief"
FORGOTTEN = "forgotten at their wish"
"""What an old prompt shows in place of a fact or a matter that was forgotten."""
_WORDS = re.compile(r"\w+")


def book_fact(
    db: Database, intent: Intent, act: FactKnown | FactEnded | Forgotten | MatterOpened | MatterClosed
) -> str:
    """Book one act about facts or matters; return its receipt, empty if it has none."""
    match act:
        case FactKnown():
            return _known(db, intent, act)
        case FactEnded():
            return _ended(db, intent, act.fact, act.why) or _gone(db, "fact_row", "f", act.fact)
        case Forgotten():
            if act.fact:
                return _hidden(db, intent, ("fact_row", "fact_hidden", "f"), act.fact)
            return _hidden(db, intent, ("matter_row", "matter_hidden", "m"), act.matter)
        case MatterOpened():
            return _opened(db, intent, act)
        case MatterClosed():
            if _mine(db, intent, "matter_row", act.matter):
                db.run("matter_closed", id=act.matter, at=stamp(intent.at))
    return ""


def _hidden(db: Database, intent: Intent, how: tuple[str, str, str], number: int) -> str:
    """Take something out of every prompt and list, and return the receipt."""
    find, hide, letter = how
    row = _mine(db, intent, find, number, is_over=True)
    if row is None:
        return _gone(db, find, letter, number)
    db.run(hide, id=number, at=stamp(intent.at), turn=intent.turn)
    return changed(called_here(db, intent, row["person"], f"{letter}{row['short']}"))


def _known(db: Database, intent: Intent, act: FactKnown) -> str:
    person, text = canonical(db, act.person), valid(act.text[:TEXT_CHARS])
    keys = keys_of(act)
    ended = [_ended(db, intent, act.instead_of, "")] if act.instead_of else []
    values = {"kind": act.kind, "keys": keys, "about": valid(act.of), "until": act.until and act.until.isoformat()}
    for row in db.all("facts_of", persons=dump([person])):
        if row["ended_at"] is None and row["audience"] == intent.audience and row["about"] == act.of:
            if plain(row["text"]) == plain(text):  # said again: it is confirmed, and found by the new keys too
                db.run("fact_confirmed", id=row["id"], **values)
                return " ".join(filter(None, ended))
            if act.kind == NAME == row["kind"] and not act.of:
                ended.append(_ended(db, intent, row["id"], ""))
    db.run(
        "fact_keep",
        short=db.value("number_next", person=person, audience=intent.audience, letter="f"),
        person=person,
        audience=intent.audience,
        text=text,
        since=act.since and act.since.isoformat(),
        turn=intent.turn,
        stated_s=intent.at.timestamp(),
        **values,
    )
    return "\n".join(filter(None, ended))


def _ended(db: Database, intent: Intent, number: int, why: str) -> str:
    """End a fact that holds, and return the receipt; empty if there is none."""
    row = _mine(db, intent, "fact_row", number)
    if row is None:
        return ""
    db.run("fact_ended", id=number, at=stamp(intent.at), turn=intent.turn, why=valid(why[:TEXT_CHARS]))
    return changed(called_here(db, intent, row["person"], f"f{row['short']}"))


def _mine(db: Database, intent: Intent, query: str, number: int, *, is_over: bool = False) -> Row | None:
    """Return the row of what a person may change in this turn; None if it is over, hidden or somebody else's.

    `is_over`: what is over may be changed too.
    """
    row = db.one(query, id=number)
    if row is None or (row["over_at"] and not is_over) or row["hidden_at"]:
        return None
    is_theirs = not intent.person or canonical(db, intent.person) == row["person"]
    return row if is_theirs else None


def _gone(db: Database, query: str, letter: str, number: int) -> str:
    """Return the receipt of what was to be changed and was over already; nobody is told of another's."""
    row = db.one(query, id=number)
    return dropped((), [f"{letter}{row['short']}"] if row else ())


def called_here(db: Database, intent: Intent, person: str, short: str) -> str:
    """Return how a receipt calls something: `f7`, and whose it is where several people read: `f7, Ada`."""
    if intent.audience.startswith(private("")):
        return short
    if canonical(db, person) == intent.person and intent.name:
        return f"{short}, {intent.name}"
    known = db.one("person_recalled", person=person)
    return f"{short}, {known['name'] if known and known['name'] else short_name(person)}"


def _opened(db: Database, intent: Intent, act: MatterOpened) -> str:
    person, text = canonical(db, act.person), valid(act.text[:TEXT_CHARS])
    anywhere = open_matters(db, [person], day_of(db, person, intent.at))
    waiting = [one for one in anywhere if one.audience == intent.audience]
    if any(plain(one.text) == plain(text) for one in waiting):
        return ""
    if len(waiting) >= MOST_MATTERS:
        undated = sorted([one.id for one in waiting if one.when is None])
        if not undated:
            return dropped((), [text[:LINE_CHARS]])  # another turn opened the eighth since
        db.run("matter_closed", id=undated[0], at=stamp(intent.at))
    db.run(
        "matter_keep",
        short=db.value("number_next", person=person, audience=intent.audience, letter="m"),
        person=person,
        audience=intent.audience,
        text=text,
        due=act.when and act.when.isoformat(),
        turn=intent.turn,
        opened_at=stamp(intent.at),
    )
    return ""


def plain(text: str) -> list[str]:
    """Return what makes two texts the same: their words, else the text. Pure."""
    return _WORDS.findall(text.casefold()) or [text]


def keys_of(act: FactKnown) -> str:
    """Return the words by which a fact may be asked for, as its row and its message's moment hold them. Pure."""
    return valid(" ".join(" ".join(act.keys[:MOST_KEYS]).split()))


def fact_of(row: Row) -> Fact:
    """Return a fact as its row has it."""
    with Decoding("fact", row["id"]):
        return Fact(
            id=row["id"],
            short=f"f{row['short']}",
            person=row["person"],
            kind=row["kind"],
            text=row["text"],
            audience=row["audience"],
            turn=row["turn"],
            stated_s=row["stated_s"],
            keys=tuple(row["keys"].split()),
            about=row["about"],
            since=_day(row["since"]),
            until=_day(row["until"]),
            ended_at=maybe_instant(row["ended_at"]),
            why=row["why"],
            unchecked=bool(row["unchecked"]),
        )


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None


def facts_of(db: Database, seeing: Seeing, persons: Iterable[str]) -> tuple[Fact, ...]:
    """Return every fact of these ids that may be shown and that nobody asked to forget, ended ones too, in order."""
    rows = [row for row in db.all("facts_of", persons=dump(list(persons))) if seeing.may((row["audience"],))]
    return tuple([fact_of(row) for row in sorted(rows, key=itemgetter("id"))])


def known_here(
    db: Database,
    seeing: Seeing,
    addressee: str,
    others: Collection[str],
    heard: Sequence[Perception],
    past: Sequence[PastTurn],
    today: date,
) -> tuple[tuple[Fact, ...], tuple[Fact, ...], tuple[Matter, ...], int, int]:
    """Return the facts that a prompt shows, those that hold no more, and the matters that it shows.

    `today`: by the addressee's clock. Last: how many constraints of others have no room, and matters told here a day.
    """
    persons = dump([*({addressee, *others} - {""})])
    rows = db.all("known_here", persons=persons, addressee=addressee)
    if not rows:
        return (), (), (), 0, 0
    told = tuple([row["text"] for row in rows if row["what"] == "facts"])
    seen = frozenset([audience for one in told for audience in _read(one) if seeing.may((audience,))])
    facts, waiting = _facts_on(told, seen, today, addressee), [row for row in rows if row["what"] == "matter"]
    texts = [internal(one).what if one.origin is Origin.INTERNAL else one.text for one in heard]
    stems = frozenset(stemmed("\n".join(texts)))
    still = _still_open(waiting, today)
    matters = shown_matters([one for one in still if seeing.may((one.audience,))], stems, today)
    stems = stems.union(*[stemmed(one.text) for one in matters])
    known = shown_facts(facts, addressee, stems, is_bereaved=is_bereaved(past, heard))
    here = heard[-1].audience  # what was told elsewhere has no id here: nothing said in private ends it for a channel
    return (
        tuple([one if one.audience == here else replace(one, short="") for one in known]),
        facts.ended,
        tuple([one if one.audience == here else replace(one, short="") for one in matters]),
        sum([one.kind == CONSTRAINT for one in facts.always]) - sum([one.kind == CONSTRAINT for one in known]),
        sum([one.when is not None for one in still if one.audience == here]),
    )


@lru_cache(maxsize=64)
def _read(document: str) -> Mapping[str, Sequence[Row]]:
    """Return the rows of facts in a document, by the audience that they were told to. Pure."""
    rows = defaultdict[str, list[Row]](list)
    for row in parse(document):
        rows[row["audience"]].append(row)
    return rows


@lru_cache(maxsize=64)
def _facts_on(documents: Sequence[str], seen: Collection[str], day: date, addressee: str) -> FactsOfDay:
    """Sort the facts that may be seen, once as long as they stay as they are. Pure."""
    rows = [row for one in documents for audience, told in _read(one).items() if audience in seen for row in told]
    return sorted_out([fact_of(row) for row in sorted(rows, key=itemgetter("id"))], day, addressee)


class FactsOfDay(Struct, frozen=True):
    """What people are known by on a day, in the order in which a prompt chooses of it."""

    always: tuple[Fact, ...]
    """The constraints, then the newest of whoever is answered, of the kinds of `NEWEST_OF`."""
    rest: tuple[Fact, ...]
    """All others in force, the newest first."""
    places: Mapping[str, Sequence[int]]
    """By stem or key, where in the rest it occurs."""
    ended: tuple[Fact, ...]


def sorted_out(facts: Sequence[Fact], day: date, addressee: str) -> FactsOfDay:
    """Sort facts for the prompts of a day that answer somebody. Pure."""
    held = in_force(facts, day)
    newest = sorted(held, key=attrgetter("stated_s"), reverse=True)
    always = [one for one in newest if one.kind == CONSTRAINT]
    first = {one.kind: one for one in reversed(newest) if one.person == addressee and not one.about}
    always += [first[kind] for kind in NEWEST_OF if kind in first]
    taken = {one.id for one in always}
    rest = tuple([one for one in newest if one.id not in taken])
    places = defaultdict[str, list[int]](list)
    for place, one in enumerate(rest):
        for stem in _stems(one):
            places[stem].append(place)
    return FactsOfDay(tuple(always), rest, places, tuple(sorted({*facts} - {*held}, key=attrgetter("id"))))


def in_force(facts: Iterable[Fact], day: date) -> list[Fact]:
    """Return the facts that hold on a day; of names the newest alone. Pure."""
    held = [one for one in facts if one.holds_on(day)]
    names = {one.person: one.id for one in held if one.kind == NAME and not one.about}
    return [one for one in held if one.kind != NAME or one.about or names[one.person] == one.id]


def day_of(db: Database, person: str, now: datetime) -> date:
    """Return which day it is for somebody: by their own clock if it is known, else by that of `now`."""
    row = db.one("person_recalled", person=person)
    return (now.astimezone(zone_named(row["zone"])) if row and row["zone"] else now).date()


def open_matters(db: Database, persons: Iterable[str], today: date) -> list[Matter]:
    """Return what is open in the lives of these ids, in the order of its opening."""
    return _still_open(db.all("matters_of", persons=dump(list(persons))), today)


def _still_open(rows: Iterable[Row], today: date) -> list[Matter]:
    found = map(_matter, sorted(rows, key=itemgetter("id")))
    return [one for one in found if today <= _until_when(one)]


def _matter(row: Row) -> Matter:
    with Decoding("matter", row["id"]):
        return Matter(
            id=row["id"],
            short=f"m{row['short']}",
            person=row["person"],
            text=row["text"],
            opened_at=instant(row["opened_at"]),
            when=_day(row["due"]),
            audience=row["audience"],
        )


def _until_when(one: Matter) -> date:
    if one.when:
        return one.when + timedelta(days=OPEN_DAYS)
    return one.opened_at.date() + timedelta(days=UNDATED_DAYS)


def is_bereaved(past: Iterable[PastTurn], perceptions: Iterable[Perception]) -> bool:
    """Return whether grief was told in the turns that the prompt holds, and nothing is asked now. Pure."""
    if sum([questions(one.text) for one in perceptions]):
        return False
    taken = [one for turn in past for one in turn.entries if one.metadata.get("query") == "appraisal"]
    return True in [one.content.lstrip().casefold().startswith(GRIEF) for one in taken]


def shown_facts(
    facts: FactsOfDay, addressee: str, stems: Collection[str], *, is_bereaved: bool, room: int = SHOWN_CHARS
) -> tuple[Fact, ...]:
    """Choose the facts in force that a prompt shows. Pure.

    `addressee`: whose facts may be called by their ids; those of others stand there if they bear on what is said. Of
    their constraints so many as there is room for, first those that do.
    """
    theirs = [one for one in facts.always if one.person != addressee]
    if sum([len(one.text) for one in theirs]) > SHOWN_CHARS:
        theirs.sort(key=lambda one: not bears_on(one, stems))
    ends = accumulate([len(one.text) for one in theirs])
    shown = [one for one in facts.always if one.person == addressee and (one.kind == CONSTRAINT or not is_bereaved)]
    shown += [one for one, end in zip(theirs, ends, strict=True) if end <= SHOWN_CHARS]
    near = sorted({at for stem in stems for at in facts.places.get(stem, ())})
    mine = (at for at, one in enumerate(facts.rest) if one.person == addressee and not (one.unchecked or at in near))
    room -= sum([len(one.text[:LINE_CHARS] if one.kind in NEWEST_OF else one.text) for one in shown])
    for at in () if is_bereaved else chain(near, mine):  # few of them have room
        room -= len(facts.rest[at].text)
        if room < 0:
            break
        shown.append(facts.rest[at])
    others = [replace(one, short="") for one in shown if one.person != addressee]
    return (*[one for one in shown if one.person == addressee], *others)


def bears_on(fact: Fact, stems: Collection[str]) -> bool:
    """Return whether a fact shares a stem or a key with what is heard. Pure."""
    return not _stems(fact).isdisjoint(stems)


def _stems(fact: Fact) -> frozenset[str]:
    return frozenset(stemmed(" ".join((fact.text, fact.about, *fact.keys))))


def shown_matters(matters: Iterable[Matter], stems: Collection[str], today: date) -> tuple[Matter, ...]:
    """Choose the matters that a prompt shows: those that are due, then those to come; at most three. Pure."""
    near = [one for one in matters if _is_near(one, stems, today)]
    return tuple(sorted(near, key=lambda one: _when_due(one, today))[:MATTERS_SHOWN])


def _when_due(one: Matter, today: date) -> tuple[int, float, int]:
    """Return what matters are ordered by: what came last, then what was opened last, then what comes next."""
    if one.when is None:
        return (1, -one.opened_at.timestamp(), one.id)
    return (0, -one.when.toordinal(), -one.id) if one.when <= today else (2, one.when.toordinal(), one.id)


def _is_near(one: Matter, stems: Collection[str], today: date) -> bool:
    days = (today - (one.when or one.opened_at.date())).days
    return -COMING_DAYS <= days <= PAST_DAYS or not frozenset(stemmed(one.text)).isdisjoint(stems)


def ended_line(fact: Fact) -> str:
    """Return a fact that holds no more, with its dates and the reason: as `fact_ended_text` gives it. Pure."""
    end = fact.ended_at.date() if fact.ended_at else fact.until
    since = f"since {fact.since}, " if fact.since else ""
    why = f": {fact.why}" if fact.why else ""
    return f"{fact.text} ({since}until {end}{why})"


NOTHING = "Nothing is written down yet that could be shown here."


class Portrait(Struct, frozen=True, kw_only=True):
    """The newest version of a portrait in one audience."""

    audience: str
    markdown: str
    version: int
    suspect: bool
    updated_at: str
    file: str | None
    """Where the archive keeps it."""
    commit: str | None


class KnownFact(Struct, frozen=True, kw_only=True):
    """Something in force that somebody is known by."""

    id: str
    """As people call it: `f7`."""
    kind: str
    text: str
    since: date | None
    until: date | None
    audience: str


class KnownMatter(Struct, frozen=True, kw_only=True):
    """Something in somebody's life that is not over."""

    id: str
    """As people call it: `m2`."""
    text: str
    when: date | None
    audience: str


class KnownPlan(Struct, frozen=True, kw_only=True):
    """A reminder, a promise or a follow-up that waits for a person."""

    id: int
    short: str
    """As people call it: `p3`; empty = it has no number."""
    at: datetime
    what: str
    conversation: str


class Knowledge(Struct, frozen=True, kw_only=True):
    """Who one person is to the soul, as far as whoever asks may be shown it."""

    person: str
    """The canonical id."""
    ids: tuple[str, ...]
    """Other ids that are linked with it."""
    name: str
    """What they said they are called, else their network's name for them; empty = neither is known."""
    zone: str
    models: tuple[Portrait, ...]
    facts: tuple[KnownFact, ...]
    """Newest first."""
    plans: tuple[KnownPlan, ...]
    """Soonest first."""
    open: tuple[KnownMatter, ...]
    """What is open in their life, oldest first."""
    moments: int
    """How many of their messages are kept for recall."""
    mood: str
    """The soul's mood, if this person alone made it; empty = it is the usual one, or others had a part in it."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept that the document would show."""
        return not (self.models or self.facts or self.plans or self.open or self.moments)


def called(facts: Iterable[ToldName], otherwise: str) -> str:
    """Return the newest name that a person told of themself, else the other one. Pure."""
    newest = max(facts, key=attrgetter("stated_s"), default=None)
    return newest.name if newest else otherwise


def place_of(audience: str) -> str:
    """Return in words where something was learned; a channel by the mark that its network shows as a name. Pure."""
    if audience.startswith(private("")):
        return "in private"
    place = Place.of(f"{audience.removeprefix('shared:')}:")
    return "at the terminal" if place.network == TERMINAL else f"in <#{place.channel}>"


def greeted(known: Knowledge) -> str:
    """Return the document's first line, for the person themself. Pure."""
    name = f"You are {known.name} to me." if known.name else "I do not know your name yet."
    return f"{name} I am {known.mood}." if known.mood else name


def told(known: Knowledge, zone: tzinfo) -> Iterator[str]:
    """Yield the lines of the document below its first: portraits, facts, plans, and what is kept. Pure."""
    if known.is_empty:
        yield NOTHING
    for one in known.models:
        yield from ("", f"Written {place_of(one.audience)}, version {one.version}:", one.markdown.strip())
    if known.facts:
        yield from ("", "Told:")
        yield from [f"- {fact_told(one)}" for one in known.facts]
    if known.plans:
        yield from ("", f"Planned ({zone}):")
        for plan in known.plans:
            at = f"{plan.short} {plan.at.astimezone(zone):%Y-%m-%d %H:%M}".lstrip()
            yield f"- {at}: {plan.what}"
    if known.open:
        yield from ("", "Open:")
        yield from [f"- {one.text}{f', {one.when}' if one.when else ''} ({one.id})" for one in known.open]
    if known.moments:
        count = "1 message is" if known.moments == 1 else f"{known.moments} messages are"
        yield from ("", f"{count} kept for recall.")


def fact_told(one: KnownFact) -> str:
    """Return a fact as its person is shown it: `Allergic to walnuts (f7)`. Pure."""
    about = "called " if one.kind == NAME else ""
    since, until = f", since {one.since}" if one.since else "", f", until {one.until}" if one.until else ""
    return f"{about}{one.text}{since}{until} ({one.id})"


def knowledge_of(db: Database, seeing: Seeing, person: str, now: datetime) -> Knowledge:
    """Return who a person, by any of their ids, is to the soul, as far as it may be shown."""
    canonical = seeing.canonical(person)
    ids, today = seeing.ids(canonical), day_of(db, person, now)
    every = dump(ids)
    facts = in_force(facts_of(db, seeing, ids), today)
    names = [ToldName(one.text, one.stated_s) for one in facts if one.kind == NAME and not one.about]
    known = db.one("person_recalled", person=person) or db.one("person_recalled", person=canonical)
    mine = [audience for one in ids if seeing.may((audience := private(one),))]
    moods = [
        row for row in db.all("state_of_audiences", audiences=dump(mine)) if row["key"] == StateKey.EMOTIONAL_STATE
    ]
    mood = max(moods, key=itemgetter("id"))["value"] if moods else ""
    rows = [row for row in db.dicts("person_models", person=canonical) if row["markdown"]]
    moments = db.all("moments_counted", persons=every)
    return Knowledge(
        person=canonical,
        ids=tuple(ids[1:]),
        name=called(names, known["name"] if known else ""),
        zone=known["zone"] if known else "",
        models=tuple(
            [Portrait(**row | {"suspect": bool(row["suspect"])}) for row in rows if seeing.may((row["audience"],))]
        ),
        facts=tuple(map(_fact, reversed(facts))),
        plans=tuple([_plan(row) for row in db.all("plans_for", persons=every) if _is_shown(row, seeing)]),
        open=tuple(
            [
                KnownMatter(id=one.short, text=one.text, when=one.when, audience=one.audience)
                for one in open_matters(db, ids, today)
                if seeing.may((one.audience,))
            ]
        ),
        moments=sum([row["kept"] for row in moments if seeing.may((row["audience"],))]),
        mood="" if mood == STATE_DEFAULTS[StateKey.EMOTIONAL_STATE] else mood,
    )


def _fact(one: Fact) -> KnownFact:
    text = f"{one.about}: {one.text}" if one.about else one.text
    kind = "other" if one.about and one.kind == NAME else one.kind
    return KnownFact(id=one.short, kind=kind, text=text, since=one.since, until=one.until, audience=one.audience)


def _is_shown(row: Any, seeing: Seeing) -> bool:
    return seeing.may((row["audience"],)) and bool(what_of(row))


def what_of(row: Any) -> str:
    """Return what a plan is about, in its own words; empty if it keeps none."""
    with Decoding("due", row["id"]):
        return str(parse_object(row["params"]).get(WHAT, ""))


def _plan(row: Any) -> KnownPlan:
    with Decoding("due", row["id"]):
        at = instant(row["at"])
    short = f"p{row['short']}" if row["short"] else ""
    return KnownPlan(id=row["id"], short=short, at=at, what=what_of(row), conversation=row["conversation"])


class ToldName(Struct, frozen=True):
    """A name in force that somebody told of themself."""

    name: str
    stated_s: float
    audience: str = ""


def told_of_name(row: Any) -> Iterator[ToldName]:
    """Yield the name that a row says a person told, if it says one."""
    if row["text"] is not None:
        yield ToldName(row["text"], row["stated_s"], row["audience"])


def names_of(db: Database) -> Mapping[str, Sequence[str]]:
    """Return everybody's names by their canonical id: the one that they told, then those of their networks."""
    told, names = defaultdict[str, list[ToldName]](list), defaultdict[str, dict[str, None]](dict)
    for row in db.all("people_called"):
        told[row["called"]] += told_of_name(row)
        names[row["called"]] |= {row["name"]: None} if row["name"] else {}
    own = {person: called(told[person], "") for person in told}
    return {person: [name for name in dict.fromkeys((own[person], *names[person])) if name] for person in own}


def find(db: Database, who: str) -> str | None:
    """Return a person by an id, else whoever alone has it as a name or an account; None if nobody does, or several."""
    if linked := db.value("canonical", person=who):
        return str(linked)
    if db.values("person_by_id", person=who):
        return who
    wanted = who.casefold()
    called_so = {person: (*names, person.rpartition(":")[2]) for person, names in names_of(db).items()}
    found = [person for person, names in called_so.items() if wanted in [one.casefold() for one in names]]
    return found[0] if len(found) == 1 else None
