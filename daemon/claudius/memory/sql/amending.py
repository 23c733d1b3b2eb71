"""Keep a perception, and what edits, deletions, reactions and stop requests make of one that is kept.

A turn commits only while the perceptions that it answers still name it. A change of what is answered therefore gives
the perception another turn id, and a turn that was based on the old words is refused as stale.
"""

from __future__ import annotations

import logging

from msgspec import Struct
from msgspec.structs import replace

from claudius.errors import RowInvalid
from claudius.memory.inbox import (
    Amended,
    Unsaid,
    turn_of,
)
from claudius.memory.sql.connection import Database
from claudius.memory.sql.moments import amend_moment
from claudius.memory.sql.rows import (
    Decoding,
    dump_valid,
    perception_of,
)
from claudius.memory.sql.unsaying import note_unsaid
from claudius.perception import (
    CommandExtra,
    Kind,
    MessageExtra,
    Perception,
    Place,
    ReactionExtra,
    amended_key,
    whole_text,
)
from claudius.prompt import valid
from claudius.shown import put_right

NOTHING = Amended()
log = logging.getLogger(__name__)
UNFINISHED = ("pending", "taken", "thought")
GONE = "~"
"""As the position of the newest change: the message was deleted, and nothing changes it any more."""


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


def put_shown_right(db: Database, of: str, perception: Perception) -> None:
    """Change what messages that wait show of a message that was edited, or take it from them if it was deleted.

    An edit changes nothing in another place: whoever is there may not read where it was made.
    """
    place = Place.of(perception.conversation).of_channel
    for row in db.all("showing", of=f'%"{of}"%'):
        try:
            with Decoding("inbox", row["seq"]):
                waiting = perception_of(row["payload"])
        except RowInvalid:
            continue  # its lane gives it up
        extra = waiting.extra
        is_seen = perception.kind is Kind.DELETE or Place.of(waiting.conversation).of_channel == place
        if is_seen and isinstance(extra, MessageExtra) and extra.shown:
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
