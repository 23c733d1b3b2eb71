"""Taking one person out of every table: rows whole where they are that person's alone, else that person's part of them.

Inside a writer's transaction. Source: the security design, section 9.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from claudius.memory.kept_turns import ERASED_SNAPSHOT, KeptTurn, pack, unpack
from claudius.memory.names import short_id
from claudius.memory.personal import ERASED, Erased, Probes
from claudius.memory.sqlite.queries import Database
from claudius.memory.sqlite.rows import dump, parse
from claudius.perception import private

EXCERPTS, EXCERPT_CHARS = 200, 24
TURN_CHARS = 16
PERSON_COLUMNS = frozenset({"person", "canonical", "asked_by", "peer", "about", "speaker", "peer_id"})
"""A row of any table that names the person so is that person's."""
TREATED = frozenset(
    {"inbox", "step", "turn", "turn_record", "entry", "blob", "outbox", "user_model", "soul_state", "revision", "due"}
)
"""Tables with a rule of their own; every other, of whatever part, follows its columns' names."""
CASCADES = ("conversation", "thread")
"""Tables whose rows of private places go at the end: before, what hangs on them is deleted for itself, and counted."""
_TURN = re.compile(rb'"turn":"([a-z2-7]{16})"')
_SUMMARY = re.compile(rb'\{"conversation":"([^"]*)","upto":')
_SHA256 = re.compile(rb"[0-9a-f]{64}")
_PLAIN = re.compile(rf"[A-Za-z0-9 .,:;!?'-]{{{EXCERPT_CHARS}}}")


class _Person:
    """One person, and what of memory is theirs."""

    def __init__(self, db: Database, ids: Sequence[str]) -> None:
        """Find it."""
        self.db, self.ids = db, ids
        self.rows: dict[str, int] = {}
        labels = [private(one) for one in ids]
        self.places = [place for (place,) in db.all("private_places", labels=dump(labels))]
        known = {"ids": dump(list(ids)), "labels": dump(labels), "places": dump(self.places)}
        self.turns = db.all("turns_of", **known)
        self.values = known | {"turns": dump([turn for turn, *_ in self.turns])}
        self.touched: dict[str, int] = {}
        """Conversations with others, and the first turn there that knew this person's words."""
        for _, place, number, _ in self.turns:
            if place not in self.places:
                self.touched[place] = min(number, self.touched.get(place, number))
        self.named = re.compile(b"|".join(rb"(?<![\w.@-])" + re.escape(one.encode()) + rb"(?![\w.@-])" for one in ids))

    def is_named_in(self, content: bytes) -> bool:
        """Tell whether some bytes name this person; most do not, and are told at once."""
        return any(one.encode() in content for one in self.ids) and self.named.search(content) is not None

    def count(self, table: str, changed: int) -> None:
        """Note that so many rows of a table were deleted or blanked."""
        if changed > 0:
            self.rows[table] = self.rows.get(table, 0) + changed

    def run(self, table: str, query: str, **more: Any) -> int:
        """Run one query with the values that it names, and count what it changed."""
        values = {name: value for name, value in (self.values | more).items() if f":{name}" in self.db.queries[query]}
        changed = self.db.change(query, **values)
        self.count(table, changed)
        return changed


def erase(db: Database, ids: Sequence[str]) -> Erased:
    """Take a person out of every table."""
    db.connection.execute("PRAGMA defer_foreign_keys = ON")  # a row and what hangs on it may go in any order
    one = _Person(db, ids)
    versions = db.one("versions_in_git", ids=one.values["ids"])
    audiences = tuple(audience for (audience,) in db.all("audiences_with", ids=one.values["ids"]))
    _erase_what_was_concluded(one)
    _erase_turns(one)
    _erase_prompts(one)
    one.run("outbox", "erase_said")
    one.run("inbox", "settle_unanswered")
    one.run("inbox", "erase_heard")
    one.run("step", "erase_calls")
    one.run("step", "erase_summarising", places=dump(list(one.touched)))
    one.run("summary", "erase_summary", places=dump(list(one.touched)))
    one.run("whisper", "erase_whispers", places=dump(list(one.touched)))
    one.run("kept", "erase_kept", places=dump(list(one.touched)))
    one.run("due", "erase_plans")
    one.run("user_model", "erase_models")
    one.run("soul_state", "erase_state")
    db.run("state_in_force")
    one.run("revision", "erase_revisions")
    for audience in audiences:  # a list without one of its members would show others' words to too many: it is no list
        db.run("audience_emptied", audience=audience)
        one.count("audience_member", 1)
        db.run("audience_unlisted", audience=audience)
    _erase_what_was_lived(one)
    _erase_by_columns(one)
    db.run("psyche_index_anew")
    one.run("conversation", "erase_places")
    one.run("thread", "erase_threads")
    _unname(one)
    db.run("moved_on")
    return Erased(
        rows=dict(sorted(one.rows.items())),
        versions=versions[0] if versions else 0,
        conversations=(*one.places, *one.touched),
        audiences=audiences,
    )


