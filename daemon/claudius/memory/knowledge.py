"""Who somebody is to the soul: one document, and its one wording, wherever a person or an owner asks. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, tzinfo

from msgspec import Struct

from claudius.memory.facts import in_force
from claudius.perception import TERMINAL, Place, private
from claudius.recollection import STATE_DEFAULTS, Fact, StateKey

NOTHING = "Nothing is written down yet that could be shown here."
NAME = "name"
"""The key of the fact that says what somebody is called."""


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
    """Something in force that a person said of themselves in plain words."""

    key: str
    value: str
    at: datetime
    turn: str
    sources: tuple[str, ...]


class KnownPlan(Struct, frozen=True, kw_only=True):
    """A reminder, a promise or a follow-up that waits for a person."""

    id: int
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
    moments: int
    """How many of their messages are kept for recall."""
    mood: str
    """The soul's mood, if this person alone made it; empty = it is the usual one, or others had a part in it."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept that the document would show."""
        return not (self.models or self.facts or self.plans or self.moments)


def called(facts: Iterable[Fact], otherwise: str) -> str:
    """Return the name in force that a person told of themself, else the other one. Pure."""
    named = [one for one in in_force(facts) if one.key == NAME]
    return max(named, key=lambda one: one.stated_s).value if named else otherwise


def own_mood(state: Iterable[tuple[str, str]]) -> str:
    """Return the mood among these keys and values unless it is the usual one. Pure."""
    mood = dict(state).get(StateKey.EMOTIONAL_STATE, "")
    return "" if mood == STATE_DEFAULTS[StateKey.EMOTIONAL_STATE] else mood


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
        yield from ("", f"*Written {place_of(one.audience)}, version {one.version}*", one.markdown.strip())
    if known.facts:
        yield from ("", "*Said in plain words*")
        yield from (f"- {one.key}: {one.value}" for one in known.facts)
    if known.plans:
        yield from ("", f"*Planned* ({zone})")
        yield from (f"- {one.at.astimezone(zone):%Y-%m-%d %H:%M}: {one.what}" for one in known.plans)
    if known.moments:
        count = "1 message is" if known.moments == 1 else f"{known.moments} messages are"
        yield from ("", f"{count} kept for recall.")
