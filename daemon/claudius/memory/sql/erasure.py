"""Remove one person from every table: whole rows that are theirs alone, and their part of shared rows.

An erasure is many small transactions, so that others are heard and answered in between. A separate connection in a
thread finds the rows page by page; the writer changes them by key. Every step is idempotent: after a crash the whole
erasure is repeated. Source: the security design, section 9.
"""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from claudius.memory.documents import short_id
from claudius.memory.erasure import ALIAS, BLANK, ERASED, Erased, Probes
from claudius.memory.search import NEEDLE_BYTES, Needles, plain
from claudius.memory.sql.blanking import Blanker, blank_rows, lines_of_others
from claudius.memory.sql.connection import Cursor, Database
from claudius.memory.sql.core import Core
from claudius.memory.sql.rows import dump, parse
from claudius.perception import private

EXCERPTS, EXCERPT_CHARS, EXCERPT_BYTES = 200, 26, NEEDLE_BYTES
"""A probe is at least 24 bytes (24 letters of English, 12 of Russian, 8 of Chinese), with no blank at either end."""
CANDIDATES = 8 * EXCERPTS
PAGE, TURNS, SEARCHED = 50, 10, 500
"""Rows changed in one transaction, turns erased in one, rows searched at once."""
MERGED_PAGES = 16
TURN_CHARS = 16
PERSON_COLUMNS = frozenset({"person", "canonical", "asked_by", "peer", "about", "speaker", "peer_id"})
"""A row of any table that names the person in one of these columns is that person's."""
TREATED = frozenset(
    {
        *(
            "inbox",
            "step",
            "turn",
            "turn_record",
            "entry",
            "blob",
            "outbox",
            "user_model",
            "soul_state",
            "revision",
            "due",
        ),
        *("conversation", "thread", "erasing", "audit", "moment_audience"),
    }
)
"""Tables with a rule of their own; any other table is treated by its column names."""
_PLAIN = re.compile(
    r"[^\x00-\x1f\"\\<>&`\x7f-\xa0\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
    f"{{1,{EXCERPT_CHARS}}}"
)
"""Text that every encoding of ours writes as plain UTF-8, or in JSON as escapes of whole characters."""
LETTERS = 5
"""A probe with this many letters or digits counts as somebody's words."""

Write = Callable[[Callable[[Database], int]], Awaitable[int]]


class ErasedPerson:
    """One person: their ids, and what a query needs of them."""

    def __init__(self, db: Database, ids: Sequence[str]) -> None:
        """Find the conversations that are theirs alone."""
        self.ids = ids
        labels = [private(one) for one in ids]
        places = db.values("private_places", labels=dump(labels))
        self.values = {"ids": dump(list(ids)), "labels": dump(labels), "places": dump(places)}
        self.places = places
        self.named = re.compile("|".join(rf"(?<![\w.@-]){re.escape(one)}(?![\w.@-])" for one in ids) or r"(?!)")


