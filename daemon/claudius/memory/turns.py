"""The topic `store.turns`: what a turn recalls and commits, and what is known of turns afterwards.

The record of a turn is one compressed document that `why`, `replay` and an erasure read. It holds no text that another
row holds: portraits are referenced by version, recalled lines by id, earlier turns by number, the soul and a summary by
hash. They are resolved when a prompt is rebuilt (`Records` in `memory/records.py`); a missing row leaves a blank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from msgspec import MsgspecError, Raw, Struct
from msgspec.structs import asdict, replace

from claudius.acts import PlanCancelled, PlanMade, PlanMoved, ZoneSet
from claudius.errors import StaleTurn
from claudius.intent import Call, Intent
from claudius.memory.calls import ask, hear_late
from claudius.memory.database import (
    LAST,
    Core,
    Cursor,
    Database,
    Decoding,
    call_row,
    dump,
    entry_of,
    instant,
    pack,
    parse,
    parse_object,
    stamp,
)
from claudius.memory.documents import write_model, write_state
from claudius.memory.facts import book_fact
from claudius.memory.inbox import Pending
from claudius.memory.ledger import note
from claudius.memory.moments import keep_diary, keep_moments
from claudius.memory.outbox import say
from claudius.memory.plans import TOO_MANY, book_plan, keep_plans
from claudius.memory.psyche import move_psyche
from claudius.memory.recall import RecallLimits, Shelf, let_go, recall
from claudius.memory.seeing import Seeing, alone, ids_of
from claudius.memory.seen import ERASED, NO_SNAPSHOT, KeptTurn, is_damaged, seen_in, snapshot_of, unpack
from claudius.memory.whispers import Claims
from claudius.perception import Perception, internal, is_terminal, joint, private
from claudius.prompt import valid
from claudius.recollection import RECEIPTS, EntryType, Recollection, Summary, UserModel


class Quiet(Struct, frozen=True, kw_only=True):
    """A conversation in which nobody has spoken for a while."""

    conversation: str
    audience: str
    last_at: datetime
    number: int
    """The last turn that answered somebody."""
    person: str
    """The person it answered."""


class FirstWords(Struct, frozen=True, kw_only=True):
    """When the soul has spoken unprompted, and the state of the conversation that it wants to speak in."""

    here: tuple[datetime, ...] = ()
    """When it spoke unprompted to this person or in this channel, oldest first."""
    everywhere: tuple[datetime, ...] = ()
    last_heard: datetime | None = None
    """When they last spoke, or somebody there."""
    waiting: int = 0
    """Number of people's messages that wait here, without the one that this is about."""
    under_way: int = 0
    """How many others were to be said first to the same audience before this one, and are not settled yet."""


class Answered(Struct, frozen=True, kw_only=True):
    """What one answer was based on."""

    turn: str
    at: datetime
    conversation: str
    shown: tuple[UserModel, ...]
    """Portraits that stood in the prompt and that the asking person may see, without their text."""
    snapshot: bytes
    heard: tuple[str, ...]
    """Positions of the last messages of the conversation, latest first."""


class SpendingCap(Struct, frozen=True, kw_only=True):
    """A budget: what may be spent since an instant, by the soul, for one person, or in one channel."""

    limit_usd: float
    since: datetime
    person: str = ""
    channel: str = ""


MOST_HEARD = 5


def spent_since(db: Database, since: datetime, person: str, channel: str) -> float:
    """Return the cost of all calls since then; of one person under all ids, or of one channel, if one is named."""
    at = stamp(since)
    if channel:
        return float(db.value("spent_since_in", since=at, channel=channel))
    if person:
        return float(db.value("spent_since_on", since=at, ids=dump(ids_of(db, person))))
    return float(db.value("spent_since", since=at))


_DEFAULT_LIMITS = RecallLimits(ttl_hours=72.0)


