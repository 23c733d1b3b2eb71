"""The topic `store.erasure`: remove one person from every table, with what was derived from them; the log of that.

An erasure is many small transactions, so that others are heard and answered in between. A separate connection in a
thread finds the rows page by page; the writer changes them by key. Every step is idempotent: after a crash the whole
erasure is repeated. What is thought meanwhile is thought again, and looked through as well.

The log of erasures is kept outside the database, so that a restored backup can be checked against it. It contains no
names, only a keyed hash of each id; the key never leaves this home.

What was written from words that messages no longer hold is erased in the same way: they were deleted, or an edit took
them away. A row notes each change in the transaction that applies it, and goes once nothing is left of the old words.
Source: the security design, section 9; the design of acts, section 8.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import secrets
from abc import abstractmethod
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from claudius.decoding import decoder
from claudius.home import FILE_MODE, write_all
from claudius.memory.database import Core, Database, Row, dump, in_thread, stamp
from claudius.memory.erasing import (
    Blanker,
    ErasedPerson,
    ErasedTurn,
    Posted,
    Probes,
    Unsaid,
    blank_rows,
    erase_subjects,
    erase_turn,
    forget_shown,
    forget_words,
    merge_index,
    named_in,
    narrowed,
    posts_of,
    probes_of,
    put_portrait_back,
    rows_of,
    run,
    unlist,
    void,
)
from claudius.memory.ranking import marks
from claudius.memory.seen import (
    BLANK,
    Derived,
    ErasedSource,
    HeardPost,
    SeenTurn,
    Traces,
    posts_since,
    put_back,
    traces_of,
    turns_seen,
    words_shown,
)
from claudius.perception import Perception, Place, private

log = logging.getLogger(__name__)


class Beyond(Struct, frozen=True):
    """Something that an erasure cannot reach."""

    kind: str
    """What it is, for the person."""
    where: str = ""
    """Which one, for the owner, where that tells more."""


class PortraitPutBack(Struct, frozen=True):
    """A portrait of somebody else that lost what was written from the erased person's lines."""

    person: str
    audience: str
    version: int
    """The new version, without it."""


Posts = Callable[[Sequence[Posted]], None]
"""Is told of posts whose rows are about to go, so that a later process can still name them."""
Voided = Callable[[Sequence[tuple[str, str]]], None]
"""Is told of turns that are to be thought again: the conversation and the turn of each."""


def untold(_: object) -> None:
    """Do nothing, where nobody is told of posts, or no turn can be under way."""


class Begun(Struct, frozen=True, kw_only=True):
    """One erasure that is under way, or done and not told yet, as `state/erasing-*.json` keeps it."""

    ids: tuple[str, ...]
    folders: tuple[str, ...] = ()
    """Empty until the audit log knows of it; nothing is erased before."""
    excerpts: tuple[str, ...] = ()
    traces: Traces | None = None
    is_resumed: bool = False
    """Whether an earlier process has erased some of it, and counted nothing."""
    posts: tuple[Posted, ...] = ()
    """What the network still shows of it, as far as the rows that say so are gone, or about to go."""
    asked: Perception | None = None
    """The command of whoever asked in chat, so that a later process can give them the receipt."""
    receipt: Mapping[str, Any] | None = None
    """What was done, once it is, as long as whoever asked was not told, or what was deleted is not overwritten."""
    is_told: bool = False
    """Whether it was given to whoever asked."""
    earlier: Begun | None = None
    """An erasure of the same person that still waits for a quiet hour, until this one is recorded."""

    @property
    def probes(self) -> Probes:
        """What must not be found anywhere."""
        return Probes(ids=self.ids, folders=self.folders, excerpts=self.excerpts)


