"""Read the recollection of one turn in one snapshot, filtered by the audience rule.

The past turns of a conversation that were read last are cached. Who is known and what is believed comes from the ledger
and the cortex: of the speaker, and of other people named.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from operator import itemgetter

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.errors import StaleTurn
from claudius.ledger_types import Belief, Peer
from claudius.memory import ledger
from claudius.memory.database import (
    Database,
    Decoding,
    Row,
    dump,
    entry_of,
    instant,
    maybe_instant,
    parse,
    parse_object,
    parse_strings,
    stamp,
)
from claudius.memory.facts import called, known_here, told_of_name
from claudius.memory.inbox import Pending
from claudius.memory.ledger import belief_of
from claudius.memory.plans import plans_here
from claudius.memory.psyche import psyche_if_whole
from claudius.memory.seeing import Seeing
from claudius.perception import SELF, Origin, private
from claudius.recollection import (
    STATE_DEFAULTS,
    Entry,
    EntryType,
    LeftOut,
    PastTurn,
    Person,
    ProcessState,
    Recollection,
    Shown,
    StateKey,
    StateValue,
    Summary,
    UserModel,
    of_this_sitting,
    once,
)
from claudius.recurrence import zone_named

_OTHERS = 2


def recall(
    db: Database, shelf: Shelf, pending: Pending, *, nonce: str, now: datetime, limits: RecallLimits
) -> Recollection:
    """Read everything that a turn may know. The caller holds the snapshot. Raises: RowInvalid, StaleTurn."""
    perception = pending.perceptions[-1]
    conversation = perception.conversation
    seeing = Seeing(db, perception, own_only=limits.own_only)
    here = {"conversation": conversation, "audience": seeing.audience, "key": StateKey.CURRENT_TASK}
    (place,) = db.all("place_recalled", **here, seq=pending.seq, turn=pending.turn)
    if limits.in_order and not place["is_next"]:
        raise StaleTurn("something earlier has come, or this was changed or withdrawn")
    row = None if place["version"] is None else place
    before = stamp(let_go(limits, now))
    kept = Past(db, shelf, seeing, row, before, limits.max_past) if row else None
    is_spoken_to = bool(perception.person) and perception.origin is Origin.EXTERNAL
    speaker = _person(db, seeing, perception.person, perception.name, conversation, is_bot=perception.is_bot)
    if is_spoken_to and not speaker.turns_here:
        ids, is_direct = seeing.ids(speaker.person), seeing.audience.startswith(private(""))
        is_met = any(db.one("answered_before", person=one) for one in ids)
        in_private = (db.one("answered_in", person=one, audience=private(other)) for other in ids for one in ids)
        speaker = replace(speaker, is_met=is_met, is_new_here=is_direct and not (is_met and any(in_private)))
    others = _others(db, seeing, conversation, kept.whole if kept else ())
    past = kept.past if kept else ()
    process, last_at = _process(row)
    may_believe = limits.beliefs and bool(place["believes"])
    peers, beliefs = company(db, seeing, others, past, perception.text, beliefs=may_believe, now=now)
    names = {one.person: one.name for one in (speaker, *others) if one.name}
    listener = _listener(db, seeing, perception.origin, speaker)
    addressee = (speaker if is_spoken_to else listener) or speaker
    zone = addressee.zone or limits.zone
    today = (now.astimezone(zone_named(zone)) if zone else now).date()
    there = _writers(db, past, {speaker.person, *[one.person for one in others]})
    shown = known_here(db, seeing, addressee.person, there, pending.perceptions, past, today)
    known, ended, matters, unshown, dated = shown
    return Recollection(
        turn=pending.turn,
        nonce=nonce,
        now=now,
        conversation=conversation,
        audience=seeing.audience,
        perceptions=pending.perceptions,
        speaker=speaker if is_spoken_to else None,
        listener=listener,
        others=others,
        process=process,
        turns=row["turns"] if row else 0,
        spoken=int(row["spoken"]) if row else 0,
        version=row["version"] if row else 0,
        past=past,
        expired=kept.expired if kept else (),
        summary=_summary(seeing, row),
        left_out=kept.left_out if kept else None,
        state=of_this_sitting(state_of(db, seeing), past, now),
        task=place["task"] or "",
        last_at=last_at,
        participation=(row["participation"] or "") if row else "",
        is_first=row is None and not db.value("called_before", turn=pending.turn),
        peers=tuple([replace(one, name=names.get(one.peer_id, one.name)) for one in peers]),
        beliefs=beliefs,
        plans=plans_here(db, seeing.ids(speaker.person), seeing.audience)
        if is_spoken_to and place["plans_wait"]
        else (),
        psyche=psyche_if_whole(db, [one.person for one in (speaker, *others)], seeing.may) if limits.psyche else None,
        known=known,
        ended=ended,
        unshown=unshown,
        matters=matters,
        dated=dated,
        shown_from="" if seeing.sees_all else seeing.audiences(),
    )


def let_go(limits: RecallLimits, now: datetime) -> datetime:
    """Return the instant before which entries expire. Pure."""
    return min(now, limits.aged_at or now) - timedelta(hours=limits.ttl_hours)


def _process(row: Row | None) -> tuple[ProcessState, datetime | None]:
    """Return a conversation's process, and when anyone last spoke in it."""
    if row is None:
        return ProcessState(process=""), None
    with Decoding("conversation", row["conversation"]):
        process = ProcessState(
            process=row["process"],
            previous_process=row["previous_process"],
            params=parse_object(row["params"]),
            process_memory=parse_object(row["process_memory"]),
            invocation_count=row["invocation_count"],
            entered_at=maybe_instant(row["entered_at"]),
        )
        return process, instant(row["last_at"])


