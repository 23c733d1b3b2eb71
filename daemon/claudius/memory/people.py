"""The topic `store.people`: who takes part and sees what, ids and links, and what persons may know of themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

from msgspec import Struct

from claudius.errors import StoreError
from claudius.intent import ModelVersion
from claudius.memory.database import LAST, Core, Database, Row, dump, in_thread, instant, parse, stamp
from claudius.memory.documents import joined, write_model
from claudius.memory.erasure import export
from claudius.memory.facts import Knowledge, knowledge_of
from claudius.memory.inbox import NEVER_CALLED
from claudius.memory.plans import number
from claudius.memory.seeing import Seeing, alone, canonical, ids_in, ids_of
from claudius.perception import TERMINAL, Perception, private
from claudius.tool import Onlookers

UNNAMED = "the owner"
"""What this machine's user is called who told no name."""
Mode = Literal["on", "off", "listen"]
"""How the soul takes part in a channel: it may speak, stays out, or listens and remembers without speaking."""


class SeenPlaces(Struct, frozen=True, kw_only=True):
    """Which shared places of its network one id of a person was last known to see."""

    person: str
    listed: tuple[str, ...]
    """Places whose member list includes this id."""
    unlisted: tuple[str, ...]
    """All places without a member list."""
    seen: frozenset[str]
    """Those of `unlisted` that it sees."""


MOST_SEEN = 1000
"""How many shared audiences of one network are read for one person."""