class TurnStore:
    """One read snapshot before a turn, one transaction after it, and the record of every turn."""

    def __init__(self, core: Core) -> None:
        self._core, self.claims, self.shelf = core, Claims(), Shelf()
        self._limits = _DEFAULT_LIMITS

    async def recall(self, pending: Pending, *, nonce: str, now: datetime, limits: RecallLimits) -> Recollection:
        """Read everything that the turn may know, in one read snapshot, filtered by the audience rule.

        Raises: StaleTurn if `limits.in_order` and something else is to be answered first.
        """
        self._limits = limits
        with self._core.snapshot() as db:
            known = recall(db, self.shelf, pending, nonce=nonce, now=now, limits=limits)
            felt = self.claims.feel(db, pending, now, limits.daimons) if limits.daimons else ()
        return replace(known, intuitions=felt) if felt else known

    def release(self, turn: str) -> None:
        """Release the whispers that a turn has claimed and did not use."""
        if self.claims.held:
            self.claims.release(turn)

    async def commit(self, intent: Intent) -> Intent:
        """Apply a turn: WRITE 2. A second commit of a turn id changes nothing and succeeds.

        Returns the turn as it was applied, with the receipts of what it did.

        Raises: StaleTurn if the conversation moved since `intent.version`.
        """
        before, boot, most = let_go(self._limits, intent.at), self._core.boot, self._limits.moments
        work = partial(commit, intent=intent, let_go=before, boot=boot, most=most)
        return await self._core.write(work, covers=[(intent.turn, call.n) for call in intent.calls])

    async def fold(
        self, conversation: str, turn: str, summary: Summary | None, calls: Sequence[Call], now: datetime
    ) -> None:
        """Replace a conversation's summary while it is idle; turns up to `summary.upto` leave the history.

        The costs of `calls` are recorded on `turn`, also where they led to no summary (None). Nothing else changes if
        there is already a later summary.
        """

        def work(db: Database) -> None:
            if summary:
                fold(db, conversation, summary, now, let_go(self._limits, now))
            db.each("call_keep", [call_row(turn, call, stamp(now), conversation, "") for call in calls])

        await self._core.write(work)

    def keep_call(self, turn: str, call: Call) -> None:
        """Keep one finished model call of an unfinished turn. Not awaited."""
        self._core.writer.later(partial(keep_call, turn=turn, call=call), turn, (turn, call.n))

    def book(self, job: str, call: Call, at: datetime) -> None:
        """Record the cost of a call that belongs to no turn, under a name that is used once. Not awaited."""
        self._core.writer.later(lambda db: book(db, job, call, at))

    def spent_since(self, since: datetime, *, person: str = "", channel: str = "") -> float:
        """Return the cost of all calls since then, in dollars; of one person under all ids, or of one channel."""
        with self._core.snapshot() as db:
            return spent_since(db, since, person, channel)

    async def reserve(self, conversation: str, person: str, caps: Sequence[SpendingCap]) -> bool:  # noqa: ARG002 - the protocol's
        """Book the probable cost of the next call for a person. False if a cap is reached.

        `keep_call` puts it right, `call_failed` takes it back. What others have booked counts, so that the caps are
        passed by one call at most, however many processes ask.
        Where one process has the store nothing is booked, and the answer is True.
        """
        return True

    def call_failed(self, conversation: str) -> None:
        """Take back what `reserve` booked for a call in a conversation that came to nothing. Not awaited."""

    def kept(self, conversation: str, subprocess: str) -> Mapping[str, Any]:
        """Return what a subprocess keeps about a conversation."""
        value = self._core.value("kept", conversation=conversation, name=subprocess)
        with Decoding("kept", conversation, subprocess):
            return {} if value is None else parse_object(value)

    def recent(self, network: str, since: datetime) -> Sequence[str]:
        """Return a network's conversations with a turn since then, latest first."""
        return self._core.values("recent_conversations", network=network, since=stamp(since))

    def quiet(self, since: datetime, until: datetime, most: int) -> Sequence[Quiet]:
        """Return conversations whose last turn lies between two instants, latest first."""
        with self._core.snapshot() as db:
            return [
                Quiet(**{**row, **spoken, "last_at": instant(row["last_at"])})
                for row in db.all("conversations_quiet", since=stamp(since), until=stamp(until), most=most)
                if (spoken := db.one("last_spoken", conversation=row["conversation"]))
            ]

    def expired(self, before: datetime, most: int, *, tried: datetime) -> Sequence[tuple[str, str]]:
        """Return conversations with entries before `before` alone, none with a vain summary since `tried`."""
        rows = self._core.look("conversations_expired", before=stamp(before), most=most, tried=stamp(tried))
        return [(row["conversation"], row["audience"]) for row in rows]

    def calls_unasked(self, since: datetime) -> int | None:
        """Return how many model calls were made since `since`; None if somebody spoke since then."""
        found = self._core.find("calls_unasked", since=stamp(since))
        return None if not found or found["spoken"] else found["calls"]

    def first_words(self, perception: Perception, since: datetime) -> FirstWords:
        """Return when the soul spoke unprompted since `since`, and the state of the place where a perception happens.

        What was said to the same channel, or to the same person under any of their ids, counts wherever it was said.
        """
        conversation, audience = perception.conversation, perception.audience
        with self._core.snapshot() as db:
            said = [(row["audience"], instant(row["at"])) for row in db.all("proactive_since", since=stamp(since))]
            whose = [audience]
            if audience.startswith(private("")):
                whose = list(map(private, ids_of(db, audience.removeprefix(private("")))))
            heard = db.value("spoken_last_at", since=stamp(since), audiences=dump(whose))
            waiting = db.value("waits_there", conversation=conversation, key=perception.key)
            process = internal(perception).process
            before = db.value("first_words_before", key=perception.key, process=process, audiences=dump(whose))
        return FirstWords(
            here=tuple(at for audience, at in said if audience in whose),
            everywhere=tuple(at for _, at in said),
            last_heard=instant(heard) if heard else None,
            waiting=waiting,
            under_way=int(before) if process else 0,
        )

    def last_answer(self, person: str, place: str, now: datetime) -> Answered | None:
        """Return what the last answer to a person in a conversation or channel was based on; None if there is none."""
        with self._core.snapshot() as db:
            seeing = Seeing(db, alone(person, now))
            ids = dump(seeing.ids(seeing.canonical(person)))
            found = db.one("last_answer", place=place, until=f"{place}{LAST}", ids=ids)
            if found is None:
                return None
            turn, where = found["turn"], {name: found[name] for name in ("conversation", "number")}
            row = db.one("turn_sources", turn=turn)
            heard = db.values("heard_lately", **where, most=MOST_HEARD)
            if row is None:
                return None
            snapshot = row["snapshot"]
            if row["kept"] is not None:
                with Decoding("turn", turn):
                    snapshot = snapshot_of(unpack(row["kept"]))
            models = tuple(
                UserModel(person=one["person"], audience=one["audience"], version=one["version"])
                for one in parse(row["shown"])
                if one["version"] and seeing.may((one["audience"],))
            )
        return Answered(
            turn=turn,
            at=instant(row["at"]),
            conversation=found["conversation"],
            shown=models,
            snapshot=snapshot,
            heard=tuple(filter(None, heard)),
        )

    async def expire_records(self, before: datetime, now: datetime, most: int) -> int:
        """Delete the records of at most `most` turns older than `before`; return how many."""
        return await self._core.write(lambda db: expire(db, stamp(before), stamp(now), most))


