"""`store.inbox`: what was heard, and what edits, deletions, reactions and stop requests make of it.

A turn commits only while the perceptions that it answers still name it. A change of what is answered therefore gives
the perception another turn id, and a turn that was based on the old words is refused as stale.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from claudius.errors import OverBudget, RowInvalid
from claudius.memory.inbox import (
    UNLIMITED,
    Amended,
    Pending,
    RateLimits,
    Rates,
    RateVerdict,
    Undone,
    Unsaid,
    in_force,
    is_unanswered,
    turn_of,
    unanswered,
)
from claudius.memory.sql.connection import Database, Row
from claudius.memory.sql.core import Core
from claudius.memory.sql.moments import amend_moment
from claudius.memory.sql.rows import (
    Decoding,
    call_of,
    dump,
    dump_valid,
    instant,
    pending_of,
    perception_of,
    stamp,
)
from claudius.memory.sql.unsaying import Unsaying, note_unsaid
from claudius.perception import (
    CommandExtra,
    Following,
    Kind,
    MessageExtra,
    Origin,
    Perception,
    Place,
    ReactionExtra,
    Thread,
    amended_key,
    is_terminal,
    settled_in,
    whole_text,
)
from claudius.prompt import valid
from claudius.shown import put_right

log = logging.getLogger(__name__)
NOTHING = Amended()
UNFINISHED = ("pending", "taken", "thought")
EARLY = 256
"""How many changes of unknown messages are remembered, because an event may overtake the message that it refers to."""
GONE = "~"
"""As the position of the newest change: the message was deleted, and nothing changes it any more."""


class SqlInbox:
    """What was heard and is not answered yet."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._rates = Rates()
        self._early: dict[str, Perception] = {}
        """The latest changes of unknown messages, by the key of the message; oldest first."""
        self._unsaying, self._unsaid = Unsaying(core), asyncio.Event()

    async def accept(
        self, perceptions: Sequence[Perception], now: datetime, limits: RateLimits = UNLIMITED
    ) -> tuple[bool, ...]:
        heard = list(perceptions) if limits is UNLIMITED else [judged(self._rates, one, limits) for one in perceptions]
        found = await self._core.write(lambda db: accept(db, heard, now, self._early))
        if self._early:
            for one in perceptions:
                self._early.pop(one.key, None)
        return found

    async def marks(self, network: str) -> Mapping[str, str]:
        await self._core.writer.flush()
        with self._core.snapshot() as db:
            marks = db.all("marks", adapter=network)
        found = sorted(marks, key=lambda mark: str(mark["position"]), reverse=True)
        return {mark["channel"]: mark["position"] for mark in found}

    async def swept(self, network: str, channel: str, position: str, now: datetime) -> None:
        values = {"adapter": network, "channel": channel, "position": position, "now": stamp(now)}
        await self._core.write(lambda db: db.change("mark_swept", **values))

    async def oldest(self, conversation: str) -> Pending | None:
        found = self._core.look("oldest", conversation=conversation, boot=self._core.boot)
        if not found:
            return None
        pending = pending_of(found[0])
        if await self._core.writer.flush(pending.seq, pending.turn):
            return await self.oldest(conversation)
        calls = tuple(map(call_of, self._core.look("calls", turn=pending.turn))) if pending.attempts else ()
        return replace(pending, calls=calls) if calls else pending

    async def unfinished(self, conversation: str, most: int = 32) -> Sequence[Pending]:
        await self._core.flush()
        with self._core.snapshot() as db:
            return list(_readable(db.all("unfinished", conversation=conversation, boot=self._core.boot, most=most)))

    async def join(self, pendings: Sequence[Pending]) -> Pending:
        first, turn = pendings[0], pendings[-1].turn

        def write(db: Database) -> None:
            for one in pendings:
                db.run("join_turn", seq=one.seq, turn=turn)

        await self._core.write(write)
        with self._core.snapshot() as db:
            calls = tuple(call_of(call) for call in db.all("calls", turn=turn))
        return replace(first, turn=turn, calls=calls, further=tuple(pendings[1:]))

    async def hold(self, pending: Pending) -> None:
        def write(db: Database) -> None:
            for one in pending.perceptions:
                hold(db, one.key)

        await self._core.write(write)

    async def meet(self, pending: Pending) -> None:
        boot, met = self._core.boot, (pending, *pending.further)
        await self._core.write(lambda db: [db.run("met", seq=one.seq, boot=boot) for one in met])

    def take(self, seq: int, inputs: Mapping[str, str], now: datetime) -> None:
        boot = self._core.boot
        self._core.writer.later(
            lambda db: db.run("take", seq=seq, inputs=dump(dict(inputs)), now=stamp(now), boot=boot), seq
        )

    async def postpone(self, seq: int, not_before: datetime, reason: str, attempts: int = 0) -> None:
        values = {"seq": seq, "not_before": stamp(not_before), "reason": reason, "attempts": attempts}
        await self._core.write(lambda db: db.change("postpone", **values))

    def failing(self, turn: str, reason: str) -> None:
        self._core.writer.later(lambda db: db.run("failing", turn=turn, reason=valid(reason)), turn)

    async def withdraw(self, seq: int, reason: str) -> None:
        await self._core.write(lambda db: db.change("withdraw", seq=seq, reason=reason))

    async def give_up(self, seq: int, reason: str) -> None:
        await self._core.write(lambda db: db.change("give_up", seq=seq, reason=reason))

    async def impose(self, perception: Perception, name: str, kept: Mapping[str, Any], now: datetime) -> bool:
        conversation = perception.conversation

        def write(db: Database) -> bool:
            if name:
                db.run("keep_kept", conversation=conversation, name=name, value=dump(dict(kept)))
            return keep(db, replace(perception, position=position(db, conversation, 0)), stamp(now))

        return await self._core.write(write)

    async def amend(self, perception: Perception, now: datetime) -> Amended:
        amended = await self._amend(lambda db: amend(db, perception, stamp(now)))
        if amended.is_early:
            of = amended_key(perception)
            self._early[of] = in_force(self._early.pop(of, None), perception)
            if len(self._early) > EARLY:
                del self._early[next(iter(self._early))]
        return amended

    async def _amend(self, write: Callable[[Database], Amended]) -> Amended:
        amended = await self._core.write(write)
        if amended.is_unsaid:
            self._unsaid.set()
        return amended

    @property
    def is_unsaid(self) -> bool:
        return self._unsaid.is_set()

    async def unsaid(self) -> None:
        await self._unsaid.wait()

    async def undo(self) -> Undone:
        self._unsaid.clear()
        return await self._unsaying.undo()

    async def put_right(self, perception: Perception) -> None:
        of = amended_key(perception)
        await self._core.writer.flush()
        if of and self._core.look("showing", of=f'%"{of}"%'):
            await self._core.write(lambda db: _put_shown_right(db, of, perception))

    async def stop(self, perception: Perception, now: datetime, *, by_owner: bool) -> Amended:
        return await self._core.write(lambda db: stop(db, perception, stamp(now), by_owner=by_owner))


