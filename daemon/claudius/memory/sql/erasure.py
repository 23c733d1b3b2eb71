"""Remove one person from every table: their own rows, their part of shared ones, and what was derived from them.

An erasure is many small transactions, so that others are heard and answered in between. A separate connection in a
thread finds the rows page by page; the writer changes them by key. Every step is idempotent: after a crash the whole
erasure is repeated. What is thought meanwhile is thought again, and looked through as well. Source: the security
design, section 9; what is derived: `derived.py`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from claudius.memory.erasure import (
    ALIAS,
    BLANK,
    Beyond,
    Erased,
    Portrait,
    Posted,
    Posts,
    Probes,
    Traces,
    Voided,
    nothing_runs,
    nowhere,
)
from claudius.memory.sql.blanking import Blanker, blank_rows
from claudius.memory.sql.connection import Core, Database, in_thread
from claudius.memory.sql.derived import Derived, Source, put_back, traces_of
from claudius.memory.sql.erasing import (
    ErasedPerson,
    ErasedTurn,
    erase_turn,
    named_in,
    posts_of,
    put_portrait_back,
    rows_of,
    run,
    void,
)
from claudius.memory.sql.probes import narrowed, probes_of
from claudius.memory.sql.rows import dump, parse
from claudius.perception import private

PAGE, TURNS, SEARCHED = 50, 10, 500
"""Rows changed in one transaction, turns erased in one, rows searched at once."""
MERGED_PAGES = 16
TURN_CHARS = 16
Write = Callable[[Callable[[Database], int]], Awaitable[int]]


class Erasure:
    """One erasure of one person's rows."""

    def __init__(
        self,
        beside: Database,
        write: Write,
        ids: Sequence[str],
        aliases: Mapping[str, str],
        voided: Voided,
        posts: Posts = nowhere,
        traces: Traces | None = None,
    ) -> None:
        """Read with `beside`, a connection that nobody else uses; change through `write`, one transaction per call.

        `voided` is told of the turns that are to be thought again, `posts` of posts before their rows go; `traces` are
        those of the person before anything was erased, None = nothing is.
        """
        self._told_posts, self._traces = posts, traces
        self._beside, self._write, self._aliases, self._voided = beside, write, aliases, voided
        self._person = ErasedPerson(beside, ids)
        self._rows, self._of_derived = Counter[str](), Counter[str]()
        self._own: set[str] = set()
        """The turns that hold something of the person's own."""
        self._since: str | None = None
        """Since when a turn can be derived; None = not looked yet."""
        self._posts: list[Posted] = []
        self._portraits: list[Portrait] = []

    async def run(self) -> Erased:
        """Erase; what is found afterwards in texts of others is blanked by `blank`."""
        person = self._person
        versions = self._beside.value("versions_in_git", ids=person.values["ids"])
        audiences = tuple(self._beside.values("audiences_with", ids=person.values["ids"]))
        self._count("inbox", await self._write(self._withdraw))
        own = {row["turn"] async for page in self._pages("turns_of", SEARCHED) for row in page}
        await self._each("", "turns_of", "erasing_put", page=SEARCHED)
        self._own = own | set(self._beside.values("erasing_gone"))  # not those that an interrupted one found derived
        traces = self._traces
        if traces is None:
            traces = await in_thread(traces_of, self._beside, person.values)
        source = Source(ids=person.ids, names=traces.names, stems=set(traces.stems), rows=set(traces.rows))
        derived = Derived(source)
        await self._void()
        await self._mark(derived)
        await self._erase_written(derived)
        await self._erase_lived()
        for audience in audiences:
            self._count("audience_member", await self._write(partial(_unlist, audience=audience)))
        for table, find, change in _OWN:
            await self._each(table, find, change)
        await self._erase_turns(self._pages("erasing_turns", TURNS))
        await self._blank_shared_texts()
        await self._erase_by_rules()
        self._count("audit", await self._write(self._replace_in_audit))
        for table, find, change in _AT_LAST:
            await self._each(table, find, change)
        await self._void()
        while found := await self._mark(derived):  # thought meanwhile, with what was not erased yet
            await self._erase_written(derived)
            await self._erase_turns(paged(found))
            await self._void()
        while await self._write(_merge) > 1:  # until it is merged, the moments' index holds what was deleted from it
            pass
        touched = [place async for page in self._pages("touched", SEARCHED) for place in page]
        await self._each("", "moved", "moved_on")
        await self._each("", "erasing_turns", "erasing_done", page=SEARCHED)
        return Erased(
            rows=dict(sorted(self._rows.items())),
            derived=dict(sorted(self._of_derived.items())),
            posts=tuple(self._posts),
            portraits=tuple(self._portraits),
            versions=versions or 0,
            conversations=tuple(dict.fromkeys((*person.places, *(one["conversation"] for one in touched)))),
            audiences=audiences,
        )

    def _count(self, table: str, changed: int, *, is_derived: bool = False) -> None:
        if changed > 0 and table:
            self._rows[table] += changed
            if is_derived:
                self._of_derived[table] += changed

    def _withdraw(self, db: Database) -> int:
        """Settle pending perceptions so that no turn of theirs commits any more."""
        return run(db, "erase_waiting", self._person.values)

    async def _void(self, query: str = "unfinished_turns", **values: Any) -> None:
        """Have every turn that runs thought again: it may have begun with what is gone."""
        turns: list[tuple[str, str]] = []

        def work(db: Database) -> int:
            turns[:] = void(db, query, **values)
            return len(turns)

        await self._write(work)
        self._voided(turns)
        await self._write(lambda _: 0)  # after what the turns that ended had still queued

    async def _mark(self, derived: Derived) -> list[dict[str, Any]]:
        """Add to the turns that are being erased those that are derived. Returns the new ones."""
        own = [row for row in self._beside.dicts("erasing_turns") if row["turn"] in self._own]
        if self._since is None:  # once, because the oldest turns go; after an interruption they may be gone
            is_whole = not self._beside.one("erasing_gone")
            self._since = (is_whole and self._beside.value("erasing_since")) or ""
        found = await in_thread(derived.find, self._beside, own, self._since)
        rows = [{name: getattr(one, name) for name in _ERASING} for one in found if one.turn not in self._own]
        for at in range(0, len(rows), SEARCHED):
            await self._write(changing("erasing_put", rows[at : at + SEARCHED]))
        return rows

    async def _erase_written(self, derived: Derived) -> None:
        """Erase what the soul wrote beside its turns: portraits lose sections; all else goes as a row."""
        await self._put_back(derived)
        for table, find, change in _TOUCHED:
            await self._each(table, find, change, is_derived=True)
        await self._erase_told(derived)

    async def _erase_told(self, derived: Derived) -> None:
        told = self._beside.dicts("told")
        await in_thread(derived.weigh, self._beside, [one["text"] for one in told])
        for row in await in_thread(lambda: [one for one in told if derived.holds(one["text"])]):
            change, names = _TOLD[row["kind"]]
            key = [int(row["a"]) if name in ("id", "cycle") else row["a"] for name in names[:1]]
            values = dict(zip(names, (*key, row["b"]), strict=False))
            self._count(row["kind"], await self._write(changing(change, [values])), is_derived=True)

    async def _put_back(self, derived: Derived) -> None:
        """Take the sections that are derived out of others' portraits, in every version, and write a new one."""
        changed: set[str] = set()
        turns = dump(sorted(derived.first | derived.saw))
        for place in self._beside.dicts("portraits_written", turns=turns):
            if place["person"] in self._person.ids:
                continue
            versions = self._beside.dicts("portrait_versions", **place)
            texts = [text for one in versions for text in (one["markdown"], one["note"])]
            await in_thread(derived.weigh, self._beside, texts)
            await in_thread(put_back, versions, derived.is_derived)  # so that the writer finds each text stemmed
            version = await self._write(partial(put_portrait_back, derived=derived, place=place, changed=changed))
            if version:
                self._portraits.append(Portrait(**place, version=version))
                self._count("user_model", 1, is_derived=True)
        if changed:
            showing = self._beside.all("turns_showing", ids=dump(sorted(changed)), labels="[]")
            for at in range(0, len(showing), SEARCHED):
                page = [{"turn": one["turn"]} for one in showing[at : at + SEARCHED]]
                await self._write(changing("turn_edited", page))

    def _replace_in_audit(self, db: Database) -> int:
        rows = [{"person": one, "alias": self._aliases.get(one, ALIAS)} for one in self._person.ids]
        return sum(run(db, query, row) for query in ("audit_erase_who", "audit_erase_target") for row in rows)

    async def _pages(self, find: str, page: int = PAGE) -> AsyncIterator[list[dict[str, Any]]]:
        sql = self._beside.queries.get(find, find)
        cursor = await in_thread(self._beside.connection.execute, sql, named_in(sql, self._person.values))
        while rows := await in_thread(cursor.fetchmany, page):
            yield [dict(row) for row in rows]

    async def _each(self, table: str, find: str, change: str, page: int = PAGE, *, is_derived: bool = False) -> None:
        """Change every row that a query finds, by its key, one page per transaction."""
        async for rows in self._pages(find, page):
            self._count(table, await self._write(changing(change, rows)), is_derived=is_derived)

    async def _erase_turns(self, pages: AsyncIterator[list[dict[str, Any]]]) -> None:
        async for turns in pages:
            posts = list[Posted]()

            def look(db: Database, turns: list[dict[str, Any]] = turns, posts: list[Posted] = posts) -> int:
                posts[:] = [post for one in turns for post in posts_of(db, self._person, one["turn"])]
                return len(posts)

            if await self._write(look):  # not beside: there the pages are being read
                await in_thread(self._told_posts, posts)
            done: list[ErasedTurn] = []

            def erase(db: Database, turns: list[dict[str, Any]] = turns, done: list[ErasedTurn] = done) -> int:
                done[:] = [erase_turn(db, self._person, one) for one in turns]
                return len(done)

            await self._write(erase)
            for turn, one in zip(turns, done, strict=True):
                self._posts += one.posts
                for table, count in one.rows.items():
                    self._count(table, count, is_derived=turn["turn"] not in self._own)

    async def _erase_lived(self) -> None:
        """Delete the psyche's subjects and intentions that came from this person: at most twelve of each."""
        turns = {one["turn"] async for page in self._pages("erasing_turns", SEARCHED) for one in page}
        for table in _SUBJECTS:
            erase = partial(_erase_subjects, person=self._person, turns=turns, table=table)
            self._count(table, await self._write(erase))

    async def _blank_shared_texts(self) -> None:
        """Blank texts that older records share by hash: turns of theirs, and summaries that tell of those."""
        async for rows in self._pages("blobs_kept"):
            blanked: list[dict[str, Any] | None] = await in_thread(list, map(self._blank_shared, rows))
            if found := [one for one in blanked if one]:
                self._count("blob", await self._write(changing("blob_less", found)))

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

    async def _erase_by_rules(self) -> None:
        """Delete the rows of this person that no statement of its own treats, table by table."""
        for table, key, _ in self._beside.tables():
            if where := rows_of(table):
                names = ", ".join(f'"{one}" AS "{one}"' for one in key)
                by_key = " AND ".join(f'"{one}" = :{one}' for one in key)
                await self._each(
                    table,
                    f'SELECT {names} FROM "{table}" WHERE {where}',  # noqa: S608 - names of our own schema
                    f'DELETE FROM "{table}" WHERE {by_key}',  # noqa: S608 - names of our own schema
                )


