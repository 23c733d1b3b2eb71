"""Write the rows of moments and facts: kept with their turn, amended with their message, let go beyond the cap."""

from __future__ import annotations

from math import exp2

from msgspec.structs import asdict

from claudius.intent import Intent
from claudius.memory.facts import stated_facts
from claudius.memory.sqlite.connection import Database
from claudius.memory.sqlite.rows import dump
from claudius.memory.stemming import TEXT_CHARS
from claudius.prompt import valid
from claudius.recollection import Fact

LET_GO_AT_ONCE = 500
"""The cap is looked at whenever so many moments were kept."""
KEPT_HALF_S = 180 * 86_400.0
"""Age at which a moment's importance counts half when the least important are deleted."""


def keep_moments(db: Database, intent: Intent, most: int) -> None:
    """Keep the moments and the facts of a turn; beyond `most` of an audience the least important are deleted."""
    for fact in intent.facts:
        keep_fact(db, fact)
    last = 0
    for moment in intent.moments:
        texts = {"name": valid(moment.name), "text": "" if moment.is_own else valid(moment.text[:TEXT_CHARS])}
        last = db.run("moment_keep", **asdict(moment) | texts).lastrowid or 0
    if last and last % LET_GO_AT_ONCE < len(intent.moments):
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
