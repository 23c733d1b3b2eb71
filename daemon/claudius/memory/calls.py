"""The topic `store.calls`: each use of a tool with its state, and the consents that are remembered.

Nothing is done twice: a call is `started`, durably, before its first byte leaves, and only who started it, under the
lane's token of then, may say how it ended. What another process left open is `unknown`, or is made again if that harms
nothing. A call belongs to its turn while that is unfinished; its later end becomes a perception of its own.

Source: the tools design, section 3.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from claudius.intent import Intent
from claudius.memory.database import Core, Database, Row
from claudius.memory.inbox import keep, position
from claudius.memory.outbox import CARD
from claudius.memory.rows import (
    Decoding,
    dump,
    dump_valid,
    instant,
    maybe_instant,
    parse_object,
    parse_strings,
    stamp,
)
from claudius.perception import Kind, Origin, Perception, Place, ToolExtra
from claudius.prompt import valid
from claudius.tool import CallState, Card, Grant, ToolCall, ToolClass

ATTEMPTS = 2
"""How often a call that harms nothing is started at most, if its process ends in the middle of it."""
LEFT = "its process ended before there was an answer"
KEY, GO = "tool:", ":go"
"""The perception that tells a call's end has the key `tool:ID`; the one that starts an allowed call, `tool:ID:go`."""


def call_row(call: ToolCall) -> dict[str, Any]:
    """Return the values of a call's row that stay as they are. Pure."""
    return {
        "id": call.id,
        "turn": call.turn,
        "conversation": call.conversation,
        "audience": call.audience,
        "person": call.person,
        "is_owner": int(call.is_owner),
        "tool": call.tool,
        "class": call.cls,
        "third": int(call.third),
        "pin": call.pin,
        "args": dump_valid(call.args),
        "args_sha256": args_sha256(call),
        "reason": valid(call.reason),
    }


def args_sha256(call: ToolCall) -> str:
    """Return the hash of a call's tool and arguments. Pure."""
    return sha256(msgspec.json.encode((call.tool, msgspec.to_builtins(call.args)), order="sorted")).hexdigest()


def call_of(row: Row) -> ToolCall:
    """Decode a row of a call. Pure. Raises: RowInvalid."""
    with Decoding("tool_call", row["id"]):
        return ToolCall(
            id=row["id"],
            turn=row["turn"],
            conversation=row["conversation"],
            audience=row["audience"],
            person=row["person"],
            is_owner=bool(row["is_owner"]),
            tool=row["tool"],
            cls=ToolClass(row["class"]),
            third=bool(row["third"]),
            args=parse_object(row["args"]),
            pin=row["pin"],
            state=CallState(row["state"]),
            reason=row["reason"],
            approvers=parse_strings(row["approvers"]),
            allowed_by=row["allowed_by"],
            grant=row["grant_id"],
            asked_at=instant(row["asked_at"]),
            until=maybe_instant(row["until"]),
            started_at=maybe_instant(row["started_at"]),
            ended_at=maybe_instant(row["ended_at"]),
            attempts=row["attempts"],
            result=row["result"],
            told_turn=row["told_turn"],
        )


def grant_of(row: Row) -> Grant:
    """Decode a row of a consent. Pure. Raises: RowInvalid."""
    with Decoding("tool_grant", row["id"]):
        return Grant(
            id=row["id"],
            tool=row["tool"],
            pin=row["pin"],
            scope=row["scope"],
            person=row["person"],
            conversation=row["conversation"],
            granted_by=row["granted_by"],
            granted_at=instant(row["granted_at"]),
            expires_at=instant(row["expires_at"]),
            revoked_at=maybe_instant(row["revoked_at"]),
        )


class DecidedCard(Struct, frozen=True, kw_only=True):
    """A question that is decided, and whose post does not say so yet."""

    key: str
    """Of the part that shows it."""
    conversation: str
    receipt: str
    card: Card
    state: CallState
    by: str
    """Who decided it; empty = nobody did."""