class Erased(Struct, frozen=True, kw_only=True):
    """What was removed from the database."""

    rows: Mapping[str, int]
    """By table, the number of rows deleted or blanked."""
    derived: Mapping[str, int]
    """Those of them that were not the person's own: written with their lines in sight."""
    posts: tuple[Posted, ...]
    """What was said of it, and a network still shows."""
    portraits: tuple[PortraitPutBack, ...]
    versions: int
    """Portraits that git held, and no longer holds once it is rebuilt."""
    conversations: tuple[str, ...]
    """Every conversation that contained something of theirs."""
    audiences: tuple[str, ...]
    """Shared places whose member list must be fetched again, because one person was removed from it."""
    is_lent: bool = False
    """Whether the prompt of a turn that saw their words was shown to a session by the bridge."""


UNENDED = "the search did not come to its end"
OVERWRITING = "overwriting"
"""The job that overwrites deleted rows."""
LEDGER, KEY = "erasures.jsonl", "erasures.key"
KEY_BYTES = 32
ALIAS, ALIAS_CHARS = "erased:", 16


class Erasures(Struct, frozen=True):
    """The log of erasures in one directory."""

    directory: Path

    @property
    def ledger(self) -> Path:
        """The path of the log: one JSON line per erasure, and one when all of it is done."""
        return self.directory / LEDGER

    def begin(self, persons: Sequence[str], at: datetime, by: str) -> int:
        """Record durably that an erasure of these ids begins. Returns where `withdraw` cuts. Raises: OSError."""
        before = self.ledger.stat().st_size if self.ledger.exists() else 0
        self._append({"at": _stamp(at), "by": by, "ids": [self._hash(one) for one in persons]})
        return before

    def withdraw(self, before: int) -> None:
        """Remove the record of the erasure that `begin` recorded last, because it was refused. Raises: OSError."""
        os.truncate(self.ledger, before)

    def done(self, hashes: Sequence[str], at: datetime) -> None:
        """Record that the erasure of these hashes is complete. Raises: OSError."""
        self._append({"at": _stamp(at), "done": list(hashes)})

    def keep(self, begun: Begun) -> None:
        """Save durably what nothing else knows once the rows are gone. Raises: OSError; then nothing is saved."""
        path = self._kept(begun.ids)
        fresh = path.with_suffix(".new")
        _write(fresh, msgspec.json.encode(begun), os.O_TRUNC)
        fresh.replace(path)

    def keep_receipt(self, begun: Begun, receipt: Mapping[str, Any], *, is_told: bool = False) -> None:
        """Keep a receipt until it was given, and until what was deleted is overwritten. Raises: OSError."""
        is_told = is_told or begun.asked is None
        if is_told and not receipt.get("later"):
            self.drop(begun.ids)
        else:
            self.keep(msgspec.structs.replace(begun, excerpts=(), traces=None, receipt=receipt, is_told=is_told))

    def waiting(self) -> list[Begun]:
        """Return each erasure whose deleted rows wait for a quiet hour."""
        return [one for one in self.kept() if one.receipt and one.receipt.get("later")]

    def kept(self) -> list[Begun]:
        """Return each erasure that has not ended, or whose receipt was not given yet."""
        found = [_read_begun(path) for path in sorted(self.directory.glob("erasing-*.json"))]
        return [one for one in found if one is not None]

    def drop(self, persons: Sequence[str]) -> None:
        """Delete what was kept of an erasure. Raises: OSError."""
        self._kept(persons).unlink(missing_ok=True)

    def _kept(self, persons: Sequence[str]) -> Path:
        return self.directory / f"erasing-{self._hash(persons[0])[:16]}.json"

    def erased_at(self) -> dict[str, str]:
        """Return when each erasure last began, by hash; UTC as text."""
        return {one: str(line["at"]) for line in self._lines() for one in line.get("ids", ())}

    def forgotten(self, persons: Iterable[str]) -> dict[str, datetime]:
        """Return the end of the second in which each of these persons was erased last; without those who never were.

        That of anybody has the key "".
        """
        erased = self.erased_at()
        if not erased:
            return {}  # there is no key to hash with
        found = {"": max(erased.values())} | {one: erased.get(self._hash(one)) for one in persons}
        return {one: datetime.fromisoformat(at) + timedelta(seconds=1) for one, at in found.items() if at}

    def last_at(self, persons: Iterable[str], by: str) -> datetime | None:
        """Return when `by` last requested an erasure of one of these persons; None if never."""
        hashes = {self._hash(one) for one in persons}
        asked = [
            line["at"] for line in self._lines() if line.get("by") == by and not hashes.isdisjoint(line.get("ids", ()))
        ]
        return datetime.fromisoformat(str(max(asked))) if asked else None

    def unfinished(self) -> dict[str, str]:
        """Return who asked for each erasure that was interrupted, by the hash of whom it is to erase."""
        left: dict[str, str] = {}
        for line in self._lines():
            left |= dict.fromkeys(line.get("ids", ()), str(line.get("by")))
            for one in line.get("done", ()):
                left.pop(one, None)
        return left

    def since(self, at: str) -> set[str]:
        """Return the hashes of persons erased since an instant; a copy made at that time may still hold them."""
        return {one for one, when in self.erased_at().items() if when >= at[: len(when) - 1]}

    def among(self, persons: Iterable[str], hashes: Iterable[str]) -> list[str]:
        """Return those of the persons whose hash is among `hashes`."""
        wanted = set(hashes)
        return [one for one in persons if wanted and self._hash(one) in wanted]

    def hashes(self, persons: Iterable[str]) -> set[str]:
        """Return the hashes of these persons."""
        return {self._hash(one) for one in persons}

    def aliases(self, persons: Iterable[str]) -> dict[str, str]:
        """Return what replaces each of these persons in the audit log once they are erased."""
        return {one: f"{ALIAS}{self._hash(one)[:ALIAS_CHARS]}" for one in persons}

    def _hash(self, person: str) -> str:
        return hmac.new(self._key(), person.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()

    def _key(self) -> bytes:
        path = self.directory / KEY
        if not path.exists():
            fresh = path.with_suffix(".new")
            _write(fresh, secrets.token_bytes(KEY_BYTES), os.O_TRUNC)
            fresh.replace(path)
        return path.read_bytes()

    def _lines(self) -> list[dict[str, Any]]:
        try:
            return [json.loads(line) for line in self.ledger.read_text("utf-8").splitlines() if line.endswith("}")]
        except FileNotFoundError:
            return []

    def _append(self, line: dict[str, object]) -> None:
        _write(self.ledger, b"\n" + json.dumps(line).encode() + b"\n", os.O_APPEND)


def _write(path: Path, content: bytes, how: int) -> None:
    """Write all of it durably, or nothing; private to this user. Raises: OSError.

    Each line of the log starts with a line break, so one that a crash tore stays apart.
    """
    file = os.open(path, os.O_WRONLY | os.O_CREAT | how, FILE_MODE)
    try:
        before = os.fstat(file).st_size
        try:
            write_all(file, content)
            os.fsync(file)
        except OSError:
            os.ftruncate(file, before)
            raise
    finally:
        os.close(file)


def _read_begun(path: Path) -> Begun | None:
    try:
        return decoder(Begun).decode(path.read_bytes())
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


PAGE, TURNS, SEARCHED = 50, 10, 500
"""Rows changed in one transaction, turns erased in one, rows searched at once."""
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
        posts: Posts = untold,
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
        self._portraits: list[PortraitPutBack] = []

    async def run(self) -> Erased:
        """Erase; what is found afterwards in texts of others is blanked by `blank`."""
        person = self._person
        versions = self._beside.value("versions_in_git", ids=person.values["ids"])
        await self._write(changing("daimons_are_nobody", [{}]))  # 0.2.0 kept them as their listener's
        audiences = tuple(self._beside.values("audiences_with", ids=person.values["ids"]))
        is_lent = bool(self._beside.one("audit_lent_in", ids=person.values["ids"], places=person.values["places"]))
        self._count("inbox", await self._write(self._withdraw))
        own = {row["turn"] async for page in self._pages("turns_of", SEARCHED) for row in page}
        await self._each("", "turns_of", "erasing_put", page=SEARCHED)
        self._own = own | set(self._beside.values("erasing_gone"))  # not those that an interrupted one found derived
        traces = self._traces
        if traces is None:
            traces = await in_thread(traces_of, self._beside, person.values)
        source = ErasedSource(ids=person.ids, names=traces.names, stems=set(traces.stems), rows=set(traces.rows))
        derived = Derived(source)
        await self._void()
        await self._mark(derived)
        showed = dump(sorted(self._own | derived.first | derived.saw))
        is_lent |= bool(await in_thread(lambda: self._beside.one("audit_lent", turns=showed)))
        await self._erase_written(derived)
        await self._erase_lived()
        for audience in audiences:
            self._count("audience_member", await self._write(partial(unlist, audience=audience)))
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
        await self._merge()
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
            is_lent=is_lent,
        )

    async def _merge(self) -> None:
        """Merge the moments' index, which until then holds what was deleted from it; 0.3 s of 100,000 moments."""
        while await self._write(merge_index) > 1:
            pass

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
        for row in await in_thread(lambda: [one for one in told if derived.holds(one["text"], one["audience"])]):
            change, names = _TOLD[row["kind"]]
            key = [int(row["a"]) if name in ("id", "cycle") else row["a"] for name in names[:1]]
            values = dict(zip(names, (*key, row["b"]), strict=False))
            self._count(row["kind"], await self._write(changing(change, [values])), is_derived=True)
        await self._erase_booked(derived)

    async def _erase_booked(self, derived: Derived) -> None:
        """Erase what turns booked for others from what is erased; what these said themselves stays theirs.

        Of a turn that is derived at first hand a plan stays where it holds no word but theirs, all else where half are.
        """
        booked, ids = self._beside.dicts("booked"), dump(list(self._person.ids))
        await in_thread(derived.weigh, self._beside, [one["whole"] for one in booked])
        for row in booked:
            is_theirs = row["turn"] not in derived.first
            if not is_theirs:
                written, said = marks(row["text"]), self._beside.values("said_in_turn", turn=row["turn"], ids=ids)
                most = 0 if row["kind"] == "asked" else len(written) // 2
                is_theirs = len(written - marks(" ".join(said))) <= most
            if not is_theirs or await in_thread(derived.holds, row["whole"], row["audience"]):
                table, change = _BOOKED[row["kind"]]
                if table == "fact":
                    await self._write(changing("fact_unkeyed", [row]))
                self._count(table, await self._write(changing(change, [row])), is_derived=True)

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
                self._portraits.append(PortraitPutBack(**place, version=version))
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
        """Delete the psyche's subjects that came from this person: at most twelve."""
        turns = {one["turn"] async for page in self._pages("erasing_turns", SEARCHED) for one in page}
        self._count("psyche_arc", await self._write(partial(erase_subjects, person=self._person, turns=turns)))

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
    ("moment", "facts_of_person", "fact_unkeyed"),
)
_TOUCHED = (
    ("inbox", "directives_of", "erase_heard"),
    ("assessment", "assessments_derived", "erase_assessment"),
    ("lesson", "lessons_of", "erase_lesson"),
    ("belief", "beliefs_of", "erase_belief"),
    ("reflection", "reflections_of", "erase_reflection"),
    ("step", "summarising", "erase_summarising"),
    ("summary", "summaries_of", "erase_summary"),
    ("moment", "diaries_of", "erase_diary"),
    ("whisper", "whispers_of", "erase_whisper"),
    ("kept", "kept_of", "erase_kept"),
    ("fact", "facts_told", "erase_fact"),
    ("matter", "matters_told", "erase_matter"),
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
    "moment": ("erase_diary", ("id",)),
    "kept": ("erase_kept", ("conversation", "name")),
    "promise": ("erase_promise", ("id",)),
    "due": ("erase_own_plan", ("id",)),
    "psyche_arc": ("erase_arc", ("subject",)),
    "step": ("erase_summarising", ("turn", "n")),
    "conversation": ("process_blanked", ("conversation",)),
}
"""What deletes a row of `told`, by its table, and the names of its key."""
_BOOKED: Mapping[str, tuple[str, str]] = {
    "fact": ("fact", "erase_fact"),
    "matter": ("matter", "erase_matter"),
    "asked": ("due", "plan_in_own_words"),
}
"""The table of each kind of `booked`, and what erases a row's words."""
_ERASING = ("turn", "conversation", "number", "record")
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