_OWN = (
    ("user_model", "models_of_person", "erase_model"),
    ("soul_state", "state_of_person", "erase_state"),
    ("", "state_not_in_force", "state_in_force"),
    ("due", "plans_of", "erase_plan"),
)
_TOUCHED = (
    ("inbox", "directives_of", "erase_heard"),
    ("assessment", "assessments_derived", "erase_assessment"),
    ("lesson", "lessons_of", "erase_lesson"),
    ("belief", "beliefs_of", "erase_belief"),
    ("reflection", "reflections_of", "erase_reflection"),
    ("step", "summarising", "erase_summarising"),
    ("summary", "summaries_of", "erase_summary"),
    ("whisper", "whispers_of", "erase_whisper"),
    ("kept", "kept_of", "erase_kept"),
    ("conversation", "processes_of", "process_blanked"),
    ("due", "plans_promised", "erase_own_plan"),
    ("promise", "promises_made", "erase_promise"),
)
_TOLD: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "belief": ("erase_belief", ("key", "audience")),
    "lesson": ("erase_lesson", ("key", "audience")),
    "reflection": ("erase_reflection", ("cycle",)),
    "assessment": ("erase_assessment", ("id",)),
    "whisper": ("erase_whisper", ("id",)),
    "summary": ("erase_summary", ("conversation",)),
    "kept": ("erase_kept", ("conversation", "name")),
    "promise": ("erase_promise", ("id",)),
    "due": ("erase_own_plan", ("id",)),
    "psyche_arc": ("erase_arc", ("subject",)),
    "psyche_intention": ("erase_intention", ("subject",)),
    "conversation": ("process_blanked", ("conversation",)),
}
"""What deletes a row of `told`, by its table, and the names of its key."""
_ERASING = ("turn", "conversation", "number", "record")
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