class CallStore:
    """The calls of tools, and the consents. Writes of a lane go through the store of its holder, like a turn's."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def find(self, call: str) -> ToolCall | None:
        """Return a call by its id; None if there is none."""
        found = self._core.find("call_found", id=call)
        return call_of(found) if found else None

    def open(self, conversation: str) -> tuple[ToolCall, ...]:
        """Return what waits for consent, is allowed, or is under way in a conversation."""
        return tuple(map(call_of, self._core.look("calls_open", conversation=conversation)))

    def waiting(self) -> tuple[ToolCall, ...]:
        """Return everything that waits for consent, oldest first."""
        return tuple(map(call_of, self._core.look("calls_waiting")))

    def spent(self, person: str, since: datetime) -> int:
        """Return how many calls a person had made since then, without those of class `look`."""
        return int(self._core.value("calls_of_person", person=person, since=stamp(since)))

    def grants(self, conversation: str, person: str, now: datetime) -> tuple[Grant, ...]:
        """Return the consents in force for a person in a conversation."""
        channel = Place.of(conversation).of_channel
        where = {"conversation": conversation, "channel": channel, "person": person}
        return tuple(map(grant_of, self._core.look("grants_in_force", **where, now=stamp(now))))

    async def start(self, call: ToolCall, now: datetime) -> tuple[ToolCall, bool]:
        """Record, durably, that a call is started: a new one, or one that was allowed. What is not yet so stays.

        Returns the call as it stands, and whether it was started now: then its first byte may leave.
        """
        return await self._core.write(partial(start, call=call, boot=self._core.boot, token=self._core.token, now=now))

    async def again(self, call: ToolCall, now: datetime) -> tuple[ToolCall, bool]:
        """Record that a call is made again; returns it, and whether it may be: `ATTEMPTS` times in all."""
        lease = {"boot": self._core.boot, "token": self._core.token, "attempts": call.attempts, "most": ATTEMPTS}
        changed = await self._core.write(lambda db: db.change("call_again", id=call.id, **lease, now=stamp(now)))
        return (replace(call, attempts=call.attempts + 1), True) if changed else (call, False)

    async def end(self, call: ToolCall, now: datetime, *, is_heard: bool = True) -> bool:
        """Record how a call ended that this process started. False if it is not this process's to say any more.

        If its turn will not hear of it, its end is heard as a perception, unless it `is_heard` by nobody.
        Raises: StaleTurn if the lane was lost.
        """
        boot, token = self._core.boot, self._core.token
        return await self._core.write(lambda db: end(db, call, boot=boot, token=token, now=now, is_heard=is_heard))

    async def recover(self, conversation: str, now: datetime, has_key: Callable[[str], bool]) -> tuple[ToolCall, ...]:
        """Judge what other processes, or an earlier token, left started in a conversation.

        What harms nothing, or `has_key` by the name of its tool, is allowed again, `ATTEMPTS` times in all; all else
        is `unknown`, or failed. Returns the calls that were allowed by somebody, or begun before, and whose turn has
        ended: they are to be done now.
        """
        boot, token = self._core.boot, self._core.token
        return await self._core.write(
            lambda db: recover(db, conversation, boot=boot, token=token, now=now, has_key=has_key)
        )

    async def decide(
        self, call: ToolCall, by: str, now: datetime, *, allows: bool, grant: Grant | None = None
    ) -> ToolCall | None:
        """Decide a call that waits; None if it was decided, or lapsed, before. Exactly one of all deciders succeeds.

        An allowed one is done by the holder of its lane; a refusal is heard there. `grant`: what is remembered with it.
        """
        return await self._core.write(partial(decide, call=call, by=by, now=now, allows=allows, grant=grant))

    def asked_in(self, channel: str, receipt: str) -> ToolCall | None:
        """Return the call whose question is this post of a channel; None if the post asks nothing (any more)."""
        found = self._core.find("call_asked_in", receipt=receipt, place=f"{channel}:", until=f"{channel};")
        return call_of(found) if found else None

    def decided_cards(self) -> tuple[DecidedCard, ...]:
        """Return the posts whose question is decided, and which do not say so yet."""
        found = []
        for row in self._core.look("cards_decided"):
            with Decoding("outbox", row["key"]):
                card = CARD.decode(row["card"])
            where = {name: row[name] for name in ("key", "conversation")}
            state = CallState(row["state"])
            found.append(
                DecidedCard(**where, receipt=row["receipt"] or "", card=card, state=state, by=row["allowed_by"])
            )
        return tuple(found)

    async def card_settled(self, key: str) -> None:
        """Note that a post shows the verdict."""
        await self._core.write(lambda db: db.change("card_settled", key=key))

    def next_lapse(self) -> datetime | None:
        """Return when the next question lapses; None if none waits."""
        return maybe_instant(self._core.value("calls_lapse_next"))

    async def lapse(self, now: datetime) -> tuple[str, ...]:
        """Let every question lapse whose time is over; return the conversations whose next turn is shown that."""
        return await self._core.write(partial(lapse, now=now))

    async def grant(self, grant: Grant) -> int:
        """Remember a consent; return its number."""
        return await self._core.write(partial(remember, grant=grant))

    async def revoke(self, grant: int, now: datetime) -> bool:
        """End a remembered consent; False if there is none in force."""
        return await self._core.write(lambda db: db.change("grant_revoked", id=grant, now=stamp(now))) > 0


def document_of(call: ToolCall) -> dict[str, Any]:
    """Return a call as commands print it, without its result. Pure."""
    began, ended = call.started_at, call.ended_at
    return {
        "id": call.id,
        "tool": call.tool,
        "class": call.cls.value,
        "state": call.state.value,
        "conversation": call.conversation,
        "person": call.person,
        "args": call.args,
        "reason": call.reason,
        "approvers": call.approvers,
        "allowed_by": call.allowed_by,
        "asked_at": call.asked_at and stamp(call.asked_at),
        "until": call.until and stamp(call.until),
        "attempts": call.attempts,
        "ms": round((ended - began).total_seconds() * 1000) if began and ended else None,
        "chars": len(call.result),
    }


def ask(db: Database, intent: Intent) -> None:
    """Record the call that a turn asks for: it waits for consent from the commit on."""
    if call := intent.asking:
        until = stamp(call.until) if call.until else None
        db.run("call_asked", **call_row(call), approvers=dump(call.approvers), now=stamp(intent.at), until=until)


def hear_late(db: Database, intent: Intent) -> None:
    """Have the ends be heard of calls that outlive their turn, and note which ends this turn has told.

    A turn that failed tells nothing of what it did: each `write` or `send` of it that has ended is heard as well.
    """
    for key in intent.answers:
        if key.startswith(KEY):
            db.run("call_told", id=key.removeprefix(KEY), turn=intent.turn)
    late = set(intent.late)
    if not late and intent.version is not None:
        return
    for call in map(call_of, db.all("calls_of_turn", turn=intent.turn)):
        is_untold = call.id in late if intent.version is not None else not call.cls.is_safe
        if is_untold and call.state.is_final:
            _hear(db, call, intent.at)


def start(db: Database, call: ToolCall, boot: str, token: int, now: datetime) -> tuple[ToolCall, bool]:
    """Record that a call is started, unless it is already, or has ended."""
    values = call_row(call) | {"allowed_by": call.allowed_by, "grant": call.grant, "boot": boot, "token": token}
    is_begun = db.change("call_started", **values, now=stamp(now)) > 0
    call = call_of(_row(db, call.id))
    if is_begun and not call.cls.is_safe:
        who, origin = call.allowed_by or call.person, Place.of(call.conversation).of_channel
        db.run("audit_note", at=stamp(now), who=who, act="tool_start", target=call.tool, origin=origin)
    return call, is_begun


def end(db: Database, call: ToolCall, boot: str, token: int, now: datetime, *, is_heard: bool) -> bool:
    """Record how a call ended, by whoever started it; have its end be heard unless its turn does."""
    values = {"id": call.id, "state": call.state, "reason": valid(call.reason), "result": valid(call.result)}
    lease = {"boot": boot, "token": token, "attempts": call.attempts}
    if not db.change("call_ended", **values, **lease, now=stamp(now)):
        return False
    if is_heard and not db.one("call_of_its_turn", turn=call.turn):
        _hear(db, call, now)
    return True


def recover(
    db: Database, conversation: str, *, boot: str, token: int, now: datetime, has_key: Callable[[str], bool]
) -> tuple[ToolCall, ...]:
    """Judge what was left started; return what is to be done now."""
    due: list[ToolCall] = []
    for row in db.all("calls_open", conversation=conversation):
        call = call_of(row)
        if call.state is CallState.STARTED and (row["boot"], row["token"]) != (boot, token):
            call = replace(call, state=_left(call, keyed=has_key(call.tool)))
            reason = LEFT if call.state.is_final else call.reason
            ended_at = stamp(now) if call.state.is_final else None
            db.run("call_left", id=call.id, state=call.state, reason=reason, now=ended_at)
            if call.state.is_final and not db.one("call_of_its_turn", turn=call.turn):
                _hear(db, replace(call, reason=reason), now)
        is_decided = call.until is not None or call.attempts > 0
        if call.state is CallState.APPROVED and is_decided and not db.one("call_of_its_turn", turn=call.turn):
            due.append(call)
    return tuple(due)


def _left(call: ToolCall, *, keyed: bool) -> CallState:
    if (call.cls.is_safe or keyed) and call.attempts < ATTEMPTS:
        return CallState.APPROVED
    return CallState.FAILED if call.cls.is_safe else CallState.UNKNOWN


def decide(
    db: Database, call: ToolCall, by: str, now: datetime, *, allows: bool, grant: Grant | None
) -> ToolCall | None:
    """Decide a call that waits, and have its lane know; None if it waits no more."""
    state = CallState.APPROVED if allows else CallState.REFUSED
    ended_at = None if allows else stamp(now)
    values = {"id": call.id, "state": state, "by": by, "now": stamp(now), "ended_at": ended_at}
    if not db.change("call_decided", **values, grant=0):
        return None
    if grant:
        db.run("grant_new", **_grant_row(grant))
    decided = call_of(_row(db, call.id))
    if allows:
        _keep(db, decided, now, key=f"{KEY}{call.id}{GO}", owes=False)
    else:
        _hear(db, decided, now)
    return decided


def lapse(db: Database, now: datetime) -> tuple[str, ...]:
    """Let every question lapse whose time is over, and have that be heard, which nobody owes a reply."""
    calls = [call_of(row) for row in db.all("calls_lapsed", now=stamp(now))]
    for call in calls:
        _hear(db, call, now, owes=False)
    return tuple([call.conversation for call in calls])


def remember(db: Database, grant: Grant) -> int:
    """Remember a consent; return its number."""
    return int(db.value("grant_new", **_grant_row(grant)))


def _grant_row(grant: Grant) -> dict[str, Any]:
    names = ("tool", "pin", "scope", "person", "conversation", "granted_by")
    times = {name: stamp(getattr(grant, name)) for name in ("granted_at", "expires_at")}
    return {name: getattr(grant, name) for name in names} | times


def _row(db: Database, call: str) -> Row:
    row = db.one("call_found", id=call)
    assert row is not None  # noqa: S101 - it was written in this transaction
    return row


def _hear(db: Database, call: ToolCall, now: datetime, *, owes: bool = True) -> None:
    """Have the end of a call be heard, after everything that waits in its conversation."""
    _keep(db, call, now, key=f"{KEY}{call.id}", owes=owes and bool(call.person))


def _keep(db: Database, call: ToolCall, now: datetime, *, key: str, owes: bool) -> None:
    perception = Perception(
        key=key,
        conversation=call.conversation,
        audience=call.audience,
        person=call.person,
        name="",
        text=call.result or ("" if call.state in (CallState.REFUSED, CallState.LAPSED) else call.reason),
        at=now,
        position=position(db, call.conversation, 0),
        kind=Kind.TOOL,
        origin=Origin.INTERNAL,
        owes=owes,
        is_owner=call.is_owner,
        extra=ToolExtra(call=call.id, tool=call.tool, state=call.state, third=call.third, asked_by=call.person),
    )
    keep(db, perception, stamp(now))