async def paged(rows: list[dict[str, Any]]) -> AsyncIterator[list[dict[str, Any]]]:
    """Yield a few turns at a time."""
    for at in range(0, len(rows), TURNS):
        yield rows[at : at + TURNS]


def export(db: Database, ids: Sequence[str]) -> dict[str, Any]:
    """Return all that a person said and was answered, as far as it is kept, and what was learned from it."""
    values = {"ids": dump(list(ids)), "labels": dump([private(one) for one in ids])}
    return {
        "messages": db.dicts("messages_of", ids=values["ids"]),
        "moments": [{**row, "is_own": bool(row["is_own"])} for row in db.all("moments_said", ids=values["ids"])],
        "facts": db.dicts("facts_stated", ids=values["ids"]),
        "matters": db.dicts("matters_stated", ids=values["ids"]),
        "plans": db.dicts("plans_made", ids=values["ids"]),
        "state": db.dicts("state_of_labels", labels=values["labels"]),
    }


class Undone(Struct, frozen=True):
    """What follows for what runs."""

    voided: tuple[tuple[str, str], ...] = ()
    """Turns that are to be thought again, each with its conversation."""
    waiting: tuple[str, ...] = ()
    """Conversations in which what edited words ask for is thought about once the old ones are gone."""
    is_new: bool = False
    """Whether something may have been erased."""
    is_left: bool = False
    """Whether it is to be done again, because turns run that may have begun with words that are gone."""


