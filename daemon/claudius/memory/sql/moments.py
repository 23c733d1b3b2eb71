"""Moments and facts: kept with their turn, amended with their message, let go beyond the cap, found again.

`store.moments` finds moments by their rarest stems, facts by person, and lines by most of the words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import exp2

from msgspec.structs import asdict

from claudius.intent import Intent
from claudius.memory.facts import stated_facts
from claudius.memory.ranking import Beside, Found, rarest, rarity
from claudius.memory.semantic import Held, Near, Semantic
from claudius.memory.sql.connection import Database, Row
from claudius.memory.sql.core import Core
from claudius.memory.sql.knowing import facts_of
from claudius.memory.sql.rows import Decoding, dump, entry_of
from claudius.memory.sql.seeing import Seeing
from claudius.memory.stemming import TEXT_CHARS
from claudius.perception import Perception
from claudius.prompt import valid
from claudius.recollection import Entry, Fact, Moment

CANDIDATES = 50
"""Upper limit on moments that share a term and are ranked."""
FEW_AUDIENCES = 10
"""Up to so many audiences, a stem is looked up in each; beyond, everywhere at once."""
SEARCHED = 400
"""The number of newest turns that a search looks through."""
LET_GO_AT_ONCE = 500
"""The cap of an audience is looked at whenever so many of its moments were kept."""
KEPT_HALF_S = 180 * 86_400.0
"""Age at which a moment's importance counts half when the least important are deleted."""
_WORD = re.compile(r"\w{3,}")


