"""The recollection of one turn, read in one snapshot and filtered by the audience rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import itemgetter

from claudius.memory.sqlite.queries import Database, Row
from claudius.memory.sqlite.rows import instant, maybe_instant, parse, stamp
from claudius.memory.sqlite.seeing import Seeing, json_list
from claudius.memory.store import Pending, RecallLimits
from claudius.perception import Origin
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
    StateValue,
    Summary,
    UserModel,
)

_OTHERS = 2
_EXPIRED_AT_ONCE = 100
"""Turns that one recollection hands over to be summarised; what is left comes with the next."""
_ENTRY_TYPES = {kind.value: kind for kind in EntryType}


def recall(db: Database, pending: Pending, *, nonce: str, now: datetime, limits: RecallLimits) -> Recollection:
    """Read everything that a turn may know. The caller holds the snapshot."""
    perception = pending.perception
    seeing = Seeing(db, perception)
    conversation = perception.conversation
    row = db.one("conversation_recalled", conversation=conversation)
    before = stamp(now - timedelta(hours=limits.ttl_hours))
    kept = _Past(db, seeing, conversation, row, before, limits.max_past) if row else None
    is_spoken_to = bool(perception.person) and perception.origin is Origin.EXTERNAL
    speaker = _person(db, seeing, perception.person, perception.name, conversation, is_bot=perception.is_bot)
    return Recollection(
        turn=pending.turn,
        nonce=nonce,
        now=now,
        conversation=conversation,
        audience=seeing.audience,
        perceptions=(perception,),
        speaker=speaker if is_spoken_to else None,
        others=_others(db, seeing, conversation, kept.heard if kept else ()),
        process=_process(row),
        turns=row[1] if row else 0,
        version=row[0] if row else 0,
        past=kept.past if kept else (),
        expired=kept.expired if kept else (),
        summary=_summary(seeing, row),
        left_out=kept.left_out if kept else None,
        state=_state(db, seeing),
        members=seeing.members(),
    )


class _Past:
    """A conversation's turns as this turn may know them."""

    def __init__(self, db: Database, seeing: Seeing, conversation: str, row: Row, before: str, most: int) -> None:
        self._db, self._seeing, self._conversation = db, seeing, conversation
        turns, history_from, upto = row[1], row[8], row[11]
        first = max(history_from, upto + 1)
        kept = db.all("turns_recalled", conversation=conversation, first=first, most=most)[::-1]
        left = db.all("turns_left", conversation=conversation, upto=upto, first=first, most=_EXPIRED_AT_ONCE)
        expired = [turn for turn in (*left, *kept) if turn[3] < before][:_EXPIRED_AT_ONCE]
        kept = [turn for turn in kept if turn[3] >= before]
        self.heard: Sequence[Entry] = ()
        self.expired = self._whole(expired)
        self.past = self._whole(kept, is_latest=True)
        gone = max((turn[0] for turn in expired), default=upto)
        self.left_out = self._left_out(gone + 1, (kept[0][0] if kept else turns + 1) - 1)

    def _whole(self, turns: list[Row], *, is_latest: bool = False) -> tuple[PastTurn, ...]:
        if not turns:
            return ()
        rows = self._db.all("entries_recalled", conversation=self._conversation, first=turns[0][0], last=turns[-1][0])
        entries = {number: tuple(map(_entry, group)) for number, group in groupby(rows, itemgetter(0))}
        if is_latest:
            self.heard = [entry for group in entries.values() for entry in group]
        return tuple(
            PastTurn(turn=turn, nonce=nonce, number=number, entries=entries[number], shown=self._shown(shown))
            for number, turn, nonce, _, audience, shown in turns
            if number in entries and self._seeing.may((audience,))
        )

    def _shown(self, text: str) -> tuple[Shown, ...]:
        if text == "[]":
            return ()
        found = (self._one_shown(**fields) for fields in parse(text))
        return tuple(shown for shown in found if shown is not None)

    def _one_shown(self, *, person: str, audience: str, version: int, writable: bool, pointer: bool) -> Shown | None:
        if not self._seeing.may((audience,)):
            return None
        text = ""
        if version and not pointer:
            model = self._db.one("model_version", person=person, audience=audience, version=version) or self._db.one(
                "model_version", person=self._seeing.canonical(person), audience=audience, version=version
            )
            if model is None:
                return None
            text = model[0]
        return Shown(person=person, audience=audience, version=version, writable=writable, pointer=pointer, text=text)

    def _left_out(self, first: int, last: int) -> LeftOut | None:
        if last < first:
            return None
        began = self._db.one("turn_instant", conversation=self._conversation, number=first)
        ended = self._db.one("turn_instant", conversation=self._conversation, number=last)
        if began is None or ended is None:
            return None
        return LeftOut(count=last - first + 1, first_at=instant(began[0]), last_at=instant(ended[0]))


