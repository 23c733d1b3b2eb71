"""What an erasure does to each table, to one turn, to one portrait, to the turns that run, and to rows of others.

What is searched for once somebody is erased are their ids, and pieces of their words that nobody else said.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from claudius.intent import ModelVersion
from claudius.ledger_types import PREVIEW_CHARS
from claudius.memory.database import Cursor, Database, dump, pack, stamp
from claudius.memory.documents import short_id, write_model
from claudius.memory.packing import unpacked
from claudius.memory.ranking import marks
from claudius.memory.search import NEEDLE_BYTES, Needles, plain
from claudius.memory.seen import (
    BLANK,
    ERASED,
    ERASED_SNAPSHOT,
    Derived,
    KeptTurn,
    SeenTurn,
    is_damaged,
    names_left,
    post,
    put_back,
    unpack,
)
from claudius.perception import (
    DeleteExtra,
    EditExtra,
    Kind,
    Perception,
    Place,
    amended_key,
    is_terminal,
    private,
    whole_text,
)
from claudius.recollection import EntryType, turn_of


class Probes(Struct, frozen=True, kw_only=True):
    """What must not be found anywhere once a person is erased."""

    ids: tuple[str, ...]
    """Every id of that person; matched as whole words."""
    folders: tuple[str, ...]
    """The parts of folder names derived from one of the ids."""
    excerpts: tuple[str, ...]
    """Pieces of that person's words that nobody else wrote; matched anywhere."""


class Posted(Struct, frozen=True):
    """What the soul posted, and a network still shows."""

    conversation: str
    post: str
    """The network's own id of it."""
    at: str
    """When it was posted, UTC."""
    is_shared: bool = False
    """Whether it stands in a channel in which the erased person has written: only there are they told of it."""


class Unsaid(Struct, frozen=True, kw_only=True):
    """A message whose words have changed."""

    turn: str = ""
    """The turn that heard it; empty = none: it was only shown."""
    conversation: str
    number: int = 0
    record: int = 0
    at: str
    """When it was heard, or since when it may have been shown."""
    person: str
    moment: int = 0
    """Where it is found again; 0 = nowhere."""
    before: str = ""
    now: str
    """Empty if it was deleted."""
    shows: str = ""
    """What it shows now besides its words."""
    rows: tuple[tuple[str, str], ...] = ()
    """Other rows that held the words: facts, matters."""
    is_unread: bool = False
    """Whether it was deleted, and nothing says any more what it brought besides its words."""
    said: str = ""
    """A message that stays in its conversation and gives none of its words to other texts any more."""

    def gone(self, before: str) -> frozenset[str]:
        """Return which marks of an earlier text are there no more. Pure."""
        return frozenset(marks(before) - marks(self.now) - marks(f"{self.now}\n{self.shows}"))


