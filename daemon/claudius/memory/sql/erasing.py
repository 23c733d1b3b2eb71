"""What an erasure does to each table, to one turn, to one portrait, and to the turns that run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from claudius.intent import ModelVersion
from claudius.memory.database import Database
from claudius.memory.documents import write_model
from claudius.memory.erasure import BLANK, ERASED, Posted
from claudius.memory.rows import dump, stamp
from claudius.memory.sql.blanking import lines_of_others
from claudius.memory.sql.derived import Derived, put_back
from claudius.perception import Place, private
from claudius.recollection import turn_of

_IDS = '"{}" IN (SELECT value FROM json_each(:ids))'
_LABELS = '"{}" IN (SELECT value FROM json_each(:labels))'
_PLACES = '"{}" IN (SELECT value FROM json_each(:places))'
_LEARNED = 'EXISTS (SELECT 1 FROM json_each("{}") s WHERE s.value IN (SELECT value FROM json_each(:labels)))'
Rule = dict[str, str]
"""By column: a row is the person's where one of them tells so. It is deleted."""
OWN = (
    "audit blob conversation due entry erasing heard inbox moment_audience"
    " outbox psyche_arc psyche_intention revision soul_state step thread turn turn_record user_model"
)
"""Statements of its own treat each of these tables (`erasure.sql`)."""
NOBODYS = "audited boot checkpoint daimon job participation psyche_kernel psyche_state tuning"
"""No row of these is anybody's."""
_OF_PLACE: Rule = {"conversation": _PLACES}
_OF_PERSON: Rule = {"person": _IDS}
_OF_PEER: Rule = {"peer_id": _IDS, "audience": _LABELS}
RULES: Mapping[str, Rule] = {
    **{table: {} for table in (*OWN.split(), *NOBODYS.split())},
    "archive_file": _OF_PERSON | {"audience": _LABELS},
    "assessment": {"peer_id": _IDS, "sources": _LEARNED},
    "audience": {"audience": _LABELS},
    "audience_member": _OF_PERSON | {"audience": _LABELS},
    "belief": _OF_PEER | {"sources": _LEARNED},
    "checkpoint_edge": _OF_PERSON,
    "conversation_person": _OF_PERSON | _OF_PLACE,
    "daimon_mode": _OF_PLACE,
    "fact": _OF_PERSON | {"sources": _LEARNED},
    "interaction": _OF_PEER | _OF_PLACE,
    "kept": _OF_PLACE,
    "lesson": _OF_PEER | {"sources": _LEARNED},
    "moment": _OF_PERSON | {"audience": _LABELS} | _OF_PLACE,
    "moment_vector": {"audience": _LABELS},
    "pairing": _OF_PERSON,
    "peer": {"peer_id": _IDS},
    "peer_tally": _OF_PEER,
    "person": _OF_PERSON,
    "person_link": _OF_PERSON | {"canonical": _IDS},
    "promise": _OF_PEER | _OF_PLACE,
    "psyche_edge": _OF_PERSON,
    "psyche_trace": _OF_PERSON,
    "reaction": _OF_PERSON,
    "reflection": {"audience": _LABELS, "sources": _LEARNED},
    "summary": _OF_PLACE,
    "thread_speaker": _OF_PERSON | _OF_PLACE,
    "unsaid": _OF_PERSON,
    "whisper": _OF_PLACE | {"sources": _LEARNED},
    "wish": _OF_PERSON,
    "booking": _OF_PERSON | _OF_PLACE,
    "code": _OF_PERSON | {"about": _IDS},
    "early": _OF_PERSON | _OF_PLACE,
    "lane": _OF_PLACE,
    "rate": _OF_PERSON | _OF_PLACE,
}
"""What an erasure does to the rows of each table; one without a rule is a failing test."""
PUT_BACK = "what came from words that are erased was taken out"
_OF_TURN = (
    ("interaction", "erase_interactions"),
    ("step", "responses_expired"),
    ("soul_state", "erase_turn_state"),
)


def rows_of(table: str) -> str:
    """Return the condition under which a row of a table is the person's and goes as a row; empty if none does. Pure."""
    return " OR ".join(test.format(column) for column, test in sorted(RULES.get(table, {}).items()))


class ErasedPerson:
    """One person: their ids, and what a query needs of them."""

    def __init__(self, db: Database, ids: Sequence[str]) -> None:
        """Find the conversations that are theirs alone."""
        self.ids = ids
        labels = [private(one) for one in ids]
        places = db.values("private_places", labels=dump(labels))
        self.values = {"ids": dump(list(ids)), "labels": dump(labels), "places": dump(places)}
        self.places = places
        self.channels = frozenset(_channel(one) for one in db.values("places_spoken_in", ids=dump(list(ids))))
        self.named = re.compile("|".join(rf"(?<![\w.@-]){re.escape(one)}(?![\w.@-])" for one in ids) or r"(?!)")