class Erasure:
    """One erasure of one person's rows."""

    def __init__(self, beside: Database, write: Write, ids: Sequence[str], aliases: Mapping[str, str]) -> None:
        """Read with `beside`, a connection that nobody else uses; change through `write`, one transaction per call."""
        self._beside, self._write, self._aliases = beside, write, aliases
        self._person = ErasedPerson(beside, ids)
        self._rows: dict[str, int] = {}

    async def run(self) -> Erased:
        """Erase; what is found afterwards in texts of others is blanked by `blank`."""
        person = self._person
        versions = self._beside.value("versions_in_git", ids=person.values["ids"])
        audiences = tuple(self._beside.values("audiences_with", ids=person.values["ids"]))
        self._count("inbox", await self._write(self._withdraw))
        await self._each("", "turns_of", "erasing_put", page=SEARCHED)
        await self._each("lesson", "lessons_of", "erase_lesson")
        await self._each("belief", "beliefs_of", "erase_belief")
        await self._each("reflection", "reflections_of", "erase_reflection")
        for table, find, change in _TOUCHED:
            await self._each(table, find, change)
        await self._erase_lived()
        for audience in audiences:
            self._count("audience_member", await self._write(partial(_unlist, audience=audience)))
        for table, find, change in _OWN:
            await self._each(table, find, change)
        await self._erase_turns()
        await self._blank_shared_texts()
        await self._erase_by_columns()
        self._count("audit", await self._write(self._replace_in_audit))
        for table, find, change in _AT_LAST:
            await self._each(table, find, change)
        while await self._write(_merge) > 1:  # until it is merged, the moments' index holds what was deleted from it
            pass
        touched = [place async for page in self._pages("touched", SEARCHED) for place in page]
        await self._each("", "moved", "moved_on")
        await self._each("", "erasing_turns", "erasing_done", page=SEARCHED)
        return Erased(
            rows=dict(sorted(self._rows.items())),
            versions=versions or 0,
            conversations=tuple(dict.fromkeys((*person.places, *(one["conversation"] for one in touched)))),
            audiences=audiences,
        )

    def _count(self, table: str, changed: int) -> None:
        if changed > 0 and table:
            self._rows[table] = self._rows.get(table, 0) + changed

    def _withdraw(self, db: Database) -> int:
        """Settle pending perceptions so that no turn of theirs commits any more; others' running turns start again."""
        changed = _run(db, "erase_waiting", self._person.values)
        db.run("begin_anew")
        return changed

    def _replace_in_audit(self, db: Database) -> int:
        rows = [{"person": one, "alias": self._aliases.get(one, ALIAS)} for one in self._person.ids]
        return sum(_run(db, query, row) for query in ("audit_erase_who", "audit_erase_target") for row in rows)

    async def _pages(self, find: str, page: int = PAGE) -> AsyncIterator[list[dict[str, Any]]]:
        sql = self._beside.queries.get(find, find)
        cursor = await asyncio.to_thread(self._beside.connection.execute, sql, _named_in(sql, self._person.values))
        while rows := await asyncio.to_thread(cursor.fetchmany, page):
            yield [dict(row) for row in rows]

    async def _each(self, table: str, find: str, change: str, page: int = PAGE) -> None:
        """Change every row that a query finds, by its key, one page per transaction."""
        async for rows in self._pages(find, page):
            self._count(table, await self._write(_changing(change, rows)))

    async def _erase_turns(self) -> None:
        async for turns in self._pages("erasing_turns", TURNS):
            counted = [0, 0]

            def erase(db: Database, turns: list[dict[str, Any]] = turns, counted: list[int] = counted) -> int:
                counted[:] = [
                    sum(column) for column in zip(*(_erase_turn(db, self._person, one) for one in turns), strict=True)
                ]
                return counted[0]

            self._count("turn", await self._write(erase))
            self._count("turn_record", counted[0])
            self._count("entry", counted[1])

    async def _erase_lived(self) -> None:
        """Delete the psyche's subjects and intentions that came from this person: at most twelve of each."""
        turns = {one["turn"] async for page in self._pages("erasing_turns", SEARCHED) for one in page}
        for table in _SUBJECTS:
            erase = partial(_erase_subjects, person=self._person, turns=turns, table=table)
            self._count(table, await self._write(erase))

    async def _blank_shared_texts(self) -> None:
        """Blank texts that older records share by hash: turns of theirs, and summaries that tell of those."""
        async for rows in self._pages("blobs_kept"):
            blanked = await asyncio.to_thread(list, map(self._blank_shared, rows))
            if found := [one for one in blanked if one]:
                self._count("blob", await self._write(_changing("blob_less", found)))

    def _blank_shared(self, row: Mapping[str, Any]) -> dict[str, Any] | None:
        try:
            text = msgspec.json.decode(row["content"])
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        if "upto" in text and self._beside.one("erasing_in", conversation=text.get("conversation", "")):
            text["text"] = BLANK
        elif "entries" in text and self._beside.one("erasing_has", turn=text.get("turn", "")):
            for entry in text["entries"]:
                if not entry.get("person") or entry["person"] in self._person.ids:
                    entry |= {"content": BLANK, "name": entry.get("name") and "", "metadata": {}}
        else:
            return None
        return {"sha256": row["sha256"], "content": msgspec.json.encode(text)}

    async def _erase_by_columns(self) -> None:
        """Delete rows of all other tables whose columns name this person, or that were learned from them alone."""
        for table, key, columns in self._beside.tables():
            by = [] if table in TREATED else _by_columns(table, frozenset(columns))
            if by:
                names = ", ".join(f'"{one}" AS "{one}"' for one in key)
                where = " AND ".join(f'"{one}" = :{one}' for one in key)
                await self._each(
                    table,
                    f'SELECT {names} FROM "{table}" WHERE {" OR ".join(by)}',  # noqa: S608 - names of our own schema
                    f'DELETE FROM "{table}" WHERE {where}',  # noqa: S608 - names of our own schema
                )