def _summary(seeing: Seeing, row: Row | None) -> Summary | None:
    if row is None or not row["text"]:  # none yet, or erased
        return None
    with Decoding("summary", row["conversation"]):
        sources = parse_strings(row["sources"])
    if not seeing.may(sources):
        return None
    return Summary(text=row["text"], sources=sources, upto=row["upto"], nonce=row["nonce"])


def _person(db: Database, seeing: Seeing, person: str, name: str, conversation: str, *, is_bot: bool) -> Person:
    canonical = seeing.canonical(person)
    rows = [db.all("turns_here", conversation=conversation, person=one) for one in seeing.ids(canonical)]
    here = [of_one[0] for of_one in rows]
    return Person(
        person=canonical,
        name=called(
            [fact for row in chain.from_iterable(rows) for fact in told_of_name(row) if seeing.may((fact.audience,))],
            name,
        ),
        models=models_of(db, seeing, canonical),
        turns_here=sum([row["turns"] or 0 for row in here]),
        spoke_at=max([instant(row["last_at"]) for row in here if row["last_at"]], default=None),
        is_bot=is_bot,
        locale=next(filter(None, [row["locale"] for row in here]), ""),
        zone=next(filter(None, [row["zone"] for row in here]), ""),
    )


def _listener(db: Database, seeing: Seeing, origin: Origin, person: Person) -> Person | None:
    """Return whom a perception of the soul's own is for; None if that is nobody, or somebody who was never heard."""
    if origin is Origin.EXTERNAL or not person.person or seeing.audience == SELF:
        return None
    known = db.one("person_recalled", person=person.person)
    name = person.name or (known["name"] if known else "")
    return replace(person, name=name, zone=known["zone"], is_bot=bool(known["is_bot"])) if known else None


def models_of(db: Database, seeing: Seeing, person: str) -> tuple[UserModel, ...]:
    """Return every model of a person that may be shown here, the one of this audience first, written or not."""
    found = [
        UserModel(
            person=person,
            audience=row["audience"],
            version=row["version"],
            markdown=row["markdown"],
            suspect=bool(row["suspect"]),
        )
        for row in db.all("models_recalled", person=person)
        if seeing.may((row["audience"],))
    ]
    writable = [model for model in found if model.audience == seeing.audience]
    if not writable:
        writable = [UserModel(person=person, audience=seeing.audience, version=0)]
    return (*writable, *[model for model in found if model.audience != seeing.audience])