def changing(change: str, rows: Sequence[Mapping[str, Any]]) -> Callable[[Database], int]:
    """Return what runs a statement for each of these rows; it returns how many rows were changed."""
    return lambda db: sum(run(db, change, row) for row in rows)


def _unlist(db: Database, audience: str) -> int:
    """Delete a list of members, because with a member missing it would show others' words to too many people."""
    db.run("audience_emptied", audience=audience)
    db.run("audience_unlisted", audience=audience)
    return 1


async def paged(rows: list[dict[str, Any]]) -> AsyncIterator[list[dict[str, Any]]]:
    """Yield a few turns at a time."""
    for at in range(0, len(rows), TURNS):
        yield rows[at : at + TURNS]


def _erase_subjects(db: Database, person: ErasedPerson, turns: set[str], table: str) -> int:
    bulk, single = _SUBJECTS[table]
    changed = run(db, bulk, person.values)
    for row in db.all("subjects"):
        came_from = row["subject"][:TURN_CHARS] in turns
        if row["kind"] == table and (came_from or (table != "psyche_arc" and person.named.search(row["body"]))):
            changed += db.change(single, subject=row["subject"])
    return changed


def _merge(db: Database) -> int:
    before = db.connection.total_changes
    db.run("moment_index_merge", pages=-MERGED_PAGES)
    return db.connection.total_changes - before