def commit(db: Database, intent: Intent, let_go: datetime, boot: str, most: int = _DEFAULT_LIMITS.moments) -> Intent:
    """Apply a turn, and return it with its receipts; a known one changes nothing. Raises: StaleTurn.

    If there is a new summary, entries that it covers and that are older than `let_go` are deleted.
    """
    at = stamp(intent.at)
    number = _move_conversation(db, intent, at)
    if number is None:
        return intent
    if intent.acts:
        intent = with_receipts(intent, book_acts(db, intent))
    answered = _answer(db, intent, at)
    if intent.noted is not None:
        note(db, intent.noted, intent.at)
    refused = keep_plans(db, intent, at) if intent.planned is not None or intent.held else 0
    _keep_turn(db, intent, number, at, {"plans": f"{refused} refused: {TOO_MANY}"} if refused else {})
    if intent.model is not None:
        write_model(db, intent.model, at, intent.turn)
    if intent.state:
        note_of_state = "soul state: " + ", ".join([change.key for change in intent.state])
        write_state(db, intent.state, at, author="turn", turn=intent.turn, note=note_of_state)
    move_psyche(db, intent, at)
    for whisper in intent.whispers:
        db.run("whisper_used", id=whisper, turn=intent.turn)
    if intent.summary is not None:
        fold(db, intent.conversation, intent.summary, intent.at, let_go)
    ask(db, intent)
    for utterance in intent.utterances:
        say(db, utterance, intent.at, boot)
    hear_late(db, intent)
    keep_moments(db, intent, most)  # after the outbox, which holds the soul's own words
    if [one for one in answered if not one.rowcount]:  # counted last: a far database has answered by now
        raise StaleTurn("what this turn answers was withdrawn or answered meanwhile")
    return intent