def _readable(rows: Iterable[Row]) -> Iterator[Pending]:
    """Yield the rows that decode. A damaged row is given up by its lane once it is the oldest."""
    for row in rows:
        with suppress(RowInvalid):
            yield pending_of(row)


def keep(db: Database, perception: Perception, at: str, *, said: bool = False) -> bool:
    """Write a perception to the inbox for its lane; False if its key is known.

    `said`: a person said it, so it is owed an answer wherever everything said is.
    """
    return bool(
        db.change(
            "accept",
            key=perception.key,
            conversation=perception.conversation,
            position=perception.position,
            kind=perception.kind,
            owes=perception.owes,
            said=said,
            person=perception.person,
            payload=dump_valid(perception),
            now=at,
            turn=turn_of(perception.key),
        )
    )


def judged(rates: Rates, heard: Perception, limits: RateLimits) -> Perception | None:
    """Return a perception as the rates let it in; None if it is dropped. Raises: OverBudget."""
    verdict = rates.verdict(heard, limits)
    if verdict is RateVerdict.SHUT:
        raise OverBudget(SHUT_FOR_NOW)
    if verdict is RateVerdict.OVER_NOW:
        return over_budget(heard)
    return None if verdict is RateVerdict.DROPPED else heard


SHUT_FOR_NOW = "too many messages: this is not heard before the hour is over"


