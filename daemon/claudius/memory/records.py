"""What commands read beside the process that takes turns: synchronous, read-only, rows as plain dicts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from msgspec.structs import asdict, replace

from claudius.decoding import decoder
from claudius.errors import StoreError
from claudius.failure import KeptFailure
from claudius.ledger_types import Belief, Peer, Reflection
from claudius.memory import ledger
from claudius.memory.calls import Pin, document_of, pins_in
from claudius.memory.calls import call_of as tool_call_of
from claudius.memory.database import Database, Decoding, dump, parse, stamp
from claudius.memory.documents import model_path
from claudius.memory.erasure import export
from claudius.memory.facts import FORGOTTEN, Knowledge, find, knowledge_of, names_of
from claudius.memory.moments import cut
from claudius.memory.packing import unpacked
from claudius.memory.psyche import recall_psyche
from claudius.memory.seeing import EPOCH, Seeing, alone
from claudius.memory.seen import (
    call_of,
    expired_entries,
    is_damaged,
    kept_of,
    perception_of,
    remembered,
    unfinished,
    unpack,
    usage_of,
)
from claudius.perception import SELF, Place
from claudius.psyche_types import Edge, Psyche
from claudius.recollection import Entry, Fact, Matter, PastTurn, Shown
from claudius.soul.source import PushedSoul
from claudius.tool import may_remember


class Expired(LookupError):
    """A turn's record has expired and was deleted."""

    def __init__(self, at: str) -> None:
        """`at`: when it was deleted, as the database writes it."""
        super().__init__(at)
        self.at = at


By = Literal["day", "model", "person", "conversation", "job"]

ASSESSMENTS, TIMELINE = 10_000, 200
"""How many assessments and interactions of one peer are shown at most, the newest."""
_FEW = 20
_RECALLED = {"moment": "moment_text", "fact": "fact_text", "ended": "fact_ended_text"}
"""The query of the text of each kind of row that a prompt recalls."""
_AFTER_ALL = 2**62
"""Later than the number of any turn."""