def book_acts(db: Database, intent: Intent) -> tuple[str, ...]:
    """Book what a turn does beyond its words; return a receipt for each act that has one, in order."""
    receipts: list[str] = []
    for act in intent.acts:
        match act:
            case PlanMade() | PlanMoved() | PlanCancelled() | ZoneSet():
                receipts.append(book_plan(db, intent, act))
            case _:
                receipts.append(book_fact(db, intent, act))
    return tuple(filter(None, receipts))


def with_receipts(intent: Intent, receipts: tuple[str, ...]) -> Intent:
    """Return the turn with the receipts of its acts on the last of its words. Pure."""
    if not receipts or not intent.utterances:
        return intent
    *before, last = intent.utterances
    said = [n for n, entry in enumerate(intent.entries) if entry.entry_type is EntryType.EXTERNAL_DIALOG]
    entries = tuple(
        [
            replace(entry, metadata={**entry.metadata, RECEIPTS: receipts}) if n in said[-1:] else entry
            for n, entry in enumerate(intent.entries)
        ]
    )
    return replace(intent, utterances=(*before, replace(last, receipts=(*receipts, *last.receipts))), entries=entries)


def _move_conversation(db: Database, intent: Intent, at: str) -> int | None:
    """Return the turn's number; None if the turn is already known. Raises: StaleTurn."""
    process = intent.next_process
    known = "conversation_moved" if intent.version else "conversation_new"
    moved: int | None = db.value(
        "conversation_apologised" if intent.version is None else known,
        conversation=intent.conversation,
        turn=intent.turn,
        version=intent.version,
        audience=intent.audience,
        entries=len(intent.entries),
        process=process.process,
        previous_process=process.previous_process,
        params=dump(dict(process.params)),
        process_memory=dump(dict(process.process_memory)),
        invocation_count=process.invocation_count,
        entered_at=stamp(process.entered_at) if process.entered_at else None,
        history_from=intent.history_from,
        answers=bool(intent.utterances),
        at=at,
    )
    if moved is None:
        if db.one("turn_known", turn=intent.turn):
            return None
        raise StaleTurn
    if intent.person:
        there, together = {"conversation": intent.conversation, "person": intent.person}, joint(intent.conversation)
        spoken = db.run("conversation_spoken", **there, at=at, together=together)
        if is_terminal(intent.conversation) and not spoken.fetchone()["can_see"]:
            db.run("audience_known", audience=together, now=at)
            db.run("audience_joined", audience=together, person=intent.person)
    return moved


def _answer(db: Database, intent: Intent, at: str) -> list[Cursor]:
    """Mark what the turn answers; each statement changes one row, or the turn is stale."""
    state = "committed" if intent.utterances else "settled"
    values = {"state": state, "turn": intent.turn, "settled_at": None if intent.utterances else at}
    return [db.run("answer", key=key, **values) for key in intent.answers]


def _keep_turn(db: Database, intent: Intent, number: int, at: str, more: Mapping[str, str]) -> None:
    rows = [
        asdict(entry)
        | {"n": n, "content": valid(entry.content), "name": entry.name and valid(entry.name), "at": stamp(entry.at)}
        | {"metadata": dump(dict(entry.metadata)) if entry.metadata else None}
        for n, entry in enumerate(intent.entries)
    ]
    kept = KeptTurn(
        entries=tuple([entry_of({**row, "stems": ""}) for row in rows]),  # as they will be read from their rows
        snapshot=Raw(intent.snapshot) if intent.snapshot else NO_SNAPSHOT,
        attention=intent.attention,
        changes={**intent.changes, **more},
        thoughts=intent.thoughts,
        steps=intent.steps,
        prompt_sha256=intent.prompt_sha256,
        failure=intent.failure.record if intent.failure else None,
        responses={str(call.n): (call.request_sha256, valid(call.response)) for call in intent.calls},
    )
    db.run("record_new", rung=intent.rung, verb=intent.verb, flags=dump(intent.flags), snapshot=b"", kept=pack(kept))
    shown = [
        {"person": s.person, "audience": s.audience, "version": s.version, "writable": s.writable, "pointer": s.pointer}
        for s in intent.shown
    ]
    db.run(
        "turn_new",
        conversation=intent.conversation,
        number=number,
        turn=intent.turn,
        at=at,
        audience=intent.audience,
        person=intent.person,
        nonce=intent.nonce,
        process=intent.process,
        shown=dump(shown),
    )
    place = {"conversation": intent.conversation, "number": number, "audience": intent.audience}
    db.each("entry_new", [place | row for row in rows])
    if intent.calls:
        calls = [call_row(intent.turn, call, at, intent.conversation, intent.person) for call in intent.calls]
        # the turn's record holds their requests and replies
        db.each("call_keep", [row | {"response": "", "request_sha256": ""} for row in calls])
    new = db.values("blobs_missing", keys=dump(list(intent.blobs)))
    db.each("blob_new", [{"sha256": sha256, "content": intent.blobs[sha256]} for sha256 in new])