def over_budget(heard: Perception) -> Perception:
    """Return a perception as the one that gets the apology. Pure."""
    return replace(heard, extra=replace(heard.extra, is_over_budget=True))


def accept(
    db: Database,
    perceptions: Sequence[Perception | None],
    now: datetime,
    early: Mapping[str, Perception] | None = None,
) -> tuple[bool, ...]:
    """WRITE 1: store what was heard, and apply what changed it `early`; True for each new perception."""
    at, found = stamp(now), []
    for perception in perceptions:
        is_new = perception is not None and accept_one(db, perception, at)
        if is_new and perception and early and (change := early.get(perception.key)):
            amend(db, change, at)
        found.append(is_new)
    return tuple(found)


def accept_one(db: Database, heard: Perception, at: str) -> bool:
    """Store one perception; False if its key is known, or it is not to be kept."""
    perception = _in_thread(db, heard)
    if perception is None:
        return False
    said = perception.origin is Origin.EXTERNAL and not perception.is_bot and not is_unanswered(perception)
    new = keep(db, perception, at, said=said)
    if new and perception.person and perception.origin is Origin.EXTERNAL:
        zone = perception.extra.zone if isinstance(perception.extra, MessageExtra) else ""
        who = {"person": perception.person, "name": valid(perception.name), "is_bot": perception.is_bot}
        db.run("person_heard", **who, zone=valid(zone), now=at)
        if not is_terminal(perception.conversation):
            mark(db, perception)
    return bool(new)


def mark(db: Database, perception: Perception) -> None:
    """Record from where its channel is to be swept, if that channel was never heard before."""
    place = Place.of(perception.conversation)
    workspace, channel = f"{place.workspace}:", f"{place.workspace}:{place.channel}"
    db.run("mark_heard", adapter=place.network, workspace=workspace, channel=channel, position=perception.position)


def _in_thread(db: Database, perception: Perception) -> Perception | None:
    """Decide what a message in a thread is owed; None if it is not to be kept."""
    conversation = perception.conversation
    is_call = perception.kind is Kind.MENTION and bool(Place.of(conversation).thread)
    if perception.following is None and not is_call:
        return perception
    at = stamp(perception.at)
    if is_call and perception.owes:
        db.run("thread_called", conversation=conversation, position=perception.position, at=at)
    before = db.one("thread", conversation=conversation)
    if before is None:
        return settled_in(perception, None)
    if not perception.is_bot:
        db.run("thread_speaks", conversation=conversation, person=perception.person, key=perception.key)
    row = db.one("thread", conversation=conversation) or before
    thread = Thread(
        since=row["since"], last_at=instant(row["last_at"]), is_quiet=bool(row["is_quiet"]), people=row["people"]
    )
    db.run("thread_spoken", conversation=conversation, at=at)
    if thread.is_quiet and perception.following is Following.KEPT:
        return unanswered(perception)
    return settled_in(perception, thread)


def position(db: Database, conversation: str, schedule_id: int) -> str:
    """Return a position after everything that waits there now."""
    last = db.value("last_position", conversation=conversation)
    return f"{last}~{schedule_id:020d}" if last is not None else f"{schedule_id:020d}"


def hold(db: Database, key: str) -> None:
    """Leave a perception to the next turn, under a turn id that no commit has used."""
    held = db.value("held_how_often", key=key)
    if held is not None:
        db.run("hold", key=key, turn=turn_of(f"{key}+{held + 1}"))


class _Heard(Struct, frozen=True):
    """The message that an amendment is about."""

    seq: int
    conversation: str
    position: str
    state: str
    payload: str
    turn: str
    again: int
    edited: str | None
    person: str