def _entry(row: Row) -> Entry:
    _, kind, content, at, verb, person, name, metadata, position = row
    return Entry(
        entry_type=_ENTRY_TYPES[kind],
        content=content,
        at=instant(at),
        verb=verb,
        person=person,
        name=name,
        metadata=parse(metadata) if metadata else {},
        position=position,
    )


def _process(row: Row | None) -> ProcessState:
    if row is None:
        return ProcessState(process="")
    return ProcessState(
        process=row[2],
        previous_process=row[3],
        params=parse(row[4]),
        process_memory=parse(row[5]),
        invocation_count=row[6],
        entered_at=maybe_instant(row[7]),
    )


def _summary(seeing: Seeing, row: Row | None) -> Summary | None:
    if row is None or row[9] is None:
        return None
    sources = tuple(parse(row[10]))
    return Summary(text=row[9], sources=sources, upto=row[11], nonce=row[12]) if seeing.may(sources) else None


def _person(db: Database, seeing: Seeing, person: str, name: str, conversation: str, *, is_bot: bool) -> Person:
    canonical = seeing.canonical(person)
    here = db.one("turns_here", conversation=conversation, persons=json_list(seeing.ids(canonical)))
    return Person(
        person=canonical,
        name=name,
        models=_models(db, seeing, canonical),
        turns_here=here[0] if here else 0,
        is_bot=is_bot,
    )


def _models(db: Database, seeing: Seeing, person: str) -> tuple[UserModel, ...]:
    found = [
        UserModel(person=person, audience=audience, version=version, markdown=markdown, suspect=bool(suspect))
        for _, audience, version, markdown, suspect in db.all("models_recalled", person=person)
        if seeing.may((audience,))
    ]
    writable = [model for model in found if model.audience == seeing.audience]
    if not writable:
        writable = [UserModel(person=person, audience=seeing.audience, version=0)]
    return (*writable, *(model for model in found if model.audience != seeing.audience))


def _others(db: Database, seeing: Seeing, conversation: str, heard: Sequence[Entry]) -> tuple[Person, ...]:
    found: dict[str, Person] = {}
    for entry in reversed(heard):
        if entry.entry_type is EntryType.EXTERNAL_DIALOG or len(found) == _OTHERS:
            break
        if not entry.person:
            continue
        canonical = seeing.canonical(entry.person)
        known = db.one("person_recalled", person=entry.person)
        if canonical in found or canonical == seeing.speaker or (known and known[1]):
            continue
        name = known[0] if known else entry.name or ""
        found[canonical] = _person(db, seeing, canonical, name, conversation, is_bot=False)
    return tuple(found.values())


def _state(db: Database, seeing: Seeing) -> tuple[StateValue, ...]:
    if seeing.sees_all:
        rows: Iterable[Row] = (row for key in STATE_DEFAULTS if (row := db.one("state_of_key", key=key)))
    else:
        rows = (row for audience in seeing.audiences() for row in db.all("state_of_audience", audience=audience))
    newest: dict[str, Row] = {}
    for row in rows:
        if row[1] not in newest or row[0] > newest[row[1]][0]:
            newest[row[1]] = row
    return tuple(
        StateValue(key=key, value=newest[key][2], audience=newest[key][3], updated_at=instant(newest[key][4]))
        for key in STATE_DEFAULTS
        if key in newest and newest[key][2] not in ("", STATE_DEFAULTS[key])
    )