class ErasedTurn(Struct):
    """What was erased of one turn."""

    rows: Counter[str]
    posts: list[Posted]


def _channel(conversation: str) -> str:
    return Place.of(conversation).of_channel


def anew(turn: str) -> str:
    """Return the id under which a turn is thought again. Pure."""
    return turn_of(f"{turn}/anew")


def posts_of(db: Database, person: ErasedPerson, turn: str) -> list[Posted]:
    """Return what was posted in a turn."""
    return [
        Posted(one["conversation"], one["receipt"], one["at"], _channel(one["conversation"]) in person.channels)
        for one in db.all("posts_of", turn=turn)
    ]


def erase_turn(db: Database, person: ErasedPerson, turn: Mapping[str, Any]) -> ErasedTurn:
    """Erase one turn and all that depends on it; in a turn shared with others, what they said stays.

    What others were to be answered and did not hear yet is thought again.
    """
    values = {**person.values, **turn}
    others = db.values("others_in_turn", **named_in(db.queries["others_in_turn"], values))
    is_others = bool(others) and turn["conversation"] not in person.places
    is_unsaid = is_others and bool(db.one("unsaid", turn=turn["turn"]))
    posts = posts_of(db, person, turn["turn"])
    rows = Counter({"turn": 1, "turn_record": 1, "entry": max(0, run(db, "keep_others_lines", values))})
    # if one message is taken back, what a network shows stays known as said, without its words
    said = ("erase_turn_said",) if person.ids else ("turn_said_blanked", "erase_turn_unsent")
    for table, query in (*_OF_TURN, *(("outbox", one) for one in said)):
        rows[table] += max(0, run(db, query, values))
    if rows["soul_state"]:
        db.run("history_moved")
    if is_unsaid:
        db.run("think_anew", turn=turn["turn"], anew=anew(turn["turn"]))
        db.run("moments_anew", conversation=turn["conversation"], turn=turn["turn"])
    run(db, "settle_unanswered", values)
    if is_others and not is_unsaid:
        run(db, "keep_others_turn", values | {"person": others[0]})
        kept = lines_of_others(db.value("record_kept", record=turn["record"]), person.ids)
        db.run("blank_record", record=turn["record"], erased=ERASED, kept=kept)
    else:
        run(db, "erase_turn", values)
        run(db, "erase_record", values)
    return ErasedTurn(rows=rows, posts=posts)


def put_portrait_back(db: Database, derived: Derived, place: Mapping[str, str], changed: set[str]) -> int:
    """Rewrite the versions of a portrait without what is derived; if any changes, add its person to `changed`.

    Returns the new version; 0 = the newest one stays.
    """
    versions = db.all("portrait_versions", **place)
    texts = put_back(versions, derived.is_derived)
    for version, text in zip(versions, texts, strict=True):
        if text != version["markdown"]:
            db.run("version_put_back", **place, version=version["version"], markdown=text)
            changed.add(place["person"])
        if version["turn"] and derived.is_derived(version["turn"], version["note"]):
            db.run("note_blanked", revision=version["revision"], note=BLANK)
            changed.add(place["person"])
    if place["person"] in changed:
        db.run("history_moved")  # git may hold an older version, and has the note as its commit's message
    last = versions[-1]
    if texts[-1] == last["markdown"]:
        return 0
    made = ModelVersion(
        **place,
        version=last["version"] + 1,
        markdown=texts[-1],
        note=PUT_BACK,
        author="revert",
        suspect=bool(last["suspect"]),
    )
    write_model(db, made, stamp(datetime.now(UTC)), None)
    return made.version


def void(db: Database, query: str, **values: Any) -> list[tuple[str, str]]:
    """Have the turns that a query finds thought again, as other turns. Returns each conversation and turn."""
    turns = sorted({(row["conversation"], row["turn"]) for row in db.all(query, **values)})
    for _, turn in turns:
        db.run("begin_anew", turn=turn, anew=anew(turn))
        db.run("stream_dropped", turn=turn, reason="what it came from is gone")
        db.run("responses_expired", turn=turn)
    return turns


def run(db: Database, query: str, values: Mapping[str, Any]) -> int:
    """Run a statement, by its name or as it is, with the values that it names; return how many rows it changed."""
    sql = db.queries.get(query, query)
    return db.connection.execute(sql, named_in(sql, values)).rowcount


def named_in(sql: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the values that a statement names. Pure."""
    return {name: value for name, value in values.items() if re.search(rf":{name}\b", sql)}