def amend(db: Database, perception: Perception, at: str) -> Amended:
    """Apply an edit, a deletion or a reaction."""
    if perception.kind is Kind.REACTION:
        return _react(db, perception, at)
    row = db.one("heard_before", key=amended_key(perception))
    heard = _Heard(**row) if row else None
    is_late = heard is None or (heard.edited or "") >= (GONE if perception.kind is Kind.DELETE else perception.position)
    if heard and not is_late and _waits(heard, perception):
        _keep(db, replace(perception, conversation=heard.conversation), at)
        return Amended(conversation=heard.conversation)
    db.run("amend_settled", key=perception.key, now=at, reason="in force")  # if it waited for a turn to end
    if heard is None:
        return Amended(is_early=True)
    if is_late:
        return NOTHING
    if perception.kind is Kind.DELETE:
        return _delete(db, heard, at)
    return _edit(db, heard, perception, at) if perception.person == heard.person else NOTHING


def _waits(heard: _Heard, perception: Perception) -> bool:
    """Return whether an edit must wait for the running turn to end, because an earlier edit already restarted it.

    The conversation's lane applies it then.
    """
    is_thought = heard.state in UNFINISHED and heard.state != "pending"
    return perception.kind is Kind.EDIT and perception.person == heard.person and is_thought and bool(heard.again)


def _edit(db: Database, heard: _Heard, perception: Perception, at: str) -> Amended:
    interrupts, is_unsaid = "", False
    if heard.state not in UNFINISHED:
        db.run("amended", seq=heard.seq, position=perception.position)
        is_unsaid = _remember(db, heard, valid(perception.text), "$.edited", at)
    else:
        before = _before(heard)
        if before is None or before.text == perception.text:
            return NOTHING  # a link preview arrived and the words are the same; or the row is damaged
        interrupts = heard.turn  # also if it is pending: another process may have taken it just now
        _put_right(db, heard, before, perception, heard.again + (heard.state != "pending"))
        db.run("stream_dropped", turn=heard.turn, reason="its message was changed")
    return Amended(conversation=heard.conversation, interrupts=interrupts, is_unsaid=is_unsaid)


def _before(heard: _Heard) -> Perception | None:
    """Return a message as it was heard; None if its row is damaged."""
    try:
        with Decoding("inbox", heard.seq):
            return perception_of(heard.payload)
    except RowInvalid as error:
        log.error("a change is not applied", extra={"error": error.message})  # noqa: TRY400 - no trace
        return None


def _put_right(db: Database, heard: _Heard, before: Perception, perception: Perception, again: int) -> None:
    """Replace the text of a message that is not answered yet, keeping its position."""
    extra = before.extra
    if isinstance(extra, MessageExtra) and isinstance(perception.extra, MessageExtra):
        extra = replace(extra, named=perception.extra.named, shown=perception.extra.shown)
    now = replace(before, text=perception.text, name=perception.name or before.name, extra=extra)
    db.run(
        "amend_waiting",
        seq=heard.seq,
        payload=dump_valid(now),
        position=perception.position,
        turn=turn_of(f"{before.key}@{perception.position}"),
        again=again,
    )


def _put_shown_right(db: Database, of: str, perception: Perception) -> None:
    """Change what messages that wait show of a message that was edited, or take it from them if it was deleted."""
    for row in db.all("showing", of=f'%"{of}"%'):
        try:
            with Decoding("inbox", row["seq"]):
                waiting = perception_of(row["payload"])
        except RowInvalid:
            continue  # its lane gives it up
        extra = waiting.extra
        if isinstance(extra, MessageExtra) and extra.shown:
            text = None if perception.kind is Kind.DELETE else whole_text(perception)
            files = [one for one in extra.files if text is not None or one.get("of") != of]
            extra = replace(extra, shown=put_right(extra.shown, of, text), files=tuple(files))
            db.run("shows_now", seq=row["seq"], payload=dump_valid(replace(waiting, extra=extra)))


def _keep(db: Database, perception: Perception, at: str) -> None:
    keep(db, replace(perception, owes=False, following=None), at)


def _delete(db: Database, heard: _Heard, at: str) -> Amended:
    db.run("amended", seq=heard.seq, position=GONE)
    if heard.state in UNFINISHED:
        db.run("withdraw", seq=heard.seq, reason="withdrawn")
        db.run("stream_dropped", turn=heard.turn, reason="its message was taken down")
        return Amended(conversation=heard.conversation, interrupts=heard.turn)
    return Amended(conversation=heard.conversation, is_unsaid=_remember(db, heard, "", "$.deleted", at))


