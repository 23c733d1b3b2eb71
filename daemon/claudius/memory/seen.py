"""What stood in the prompt of a turn, as the ids of rows, and which texts of the soul come from rows that are erased.

Nothing is kept for it: the turn's snapshot names the rows, and when a record expires its ids take its place. All that
the soul wrote in that turn may have come from them.

First hand: a turn that saw such a row is derived, whole. Second hand: one that saw only what was written in such a turn
is derived where it names the person, or holds a word of what is erased that nothing else gives, until no more is found;
else everybody would soon have seen everybody. Where one message is deleted or edited, the second test alone is made.
Source: the design of acts, section 8.
"""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from claudius.decoding import decoder
from claudius.failure import KeptFailure
from claudius.intent import Thought
from claudius.memory.database import Database, Decoding, Row, dump, instant, parse
from claudius.memory.documents import sections
from claudius.memory.packing import unpacked
from claudius.memory.ranking import FUNCTION_WORDS, marks
from claudius.perception import private
from claudius.recollection import Entry
from claudius.shown import BROUGHT, How

log = logging.getLogger(__name__)

ERASED = b"erased"
"""Replaces the snapshot of a turn that was erased."""
BLANK = "[erased]"
"""Replaces a line that was erased."""
READ = 200
"""Rows read at once."""
NAME_CHARS = 3
"""A shorter part of a name is no name."""
Name = tuple[str, ...]
"""The name of a row: its kind, and its key."""


class Seen(Struct, frozen=True, array_like=True):
    """The rows that stood in a turn's prompt."""

    first: int = 0
    """The oldest turn of its conversation that the prompt told of, itself or in a summary; 0 = none."""
    rows: tuple[Name, ...] = ()


class HeardPost(Struct, frozen=True):
    """A message that was heard, or shown above another: its key, its place, how many files and previews it brought."""

    key: str
    conversation: str
    brings: int


class _Shown(Struct, frozen=True):
    person: str
    audience: str
    version: int


class _State(Struct, frozen=True):
    key: str
    audience: str
    updated_at: datetime


class _Belief(Struct, frozen=True):
    key: str
    audience: str = ""
    peer_id: str | None = None


class _Quoted(Struct, frozen=True):
    person: str = ""
    of: str = ""
    how: How | None = None
    text: str = ""


class _File(Struct, frozen=True):
    name: str = ""
    text: str | None = None
    end: str | None = None


class _Extra(Struct, frozen=True):
    shown: tuple[_Quoted, ...] = ()
    read: tuple[_File, ...] = ()


class _Perception(Struct, frozen=True):
    key: str = ""
    extra: _Extra = _Extra()


class _Row(Struct, frozen=True):
    id: int = 0
    number: int = 0
    whisper: int = 0
    peer_id: str = ""


class _Known(Struct, frozen=True):
    perceptions: tuple[_Perception, ...] = ()
    state: tuple[_State, ...] = ()
    summary: Any = None
    peers: tuple[_Row, ...] = ()
    beliefs: tuple[_Belief, ...] = ()
    intuitions: tuple[_Row, ...] = ()
    known: tuple[_Row, ...] = ()
    matters: tuple[_Row, ...] = ()


class _Remembered(Struct, frozen=True):
    rows: tuple[str, ...] = ()


class _Plan(Struct, frozen=True):
    shown: tuple[_Shown, ...] = ()
    remembered: _Remembered = _Remembered()


class _Snapshot(Struct, frozen=True):
    """As much of a snapshot as names rows."""

    recollection: _Known
    plan: _Plan
    past: tuple[int | str | _Row, ...] = ()
    used: tuple[str, ...] = ()


def seen_in(snapshot: bytes) -> Seen:
    """Read the rows off a turn's snapshot, or off the ids that took its place. Pure. Raises: msgspec.MsgspecError."""
    if snapshot[:1] not in (b"{", b"["):
        return Seen()
    if snapshot[:1] == b"[":
        kept: Seen = decoder(Seen).decode(snapshot)
        return kept
    found: _Snapshot = decoder(_Snapshot).decode(snapshot)
    return Seen(first=_first(found.past, is_summed_up=bool(found.recollection.summary)), rows=tuple(_rows(found)))