_OWN = (
    ("user_model", "models_of_person", "erase_model"),
    ("soul_state", "state_of_person", "erase_state"),
    ("", "state_not_in_force", "state_in_force"),
    ("due", "plans_of", "erase_plan"),
)
_TOUCHED = (
    ("step", "summarising", "erase_summarising"),
    ("summary", "summaries_of", "erase_summary"),
    ("whisper", "whispers_of", "erase_whisper"),
    ("kept", "kept_of", "erase_kept"),
)
_SUBJECTS = {"psyche_arc": ("erase_arcs", "erase_arc"), "psyche_intention": ("erase_intentions", "erase_intention")}
_AT_LAST = (
    ("outbox", "said_in_places", "erase_said"),
    ("inbox", "heard_of", "erase_heard"),
    ("step", "calls_of", "erase_call"),
    ("revision", "revisions_of_nothing", "erase_revision"),
    ("conversation", "private_conversations", "erase_place"),
    ("thread", "private_threads", "erase_thread"),
    ("heard", "channels_of", "erase_channel"),
)


def _run(db: Database, query: str, values: Mapping[str, Any]) -> int:
    sql = db.queries.get(query, query)
    return db.connection.execute(sql, _named_in(sql, values)).rowcount


def _changing(change: str, rows: Sequence[Mapping[str, Any]]) -> Callable[[Database], int]:
    return lambda db: sum(_run(db, change, row) for row in rows)


def _unlist(db: Database, audience: str) -> int:
    """Delete a list of members, because with a member missing it would show others' words to too many people."""
    db.run("audience_emptied", audience=audience)
    db.run("audience_unlisted", audience=audience)
    return 1


def _erase_turn(db: Database, person: ErasedPerson, turn: Mapping[str, Any]) -> tuple[int, int]:
    """Erase one turn and all that depends on it; in a turn shared with others, what they said stays."""
    values = {**person.values, **turn}
    others = db.values("others_in_turn", **_named_in(db.queries["others_in_turn"], values))
    lines = _run(db, "keep_others_lines", values)
    for query in ("erase_interactions", "erase_turn_said", "settle_unanswered", "erase_turn_calls", "erase_turn_state"):
        _run(db, query, values)
    if others and turn["conversation"] not in person.places:
        _run(db, "keep_others_turn", values | {"person": others[0]})
        kept = lines_of_others(db.value("record_kept", record=turn["record"]), person.ids)
        db.run("blank_record", record=turn["record"], erased=ERASED, kept=kept)
    else:
        _run(db, "erase_turn", values)
        _run(db, "erase_record", values)
    return 1, max(0, lines)


def _erase_subjects(db: Database, person: ErasedPerson, turns: set[str], table: str) -> int:
    bulk, single = _SUBJECTS[table]
    changed = _run(db, bulk, person.values)
    for row in db.all("subjects"):
        came_from = row["subject"][:TURN_CHARS] in turns
        if row["kind"] == table and (came_from or (table != "psyche_arc" and person.named.search(row["body"]))):
            changed += db.change(single, subject=row["subject"])
    return changed