def _others(db: Database, seeing: Seeing, conversation: str, past: Sequence[PastTurn]) -> tuple[Person, ...]:
    found: dict[str, Person] = {}
    for entry in chain.from_iterable([reversed(turn.entries) for turn in reversed(past)]):
        if entry.entry_type is EntryType.EXTERNAL_DIALOG or len(found) == _OTHERS:
            break
        if not entry.person:
            continue
        canonical = seeing.canonical(entry.person)
        known = db.one("person_recalled", person=entry.person)
        if canonical in found or canonical == seeing.speaker or (known and known["is_bot"]):
            continue
        name = entry.name or (known["name"] if known else "")  # their name in this conversation
        found[canonical] = _person(db, seeing, canonical, name, conversation, is_bot=False)
    return tuple(found.values())


def _writers(db: Database, past: Sequence[PastTurn], known: set[str]) -> set[str]:
    """Return whoever has part in what is shown, `known` among them, by their canonical ids, which are asked at once."""
    others = {one.person for turn in past for one in turn.entries if one.person} - known
    linked = db.all("canonicals", persons=dump(sorted(others))) if others else ()
    mapped = {row["person"]: row["canonical"] for row in linked}
    return known | {mapped.get(one, one) for one in others}


def state_of(db: Database, seeing: Seeing) -> tuple[StateValue, ...]:
    """Return, per key, the newest value of the soul's state that may be shown here."""
    if seeing.sees_all:
        rows = db.all("state_of_keys", keys=dump(list(STATE_DEFAULTS)))
    else:
        rows = db.all("state_of_audiences", audiences=seeing.audiences())
    newest = {row["key"]: row for row in sorted(rows, key=itemgetter("id"))}
    found = []
    for key, default in STATE_DEFAULTS.items():
        if (row := newest.get(key)) and row["value"] not in ("", default):
            with Decoding("soul_state", row["id"]):
                at = instant(row["updated_at"])
                found.append(StateValue(key=row["key"], value=row["value"], audience=row["audience"], updated_at=at))
    return tuple(found)


EXPIRED_AT_ONCE = 100
"""Turns that one recollection hands over to be summarised; the rest follow with the next."""


class RecallLimits(Struct, frozen=True, kw_only=True):
    """The settings that shape a recollection."""

    ttl_hours: float
    beliefs: bool = False
    """Whether the cortex is running, so that its beliefs are read too."""
    moments: int = 50_000
    """Upper limit on moments kept of one audience."""
    max_past: int = 400
    """Upper limit on past turns read; compaction keeps far fewer."""
    aged_at: datetime | None = None
    """The instant that ages are measured from, where clocks are in doubt; None is the turn's own."""
    daimons: Mapping[str, str] = field(default_factory=dict)
    """Daimons that are on, with their modes; if empty, nothing of theirs is read."""
    psyche: bool = False
    """Whether the psyche is read."""
    own_only: bool = False
    """Read only what was learned from the speaker alone, or from no one: no place that anybody else sees."""
    zone: str = ""
    """The zone of those whose own is not known; empty = UTC."""
    in_order: bool = False
    """Refuse, as stale, what is no longer the next to be answered in its conversation."""


class Shelf:
    """A cache of the past turns that each conversation still shows. Lives as long as its store.

    A turn's rows never change without its count of edits, which is read each time, so a cached turn is never stale.
    """

    def __init__(self, most: int = 4096) -> None:
        """Keep at most this many turns; the conversations that were read longest ago are dropped first."""
        self._most, self._count = most, 0
        self._held: OrderedDict[str, Mapping[tuple[str, int], PastTurn]] = OrderedDict()

    def of(self, conversation: str) -> Mapping[tuple[str, int], PastTurn]:
        """Return a conversation's cached turns, by their ids and counts of edits."""
        return self._held.get(conversation, {})

    def keep(self, conversation: str, turns: Mapping[tuple[str, int], PastTurn]) -> None:
        """Cache the turns that a conversation shows, in place of those that it showed before."""
        self._count += len(turns) - len(self._held.pop(conversation, {}))
        if turns:  # nearly every thread of a company begins with none
            self._held[conversation] = turns
        while self._count > self._most:
            self._count -= len(self._held.popitem(last=False)[1])

    def clear(self) -> None:
        """Empty the cache."""
        self._held.clear()
        self._count = 0