class Unsaying:
    """Undoes all changes that wait, together: a hundred edits of one message cost hardly more than one."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._done: frozenset[int] = frozenset()
        """Changes that are undone, but for what turns wrote that ran then."""
        self._ran: frozenset[str] = frozenset()
        """Those turns."""

    async def undo(self) -> Undone:
        """Undo what waits; a change that turns may still have in sight is looked at again once they have ended."""
        rows = self._core.look("unsaid_now")
        if not rows:
            return Undone()
        await self._core.flush()
        numbers = frozenset(row["n"] for row in rows)
        ran, is_new = self._running(), bool(numbers - self._done)
        if not is_new and self._ran & ran:
            return Undone(is_left=True)
        with self._core.beside() as db:
            changes = [change for row in rows if (change := _change_in(row))]
            work = _WordsErased(db, self._core, changes)
            await work.undo()
        self._ran = ran & self._running() if is_new else frozenset()
        self._done = numbers if self._ran else frozenset()
        if not self._ran:
            await self._core.write(changing("unsaid_done", [{"n": n} for n in numbers]))
        waiting = tuple({one.conversation for one in changes if one.conversation})
        return Undone(tuple(sorted(work.voided)), waiting, is_new=True, is_left=bool(self._ran))

    def _running(self) -> frozenset[str]:
        return frozenset(row["turn"] for row in self._core.look("turns_under_way"))


class _WordsErased(Erasure):
    """The erasure of some words of some messages."""

    def __init__(self, db: Database, core: Core, changes: Sequence[Unsaid]) -> None:
        super().__init__(db, core.write, (), {}, self._keep)
        self._changes = changes
        self.voided: set[tuple[str, str]] = set()

    def _keep(self, turns: Sequence[tuple[str, str]]) -> None:
        self.voided.update(turns)

    async def undo(self) -> None:
        """Erase what holds them, and was written with them in sight."""
        heard = [one for one in self._changes if one.turn and (not one.now or one.gone(one.before))]
        changes = [*heard, *(one for one in self._changes if not one.turn)]
        if not changes:
            return
        source, since = ErasedSource(whole=False), min(one.at for one in changes)
        for one in heard:
            source.turns.add(one.turn)
            source.stems |= one.gone(one.before)
            source.add_line(one.conversation, one.number)
            source.rows.add(("moment", str(one.moment)))
            source.silent.add(one.said)
        for one in changes:
            source.rows.update(one.rows)
        showed, unread = await in_thread(self._showed, changes, since, source)
        derived = Derived(source)
        found = [*await in_thread(derived.find, self._beside, unread, since)] if heard or showed else []
        voiding = [one for one in changes if one.turn or not one.now]  # a turn that shows what was edited ends first
        await self._void(
            "running_turns",
            is_everywhere=bool(found) or not all(one.now for one in heard),
            channels=dump(sorted({Place.of(one.conversation).of_channel for one in voiding})),
        )
        if not (heard or showed):
            return
        found += await in_thread(derived.find, self._beside, unread, since)
        await self._put_back(derived)
        await self._erase_told(derived)
        await self._erase_turns(paged([{name: getattr(turn, name) for name in _ERASING} for turn in found]))
        await self._write(lambda db: sum(forget_words(db, one) for one in heard))
        await self._write(lambda db: sum(forget_shown(db, one) for one in showed))
        await self._merge()

    def _showed(
        self, changes: Sequence[Unsaid], since: str, source: ErasedSource
    ) -> tuple[list[SeenTurn], list[dict[str, Any]]]:
        """Return the turns that were shown a text which is gone by now, and add its words to what is erased.

        And those of which no record says any more in what words: all that they wrote is derived.
        """
        found, unread = list[SeenTurn](), list[dict[str, Any]]()
        for turn in turns_seen(self._beside, since):
            for one in changes:
                is_brought = one.is_unread and one.turn == turn.turn
                if is_brought or not set(one.rows).isdisjoint(turn.seen.rows):
                    is_here = Place.of(turn.conversation).of_channel == Place.of(one.conversation).of_channel
                    texts = words_shown(self._beside, turn.record, one.rows, is_deleted=not one.now)
                    gone = one.gone(" ".join(texts or ()))
                    if (gone or texts is None) and (is_here or not one.now):
                        source.stems |= gone
                        found.append(turn)
                        unread += [{name: getattr(turn, name) for name in _ERASING}] * (texts is None)
        return found, unread


def _change_in(row: Row) -> Unsaid | None:
    try:
        change: Unsaid = decoder(Unsaid).decode(row["change"])
    except msgspec.DecodeError:
        log.error("what an edit took away cannot be followed: its row is damaged", extra={"row": row["n"]})  # noqa: TRY400 - no trace
        return None
    return change


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
        voided: Voided = untold,
        posts: Posts = untold,
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

    async def posts_since(self, since: datetime) -> Sequence[HeardPost]:
        """Return what a network may have changed unheard: messages since an instant. Reads outside the event loop."""
        await self._core.flush()
        with self._core.beside() as db:
            return await in_thread(posts_since, db, stamp(since))

    async def beyond(self) -> Sequence[Beyond]:
        """Return what a receipt must name besides, because the database keeps copies that are not ours to erase."""
        return ()

    async def overwrite_later(self) -> None:
        """Note durably, where several homes share the store, that deleted rows are to be overwritten."""

    async def is_to_be_overwritten(self) -> bool:
        """Return whether `overwrite_later` noted something that `overwrite` has not done since."""
        return False

    async def empty_log(self) -> Sequence[str]:
        """Leave nothing of what was erased in the log beside a file; return as `overwrite`. Raises: StoreError."""
        return ()

    @abstractmethod
    async def overwrite(self) -> Sequence[str]:
        """Overwrite all deleted rows, beside the writer or in its pauses.

        Returns what somebody used all the while, which waits for another call. Raises: StoreError.
        """

    async def everyone(self) -> tuple[Sequence[str], str]:
        """Return every id that occurs anywhere, and when something was last heard: UTC as text, empty if never."""
        await self._core.flush()
        with self._core.snapshot() as db:
            return db.values("everyone"), db.value("last_heard") or ""