def _by_columns(table: str, columns: frozenset[str]) -> list[str]:
    by = [_among(name, "ids") for name in sorted(columns & PERSON_COLUMNS)]
    by += [_among("audience", "labels")] * ("audience" in columns)
    by += [_among("conversation", "places")] * ("conversation" in columns)
    if "sources" in columns and table != "summary":
        by.append(f"EXISTS (SELECT 1 FROM json_each(sources) s WHERE {_among('s.value', 'labels')})")  # noqa: S608 - names of our own schema
    return by


def _merge(db: Database) -> int:
    before = db.connection.total_changes
    db.run("moment_index_merge", pages=-MERGED_PAGES)
    return db.connection.total_changes - before


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
    return db.connection.execute(sql, _named_in(sql, values))


def everyone(db: Database) -> list[str]:
    """Return every id that occurs anywhere."""
    return [person for person in db.values("everyone") if person]


def _excerpts(text: str) -> list[str]:
    """Return pieces that can be found in every encoding of ours: the first, a middle one, the last. Pure."""
    pieces = [piece for piece in map(str.strip, _PLAIN.findall(text)) if len(piece.encode()) >= EXCERPT_BYTES]
    found = [piece for piece in pieces if sum(map(str.isalnum, piece)) >= LETTERS]
    return list(dict.fromkeys([*found[:1], *found[len(found) // 2 :][:1], *found[-1:]]))


def _among(column: str, values: str) -> str:
    return f"{column} IN (SELECT value FROM json_each(:{values}))"  # noqa: S608 - names of our own schema


def _named_in(sql: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if re.search(rf":{name}\b", sql)}


def export(db: Database, ids: Sequence[str]) -> dict[str, Any]:
    """Return all that a person said and was answered, as far as it is kept, and what was learned from it."""
    values = {"ids": dump(list(ids)), "labels": dump([private(one) for one in ids])}
    return {
        "messages": db.dicts("messages_of", ids=values["ids"]),
        "moments": [{**row, "is_own": bool(row["is_own"])} for row in db.all("moments_said", ids=values["ids"])],
        "facts": [
            {**row, "sources": parse(row["sources"]), "newest": bool(row["newest"])}
            for row in db.all("facts_stated", ids=values["ids"])
        ],
        "state": db.dicts("state_of_labels", labels=values["labels"]),
    }


ROWS = 10
"""Rows of others that are blanked in one transaction."""


class SqlErasure:
    """Everything that is kept of one person, found and removed. What overwrites it is each database's own."""

    is_at_once = True

    def __init__(self, core: Core) -> None:
        self._core = core

    async def probes(self, ids: Sequence[str]) -> Probes:
        await self._core.flush()
        with self._core.beside() as db:
            return await asyncio.to_thread(probes_of, db, ids)

    async def narrowed(self, probes: Probes) -> Probes:
        with self._core.beside() as db:
            return await asyncio.to_thread(narrowed, db, probes)

    async def erase(self, ids: Sequence[str], aliases: Mapping[str, str] | None = None) -> Erased:
        await self._core.flush()
        with self._core.beside() as db:
            return await Erasure(db, self._core.write, ids, aliases or {}).run()

    async def blank(self, rows: Sequence[Mapping[str, Any]], probes: Probes) -> int:
        blanker, changed = Blanker(probes), 0
        for at in range(0, len(rows), ROWS):
            changed += await self._core.write(partial(blank_rows, rows=rows[at : at + ROWS], blanker=blanker))
        return changed

    @abstractmethod
    async def rewrite(self, pages: Mapping[str, Sequence[int]]) -> None: ...

    async def rows_with(self, probes: Probes) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - the protocol's
        return ()

    async def beyond(self) -> Sequence[str]:
        return ()

    async def overwrite_later(self) -> None:
        """Do nothing: what was erased is overwritten at once."""

    async def overwrite(self) -> Sequence[str] | None:
        return None

    @abstractmethod
    async def empty_log(self) -> bool: ...

    async def everyone(self) -> tuple[Sequence[str], str]:
        await self._core.flush()
        with self._core.snapshot() as db:
            return everyone(db), db.value("last_heard") or ""

    @abstractmethod
    async def scrub(self) -> None: ...