def _first(past: Sequence[int | str | _Row], *, is_summed_up: bool) -> int:
    if is_summed_up or any(isinstance(one, str) for one in past):  # a hash, as in 0.1.0, does not say which turn
        return 1
    return min((one if isinstance(one, int) else one.number for one in past if not isinstance(one, str)), default=0)


def _rows(found: _Snapshot) -> Iterator[Name]:
    known = found.recollection
    for one in found.plan.shown:
        yield portrait(one.person, one.audience, one.version)
    for names in found.plan.remembered.rows:
        for name in names.split():
            kind, _, rest = name.partition(":")
            yield "fact" if kind == "ended" else kind, rest.partition(":")[0]
    yield from (("fact", str(one.id)) for one in known.known)
    yield from (("matter", str(one.id)) for one in known.matters)
    for value in known.state:
        yield state(value.key, value.audience, value.updated_at)
    for perception in known.perceptions:
        yield from (("person", quoted.person) for quoted in perception.extra.shown if quoted.person)
        yield from (post(quoted.of) for quoted in perception.extra.shown if quoted.of)
    for peer in known.peers:
        yield "person", peer.peer_id
    for belief in known.beliefs:
        yield "belief", belief.key, belief.audience
        if belief.peer_id:
            yield "person", belief.peer_id
    for intuition in known.intuitions:
        yield "whisper", str(intuition.whisper)
    yield from (("tool", name) for name in found.used)


def portrait(person: str, audience: str, version: int) -> Name:
    """Name one version of a portrait. Pure."""
    return "portrait", person, audience, str(version)


def state(key: str, audience: str, at: datetime) -> Name:
    """Name one value of the soul's state. Pure."""
    return "state", key, audience, str(at.timestamp())


def post(key: str) -> tuple[str, str]:
    """Name what a network shows, a message or a post of ours, by the network's own id, which ends its key. Pure."""
    return "post", key.rpartition(":")[2]


NO_SNAPSHOT = Raw(b"null")
"""No model was asked."""


ERASED_SNAPSHOT = Raw(b'"erased"')
"""It was erased."""