def everyone(db: Database) -> list[str]:
    """Return every id that occurs anywhere."""
    return [person for person in db.values("everyone") if person]


def _among(column: str, values: str) -> str:
    return f"{column} IN (SELECT value FROM json_each(:{values}))"  # noqa: S608 - names of our own schema


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


class ErasureStore:
    """Everything that is kept of one person, found and removed. What overwrites it is each database's own."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @property
    def is_quick(self) -> bool:
        """Whether `overwrite` takes so little time that nobody minds."""
        return False

    async def probes(self, ids: Sequence[str]) -> Probes:
        """Return what must not be found anywhere once this person is erased. Reads outside the event loop."""
        await self._core.flush()
        with self._core.beside() as db:
            return await in_thread(probes_of, db, ids)

    async def traces(self, ids: Sequence[str]) -> Traces:
        """Return by what a text tells of this person, before anything is erased. Reads outside the event loop."""
        with self._core.beside() as db:
            return await in_thread(traces_of, db, ErasedPerson(db, ids).values)

    async def narrowed(self, probes: Probes) -> Probes:
        """Remove from the probes what others have since said in the same words. Reads outside the event loop."""
        with self._core.beside() as db:
            return await in_thread(narrowed, db, probes)

    async def erase(
        self,
        ids: Sequence[str],
        aliases: Mapping[str, str] | None = None,
        voided: Voided = nothing_runs,
        posts: Posts = nowhere,
        traces: Traces | None = None,
    ) -> Erased:
        """Remove a person from every table, and what was derived from their lines, in many small transactions.

        `traces`: as they were before anything was erased; None = nothing is yet. Whatever runs is thought again;
        `voided` cancels it. `posts` is told of posts before their rows go.

        The audit log keeps its rows: there each id is replaced by its alias, as `Erasures.aliases` makes them.

        After an interruption, call it again with the same ids.
        """
        await self._core.flush()
        with self._core.beside() as db:
            erased = await Erasure(db, self._core.write, ids, aliases or {}, voided, posts, traces).run()
        lanes = await self._beside_the_topics(ids)
        rows = Counter(erased.rows) + Counter(lane=lanes)
        return replace(erased, rows=dict(sorted(rows.items())))

    async def _beside_the_topics(self, ids: Sequence[str]) -> int:  # noqa: ARG002 - a server's own
        """Remove what a database server keeps beside the soul's topics; return how many lanes that were."""
        return 0

    async def blank(self, rows: Sequence[Mapping[str, Any]], probes: Probes) -> int:
        """Blank the lines in which a search found something (`rows` of its answer); return how many rows changed."""
        blanker, changed = Blanker(probes), 0
        for at in range(0, len(rows), ROWS):
            changed += await self._core.write(partial(blank_rows, rows=rows[at : at + ROWS], blanker=blanker))
        return changed

    async def rows_with(self, probes: Probes) -> Sequence[Mapping[str, Any]]:  # noqa: ARG002 - a server's own
        """Return the rows that hold a trace: `table`, `key`, `columns`; none where a search reads the database's file.

        Reads outside the event loop. Raises: StoreError.
        """
        return ()

    async def beyond(self) -> Sequence[Beyond]:
        """Return what a receipt must name besides, because the database keeps copies that are not ours to erase."""
        return ()

    async def overwrite_later(self) -> None:
        """Note durably, where several homes share the store, that deleted rows are to be overwritten."""

    async def is_to_be_overwritten(self) -> bool:
        """Return whether `overwrite_later` noted something that `overwrite` has not done since."""
        return False

    @abstractmethod
    async def overwrite(self) -> Sequence[str]:
        """Overwrite all deleted rows, beside the writer or in its pauses.

        Returns what somebody used all the while, which waits for another call. Raises: StoreError.
        """

    async def everyone(self) -> tuple[Sequence[str], str]:
        """Return every id that occurs anywhere, and when something was last heard: UTC as text, empty if never."""
        await self._core.flush()
        with self._core.snapshot() as db:
            return everyone(db), db.value("last_heard") or ""