class PeopleStore:
    """Members of shared places, participation, pairing, ids of one person, and what a person may know of themself."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._paired: set[str] = set()
        self._modes: dict[str, Mode] | None = None
        """What decides who is heard, at hand once it was asked for: only this process changes it."""

    def access(self, person: str, place: str) -> tuple[bool, Mode | None]:
        """Return whether a person was paired by a code, and the mode that was set in a channel, None if none was.

        Asked for everything that is heard: what any process wrote before is in force.
        """
        if self._modes is None:
            with self._core.snapshot() as db:  # without a wait: nothing changes between the look and what is kept of it
                self._modes, self._paired = _participations(db), set(db.values("paired"))
        return person in self._paired, self._modes.get(place)

    async def know_members(self, audience: str, persons: Sequence[str] | None, now: datetime) -> None:
        """Record who can see a shared audience now; None if that is no longer known, so only it may see itself."""

        def write(db: Database) -> None:
            if persons is None:
                known = db.one("audience_known_at", audience=audience)
                if known is not None and known["known_at"] is None:
                    return  # it has no list already, so that only some of its members are known
            db.run("audience_emptied", audience=audience)
            if persons is None:
                db.run("audience_unlisted", audience=audience)
                return
            db.run("audience_known", audience=audience, now=stamp(now))
            db.each("audience_joined", ({"audience": audience, "person": person} for person in persons))

        await self._core.write(write)

    def onlookers(
        self, audience: str, present: Sequence[str], owners: Sequence[str], *, is_listed: bool = True
    ) -> Onlookers:
        """Return who can see a place: those `present`, and of a place with a list whoever stands on it.

        `owners`: any of their ids; `is_listed`: False = the list is not to be believed now.
        """
        is_private = audience.startswith(private(""))
        rows = [] if is_private else self._core.look("audience_members", audience=audience)
        is_whole = is_private or (is_listed and bool(rows) and rows[0]["known_at"] is not None)
        here = [*present, audience.removeprefix(private(""))] if is_private else present
        linked = self._core.look("canonicals", persons=dump([*here, *owners]))
        kept = {row["person"]: row["canonical"] for row in linked}
        people, mine = ({kept.get(one, one) for one in some} for some in (here, owners))
        if is_whole:
            people |= {row["person"] for row in rows if row["person"]}
        return Onlookers(people=frozenset(people) if is_whole else None, owners=frozenset(people & mine))

    def sight(self, person: str) -> Sequence[SeenPlaces]:
        """Return what each id of a person was last known to see."""
        found = []
        for one in ids_in(self._core.look("linked", person=person), person):
            network = f"shared:{one.partition(':')[0]}:"
            where = {"network": network, "until": f"{network}{LAST}"}
            found.append(_seen(one, self._core.look("sight", person=one, **where, most=MOST_SEEN)))
        return found

    async def know_sight(self, person: str, seen: Sequence[str]) -> None:
        """Record which places without a member list one id of a person can see now, replacing what was known."""

        def write(db: Database) -> None:
            db.run("sight_gone", person=person)
            db.each("sight_seen", ({"audience": audience, "person": person} for audience in seen))

        await self._core.write(write)

    def participations(self) -> Mapping[str, Mode]:
        """Return how the soul takes part in each channel (`network:workspace:channel`) that has a setting."""
        with self._core.snapshot() as db:
            return _participations(db)

    def participation(self, place: str) -> tuple[str, datetime] | None:
        """Return who last set the participation in a channel, and when; None if nobody did."""
        row = self._core.find("participation_of", place=place)
        return (str(row["set_by"]), instant(row["set_at"])) if row else None

    async def participate(self, place: str, mode: Mode, person: str, now: datetime) -> None:
        """Store how the soul takes part in a channel, and who decided it."""
        await self._core.write(
            lambda db: db.run("participate_here", place=place, mode=mode, person=person, now=stamp(now))
        )
        self._modes = None

    async def participate_no_more(self, place: str) -> None:
        """Delete the participation setting of a channel."""
        await self._core.write(lambda db: db.run("participate_no_more", place=place))
        self._modes = None

    async def hush(self, conversation: str, position: str, now: datetime, *, on: bool = True) -> None:
        """Answer nothing but mentions in a thread or channel from now on; not `on`: what is said after this, again."""
        where = {"conversation": conversation, "at": stamp(now)}
        if on:
            await self._core.write(lambda db: db.run("hush", never=NEVER_CALLED, **where))
        else:
            await self._core.write(lambda db: db.run("unhush", position=position, **where))

    def paired(self) -> Sequence[str]:
        """Return the persons who were paired by a code."""
        return self._core.values("paired")

    async def pair(self, person: str, name: str, now: datetime) -> None:
        """Pair a person."""
        await self._core.write(lambda db: db.run("pair", person=person, name=name, now=stamp(now)))
        self._modes = None

    async def unpair(self, person: str) -> bool:
        """Remove a person's pairing; False if they were not paired by a code."""
        was = await self._core.write(lambda db: db.change("unpair", person=person))
        self._modes = None
        return bool(was)

    async def wish(self, person: str, *, proactive: bool, now: datetime) -> None:
        """Store whether a person wants to be written to first."""
        await self._core.write(lambda db: db.run("wish", person=person, proactive=proactive, now=stamp(now)))

    def wants_proactive(self, person: str) -> bool:
        """Return whether a person agreed to be written to first, and withdrew it under none of their ids."""
        with self._core.snapshot() as db:
            said = [wish for one in ids_of(db, person) if (wish := db.value("wished", person=one)) is not None]
        return bool(said) and all(said)

    def zone(self, person: str) -> str:
        """Return the person's IANA time zone as reported by the network; empty if unknown."""
        known = self._core.find("person_recalled", person=person)
        return known["zone"] if known else ""

    def name(self, person: str) -> str:
        """Return what a person is called; by the last part of their id where nobody said, but a login is no name."""
        known, is_login = self._core.find("person_recalled", person=person), person.startswith(f"{TERMINAL}:")
        return (known["name"] if known else "") or (UNNAMED if is_login else person.rpartition(":")[2])

    async def ids_of(self, person: str) -> Sequence[str]:
        """Return every id of a person, found by any of them, the canonical one first; empty for an unknown person."""
        await self._core.flush()
        with self._core.snapshot() as db:
            ids = ids_of(db, person)
            return ids if len(ids) > 1 or ids[0] in db.values("everyone") else []

    async def link(self, person: str, other: str) -> None:
        """Make two ids one person. Raises: StoreError if either is unknown or they are one already."""
        await self._core.write(lambda db: link(db, person, other))

    async def unlink(self, person: str, now: datetime, author: Literal["owner", "person"] = "owner") -> Sequence[str]:
        """Unlink all ids of a person; return them. Raises: StoreError if there is only one.

        Each gets back the portraits of its own places and what its own messages brought; `author` says who asked.
        """
        return await self._core.write(lambda db: unlink(db, person, stamp(now), author))

    async def known_of(self, person: str, now: datetime, here: str = "") -> Knowledge:
        """Return who a person is to the soul, as far as it may show them alone; `here` is a channel that they are in.

        It reads beside the turns.
        """

        def read(db: Database) -> Knowledge:
            seeing = Seeing(db, alone(person, now))
            if here:
                seeing.stand_in(here)
            return knowledge_of(db, seeing, person, now)

        await self._core.flush()
        with self._core.beside() as db:
            return await in_thread(read, db)

    def known_in(self, perception: Perception) -> Knowledge:
        """Return who a speaker is to the soul, as far as everybody may know it where they spoke."""
        with self._core.snapshot() as db:
            return knowledge_of(db, Seeing(db, perception), perception.person, perception.at)

    def said_by(self, person: str) -> Mapping[str, Any]:
        """Return `{"messages": [...], "state": [...]}` of one person, under all their ids."""
        with self._core.snapshot() as db:
            return export(db, ids_of(db, person))