_IDS = '"{}" IN (SELECT value FROM json_each(:ids))'
_LABELS = '"{}" IN (SELECT value FROM json_each(:labels))'
_PLACES = '"{}" IN (SELECT value FROM json_each(:places))'
_LEARNED = 'EXISTS (SELECT 1 FROM json_each("{}") s WHERE s.value IN (SELECT value FROM json_each(:labels)))'
Rule = dict[str, str]
"""By column: a row is the person's where one of them tells so. It is deleted."""
OWN = (
    "audit blob conversation due entry erasing heard inbox moment_audience"
    " outbox psyche_arc revision soul_state step thread turn turn_record user_model"
)
"""Statements of its own treat each of these tables (`erasure.sql`)."""
NOBODYS = "audited boot checkpoint daimon job participation psyche_kernel psyche_state tool_pin tuning"
"""No row of these is anybody's."""
_OF_PLACE: Rule = {"conversation": _PLACES}
_OF_PERSON: Rule = {"person": _IDS}
_OF_PEER: Rule = {"peer_id": _IDS, "audience": _LABELS}
_OF_AUDIENCE, _TOLD = Rule(audience=_LABELS), Rule(sources=_LEARNED)
_ALIKE: Mapping[str, Rule] = {
    f"{OWN} {NOBODYS}": {},
    "numbered pairing person psyche_edge psyche_trace reaction unsaid wish": _OF_PERSON,
    "daimon_mode kept lane summary": _OF_PLACE,
    "booking conversation_person early rate thread_speaker": _OF_PERSON | _OF_PLACE,
    "appraisal archive_file audience_member fact matter": _OF_PERSON | _OF_AUDIENCE,
    "audience moment_vector": _OF_AUDIENCE,
    "moment tool_call": _OF_PERSON | _OF_AUDIENCE | _OF_PLACE,
    "belief lesson": _OF_PEER | _TOLD,
    "interaction promise": _OF_PEER | _OF_PLACE,
    "peer_tally": _OF_PEER,
    "peer": {"peer_id": _IDS},
    "assessment": {"peer_id": _IDS} | _TOLD,
    "person_link": _OF_PERSON | {"canonical": _IDS},
    "reflection": _OF_AUDIENCE | _TOLD,
    "tool_grant": _OF_PERSON | {"granted_by": _IDS} | _OF_PLACE,
    "whisper": _OF_PLACE | _TOLD,
    "code": _OF_PERSON | {"about": _IDS},
}
RULES: Mapping[str, Rule] = {table: rule for tables, rule in _ALIKE.items() for table in tables.split()}
"""What an erasure does to the rows of each table; one without a rule is a failing test."""
PUT_BACK = "what came from words that are erased was taken out"
_OF_TURN = (
    ("appraisal", "erase_turn_appraisals"),
    ("interaction", "erase_interactions"),
    ("step", "responses_expired"),
    ("soul_state", "erase_turn_state"),
    ("tool_call", "erase_turn_calls"),
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
    """Return what was posted in a turn; a terminal keeps nothing that could be named."""
    return [
        Posted(one["conversation"], one["receipt"], one["at"], _channel(one["conversation"]) in person.channels)
        for one in db.all("posts_of", turn=turn)
        if not is_terminal(one["conversation"])
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
    if not person.ids:  # while the words are there, by which the index finds them
        db.run("own_moments_let_go", conversation=turn["conversation"], turn=turn["turn"])
    said = ("erase_turn_said",) if person.ids else ("turn_said_blanked", "erase_turn_unsent")
    for table, query in (*_OF_TURN, *(("outbox", one) for one in said)):
        rows[table] += max(0, run(db, query, values))
    if rows["soul_state"]:
        db.run("history_moved")
    db.run("moments_unkeyed", conversation=turn["conversation"], turn=turn["turn"])
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


NOBODY = "erased"
"""Replaces an id."""
_WORDS = ("text", "content", "markdown", "note")
"""Fields of a record naming somebody as its person that hold their words, or words about them."""


class Blanker:
    """Removes one person's ids, folder names and excerpts from values."""

    def __init__(self, probes: Probes) -> None:
        ids = [rf"(?<![\w.@-]){re.escape(one)}(?![\w.@-])" for one in probes.ids]
        folders = [rf"(?<!\w){re.escape(one)}(?!\w)" for one in probes.folders]
        self._named = re.compile("|".join((*ids, *folders)) or r"(?!)")
        self._ids = probes.ids
        self._needles = Needles((), (), probes.excerpts)

    def blank(self, value: Any) -> Any:
        """Return a column's value without them. Pure."""
        if isinstance(value, bytes):
            return self._bytes(value)
        if not isinstance(value, str):
            return value
        if value[:1] in ("{", "["):
            try:
                return msgspec.json.encode(self._tree(msgspec.json.decode(value))).decode()
            except msgspec.DecodeError:
                pass
        return "\n".join(map(self._line, value.split("\n")))

    def _bytes(self, value: bytes) -> bytes:
        try:
            return pack(self._tree(msgspec.json.decode(unpacked(value))))
        except (ValueError, msgspec.DecodeError):
            pass
        try:
            return msgspec.json.encode(self._tree(msgspec.json.decode(value)))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return ERASED

    def _tree(self, value: Any) -> Any:
        if isinstance(value, str):
            return "\n".join(map(self._line, value.split("\n")))
        if isinstance(value, dict):
            if value.get("person") in self._ids:  # a portrait or a line: short ones hold no excerpt
                named = {"name": ""} if value.get("name") else {}
                value = value | named | {key: BLANK for key in _WORDS if value.get(key)}
            return {self._tree(key): self._tree(item) for key, item in value.items()}
        return [self._tree(item) for item in value] if isinstance(value, list) else value

    def _line(self, line: str) -> str:
        if self._needles.excerpts_in(line.encode("utf-8", "surrogatepass")):
            return BLANK
        return self._named.sub(NOBODY, line)


def blank_rows(db: Database, rows: Iterable[Mapping[str, Any]], blanker: Blanker) -> int:
    """Blank the person's traces in rows that a search found; a row whose key contains one is deleted."""
    changed = 0
    for row in rows:
        table, key, columns = row["table"], row["key"], row["columns"]
        where = " AND ".join(f'"{one}" = :key_{one}' for one in key)
        keys = {f"key_{one}": value for one, value in key.items()}
        names = ", ".join(f'"{one}"' for one in columns)
        found = db.connection.execute(f'SELECT {names} FROM "{table}" WHERE {where}', keys).fetchone()  # noqa: S608 - names of our own schema
        if found is None:
            continue
        values = {one: blanker.blank(found[one]) for one in columns}
        if table == "entry" and "content" in values:
            values["stems"] = ""  # they were derived from the words that are removed
        changes = ", ".join(f'"{one}" = :{one}' for one in values)
        change = f'UPDATE "{table}" SET {changes} WHERE {where}'  # noqa: S608 - names of our own schema
        db.connection.execute("SAVEPOINT blanked")
        try:
            changed += db.connection.execute(change, values | keys).rowcount
        except db.connection.IntegrityError:
            db.connection.execute("ROLLBACK TO blanked")
            changed += db.connection.execute(f'DELETE FROM "{table}" WHERE {where}', keys).rowcount  # noqa: S608 - names of our own schema
        db.connection.execute("RELEASE blanked")
        if table in ("entry", "turn"):
            # its turn's count of edits goes up, so that cached copies of it are no longer used
            of = db.connection.execute(f'SELECT conversation, number FROM "{table}" WHERE {where}', keys).fetchone()  # noqa: S608 - names of our own schema
            if of:
                db.run("turn_blanked", **of)
    return changed


def lines_of_others(content: bytes | None, ids: Sequence[str]) -> bytes | None:
    """Keep only what others said in a turn's record; blank the other lines.

    Returns nothing of a damaged record. Pure.
    """
    if content is None:
        return None
    if is_damaged(content):
        return pack(KeptTurn(snapshot=ERASED_SNAPSHOT))
    kept = unpack(content)
    entries = tuple(
        one
        if one.person and one.person not in ids and one.entry_type is not EntryType.DAIMON_SPEECH
        else replace(one, content=BLANK, person=one.person and NOBODY, name=one.name and "", metadata={})
        for one in kept.entries
    )
    return pack(KeptTurn(entries=entries, snapshot=names_left(kept, ids)))


SKEW = timedelta(hours=1)
"""By how much the clock of a network may be ahead of ours."""
MERGED_PAGES = 16
TURN_CHARS = 16


def unlist(db: Database, audience: str) -> int:
    """Delete a list of members, because with a member missing it would show others' words to too many people."""
    db.run("audience_emptied", audience=audience)
    db.run("audience_unlisted", audience=audience)
    return 1


def erase_subjects(db: Database, person: ErasedPerson, turns: set[str]) -> int:
    """Delete the psyche's subjects that came from a person or these turns; return how many."""
    changed = run(db, "erase_arcs", person.values)
    for subject in db.values("subjects"):
        if subject[:TURN_CHARS] in turns:
            changed += db.change("erase_arc", subject=subject)
    return changed


def merge_index(db: Database) -> int:
    """Merge some pages of the moments' index; return what changed: at most 1 once there is nothing to merge."""
    before = db.connection.total_changes
    db.run("moment_index_merge", pages=-MERGED_PAGES)
    return db.connection.total_changes - before


def shown_change(perception: Perception) -> Unsaid:
    """Return an edit or a deletion as a change of what turns were shown. Pure."""
    since = perception.extra.since if isinstance(perception.extra, EditExtra | DeleteExtra) else None
    return Unsaid(
        conversation=perception.conversation,
        at=stamp(since - SKEW) if since else "",
        person=perception.person,
        now=whole_text(perception) if perception.kind is Kind.EDIT else "",
        rows=(post(amended_key(perception)),),
    )


def note_unsaid(db: Database, change: Unsaid) -> None:
    """Note a change, so that what follows from it is done whatever happens."""
    db.run("unsaid_put", person=change.person, change=msgspec.json.encode(change).decode())


def forget_shown(db: Database, one: SeenTurn) -> int:
    """Leave the names of what it saw of the snapshot of a turn that was shown words which are gone."""
    content = db.value("record_kept", record=one.record)
    if content is None or is_damaged(content):
        return 0
    kept = unpack(content)
    db.run("record_reduced", record=one.record, kept=pack(replace(kept, snapshot=names_left(kept))))
    return db.change("turn_edited", turn=one.turn)


def forget_words(db: Database, one: Unsaid) -> int:
    """Take the words out of the record and the ledger of the turn that heard them."""
    kept = lines_of_others(db.value("record_kept", record=one.record), (one.person,))
    db.run("blank_record", record=one.record, erased=ERASED, kept=kept)
    db.run("turn_edited", turn=one.turn)
    preview = " ".join(one.now.split())[:PREVIEW_CHARS]
    db.run("interaction_reworded", turn=one.turn, preview=preview)
    return db.change("promise_unsaid", turn=one.turn)


EXCERPTS, EXCERPT_CHARS, EXCERPT_BYTES = 200, 26, NEEDLE_BYTES
"""A probe is at least 24 bytes (24 letters of English, 12 of Russian, 8 of Chinese), with no blank at either end."""
CANDIDATES = 8 * EXCERPTS
PAGE = 50
"""Texts read at once."""
_PLAIN = re.compile(
    r"[^\x00-\x1f\"\\<>&`\x7f-\xa0\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
    f"{{1,{EXCERPT_CHARS}}}"
)
"""Text that every encoding of ours writes as plain UTF-8, or in JSON as escapes of whole characters."""
LETTERS = 5
"""A probe with this many letters or digits counts as somebody's words."""


def probes_of(db: Database, ids: Sequence[str]) -> Probes:
    """Return what must not be found anywhere once this person is erased. Reads page by page."""
    person = ErasedPerson(db, ids)
    found, stride = [], 1
    for place, row in enumerate(_read(db, "texts_of", person.values)):
        if place % stride == 0:
            found += _excerpts(row["text"] or "")
        if len(found) > CANDIDATES:  # thin out evenly, so that the rest covers everything that was said
            found, stride = found[::2], stride * 2
    left = _unsaid(db, list(dict.fromkeys(found)), person.values, "texts_of_others", "soul_texts")
    left = left[:: max(1, -(-len(left) // EXCERPTS))]
    return Probes(ids=tuple(ids), folders=tuple(map(short_id, ids)), excerpts=tuple(left))


def narrowed(db: Database, probes: Probes) -> Probes:
    """Remove from the probes what others have since said in the same words. Reads page by page."""
    left = _unsaid(db, list(probes.excerpts), {"ids": dump(list(probes.ids))}, "words_of_others")
    return Probes(ids=probes.ids, folders=probes.folders, excerpts=tuple(left))


def _unsaid(db: Database, excerpts: list[str], values: Mapping[str, Any], *queries: str) -> list[str]:
    """Return the excerpts that occur in none of the texts that these queries return."""
    needles = Needles((), (), excerpts)
    said: set[bytes] = set()
    for query in queries:
        cursor = _read(db, query, values)
        while rows := cursor.fetchmany(PAGE):
            said.update(needles.excerpts_in(b"\0".join(plain(row["text"]) or b"" for row in rows)))
    return [one for one in excerpts if one.encode() not in said]


def _read(db: Database, query: str, values: Mapping[str, Any]) -> Cursor:
    sql = db.queries[query]
    return db.connection.execute(sql, named_in(sql, values))


def _excerpts(text: str) -> list[str]:
    """Return pieces that can be found in every encoding of ours: the first, a middle one, the last. Pure."""
    pieces = [piece for piece in map(str.strip, _PLAIN.findall(text)) if len(piece.encode()) >= EXCERPT_BYTES]
    found = [piece for piece in pieces if sum(map(str.isalnum, piece)) >= LETTERS]
    return list(dict.fromkeys([*found[:1], *found[len(found) // 2 :][:1], *found[-1:]]))