class KeptTurn(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a turn's record holds besides its columns."""

    entries: tuple[Entry, ...] = ()
    """The turn's own entries of working memory as committed; later prompts of its conversation show them."""
    snapshot: Raw = NO_SNAPSHOT
    """JSON from which `replay` rebuilds the prompt."""
    attention: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[str, Any] = field(default_factory=dict)
    thoughts: tuple[Thought, ...] = ()
    steps: tuple[str, ...] = ()
    """The cognitive steps that were asked."""
    prompt_sha256: str = ""
    """Hash of the first prompt; empty if none was built."""
    failure: KeptFailure | None = None
    """Why it says an apology or a fixed line."""
    responses: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Number of a model call → hash of its request, and its reply; calls missing here keep both in their own row."""


def unpack(content: bytes) -> KeptTurn:
    """Read a turn that `pack` wrote. Pure. Raises: ValueError, msgspec.ValidationError."""
    return decoder(KeptTurn).decode(unpacked(content))


def is_damaged(content: bytes) -> bool:
    """Return whether a packed document can no longer be read. Pure."""
    try:
        msgspec.json.decode(unpacked(content))
    except (ValueError, msgspec.MsgspecError):
        return True
    return False


def snapshot_of(kept: KeptTurn) -> bytes:
    """Return the JSON of a turn's snapshot. Pure.

    Empty if no model was asked, `ERASED` if it was erased, or the names of its rows took its place.
    """
    snapshot = bytes(kept.snapshot)
    return b"" if snapshot == bytes(NO_SNAPSHOT) else snapshot if snapshot[:1] == b"{" else ERASED


def names_left(kept: KeptTurn, without: Collection[str] = ()) -> Raw:
    """Return what takes the place of a snapshot that is erased: its rows, but those of some persons. Pure."""
    try:
        seen = seen_in(bytes(kept.snapshot))
    except msgspec.MsgspecError:
        return ERASED_SNAPSHOT
    left = [row for row in seen.rows if not set(row).intersection(without)]
    return Raw(msgspec.json.encode(replace(seen, rows=tuple(left))))


def perception_of(row: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Join what the inbox keeps of a perception with its words, which working memory keeps."""
    perception: dict[str, Any] = parse(row["payload"])
    if not perception["text"]:
        said = (entry for entry in entries if entry["position"] == perception["position"])
        perception["text"] = next((entry["content"] for entry in said), "")
    return {**perception, "state": row["state"], "attempts": row["attempts"], "heard_at": row["heard_at"]}


def expired_entries(row: Mapping[str, Any], heard: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines of a turn that working memory no longer holds: the ledger's preview, thoughts, words said."""
    head = {"turn": row["turn"], "at": row["at"], "name": None, "metadata": {}, "audience": row["audience"]}
    head |= {"unsaid": False, "expired": True}
    mine = [one for one in heard if one["turn"] == row["turn"]]
    kept = unpack(row["kept"]) if row["kept"] is not None else KeptTurn()
    is_erased = snapshot_of(kept) == ERASED
    lines = [
        head | {"entry_type": "userMessage", "verb": None, "person": one["person"], "content": one["preview"]}
        for one in mine
    ]
    if is_erased or not (mine or kept.entries):
        lines.append(
            head | {"entry_type": "erased" if is_erased else "expired", "verb": None, "person": None, "content": ""}
        )
    for one in kept.entries:
        if one.person is None:
            said = {"entry_type": one.entry_type.value, "verb": one.verb, "person": None, "content": one.content}
            lines.append(head | said | {"metadata": dict(one.metadata)})
    return lines


def remembered(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what working memory still holds of perceptions whose keys were deleted."""
    kept = ("at", "person", "name", "position")
    return [{name: one[name] for name in kept} | {"text": one["content"]} for one in entries if one["person"]]


def call_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return one model call as documents show it. Pure."""
    tokens = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "cost_usd")
    told = {name: row[name] for name in ("n", "purpose", "response", "stop_reason", "provider", "model", "ms")}
    usage = {name: row[name] for name in tokens} | {"estimated": bool(row["estimated"])}
    return {**told, "prompt_sha256": row["request_sha256"], "usage": usage}


def usage_of(calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the calls of a turn used together. Pure."""
    usages = [call["usage"] for call in calls]
    tokens = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    costs = [usage["cost_usd"] for usage in usages if usage["cost_usd"] is not None]
    return {name: sum(usage[name] for usage in usages) for name in tokens} | {
        "cost_usd": sum(costs) if costs else None,
        "estimated": any(usage["estimated"] for usage in usages),
    }


_NOTHING_YET: Mapping[str, Any] = {
    **dict.fromkeys(("process", "rung", "verb", "response", "utterance", "apology", "provider", "model", "snapshot")),
    **{name: [] for name in ("thoughts", "steps", "shown", "flags", "entries", "calls", "delivery", "reactions")},
    "tools": [],
    "attention": {},
    "changes": {},
    "usage": usage_of(()),
    "prompt_sha256": "",
    "expired_at": None,
}


def unfinished(turn: str, rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return what is known of a turn that is still tried, or that was given up; None if there is no such turn."""
    if not rows:
        return None
    with Decoding("inbox", turn):
        heard = [perception_of(row, ()) for row in rows]
    last, failure = heard[-1], KeptFailure.read(rows[-1]["reason"])
    if rows[-1]["state"] == "dead" and failure is None:
        failure = KeptFailure(kind="given_up", detail=str(rows[-1]["reason"]), fix="`claudius daemon logs` says more")
    return {
        "turn": turn,
        "at": last["heard_at"],
        "conversation": last["conversation"],
        "audience": last["audience"],
        "person": last["person"],
        "perception": last,
        "perceptions": heard,
        "failure": failure.document if failure else None,
        **_NOTHING_YET,
    }


def kept_of(row: dict[str, Any], calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the contents of a turn's record, in the current or an older format; attach to each call its reply."""
    packed = row.pop("kept")
    if row["expired_at"]:
        return {"attention": {}, "changes": {}, "thoughts": [], "steps": [], "snapshot": b"", "failure": None}
    if packed is None:
        return {name: parse(row[name]) for name in ("attention", "changes", "thoughts", "steps")} | {"failure": None}
    kept = unpack(packed)
    for call in calls:
        if str(call["n"]) in kept.responses:
            call["prompt_sha256"], call["response"] = kept.responses[str(call["n"])]
    return {
        "attention": kept.attention,
        "changes": kept.changes,
        "steps": list(kept.steps),
        "prompt_sha256": kept.prompt_sha256,
        "thoughts": [msgspec.to_builtins(one) for one in kept.thoughts],
        "snapshot": snapshot_of(kept),
        "failure": kept.failure.document if kept.failure else None,
    }


class Traces(Struct, frozen=True, kw_only=True):
    """By what a text of the soul's tells of a person; it goes with their rows, so it is read before these go."""

    names: tuple[str, ...] = ()
    stems: tuple[str, ...] = ()
    """Words of theirs, reduced to stems."""
    rows: tuple[tuple[str, str], ...] = ()
    """Their moments and facts, each by its kind and its key."""


class ErasedSource(Struct, kw_only=True):
    """What is erased, before anything that was derived from it."""

    ids: Sequence[str] = ()
    """Every id of the person; empty where it is one message."""
    rows: set[Name] = field(default_factory=set)
    lines: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """By conversation, the numbers of the turns that hold a line of it, in order."""
    turns: set[str] = field(default_factory=set)
    """The turns that heard it."""
    stems: set[str] = field(default_factory=set)
    """Words of it, reduced to stems."""
    names: Sequence[str] = ()
    silent: set[str] = field(default_factory=set)
    """Messages that stay and give nothing any more."""
    whole: bool = True
    """Whether all that was written with it in sight is derived, whatever it says."""

    def add_line(self, conversation: str, number: int) -> None:
        """Add a turn that holds a line of it."""
        numbers = self.lines[conversation]
        at = bisect_left(numbers, number)
        if numbers[at : at + 1] != [number]:
            numbers.insert(at, number)

    def has_line(self, conversation: str, first: int, end: int) -> bool:
        """Return whether one of these turns of a conversation holds a line of it."""
        numbers = self.lines.get(conversation, [])
        at = bisect_left(numbers, first)
        return at < len(numbers) and numbers[at] < end


class SeenTurn(Struct, frozen=True):
    """One turn, and what stood in its prompt."""

    turn: str
    conversation: str
    number: int
    record: int
    audience: str
    seen: Seen


class Derived:
    """The turns whose texts come from what is erased. `find` looks again, at what is new too."""

    def __init__(self, source: ErasedSource) -> None:
        self._source = source
        self._turns: dict[str, SeenTurn] = {}
        self._named = _names(source.names)
        self._stems = set(source.stems)
        self._given = defaultdict[str, set[str]](set)
        """By audience, the words that it gives if it is private, so to no other; empty = all that others give."""
        self._written = ErasedSource()
        """What the derived turns wrote."""
        self._versions: dict[tuple[str, str], int] = {}
        """By portrait, the first version that a derived turn wrote."""
        self.first: set[str] = set()
        """Derived at first hand, whole."""
        self.second: set[str] = set()
        self._marked: dict[str, set[str]] = {}
        """What was asked of a text once: the writer asks again, and 2,000 texts take it .4 s to stem."""
        self.saw: set[str] = set()
        """Saw what may be told in another text, so each text of it is tested."""

    def find(self, db: Database, first: Iterable[Mapping[str, Any]], since: str) -> Sequence[SeenTurn]:
        """Return the turns that are derived and were not known to be, among those since an instant.

        `first`: turns that are derived in any case, whole.
        """
        before = self.first | self.second
        given = {row["turn"] for row in first}
        own = given | self._source.turns
        for row in first:
            self._source.add_line(row["conversation"], row["number"])
        self._turns.update((one.turn, one) for one in turns_seen(db, since, self._turns.keys()))
        direct = {one.turn for one in self._turns.values() if one.turn in own or self._is_in_sight(one, self._source)}
        new = (direct if self._source.whole else given) - before
        self.first |= new
        # what it looked up may be theirs, and no row of it is named
        recalled = {one.turn for one in self._turns.values() if ("tool", "recall") in one.seen.rows}
        self.saw |= (direct | recalled) - self.first
        self._follow(db, new)
        while new := self._tested(db):
            self.second |= new
            self._follow(db, new)
        return [self._turns[turn] for turn in sorted((self.first | self.second) - before) if turn in self._turns]

    def holds(self, text: str, audience: str) -> bool:
        """Return whether a text of an audience names the person or holds a word that only what is erased gave there."""
        given = (self._given[""], self._given[audience]) if audience else self._given.values()
        return bool(self._named.search(text)) or bool(self._stems.intersection(self._marks(text)).difference(*given))

    def _marks(self, text: str) -> set[str]:
        if text not in self._marked:
            self._marked[text] = marks(text)
        return self._marked[text]

    def is_derived(self, turn: str | None, text: str) -> bool:
        """Return whether a text that a turn wrote is derived."""
        return turn in self.first or (turn in self.saw and self.holds(text, self._audience(turn)))

    def _audience(self, turn: str) -> str:
        return self._turns[turn].audience if turn in self._turns else ""

    def _is_in_sight(self, one: SeenTurn, source: ErasedSource) -> bool:
        rows = one.seen.rows
        if source.has_line(one.conversation, one.seen.first or one.number, one.number):
            return True
        if not source.rows.isdisjoint(rows):
            return True
        return any(row[1] in source.ids for row in rows if row[0] in ("person", "portrait"))

    def _follow(self, db: Database, turns: Collection[str]) -> None:
        """Learn what these turns wrote, and who saw it."""
        for turn in turns:
            one = self._turns.get(turn)
            if one:
                self._written.add_line(one.conversation, one.number)
                self._learn(soul_texts_of(db, one, acts=False))
        for row in db.all("written_by", turns=dump(sorted(turns))):
            if row["kind"] == "portrait":
                where = row["a"], row["b"]
                self._versions[where] = min(int(row["c"]), self._versions.get(where, int(row["c"])))
            elif row["kind"] == "state":
                self._written.rows.add(state(row["a"], row["b"], instant(row["c"])))
            else:
                self._written.rows.add(tuple(part for part in (row["kind"], row["a"], row["b"]) if part))
        for one in self._turns.values():  # oldest first, so that what saw one of them is found in the same round
            if one.turn not in self.first and (self._is_in_sight(one, self._written) or self._saw_portrait(one)):
                self.saw.add(one.turn)
            if (
                one.turn in self.saw
            ):  # it may have been shown a portrait, which later turns of its place are shown again
                self._written.add_line(one.conversation, one.number)

    def _saw_portrait(self, one: SeenTurn) -> bool:
        found = [row for row in one.seen.rows if row[0] == "portrait"]
        return any(int(row[3]) >= self._versions.get((row[1], row[2]), int(row[3]) + 1) for row in found)

    def _learn(self, texts: Iterable[str]) -> None:
        for text in texts:
            self._stems.update(marks(text))

    def _tested(self, db: Database) -> set[str]:
        """Return those at second hand whose texts are derived."""
        open_to_test = self.saw - self.first - self.second
        texts = {turn: [*soul_texts_of(db, self._turns[turn])] for turn in open_to_test if turn in self._turns}
        self.weigh(db, [text for said in texts.values() for text in said])
        return {turn for turn, said in texts.items() if any(self.holds(text, self._audience(turn)) for text in said)}

    def weigh(self, db: Database, texts: Iterable[str]) -> None:
        """Find out which words of these texts something gives that stays, before `holds` is asked about them."""
        missing = {mark for text in texts for mark in self._marks(text)} & self._stems - self._given[""]
        not_counted = self.first | self.saw
        for query in ("texts_that_stay", "soul_texts"):
            if not missing:
                return
            values = {"ids": dump(list(self._source.ids))} if query == "texts_that_stay" else {}
            cursor = db.connection.execute(db.queries[query], values)
            while missing and (rows := cursor.fetchmany(READ)):
                for row in rows:
                    if row["text"] in self._source.silent:
                        continue
                    if query == "soul_texts" or row["turn"] not in not_counted:
                        text = row["text"].decode("utf-8", "replace") if query == "soul_texts" else row["text"] or ""
                        given = missing.intersection(marks(text))
                        is_private = query != "soul_texts" and row["audience"].startswith(private(""))
                        self._given[row["audience"] if is_private else ""] |= given
                        missing -= self._given[""]


def traces_of(db: Database, values: Mapping[str, str]) -> Traces:
    """Return by what a text tells of a person; `values` are the queries'."""
    ids, stems = {"ids": values["ids"]}, set[str]()
    rows = tuple((row["kind"], row["a"]) for row in db.all("rows_of_person", **ids))
    rows += tuple(post(key) for key in db.values("keys_of_person", **ids))
    cursor = db.connection.execute(db.queries["texts_of"], ids | {"labels": values["labels"]})
    while found := cursor.fetchmany(READ):
        stems.update(*(marks(row["text"]) for row in found if row["text"]))
    return Traces(names=tuple(db.values("names_of_person", **ids)), stems=tuple(sorted(stems)), rows=rows)


def turns_seen(db: Database, since: str, known: Collection[str] = ()) -> Iterator[SeenTurn]:
    """Yield the turns since an instant with what they saw, oldest first, but those that are known."""
    last: Mapping[str, Any] = {"at": since, "conversation": "", "number": 0}
    while rows := db.all("turns_seen", **last, most=READ):
        for row in rows:
            if row["turn"] not in known:
                where = row["conversation"], row["number"], row["record"], row["audience"]
                yield SeenTurn(row["turn"], *where, seen_by(row))
        last = {name: rows[-1][name] for name in last}


def seen_by(row: Row) -> Seen:
    """Return what stood in the prompt of a turn; nothing where its record is damaged, and then it wrote nothing."""
    kept = row["kept"]
    if kept is not None and is_damaged(kept):
        return Seen()
    try:
        return seen_in(row["snapshot"] if kept is None else bytes(unpack(kept).snapshot))
    except msgspec.MsgspecError:
        log.warning("what a turn saw cannot be read", extra={"turn": row["turn"]})
        return Seen(first=1)


def words_brought(db: Database, record: int, key: str, left: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """Return the texts that a message brought besides its words, as its turn read them, but those of files it has left.

    None if nothing says so any more.
    """
    heard = _heard_in(db, record)
    if heard is None:
        return None
    found, names = [one.extra for one in heard if one.key == key], [file.get("name") for file in left]
    files = [file for extra in found for file in extra.read if file.name not in names]
    shown = [one.text for extra in found for one in extra.shown if one.how in BROUGHT]
    return [text for text in (*shown, *[part for file in files for part in (file.text, file.end)]) if text]


def words_shown(db: Database, record: int, rows: Collection[Name], *, is_deleted: bool) -> list[str] | None:
    """Return the texts of some posts that a turn was shown, where it must not have them any more; None as above.

    What only shows a message, as a forward does, is left as it is where that message was edited.
    """
    heard = _heard_in(db, record)
    if heard is None:
        return None
    lasting = () if is_deleted else BROUGHT
    shown = (quoted for one in heard for quoted in one.extra.shown)
    return [one.text for one in shown if one.of and post(one.of) in rows and one.how not in lasting]


def _heard_in(db: Database, record: int) -> Sequence[_Perception] | None:
    """Return what a turn heard; None where its record has expired, was erased, or is damaged."""
    kept = db.value("record_kept", record=record)
    snapshot = ERASED if kept is None or is_damaged(kept) else snapshot_of(unpack(kept))
    if not snapshot:
        return ()
    try:
        found: _Snapshot = decoder(_Snapshot).decode(snapshot)
    except msgspec.MsgspecError:  # if it is damaged, `seen_by` says so
        return None
    return found.recollection.perceptions


def posts_since(db: Database, since: str) -> list[HeardPost]:
    """Return which messages were heard, or shown, since an instant, and are there as far as anybody knows."""
    places, bring = {row["key"]: row["conversation"] for row in db.all("heard_since", since=since)}, dict[str, int]()
    for turn in turns_seen(db, since):
        for one in _heard_in(db, turn.record) or ():
            bring[one.key] = len(one.extra.read) + sum(it.how in BROUGHT for it in one.extra.shown)
            for it in one.extra.shown:
                if it.of and it.how not in BROUGHT:
                    places.setdefault(it.of, turn.conversation)
    return [HeardPost(key, conversation, bring.get(key, 0)) for key, conversation in places.items()]


def soul_texts_of(db: Database, one: SeenTurn, *, acts: bool = True) -> Iterator[str]:
    """Yield what the soul wrote in a turn; without `acts` not what it booked, which may be in the words of others."""
    values = {"turn": one.turn, "conversation": one.conversation, "number": one.number}
    yield from (row["text"] for row in db.all("soul_lines", **values) if row["text"] and (acts or not row["is_acts"]))
    kept = db.value("record_kept", record=one.record)
    if kept is not None and not is_damaged(kept):
        found: KeptTurn = unpack(kept)
        yield from (thought.content for thought in found.thoughts if acts or thought.step != "acts")


def put_back(versions: Sequence[Row], is_derived: Callable[[str | None, str], bool]) -> list[str]:
    """Return the versions of a portrait, oldest first, without the sections that were last written from what is erased.

    Where an earlier text of a section is not derived, it stands there again. Pure.
    """
    found: list[str] = []
    good: dict[str, str] = {}
    bad: set[tuple[str, str]] = set()
    before: dict[str, str] = {}
    for version in versions:
        now, left = sections(version["markdown"]), dict[str, str]()
        for heading, text in now.items():
            is_new = before.get(heading) != text
            if is_new and text and (heading, text) not in bad and is_derived(version["turn"], f"{heading}\n{text}"):
                bad.add((heading, text))
            if (heading, text) in bad:
                if heading in good:
                    left[heading] = good[heading]
            else:
                left[heading] = good[heading] = text
        before = now
        parts = [f"## {heading}\n{body}".strip() if heading else body for heading, body in left.items()]
        found.append(version["markdown"] if left == now else "\n\n".join(parts) + "\n" * bool(parts))
    return found


def _names(names: Sequence[str]) -> re.Pattern[str]:
    """Match the names of one person: a whole one in any case, a part of one only as a name is written.

    What stands in brackets tells of their work. Else "Alex (Sales)" would be named in "the sales meeting". Pure.
    """
    whole = {one for name in names if len(one := re.sub(r"\s*[(\[].*?[)\]]", "", name).strip()) >= NAME_CHARS}
    parts = {part for name in whole for part in re.findall(r"\w+", name) if len(part) >= NAME_CHARS}
    written = {form for part in parts if part.casefold() not in FUNCTION_WORDS for form in (part, part.capitalize())}
    single = {one for one in whole if not re.search(r"\W", one)}
    forms = [rf"(?i:{re.escape(one)})" for one in sorted(whole - single)] + [re.escape(one) for one in sorted(written)]
    return re.compile("|".join(rf"(?<!\w){one}(?!\w)" for one in forms) or r"(?!)")