def probes_of(db: Database, ids: Sequence[str]) -> Probes:
    """Return what must be found nowhere once this person is erased."""
    one = _Person(db, ids)
    texts = [text for (text,) in db.all("texts_of", ids=one.values["ids"], labels=one.values["labels"]) if text]
    found = list(dict.fromkeys(excerpt for text in texts for excerpt in _excerpts(text)))[: 4 * EXCERPTS]
    for (text,) in db.all("texts_of_others", ids=one.values["ids"], turns=one.values["turns"]):
        found = [excerpt for excerpt in found if excerpt not in text]
    for (content,) in db.all("soul_texts"):
        written = content.decode("utf-8", "replace")
        found = [excerpt for excerpt in found if excerpt not in written]
    return Probes(ids=(*ids, *map(short_id, ids)), excerpts=tuple(found[:EXCERPTS]))


def everyone(db: Database) -> list[str]:
    """Return every id that stands anywhere."""
    return [person for (person,) in db.all("everyone") if person]


def _excerpts(text: str) -> list[str]:
    """Return pieces that every encoding of ours leaves as they are: the first, one of the middle, the last. Pure."""
    found = _PLAIN.findall(text)
    return [piece for piece in {*found[:1], *found[len(found) // 2 :][:1], *found[-1:]} if piece.strip()]


def _erase_what_was_concluded(one: _Person) -> None:
    """Take away what the second mind drew from this person's words, whomever it is about."""
    values = {"ids": one.values["ids"], "turns": one.values["turns"]}
    evidence = dump([id_ for (id_,) in one.db.all("interactions_of", **values)])
    one.run("lesson", "erase_lessons", evidence=evidence)
    one.run("belief", "erase_beliefs", evidence=evidence)
    one.run("reflection", "erase_reflections", evidence=evidence)
    one.run("interaction", "erase_interactions")


def _erase_what_was_lived(one: _Person) -> None:
    """Take away subjects and intentions of this person's words, and their words where they stand before another's."""
    one.run("psyche_arc", "erase_arcs")
    one.run("psyche_intention", "erase_intentions")
    one.run("psyche_episode", "erase_previous", places=dump(list(one.touched)))
    for arc, body in one.db.all("arcs_shared"):
        plain = one.named.sub(b"erased", body.encode()).decode()
        if plain != body:
            one.run("psyche_arc", "unname_arc", arc=arc, body=plain)
    turns = {turn for turn, *_ in one.turns}
    for table, subject, body in one.db.all("subjects"):
        if subject[:TURN_CHARS] in turns or one.is_named_in(body.encode()):
            one.run(table, "erase_arc" if table == "psyche_arc" else "erase_intention", subject=subject)


def _erase_turns(one: _Person) -> None:
    for turn, conversation, number, record in one.turns:
        where = {"conversation": conversation, "number": number}
        others = one.db.all("others_in_turn", ids=one.values["ids"], **where)
        lines = one.db.change("keep_others_lines", ids=one.values["ids"], **where)
        one.count("entry", lines)
        one.count("turn", 1)
        one.count("turn_record", 1)
        if others and conversation not in one.places:
            one.db.run("keep_others_turn", turn=turn, person=others[0][0])
            row = one.db.one("record_kept", id=record)
            left = _lines_of_others(one, row[0]) if row and row[0] is not None else None
            one.db.run("blank_record", record=record, erased=ERASED, kept=left)
        else:
            one.db.run("erase_turn", turn=turn)
            one.db.run("erase_record", record=record)


def _lines_of_others(one: _Person, packed: bytes) -> bytes:
    """Leave of a turn's record what others said in it."""
    entries = tuple(entry for entry in unpack(packed).entries if entry.person and entry.person not in one.ids)
    return pack(KeptTurn(entries=entries, snapshot=ERASED_SNAPSHOT))


def _without_prompt(one: _Person, packed: bytes) -> bytes | None:
    """Blank what names the person in another turn's record; None where nothing does."""
    kept = unpack(packed)
    left = kept
    if one.is_named_in(bytes(kept.snapshot)):
        left = replace(left, snapshot=ERASED_SNAPSHOT)
    if one.is_named_in(msgspec.json.encode((kept.attention, kept.changes, kept.thoughts), enc_hook=dict)):
        left = replace(left, attention={}, changes={}, thoughts=(), responses={})
    return pack(left) if left is not kept else None


def _erase_prompts(one: _Person) -> None:
    """Blank what prompts of other turns were made of, wherever this person's words stood in them."""
    turns = {turn.encode() for turn, *_ in one.turns}
    gone: set[bytes] = set()
    for sha256, content in one.db.all("blobs_kept"):
        written = _SUMMARY.match(content)
        is_touched = written and written[1].decode() in one.touched
        if is_touched or one.is_named_in(content) or not turns.isdisjoint(_TURN.findall(content)):
            one.run("blob", "erase_blob", sha256=sha256)
            gone.add(sha256.encode())
    for record, packed, snapshot, words, conversation, number in one.db.all("records_kept"):
        if packed is not None:
            left = _without_prompt(one, packed)
            if left is not None:
                one.run("turn_record", "kept_less", id=record, kept=left)
            continue
        if snapshot not in (b"", ERASED) and (
            number >= one.touched.get(conversation, number + 1)
            or one.is_named_in(snapshot)
            or not gone.isdisjoint(_SHA256.findall(snapshot))
        ):
            one.run("turn_record", "blank_snapshot", id=record, erased=ERASED)
        if one.is_named_in(words.encode()):
            one.run("turn_record", "blank_thoughts", id=record)
    for turn, shown in one.db.all("shown_kept"):
        kept = [portrait for portrait in parse(shown) if portrait["person"] not in one.ids]
        if len(kept) < len(parse(shown)):
            one.run("turn", "show_less", turn=turn, shown=dump(kept))


def _erase_by_columns(one: _Person) -> None:
    """Delete the rows of every other table whose columns name this person, or what was learned from them alone."""
    for table, columns in _tables(one.db):
        if table in (*TREATED, *CASCADES):
            continue
        by = [_among(name, "ids") for name in sorted(columns & PERSON_COLUMNS)]
        by += [_among("audience", "labels")] * ("audience" in columns)
        by += [_among("conversation", "places")] * ("conversation" in columns)
        if "sources" in columns and table != "summary":
            by.append(f"EXISTS (SELECT 1 FROM json_each(sources) s WHERE {_among('s.value', 'labels')})")  # noqa: S608 - names of our own schema
        if by:
            sql = f'DELETE FROM "{table}" WHERE {" OR ".join(by)}'  # noqa: S608 - names of our own schema
            one.count(table, one.db.connection.execute(sql, _named_in(sql, one.values)).rowcount)


def _unname(one: _Person) -> None:
    """Take the person's ids out of what others' rows still say of them."""
    for table, columns in _tables(one.db):
        for column in sorted(columns - {"content", "markdown", "body", "snapshot"}):
            sql = f'SELECT DISTINCT "{column}" FROM "{table}" WHERE instr("{column}", :id)'  # noqa: S608 - names of our own schema
            for person in one.ids:
                for (text,) in one.db.connection.execute(sql, {"id": person}).fetchall():
                    if not isinstance(text, str):
                        continue
                    plain = one.named.sub(b"erased", text.encode()).decode()
                    if plain != text:
                        change = f'UPDATE "{table}" SET "{column}" = :plain WHERE "{column}" = :text'  # noqa: S608 - names of our own schema
                        done = one.db.connection.execute(change, {"plain": plain, "text": text})
                        one.count(table, done.rowcount)


def _among(column: str, values: str) -> str:
    return f"{column} IN (SELECT value FROM json_each(:{values}))"  # noqa: S608 - names of our own schema


def _tables(db: Database) -> list[tuple[str, set[str]]]:
    looked_at = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    made_of = "SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'"
    virtual = tuple(name for (name,) in db.connection.execute(made_of))
    names = [one for one in db.connection.execute(looked_at).fetchall() if not one[0].startswith(virtual or "?")]
    columns = "SELECT name FROM pragma_table_info(?)"
    return [(name, {row[0] for row in db.connection.execute(columns, (name,))}) for (name,) in names]


def _named_in(sql: str, values: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in values.items() if f":{name}" in sql}


def export(db: Database, ids: Sequence[str]) -> dict[str, Any]:
    """Return everything that was said by a person, and what was answered; and the soul's state learned from them."""
    values = {"ids": dump(list(ids)), "labels": dump([private(one) for one in ids])}
    return {
        "messages": db.dicts("messages_of", ids=values["ids"]),
        "state": db.dicts("state_of_labels", labels=values["labels"]),
    }