class Past:
    """A conversation's turns, read in one snapshot: those to be rendered, those that have expired, those left out."""

    def __init__(self, db: Database, shelf: Shelf, seeing: Seeing, row: Row, before: str, most: int) -> None:
        """`row` is the conversation's; turns older than the instant `before` have expired; at most `most` are read."""
        self._db, self._shelf, self._seeing, self._conversation = db, shelf, seeing, row["conversation"]
        turns, history_from, upto = row["turns"], row["history_from"], row["upto"]
        first = max(history_from, upto + 1)
        kept = db.all("turns_recalled", conversation=self._conversation, first=first, most=most)[::-1]
        # between the summary and the rendered history; usually nothing has expired there
        left: list[Row] = []
        if first > upto + 1 and row["unsummarised_at"] and row["unsummarised_at"] < before:
            place = {"conversation": self._conversation, "upto": upto, "first": first}
            left = db.all("turns_left", **place, most=EXPIRED_AT_ONCE)
        expired = [turn for turn in (*left, *kept) if turn["at"] < before][:EXPIRED_AT_ONCE]
        kept = [turn for turn in kept if turn["at"] >= before]
        whole = self._whole(kept)
        shelf.keep(
            self._conversation, {(row["turn"], row["edits"]): turn for row, turn in zip(kept, whole, strict=True)}
        )
        self.whole: Sequence[PastTurn] = whole
        """Every turn that has not expired, whoever may see it, oldest first."""
        self.past = self._shown_here(kept, whole)
        self.expired = self._shown_here(expired, self._whole(expired))
        gone = max([turn["number"] for turn in expired], default=upto)
        self.left_out = self._left_out(gone + 1, (kept[0]["number"] if kept else turns + 1) - 1)

    def _whole(self, rows: Sequence[Row]) -> list[PastTurn]:
        """Return the turns of these rows, cached or read now, without filtering by audience."""
        held = self._shelf.of(self._conversation)
        found = {turn["number"]: held.get((turn["turn"], turn["edits"])) for turn in rows}
        missing = [turn for turn in rows if found[turn["number"]] is None]
        if missing:
            span = {"first": missing[0]["number"], "last": missing[-1]["number"]}
            lines = self._db.all("entries_recalled", conversation=self._conversation, **span)
            entries: dict[int, list[Entry]] = defaultdict(list)
            for line in lines:
                with Decoding("entry", self._conversation, line["number"]):
                    entries[line["number"]].append(entry_of(line))
            for row in missing:
                number, shown = row["number"], row["shown"]
                with Decoding("turn", self._conversation, number):
                    told = () if shown == "[]" else tuple([self._one_shown(**fields) for fields in parse(shown)])
                past = PastTurn(
                    turn=row["turn"],
                    nonce=row["nonce"],
                    number=number,
                    entries=tuple(entries[number]),
                    shown=told,
                    is_as_kept=row["edits"] == 0,
                )
                found[number] = past
        return [past for past in found.values() if past is not None]

    def _shown_here(self, rows: Sequence[Row], whole: Sequence[PastTurn]) -> tuple[PastTurn, ...]:
        """Leave out what may not be shown here, turn by turn and portrait by portrait."""
        audiences = {turn["audience"] for turn in rows} | {one.audience for past in whole for one in past.shown}
        seen = {audience for audience in audiences if self._seeing.may((audience,))}
        pairs = zip(rows, whole, strict=True)
        return tuple([_only(past, seen) for turn, past in pairs if past.entries and turn["audience"] in seen])

    def _one_shown(self, *, person: str, audience: str, version: int, writable: bool, pointer: bool) -> Shown:
        text = self._text(person, audience, version) if version and not pointer else ""
        return Shown(
            person=person,
            audience=audience,
            version=version if text is not None else _ERASED,
            writable=writable,
            pointer=pointer,
            text=text or "",
        )

    def _text(self, person: str, audience: str, version: int) -> str | None:
        for one in (person, self._seeing.canonical(person)):
            text = self._db.value("model_version", person=one, audience=audience, version=version)
            if text is not None:
                return str(text)
        return None

    def _left_out(self, first: int, last: int) -> LeftOut | None:
        span = {"conversation": self._conversation, "first": first, "last": last}
        found = self._db.one("turns_from_to", **span) if first <= last else None
        if found is None:
            return None
        with Decoding("turn", self._conversation, first):
            at = {name: instant(found[name]) for name in ("first_at", "last_at")}
            return LeftOut(count=last - first + 1, **at)