def _participations(db: Database) -> dict[str, Mode]:
    return {row["place"]: row["mode"] for row in db.all("participations")}


def _seen(person: str, found: Sequence[Row]) -> SeenPlaces:
    return SeenPlaces(
        person=person,
        listed=tuple(row["audience"] for row in found if row["is_listed"]),
        unlisted=tuple(row["audience"] for row in found if not row["is_listed"]),
        seen=frozenset(row["audience"] for row in found if row["is_seen"] and not row["is_listed"]),
    )


def link(db: Database, person: str, other: str) -> None:
    """Make `other` an id of `person` and merge their portraits. Raises: StoreError."""
    for one in (person, other):
        if db.one("person_known", person=one) is None:
            raise StoreError(f"{one} is not known: `claudius users list` shows who is")
    kept, gone = canonical(db, person), canonical(db, other)
    if kept == gone:
        raise StoreError(f"{person} and {other} are one person already")
    db.run("link_moved", canonical=kept, other=gone)
    db.run("link_new", person=gone, canonical=kept)
    _join_numbers(db, kept, gone)
    for one in (kept, gone):
        db.run("audiences_relinked", person=one)
    for query in ("facts_linked", "matters_linked"):
        db.run(query, kept=kept, gone=gone)
    db.run("numbers_kept", ids=dump([kept]))
    for audience in db.values("models_own", person=gone):
        _adopt(db, kept, gone, audience)


def _join_numbers(db: Database, kept: str, gone: str) -> None:
    """Count on for both, and call plans anew that would have one number in one audience."""
    db.run("numbers_joined", kept=kept, gone=gone)
    for row in db.all("plans_alike", ids=dump(ids_of(db, kept))):
        db.run("plan_called", id=row["id"], short=number(db, kept, row["audience"], "p"))


def linked_note(gone: str) -> str:
    """Return the note of the version in which the portrait of `gone` was merged into another."""
    return f"linked {gone}"


def _adopt(db: Database, kept: str, gone: str, audience: str) -> None:
    mine = db.one("model_newest", person=kept, audience=audience)
    theirs = db.one("model_newest", person=gone, audience=audience)
    if mine is None:
        db.run("model_adopt", canonical=kept, other=gone, audience=audience)
        db.run("archive_file_adopt", canonical=kept, other=gone, audience=audience)
        return
    if theirs is None:
        return
    at = db.value("model_instant", person=gone, audience=audience)
    db.run("model_retire", person=gone, audience=audience)
    model = ModelVersion(
        person=kept,
        audience=audience,
        version=mine["version"] + 1,
        markdown=joined(mine["markdown"], theirs["markdown"]),
        note=linked_note(gone),
        author="owner",
        suspect=bool(mine["suspect"] or theirs["suspect"]),
    )
    write_model(db, model, at or "", None)


Author = Literal["owner", "person"]
"""Who asked for it."""
OF_TURNS = (
    *("unlink_calls", "unlink_places", "unlink_places_left", "unlink_interactions", "unlink_promises"),
    *("unlink_facts", "unlink_matters", "unlink_moments", "unlink_traces"),
)
"""Each of these queries gives the rows that came with one id's turns back to that id."""