class Records:
    """What a command reads beside a running daemon. Rows are plain dicts with the keys of the outward interfaces."""

    def __init__(self, database: Database, memory: Path, translate: Callable[[Exception], StoreError]) -> None:
        """Read with `database`; `memory` is the directory of the archive's files, `translate` makes errors ours."""
        self._db, self._memory_home, self._translate = database, memory, translate
        self.is_open = True

    def close(self) -> None:
        """Close the file."""
        self.is_open = False
        self._db.connection.close()

    def counts(self, now: datetime) -> Mapping[str, Any]:
        """Return `{"inbox": {"pending", "dead"}, "outbox": {"pending", "failed"}, "turns": {"total", "today"}}`."""
        today = now.replace(hour=0, minute=0, second=0, microsecond=0)
        with self._snapshot() as db:
            inbox = {row["state"]: int(row["waiting"]) for row in db.all("count_inbox")}
            dead = inbox.pop("dead", 0)
            return {
                "inbox": {"pending": sum(inbox.values()), "dead": dead},
                "outbox": {"pending": _number(db, "count_outbox_open"), "failed": _number(db, "count_outbox_dead")},
                "turns": {
                    "total": _number(db, "count_turns"),
                    "today": _number(db, "count_turns_since", since=stamp(today)),
                },
            }

    def waits_since(self) -> Mapping[str, datetime]:
        """Return since when the oldest unfinished row waits, by queue: `inbox`, `outbox`; an empty queue has no key."""
        rows = self._look("waits_since")
        with Decoding("inbox"):
            return {row["queue"]: datetime.fromisoformat(row["at"]) for row in rows if row["at"]}

    def conversations(self) -> Sequence[Mapping[str, Any]]:
        """Return all conversations, latest first."""
        return self._look("conversations")

    def conversation(self, conversation: str) -> Mapping[str, Any] | None:
        """Return one conversation with its entries, oldest first."""
        with self._snapshot() as db:
            found = db.dicts("conversation_shown", conversation=conversation)
            if not found:
                return None
            entries = db.dicts("entries_shown", conversation=conversation)
            diary = _diaries(db, [conversation])
        with Decoding("conversation", conversation):
            _decode(entries)
            return {**found[0], "params": parse(found[0]["params"]), "diary": diary, "entries": entries}

    def diaries(self, persons: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        """Return what the soul wrote for itself of days that were over, oldest first, where these persons spoke."""
        with self._snapshot() as db:
            return _diaries(db, db.values("places_spoken_in", ids=dump(list(persons))))

    def diaries_between(self, begin: datetime, end: datetime) -> Sequence[Mapping[str, Any]]:
        """Return what it wrote between two instants, oldest first, wherever that was."""
        first, last = (one.astimezone(UTC).isoformat(timespec="seconds") for one in (begin, end))
        with self._snapshot() as db:
            places = [row["conversation"] for row in db.dicts("conversations")]
            return [one for one in _diaries(db, places) if first <= one["at"] <= last]

    def turns(self, conversation: str, before: str, most: int) -> Mapping[str, Any] | None:
        """Return the newest turns of a conversation before one of its turns (empty: the newest of all).

        In the shape of `conversation`, with `"before"`, the turn that the next page comes before. None if the
        conversation or the turn is not known. A turn whose words have expired has those that its record keeps.
        """
        with self._snapshot() as db:
            found = db.dicts("conversation_shown", conversation=conversation)
            at = db.value("turn_number", turn=before, conversation=conversation) if before else _AFTER_ALL
            if not found or at is None:
                return None
            rows = db.dicts("turns_page", conversation=conversation, before=at, most=most + 1)
            page = rows[:most][::-1]
            low = page[0]["number"] if page else at
            entries = db.dicts("entries_page", conversation=conversation, low=low, before=at)
            known = {entry["turn"] for entry in entries}
            gone = [row for row in page if row["turn"] not in known]
            heard = db.dicts("turns_heard", turns=dump([row["turn"] for row in gone]))
        with Decoding("conversation", conversation):
            _decode(entries)
            by_turn = {row["turn"]: [one for one in entries if one["turn"] == row["turn"]] for row in page}
            by_turn |= {row["turn"]: expired_entries(row, heard) for row in gone}
            document = {**found[0], "params": parse(found[0]["params"])}
        document["entries"] = [entry for row in page for entry in by_turn[row["turn"]]]
        document["before"] = page[0]["turn"] if len(rows) > most else None
        return document

    def turns_between(self, begin: datetime, end: datetime) -> Sequence[Mapping[str, Any]]:
        """Return the turns between two instants: `turn conversation process preview`."""
        return self._look("turns_between", begin=stamp(begin), end=stamp(end))

    def newest_turns(self, most: int) -> Sequence[str]:
        """Return the newest turns whose record is kept, newest first."""
        with self._snapshot() as db:
            return [str(row["turn"]) for row in db.all("newest_kept", most=most)]

    def positions(self) -> Sequence[Mapping[str, Any]]:
        """Return each conversation's position: `{"conversation", "process", "previous_process", …}`, by process."""
        return self._look("positions")

    def plans(self) -> Sequence[Mapping[str, Any]]:
        """Return the soul's pending plans, soonest first, those that are due and wait, and those that lapsed."""
        rows = self._look("plans_shown")
        with Decoding("due"):
            return [row | {"params": parse(row["params"])} for row in rows]

    def turn(self, turn: str) -> Mapping[str, Any] | None:
        """Return one turn's record: the row, its perceptions, entries, calls, thoughts, deliveries."""
        with self._snapshot() as db:
            found = db.dicts("turn_shown", turn=turn)
            if not found:
                return unfinished(turn, db.dicts("turn_perceptions", turn=turn))
            row = found[0]
            entries = db.dicts("turn_entries", conversation=row["conversation"], number=row.pop("number"))
            with Decoding("inbox", turn):
                perceptions = [perception_of(one, entries) for one in db.dicts("turn_perceptions", turn=turn)]
            previews = [] if entries else db.dicts("turns_heard", turns=dump([turn]))
            heard = perceptions or remembered(entries) or [one | {"text": ""} for one in previews]
            names = names_of(db)
            heard = [{"name": next(iter(names.get(one.get("person", ""), ())), "")} | _told(one) for one in heard]
            calls = [call_of(one) for one in db.dicts("calls", turn=turn)]
            parts = db.dicts("turn_delivery", turn=turn)
            reactions = db.dicts("reactions_to", turn=turn)
        with Decoding("turn", turn):
            row |= kept_of(row, calls)
            for name in ("shown", "flags"):
                row[name] = parse(row[name])
            _decode(entries)
        thought = [call for call in calls if call["purpose"] != "summary"]
        apology = next((part["apology"] for part in parts if part["apology"]), None)
        return {
            **row,
            "perception": (heard[-1] if heard else {}) | ({"preview": previews[-1]["preview"]} if previews else {}),
            "perceptions": heard,
            "entries": entries,
            "calls": calls,
            "response": thought[0]["response"] if thought else None,
            "utterance": "".join(part.pop("body") for part in parts) or None,
            "acts": row["changes"].pop("acts", []),
            "tools": [*_used(row["changes"].pop("tools", []), self.calls_of(turn))],
            "appraisal": row["changes"].pop("appraisal", None),
            "receipts": [line for part in parts for line in parse(part.pop("receipts"))],
            "apology": apology,
            "provider": thought[0]["provider"] if thought else None,
            "model": thought[0]["model"] if thought else None,
            "usage": usage_of(calls),
            "delivery": parts,
            "reactions": reactions,
        }

    def last_turn(self, audience: str = "") -> str | None:
        """Return the newest turn of an audience, or of all; one that is still tried counts too."""
        with self._snapshot() as db:
            found = db.value("last_unfinished", audience=audience) or db.value("last_turn", audience=audience)
        return str(found) if found else None

    def last_failure(self) -> Mapping[str, Any] | None:
        """Return why the turn that is being tried, or else the newest one, fails; None if it does not."""
        with self._snapshot() as db:
            rows = [*db.dicts("failing_now"), *db.dicts("newest_record")]
        for row in rows:
            kept = KeptFailure.read(row["reason"]) or (unpack(row["kept"]).failure if row["kept"] else None)
            if kept:
                return {"turn": row["turn"], "at": row["at"], **kept.failure.told}
        return None

    def state(self, *, every_audience: bool = False) -> Mapping[str, Any]:
        """Return the soul state: the newest value per key, or every audience's."""
        found: dict[str, list[dict[str, Any]]] = {}
        with self._snapshot() as db:
            for row in db.dicts("state_shown"):
                found.setdefault(row.pop("key"), []).append(row)
        return found if every_audience else {key: rows[0] for key, rows in found.items()}

    def people(self) -> Sequence[Mapping[str, Any]]:
        """Return every person with a model or a message."""
        with self._snapshot() as db:
            rows, names = db.dicts("people"), names_of(db)
        aliases: dict[str, list[str]] = {}
        for row in rows:
            if row["canonical"]:
                aliases.setdefault(row["canonical"], []).append(row["person"])
        return [
            _one_of_the_people(row, aliases.get(row["person"], []), names.get(row["person"], ()))
            for row in rows
            if not row["canonical"]
        ]

    def person(self, person: str, *, own_only: bool = False) -> Knowledge | None:
        """Return who somebody is to the soul, by id, linked id, or unambiguous name; the owner is shown everything.

        `own_only`: no more than what was learned from that person alone.
        """
        with self._snapshot() as db:
            canonical = find(db, person)
            if canonical is None:
                return None
            alone_here = Seeing(db, alone(canonical, EPOCH), own_only=True) if own_only else Seeing.towards(db, SELF)
            known = knowledge_of(db, alone_here, canonical, datetime.now(UTC))
            row = db.one("person_recalled", person=canonical)
        files = [one.file or model_path(canonical, row["name"] if row else "", one.audience) for one in known.models]
        named = zip(known.models, files, strict=True)
        return replace(known, models=tuple([replace(one, file=str(self._memory_home / file)) for one, file in named]))

    def versions(self, person: str) -> Sequence[Mapping[str, Any]]:
        """Return every version of a person's models, oldest first, markdown included."""
        with self._snapshot() as db:
            canonical = find(db, person)
            rows = db.dicts("person_versions", person=canonical) if canonical else []
        return [row | {"suspect": bool(row["suspect"])} for row in rows]

    def personal(self, ids: Sequence[str]) -> Mapping[str, Any]:
        """Return `{"messages": [...], "state": [...]}` of one person, by all their ids."""
        with self._snapshot() as db:
            return export(db, ids)

    def kinds_heard(self, network: str) -> frozenset[str]:
        """Return the kinds of event (message, mention, join …) that a network delivered recently."""
        with self._snapshot() as db:
            return frozenset(db.values("kinds_heard", prefix=f"{network}:", after=f"{network};"))

    def usage(self, by: By) -> Mapping[str, Any]:
        """Return `{"rows": [...], "total": {...}}`; `self` is the soul itself, `erased` everybody who was erased."""
        with self._snapshot() as db:
            return {"rows": db.dicts(f"usage_by_{by}"), "total": db.dicts("usage_total")[0]}

    def spent_since(self, since: datetime) -> float:
        """Return the cost of all calls since then, in dollars."""
        with self._snapshot() as db:
            return float(db.value("spent_since", since=stamp(since)))

    def audit(self, since: str, most: int) -> Sequence[Mapping[str, Any]]:
        """Return the newest acts since a time (RFC 3339 UTC; empty = ever), oldest first: `at who act target from`."""
        rows = self._look("audit_shown", since=since, most=most)
        return [
            {name: row[name] for name in ("at", "who", "act", "target")} | {"from": row["origin"]} for row in rows[::-1]
        ]

    def pins(self) -> Sequence[Pin]:
        """Return the definitions of servers' tools that the owner agreed to, by server and tool."""
        with self._snapshot() as db:
            return pins_in(db)

    def jobs(self) -> Sequence[Mapping[str, Any]]:
        """Return the scheduler's jobs, soonest first: `{"job", "next_due", "started_at", "ended_at", …}`."""
        return self._look("jobs_shown")

    def calls(self, most: int) -> Sequence[Mapping[str, Any]]:
        """Return the last calls of tools, newest first, without their results."""
        with self._snapshot() as db:
            return [document_of(tool_call_of(row)) for row in db.all("calls_shown", most=most)]

    def calls_waiting(self) -> Sequence[Mapping[str, Any]]:
        """Return the calls that wait for consent, oldest first."""
        with self._snapshot() as db:
            found = map(tool_call_of, db.all("calls_waiting"))
            return [document_of(one) | {"for_talk": "talk" in may_remember(one.cls, one.audience)} for one in found]

    def call(self, call: str) -> Mapping[str, Any] | None:
        """Return one call of a tool, with its result as `text`."""
        return next((one for one in self.calls_of(call.rpartition("/")[0]) if one["id"] == call), None)

    def calls_of(self, turn: str) -> Sequence[Mapping[str, Any]]:
        """Return the calls of one turn, in order, each with its result as `text`."""
        with self._snapshot() as db:
            found = [tool_call_of(row) for row in db.all("calls_of_turn", turn=turn)]
        return [document_of(one) | {"text": one.result, "told_turn": one.told_turn} for one in found]

    def grants(self, now: datetime) -> Sequence[Mapping[str, Any]]:
        """Return the consents that are in force, oldest first."""
        rows = self._look("grants_shown", now=stamp(now))
        return [{name: row[name] for name in row if name != "pin"} for row in rows]

    def daimons(self) -> Sequence[Mapping[str, Any]]:
        """Return the status of each daimon that was ever asked: `{"daimon", "mode", "last_whisper_at", …}`."""
        with self._snapshot() as db:
            fared = {row["daimon"]: row for row in db.dicts("daimons_shown")}
            told = {row["daimon"]: row for row in db.dicts("whispers_shown")}
        nothing = {"asked_at": None, "failures": 0, "rests_until": None, "reason": "", "mode": None}
        names = sorted({*fared, *told})
        quiet = {"last_whisper_at": None, "whispers": 0}
        return [{"daimon": name, **nothing, **quiet, **fared.get(name, {}), **told.get(name, {})} for name in names]

    def blob(self, sha256: str) -> bytes | None:
        """Return stored content by its hash; None if it was erased."""
        with self._snapshot() as db:
            content: bytes | None = db.value("blob", sha256=sha256)
        return content

    def past_turn(self, conversation: str, number: int) -> PastTurn | None:
        """Return a turn as committed, its portraits without text; None if it was erased.

        Raises: Expired if its record has expired.
        """
        with self._snapshot() as db:
            row = db.one("past_kept", conversation=conversation, number=number)
        if row is not None and row["expired_at"]:
            raise Expired(row["expired_at"])
        if row is None or row["kept"] is None:
            return None
        with Decoding("turn", conversation, number):
            return PastTurn(
                turn=row["turn"],
                nonce=row["nonce"],
                number=number,
                entries=unpack(row["kept"]).entries,
                shown=tuple(Shown(**fields) for fields in parse(row["shown"])),
            )

    def own_entries(self, turn: str) -> tuple[Entry, ...]:
        """Return the lines of working memory that a turn wrote, as committed; none if its record expired."""
        with self._snapshot() as db:
            kept = db.value("turn_kept", turn=turn)
        return unpack(kept).entries if kept else ()

    def portrait(self, person: str, audience: str, version: int) -> str | None:
        """Return the text of one version of a portrait; None if it was erased."""
        with self._snapshot() as db:
            for one in dict.fromkeys((person, db.value("canonical", person=person) or person)):
                text = db.value("model_version", person=one, audience=audience, version=version)
                if text is not None:
                    return str(text)
        return None

    def recalled(self, row: str) -> str | None:
        """Return the text of a recalled line by its row (`moment:7:0:320`, `ended:3`); None if it is no longer kept."""
        kind, number, *part = row.split(":")
        with self._snapshot() as db:
            text: str | None = db.value(_RECALLED[kind], id=int(number))
        return text if text is None or not part else cut(text, *map(int, part))

    def known(self, fact: Fact) -> Fact:
        """Return a fact with its words; these say that it was forgotten if they are no longer kept."""
        with self._snapshot() as db:
            row = db.one("fact_here", id=fact.id)
        if row is None:
            return replace(fact, text=FORGOTTEN)
        return replace(fact, text=row["text"], about=row["about"], keys=tuple(row["keys"].split()))

    def open_matter(self, matter: Matter) -> Matter:
        """Return a matter with its words; these say that it was forgotten if they are no longer kept."""
        with self._snapshot() as db:
            text = db.value("matter_here", id=matter.id)
        return replace(matter, text=FORGOTTEN if text is None else text)

    def dead(self) -> Sequence[Mapping[str, Any]]:
        """Return dead rows: `{"what": "heard" or "said", "key", "turn", "reason", "at"}`, latest first."""
        rows = self._look("dead")
        failures = [KeptFailure.read(row["reason"]) for row in rows]
        return [row | {"reason": kept.failure.line} if kept else row for row, kept in zip(rows, failures, strict=True)]

    def invalid(self) -> Sequence[tuple[str, str]]:
        """Return rows with a value that does not decode, as table and primary key; at most a few."""
        with self._snapshot() as db:
            found = [(one["table"], one["row"]) for one in db.all("rows_invalid", most=_FEW)]
            rows = db.connection.execute(db.queries["rows_packed"])
            damaged = ((one["table"], one["row"]) for one in rows if is_damaged(one["kept"]))
            return [*found, *islice(damaged, _FEW - len(found))]

    def archive_lag(self) -> int:
        """Return how many versions git does not hold yet."""
        with self._snapshot() as db:
            return _number(db, "archive_lag")

    def peers(self) -> Sequence[Mapping[str, Any]]:
        """Return every peer with the newest assessment, latest first."""
        with self._snapshot() as db:
            names = names_of(db)
            found = [ledger.find_peer(db, one, None) for one in db.values("ledger_peers")]
            return [_peer(one, names) for one in found if one]

    def peer(self, peer: str) -> Mapping[str, Any] | None:
        """Return one peer (by id or unambiguous name) with every assessment and the newest part of the timeline."""
        with self._snapshot() as db:
            found = ledger.find_peer(db, db.value("canonical", person=peer) or peer, None)
            if found is None and (named := find(db, peer)):
                found = ledger.find_peer(db, named, None)
            if found is None:
                return None
            judged = ledger.assessments(db, found.peer_id, None, ASSESSMENTS)
            lines = ledger.timeline(db, found.peer_id, TIMELINE, None)
            names = names_of(db)
        where = ("channel_type", "conversation", "audience", "turn", "scope")
        columns = ("id", "at", "direction", *where, "preview", "reaction")
        return {
            **_peer(found, names),
            "assessments": [asdict(one) | {"at": one.created_at} for one in reversed(judged)],
            "timeline": [{name: getattr(one, name) for name in columns} for one in lines],
        }

    def evidence(self, ids: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """Return lines of the ledger by their ids, oldest first; one that was erased is missing."""
        return self._look("interactions_shown", ids=dump(list(ids)))

    def whispers(self, most: int) -> Sequence[Mapping[str, Any]]:
        """Return the newest whispers, newest first, each with what became of it."""
        rows = self._look("whispers_told", most=most)
        with Decoding("whisper"):
            return [row | {"sources": parse(row["sources"])} for row in rows]

    def beliefs(self, now: datetime) -> Mapping[str, Any]:
        """Return `{"last_reflection_at", "beliefs": [...]}`."""
        with self._snapshot() as db:
            newest = ledger.reflections(db, 1)
            held = sorted(ledger.every_belief(db), key=lambda one: (one.created_at, one.key), reverse=True)
        return {
            "last_reflection_at": newest[0].at if newest else None,
            "beliefs": [_belief(one) for one in held if not one.is_expired(now)],
        }

    def reflections(self, most: int) -> Sequence[Mapping[str, Any]]:
        """Return the newest cycles, newest first."""
        with self._snapshot() as db:
            return [reflection_row(one) for one in ledger.reflections(db, most)]

    def psyche(self) -> tuple[Psyche, tuple[float, ...]]:
        """Return the current psyche, and the traits in force (none before its first turn)."""
        with self._snapshot() as db:
            edges = tuple(decoder(Edge).decode(edge) for edge in db.values("psyche_edges_shown"))
            found = recall_psyche(db, [edge.person for edge in edges])
            traits = db.value("psyche_traits")
        return found, tuple(parse(traits)) if traits else ()

    def psyche_moves(self, since: datetime) -> Sequence[Mapping[str, Any]]:
        """Return how the psyche moved since then, oldest first: `turn at person inputs after edges traits`."""
        with self._snapshot() as db:
            rows = db.all("psyche_traces_shown", since=stamp(since))
        found = []
        for row in rows:
            with Decoding("psyche_trace", row["turn"]):
                whose = {name: row[name] for name in ("turn", "at", "person")}
                columns = ("inputs", "after", "edges", "arcs")
                moved = parse(unpacked(row["moved"])) if row["moved"] else {one: parse(row[one]) for one in columns}
                found.append({**whose, **moved, "traits": parse(row["traits"])})
        return found

    @abstractmethod
    def integrity(self) -> Sequence[str]:
        """Return the problems that `integrity_check` and `foreign_key_check` find; empty if the file is sound."""

    @abstractmethod
    def size(self) -> Mapping[str, Any]:
        """Return `{"bytes", "turns", "days", "gives_back"}`; `bytes` excludes free pages."""

    def served(self) -> Mapping[str, Any] | None:
        """Return the database server, its lanes, and who has which role; None if the store is a file."""
        return None

    def pushed_soul(self) -> PushedSoul | None:
        """Return the soul that was pushed into the store; None if none ever was, or the store is a file."""
        return None

    def workers(self) -> Sequence[Mapping[str, Any]]:
        """Return the processes that share the store, oldest first: host, age, what each may do and holds, lanes."""
        return ()

    @abstractmethod
    def marks(self, seen: int) -> tuple[int, str]:
        """Return the file's version, and what has changed with it: an opaque mark, empty if the version is `seen`."""

    def _look(self, query: str, **values: Any) -> list[dict[str, Any]]:
        with self._snapshot() as db:
            return db.dicts(query, **values)

    @contextmanager
    def _snapshot(self) -> Iterator[Database]:
        try:
            self._db.connection.execute("BEGIN")
            try:
                yield self._db
            finally:
                self._db.connection.execute("ROLLBACK")
        except self._db.connection.Error as error:
            raise self._translate(error) from error


def _decode(entries: Sequence[dict[str, Any]]) -> None:
    for entry in entries:
        entry["metadata"] = parse(entry["metadata"]) if entry["metadata"] else {}
        entry["unsaid"] = bool(entry["unsaid"])


def _told(perception: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a record keeps of a perception, without a name that is empty."""
    return {key: value for key, value in perception.items() if key != "name" or value}


def _used(steps: Sequence[Mapping[str, Any]], calls: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield what became of each request for a tool, with what is recorded of its call."""
    rows = {one["id"]: one for one in calls}
    blank: dict[str, Any] = dict.fromkeys(("class", "reason", "allowed_by", "text"), "")
    blank |= {"args": {}, "attempts": 0, "ms": None, "chars": 0}
    for one in steps:
        row = rows.get(one["id"])
        yield {**blank, **one} if row is None else {**row, "state": "repeated"} if one["state"] == "repeated" else row
    yield from [row for row in calls if row["id"] not in [one["id"] for one in steps]]  # of a turn that failed


def _number(db: Database, query: str, **values: Any) -> int:
    return int(db.value(query, **values) or 0)


def _one_of_the_people(row: Mapping[str, Any], aliases: list[str], names: Sequence[str]) -> dict[str, Any]:
    try:
        network = Place.of(f"{row['person']}::").network
    except ValueError:
        network = ""
    return {
        "person": row["person"],
        "name": names[0] if names else row["name"],
        "network": network,
        "audiences": parse(row["audiences"]),
        "versions": row["versions"],
        "updated_at": row["updated_at"],
        "is_bot": bool(row["is_bot"]),
        "linked": aliases,
    }


def reflection_row(one: Reflection) -> dict[str, Any]:
    """Return a cycle's record in the shape of the outward interfaces."""
    kept = asdict(one)
    used = kept.pop("usage")
    return kept | {
        "assessments": len(one.peers_assessed),
        "beliefs": len(one.beliefs_added) + len(one.beliefs_reaffirmed),
        "directives": len(one.directives),
        "alignment": one.alignment or None,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cost_usd": used.cost_usd,
    }


def _peer(one: Peer, names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    known = ledger.summary(one) | {"name": next(iter(names.get(one.peer_id, ())), one.name)}
    return {"peer": one.peer_id, **known, "is_bot": one.is_bot}


def _belief(one: Belief) -> dict[str, Any]:
    return asdict(one) | {"peer": one.peer_id, "expires_at": one.expires_at}


def _diaries(db: Database, conversations: Sequence[str]) -> list[dict[str, Any]]:
    rows = db.dicts("diaries", conversations=dump(list(conversations)))
    return [{"at": datetime.fromtimestamp(row.pop("at_s"), UTC).isoformat(), **row} for row in rows]