_ERASED = -1
"""The version of a portrait that was shown once and is no longer kept."""


def _only(past: PastTurn, seen: Collection[str]) -> PastTurn:
    """Leave out the portraits of other audiences, and those that are gone; the same turn if there are none."""
    if not past.shown:
        return past
    shown = tuple([one for one in past.shown if one.version >= 0 and one.audience in seen])
    return past if len(shown) == len(past.shown) else replace(past, shown=shown, is_as_kept=False)


NAMED = 3
"""Upper limit on people besides the speaker that are looked up."""
NAME_CHARS = 3
_LOOKED_AT = 20


def company(
    db: Database,
    seeing: Seeing,
    others: Sequence[Person],
    past: Sequence[PastTurn],
    text: str,
    *,
    beliefs: bool,
    now: datetime,
) -> tuple[tuple[Peer, ...], tuple[Belief, ...]]:
    """Return the peers and the beliefs of a turn; of others than the speaker, only what was counted here.

    Costs one more query if somebody was assessed or beliefs are wanted, and one or two for each other person who is
    named.
    """
    rows: list[Row] = []
    counted = ledger.counted(db, seeing.speaker, seeing)
    if beliefs or (counted and counted["assessments"]):
        rows = db.all("counsel_recalled", peer_id=seeing.speaker, most=ledger.SCORED, beliefs=int(beliefs))
    found: list[Peer] = []
    if counted is not None:
        judged = [ledger.assessment_of(row, seeing.speaker) for row in rows if row["what"] == "assessment"]
        showable = sorted([one for one in judged if seeing.may(one.sources)], key=lambda one: -one.id)
        found.append(ledger.counted_peer(seeing.speaker, counted, showable[: ledger.SCORED]))
    named = _named(seeing, others, past, text)
    found += [peer for one in named if (peer := ledger.find_peer(db, one, seeing, only_here=True))]
    present = {seeing.speaker, *[other.person for other in others]}
    held = [belief_of(row) for row in rows if row["what"] == "belief"]
    return tuple(found), _kept_in_mind(held, seeing, present, now)


def _named(seeing: Seeing, others: Sequence[Person], past: Sequence[PastTurn], text: str) -> tuple[str, ...]:
    """Return who else is spoken of: others who just wrote, and those who wrote here whose name is in the text."""
    names: dict[str, str] = {}
    for turn in past[-_LOOKED_AT:]:
        names |= {person: name for person, name in once(turn, _speakers) if name in text}
    ids = [*[other.person for other in others], *map(seeing.canonical, names)]
    return tuple([one for one in dict.fromkeys(ids) if one != seeing.speaker][:NAMED])


def _speakers(past: PastTurn) -> tuple[tuple[str, str], ...]:
    named = [(entry.person, entry.name) for entry in past.entries if entry.person and entry.name]
    return tuple([(person, name) for person, name in named if len(name) >= NAME_CHARS])


def _kept_in_mind(held: Sequence[Belief], seeing: Seeing, present: set[str], now: datetime) -> tuple[Belief, ...]:
    """Choose the valid beliefs that may be shown here, each key once: about people present first, then the newest."""
    ranked = sorted(
        [one for one in held if not one.is_expired(now) and seeing.may(one.sources)],
        key=lambda one: (one.peer_id in present, one.created_at, one.key),
        reverse=True,
    )
    chosen: dict[str, Belief] = {}
    for belief in ranked:
        chosen.setdefault(belief.key, belief)
    return tuple(chosen.values())
