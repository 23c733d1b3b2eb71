"""Who somebody is to the soul: one document, and its one wording, wherever a person or an owner asks. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, tzinfo
from operator import attrgetter, itemgetter
from typing import Any

from msgspec import Struct

from claudius.intent import WHAT
from claudius.memory.database import Database
from claudius.memory.facts import NAME, facts_of, in_force, open_matters
from claudius.memory.rows import Decoding, dump, instant, parse_object
from claudius.memory.seeing import Seeing
from claudius.perception import TERMINAL, Place, private
from claudius.recollection import STATE_DEFAULTS, Fact, Matter, StateKey

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
    ids = seeing.ids(canonical)
    every = dump(ids)
    facts = in_force(facts_of(db, seeing, ids), now.date())
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
        open=tuple([_matter(one) for one in open_matters(db, ids, now) if seeing.may((one.audience,))]),
        moments=sum([row["kept"] for row in moments if seeing.may((row["audience"],))]),
        mood="" if mood == STATE_DEFAULTS[StateKey.EMOTIONAL_STATE] else mood,
    )


def _fact(one: Fact) -> KnownFact:
    text = f"{one.about}: {one.text}" if one.about else one.text
    kind = "other" if one.about and one.kind == NAME else one.kind
    return KnownFact(id=one.short, kind=kind, text=text, since=one.since, until=one.until, audience=one.audience)


def _matter(one: Matter) -> KnownMatter:
    return KnownMatter(id=one.short, text=one.text, when=one.when, audience=one.audience)


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