def _remember(db: Database, heard: _Heard, content: str, mark: str, at: str) -> bool:
    """Correct working memory, and mark what was learned from the old words; False if no turn has heard them."""
    found = db.one("place_of_turn", turn=heard.turn)
    if found is None:
        return False
    where = {name: found[name] for name in ("conversation", "number")}
    moment = db.one("moment_at", conversation=found["conversation"], turn=heard.turn, position=heard.position)
    before = db.value("line_at", **where, position=heard.position) or (moment["text"] if moment else "")
    db.run("entry_amended", **where, position=heard.position, content=content, mark=mark)
    amend_moment(db, found["conversation"], heard.turn, heard.position, content)
    db.run("turn_edited", turn=heard.turn)
    db.run("doubt_learned", turn=heard.turn, now=at)
    db.run("doubt_summary", **where, now=at)
    moment_id = moment["id"] if moment else 0
    note_unsaid(db, Unsaid(**found, person=heard.person, moment=moment_id, before=before, now=content))
    return True


def stop(db: Database, perception: Perception, at: str, *, by_owner: bool) -> Amended:
    """Suppress the answer to one pending or running message.

    A stop request that is processed again stops no other message.
    """
    if db.one("heard_before", key=perception.key):
        return NOTHING
    wanted = amended_key(perception) or _owed_before(db, perception, by_owner=by_owner)
    row = db.one("heard_before", key=wanted) if wanted else None
    heard = _Heard(**row) if row else None
    if heard is None or heard.state not in UNFINISHED or not (by_owner or heard.person == perception.person):
        return NOTHING
    if not db.change("stop", key=wanted, turn=turn_of(f"{wanted}!")):
        return NOTHING
    db.run("stream_dropped", turn=heard.turn, reason="stopped")
    _keep(db, replace(perception, conversation=heard.conversation, kind=Kind.COMMAND, extra=CommandExtra()), at)
    db.run("amend_settled", key=perception.key, now=at, reason="in force")
    return Amended(conversation=heard.conversation, interrupts=heard.turn)


def _owed_before(db: Database, perception: Perception, *, by_owner: bool) -> str | None:
    """Return the oldest message that may be meant: in its conversation, else the speaker's own in that channel.

    A mention in a channel begins a conversation of its own, and so does the stop request.
    """
    channel = Place.of(perception.conversation).of_channel
    rows = db.all("owed_before", place=f"{channel}:", until=f"{channel};", position=perception.position)
    found = sorted(rows, key=lambda row: (row["position"], row["key"]))
    here = (row["key"] for row in found if by_owner and row["conversation"] == perception.conversation)
    own = [(row["conversation"], row["key"]) for row in found if row["person"] == perception.person]
    own.sort(key=lambda one: one[0] != perception.conversation)
    return next(here, None) or next((key for _, key in own), None)


def _react(db: Database, perception: Perception, at: str) -> Amended:
    where = Place.of(perception.conversation).of_channel
    extra = perception.extra
    if not isinstance(extra, ReactionExtra) or not extra.receipt:
        return NOTHING
    turn: str | None = db.value("said_there", receipt=extra.receipt, place=f"{where}:", until=f"{where};")
    at_home = db.one("place_of_turn", turn=turn) if turn else None
    if turn is None or at_home is None:
        return NOTHING
    changed = db.change(
        "react",
        turn=turn,
        person=perception.person,
        emoji=valid(extra.emoji),
        at=at,
        position=perception.position,
        is_on=extra.is_on,
    )
    if not changed:
        return NOTHING
    heard_there = replace(
        perception,
        key=f"{perception.key}:{perception.position}",
        conversation=at_home["conversation"],
        text=extra.emoji,
        extra=replace(extra, turn=turn, is_removed=not extra.is_on),
    )
    _keep(db, heard_there, at)  # queued for the conversation that it is about; nothing is owed to it
    return Amended(conversation=at_home["conversation"])