class SqlMoments:
    """Moments, facts and lines of conversation."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.semantic: Semantic | None = None
        """The search by meaning; set where the extra for it is installed."""

    async def remember(
        self,
        perception: Perception,
        asked: Mapping[str, float],
        persons: Sequence[str],
        audiences: Sequence[str] | None = None,
    ) -> Found:
        near = await self.semantic.near(perception, audiences) if self.semantic else None
        with self._core.snapshot() as db:
            return find_moments(db, asked, perception, persons, near, audiences)

    async def vectors_held(
        self, perception: Perception, embedder: str, known: Mapping[str, int], audiences: Sequence[str] | None = None
    ) -> Sequence[Held]:
        with self._core.snapshot() as db:
            seeing = Seeing(db, perception, audiences=audiences)
            audiences = db.values("vector_audiences") if seeing.sees_all else seeing.audiences()
            asked = dump({audience: known.get(audience, 0) for audience in audiences})
            rows = db.all("vectors_held", known=asked, embedder=embedder)
            return [Held(row["audience"], row["known"], row["last"] or 0) for row in rows]

    async def vector_numbers(self, audience: str, embedder: str, last: int) -> Sequence[int]:
        with self._core.snapshot() as db:
            return db.values("vector_numbers", audience=audience, embedder=embedder, last=last)

    async def vectors(self, audience: str, embedder: str, after: int, most: int) -> Sequence[tuple[int, int, bytes]]:
        with self._core.snapshot() as db:
            rows = db.all("vectors", audience=audience, embedder=embedder, after=after, most=most)
            return [(row["number"], row["moment"], row["vector"]) for row in rows]

    async def void_vectors(self, embedder: str, most: int) -> int:
        return await self._core.write(lambda db: db.change("vectors_void", embedder=embedder, most=most))

    async def without_vector(self, most: int) -> Sequence[tuple[int, str, str]]:
        with self._core.snapshot() as db:
            rows = db.all("vectors_missing", most=most)
            return [(row["id"], row["text"], row["pictures"]) for row in rows]

    async def count_vectors(self) -> tuple[int, int]:
        with self._core.snapshot() as db:
            (row,) = db.all("vectors_counted")
            return row["done"] - row["changed"], row["done"] + row["missing"]

    async def keep_vectors(self, embedder: str, made: Sequence[tuple[int, str, str, bytes]]) -> None:
        names = ("id", "text", "pictures", "vector")
        rows = [dict(zip(names, one, strict=True)) | {"embedder": embedder} for one in made]
        await self._core.write(lambda db: db.each("vector_keep", rows))

    async def search(self, perception: Perception, words: str, limit: int) -> Sequence[Entry]:
        wanted = _words(words)
        found: list[tuple[int, Entry]] = []
        with self._core.snapshot() as db:
            seeing = Seeing(db, perception)
            for turn in db.all("newest_turns", most=SEARCHED):
                conversation, number = turn["conversation"], turn["number"]
                if not seeing.may((turn["audience"],)):
                    continue
                for row in db.all("lines_of_turn", conversation=conversation, number=number):
                    with Decoding("entry", conversation, number):
                        line = entry_of(row)
                    shared = len(wanted & _words(line.content))
                    if shared:
                        found.append((shared, line))
        best = sorted(found, key=lambda one: -one[0])  # ties keep their order
        return [line for _, line in best[:limit]]


def find_moments(
    db: Database,
    asked: Mapping[str, float],
    perception: Perception,
    persons: Sequence[str] = (),
    near: Near | None = None,
    audiences: Sequence[str] | None = None,
) -> Found:
    """Return what shares one of the rarest terms or is near in meaning, what is next to it, and the facts in force.

    Only what may be shown here.
    """
    seeing = Seeing(db, perception, audiences=audiences)
    facts = facts_of(db, seeing, persons)
    numbers = (
        db.all("moment_audiences_all")
        if seeing.sees_all
        else db.all("moment_audiences", audiences=dump(seeing.audiences()))
    )
    kept = {str(row["number"]): row["kept"] for row in numbers}
    total = sum(kept.values())
    places: dict[str, dict[str, int]] = {}
    stems = dump(sorted(asked))
    found = (
        db.all("moment_stems", stems=stems, audiences=dump(list(kept)))
        if len(kept) <= FEW_AUDIENCES
        else db.all("moment_stems_all", stems=stems)
    )
    for row in found:
        stem, _, number = row["term"].rpartition(":")
        if number in kept:  # what may not be shown here counts for nothing
            places.setdefault(stem, {})[row["term"]] = row["doc"]
    frequencies = {stem: sum(counts.values()) for stem, counts in places.items()}
    terms = rarest(asked, frequencies, total)
    if not terms and not near:
        return Found(facts=facts, total=total)
    weights = dump({one: asked[stem] * rarity(frequencies[stem], total) for stem in terms for one in places[stem]})
    rows = db.all("moments_found", weights=weights, most=CANDIDATES)
    hits = list(rows)
    if near:
        ids = dump(sorted({*near.nearest} - {row["id"] for row in rows}))
        rows += [row for row in db.all("moments_asked", ids=ids) if seeing.may((row["audience"],))]
        hits += db.all("moment_terms", weights=weights, ids=ids)
    moments = {row["id"]: _moment(row) for row in rows}
    beside = {row["id"]: Beside(row["before_id"] or 0, row["after_id"] or 0) for row in rows}
    missing = {other for one in beside.values() for other in (one.before, one.after) if other} - moments.keys()
    others = db.all("moments_near", ids=dump(sorted(missing))) if missing else ()
    moments |= {row["id"]: _moment(row) for row in others if seeing.may((row["audience"],))}
    if missing and len(rows) >= CANDIDATES:  # else what is near and not found holds none of the terms
        hits += db.all("moment_terms", weights=weights, ids=dump(sorted(missing)))
    return Found(
        moments=moments,
        hits={row["id"]: frozenset([one.rpartition(":")[0] for one in row["terms"].split()]) for row in hits},
        beside=beside,
        frequencies={term: frequencies[term] for term in terms},
        total=total,
        facts=facts,
        nearness=near.of(moments) if near else {},
        nearest=near.nearest if near else (),
    )


def _moment(row: Row) -> Moment:
    with Decoding("moment", row["id"]):
        return Moment(
            id=row["id"],
            turn=row["turn"],
            at_s=row["at_s"],
            person=row["person"],
            name=row["name"],
            conversation=row["conversation"],
            audience=row["audience"],
            text=row["text"],
            importance=row["importance"],
            is_own=bool(row["is_own"]),
        )


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def keep_moments(db: Database, intent: Intent, most: int) -> None:
    """Keep the moments and the facts of a turn; beyond `most` of an audience the least important are deleted."""
    for fact in intent.facts:
        keep_fact(db, fact)
    before = (db.value("moments_of_audience", audience=intent.audience) or 0) if intent.moments else 0
    rows = [
        asdict(one) | {"name": valid(one.name), "text": "" if one.is_own else valid(one.text[:TEXT_CHARS])}
        for one in intent.moments
    ]
    db.each("moment_keep", rows)
    if (before + len(intent.moments)) % LET_GO_AT_ONCE < len(intent.moments):
        let_go(db, intent.audience, int(intent.at.timestamp()), most)


def keep_fact(db: Database, fact: Fact) -> None:
    """Keep a fact; a newer value of what has one value supersedes the older."""
    row = asdict(fact) | {"value": valid(fact.value), "sources": dump(fact.sources)}
    del row["id"]
    db.run("fact_superseded", **{name: row[name] for name in ("person", "key", "value", "sources", "is_single")})
    db.run("fact_keep", **row)


def let_go(db: Database, audience: str, now_s: int, most: int) -> None:
    """Delete the least important and oldest moments of an audience beyond `most`, but none that states a fact."""
    over = (db.value("moments_of_audience", audience=audience) or 0) - most
    if over <= 0:
        return
    weighed = [
        (row["importance"] * exp2(-max(0, now_s - row["at_s"]) / KEPT_HALF_S), row["id"])
        for row in db.all("moments_weighed", audience=audience)
    ]
    for _, number in sorted(weighed)[:over]:
        db.run("moment_let_go", id=number)


def amend_moment(db: Database, conversation: str, turn: str, position: str, text: str) -> None:
    """Change the moment of an edited message, or remove that of a deleted one; the facts it stated follow.

    An empty `text` removes it.
    """
    found = db.one("moment_at", conversation=conversation, turn=turn, position=position)
    if found is None:
        return
    if text:
        db.run("moment_put", id=found["id"], text=text[:TEXT_CHARS])
    else:
        db.run("moment_let_go", id=found["id"])
    person = found["person"]
    left = db.all("moments_of_turn", conversation=conversation, turn=turn, person=person)
    db.run("facts_unsaid", person=person, turn=turn)
    for row in left:
        for fact in stated_facts(row["text"], person, (row["audience"],), turn, float(row["at_s"])):
            keep_fact(db, fact)
    db.run("facts_in_force", ids=dump([person]))