def unlink(db: Database, person: str, at: str, author: Author) -> list[str]:
    """Unlink all ids of a person; return them, the canonical one first. Raises: StoreError."""
    kept, *others = ids_of(db, person)
    if not others:
        raise StoreError(f"{person} is linked with no other id")
    ids = [kept, *others]
    db.run("link_gone", canonical=kept)
    for one in others:
        db.run("numbers_joined", kept=one, gone=kept)
        network = one.partition(":")[0] + ":"
        alone = network if sum(other.startswith(network) for other in ids) == 1 else ""
        label, until = private(one), f"{alone}{LAST}"
        db.run("unlink_turns", person=one, canonical=kept, label=label, network=alone, until=until)
        for query in OF_TURNS:
            db.run(query, person=one, canonical=kept)
    for audience in db.values("models_own", person=kept):
        _divide(db, ids, audience, at, author)
    db.run("numbers_kept", ids=dump(ids))
    _show_anew(db, ids, at)
    for one in ids:
        db.run("audiences_relinked", person=one)
    db.run("revisions_let_go")
    db.run("every_turn_anew")  # a turn that began while they were linked starts again
    return ids


def _divide(db: Database, ids: Sequence[str], audience: str, at: str, author: Author) -> None:
    """Give the portrait of one audience back to the id that it was learned from."""
    kept = ids[0]
    notes = dump([linked_note(one) for one in ids[1:]])
    merged = db.value("series_merged", person=kept, audience=audience, notes=notes)
    if merged:  # a merged text belongs to neither: each has its own from before
        db.run("series_cut", person=kept, audience=audience, version=merged)
        for one in ids:
            if one != kept and audience in db.values("models_own", person=one):
                _write_again(db, one, audience, at, author)
    owner = _owner(db, ids, audience)
    if owner != kept and audience not in db.values("models_own", person=owner):
        db.run("model_adopt", canonical=owner, other=kept, audience=audience)
        db.run("archive_file_adopt", canonical=owner, other=kept, audience=audience)
        _write_again(db, owner, audience, at, author)
    elif merged:
        _write_again(db, kept, audience, at, author)


def _owner(db: Database, ids: Sequence[str], audience: str) -> str:
    """Return the id that a portrait was learned from: by its private place, its first message, its network."""
    place = next((one for one in ids if audience == private(one)), "")
    speaker = db.value("series_speaker", person=ids[0], audience=audience)
    there = [one for one in ids if audience.startswith(f"shared:{one.partition(':')[0]}:")]
    if place:
        return place
    if speaker in ids:
        return str(speaker)
    return there[0] if len(there) == 1 else ids[0]


def _write_again(db: Database, person: str, audience: str, at: str, author: Author) -> None:
    """Write a portrait's newest text as one more version, so that its file moves to where it belongs."""
    db.run("series_in_force", person=person, audience=audience)
    newest = db.all("model_newest", person=person, audience=audience)[0]
    model = ModelVersion(
        person=person,
        audience=audience,
        version=newest["version"] + 1,
        markdown=newest["markdown"],
        note="unlinked",
        author=author,
        suspect=bool(newest["suspect"]),
    )
    write_model(db, model, at, None)


def _show_anew(db: Database, ids: Sequence[str], at: str) -> None:
    """Update past turns to name the portraits that they showed by the ids that now have them.

    Their nonces change too, so that a provider that keeps a session open, and has seen what the other id told, begins a
    new one.
    """
    owned = [(one, audience) for one in ids for audience in db.values("models_own", person=one)]
    moved = {audience: one for one, audience in owned if (ids[0], audience) not in owned}
    labels = [private(one) for one in ids]
    for row in db.all("turns_showing", ids=dump(ids), labels=dump(labels)):
        portraits = [
            one | {"person": moved.get(one["audience"], one["person"])} if one["person"] in ids else one
            for one in parse(row["shown"])
        ]
        renewed = sha256(f"{row['nonce']} {at}".encode()).hexdigest()[: len(row["nonce"])]
        db.run("turn_shows", turn=row["turn"], shown=dump(portraits), nonce=renewed)