def fold(db: Database, conversation: str, summary: Summary, now: datetime, let_go: datetime) -> None:
    """Replace a summary, and delete what it covers and is older than `let_go`. A later summary stays as it is."""
    new = db.change(
        "summary_new",
        conversation=conversation,
        text=valid(summary.text),
        sources=dump(summary.sources),
        upto=summary.upto,
        nonce=summary.nonce,
        at=stamp(now),
    )
    if new:
        keep_diary(db, conversation, summary, now)
    last = db.value("last_expired", conversation=conversation, upto=summary.upto, before=stamp(let_go)) if new else None
    if last is not None:
        fewer = db.change("entries_let_go", conversation=conversation, upto=last)
        db.run("entries_fewer", conversation=conversation, fewer=fewer)


def keep_call(db: Database, turn: str, call: Call) -> None:
    """Store a finished model call of an unfinished turn."""
    db.run("thought", turn=turn)
    db.run("call_of_heard", **call_row(turn, call, "", "", ""))


def book(db: Database, job: str, call: Call, at: datetime) -> None:
    """Record the cost of a call that belongs to no turn; `job` is its unique name."""
    db.run("call_keep", **call_row(job, call, stamp(at), "", ""))


def expire(db: Database, before: str, now: str, most: int) -> int:
    """Delete the records of at most `most` turns older than `before`; return how many."""
    reached = db.one("checkpoint")
    rows = db.all("records_old", since=reached["records_at"] if reached else "", before=before, most=most)
    for row in rows:
        named = _referred_to(row["kept"], row["snapshot"])
        if named:
            for sha256 in named - _still_named(db, row["conversation"], row["number"]):
                db.run("blob_expired", sha256=sha256)
        db.run("record_expired", id=row["record"], now=now, seen=_seen_in(row["kept"], row["snapshot"]))
        db.run("responses_expired", turn=row["turn"])
        db.run("calls_expired", turn=row["turn"])
    if rows:
        db.run("records_expired_to", at=rows[-1]["at"])
    return len(rows)


def _seen_in(kept: bytes | None, snapshot: bytes) -> bytes:
    """Return the ids of what stood in a turn's prompt, as they are kept once its record has expired. Pure."""
    if kept is not None and is_damaged(kept):
        return b""
    try:
        return msgspec.json.encode(seen_in(snapshot if kept is None else bytes(unpack(kept).snapshot)))
    except MsgspecError:
        return b""


def _still_named(db: Database, conversation: str, number: int) -> set[str]:
    """Return what the conversation's next turn that asked a model references; what others heard references nothing."""
    rows = db.connection.execute(db.queries["records_after"], {"conversation": conversation, "number": number})
    referred = (_referred_to(row["kept"], row["snapshot"]) for row in rows)
    return next((named for named in referred if named is not None), set())


def _referred_to(kept: bytes | None, snapshot: bytes) -> set[str] | None:
    """Return the hashes that a turn's snapshot references, except the soul's, which many turns share.

    None if the record is damaged or has no snapshot. A conversation's history and summary only move forward: what the
    next turn does not reference, no later one does.
    """
    if kept is not None and is_damaged(kept):
        return None  # deleted like any other; blobs that it alone referenced stay
    text = snapshot if kept is None else snapshot_of(unpack(kept))
    if not text or text == ERASED:
        return None
    found = parse(text)
    return {name for name in (*found["past"], found.get("summary")) if isinstance(name, str) and name}
