"""The topics `store.calls`, each use of a tool with its state and the consents that are remembered, and `store.pins`.

Nothing is done twice: a call is `started`, durably, before its first byte leaves, and only who started it, under the
lane's token of then, may say how it ended. What another process left open is `unknown`, or is made again if that harms
nothing. A call belongs to its turn while that is unfinished; its later end becomes a perception of its own.

Source: the tools design, section 3.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from claudius.intent import Intent
from claudius.memory.database import (
    RENAMED,
    Core,
    Database,
    Decoding,
    Readers,
    Row,
    dump,
    dump_valid,
    maybe_instant,
    parse_object,
    parse_strings,
    stamp,
    struct_of,
)
from claudius.memory.inbox import keep, position
from claudius.memory.outbox import CARD
from claudius.perception import Kind, Origin, Perception, Place, ToolExtra
from claudius.prompt import valid
from claudius.tool import JSON, CallState, Card, Grant, ToolCall, ToolClass

ATTEMPTS = 2
"""How often a call that harms nothing is started at most, if its process ends in the middle of it."""
LEFT = "its process ended before there was an answer"
KEY, GO = "tool:", ":go"
"""The perception that tells a call's end has the key `tool:ID`; the one that starts an allowed call, `tool:ID:go`."""


def call_row(call: ToolCall) -> dict[str, Any]:
    """Return the values of a call's row that stay as they are. Pure."""
    same = {name: getattr(call, name) for name in ("id", "turn", "conversation", "audience", "person", "tool", "pin")}
    flags = {"is_owner": int(call.is_owner), "third": int(call.third), "class": call.cls}
    texts = {"args": dump_valid(call.args), "args_sha256": args_sha256(call), "reason": valid(call.reason)}
    return same | flags | texts


def args_sha256(call: ToolCall) -> str:
    """Return the hash of a call's tool and arguments. Pure."""
    return sha256(msgspec.json.encode((call.tool, msgspec.to_builtins(call.args)), order="sorted")).hexdigest()


def call_of(row: Row) -> ToolCall:
    """Decode a row of a call. Pure. Raises: RowInvalid."""
    with Decoding("tool_call", row["id"]):
        return struct_of(ToolCall, row, _READ)


def grant_of(row: Row) -> Grant:
    """Decode a row of a consent. Pure. Raises: RowInvalid."""
    with Decoding("tool_grant", row["id"]):
        return struct_of(Grant, row, _READ)


_TIMES = ("asked_at", "until", "started_at", "ended_at", "granted_at", "expires_at", "pinned_at")
_READ: Readers = {
    "is_owner": bool, "third": bool, "cls": ToolClass, "state": CallState, "args": parse_object,
    "schema": parse_object, "approvers": parse_strings,
    "card": CARD.decode, **dict.fromkeys(_TIMES, maybe_instant),
}  # fmt: skip


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


def _decided(row: Row) -> DecidedCard:
    with Decoding("outbox", row["key"]):
        return struct_of(DecidedCard, {**row, "by": row["allowed_by"], "receipt": row["receipt"] or ""}, _READ)


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
        lease = {"boot": self._core.boot, "token": self._core.token}
        values = call_row(call) | lease | {"allowed_by": call.allowed_by, "grant": call.grant, "now": stamp(now)}

        def write(db: Database) -> tuple[ToolCall, bool]:
            is_begun = db.change("call_started", **values) > 0
            begun = _call(db, call.id)
            if is_begun and not begun.cls.is_safe:
                who, origin = begun.allowed_by or begun.person, Place.of(begun.conversation).of_channel
                db.run("audit_note", at=stamp(now), who=who, act="tool_start", target=begun.tool, origin=origin)
            return begun, is_begun

        return await self._core.write(write)

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
        lease = {"boot": self._core.boot, "token": self._core.token, "attempts": call.attempts}
        values = {"id": call.id, "state": call.state, "reason": valid(call.reason), "result": valid(call.result)}

        def write(db: Database) -> bool:
            is_kept = db.change("call_ended", **values, **lease, now=stamp(now)) > 0
            if is_kept and is_heard and not db.one("call_of_its_turn", turn=call.turn):
                _hear(db, call, now)
            return is_kept

        return await self._core.write(write)

    async def recover(self, conversation: str, now: datetime, keyed: Collection[str]) -> tuple[ToolCall, ...]:
        """Judge what other processes, or an earlier token, left started in a conversation.

        What harms nothing, or is a tool of the `keyed` ones, is allowed again, `ATTEMPTS` times in all; all else is
        `unknown`, or failed. Returns the calls that were allowed by somebody, or begun before, and whose turn has
        ended: they are to be done now.
        """
        lease = (self._core.boot, self._core.token)

        def write(db: Database) -> tuple[ToolCall, ...]:
            due: list[ToolCall] = []
            for row in db.all("calls_open", conversation=conversation):
                call = call_of(row)
                is_left = call.state is CallState.STARTED and (row["boot"], row["token"]) != lease
                call = _left(db, call, now, keyed=call.tool in keyed) if is_left else call
                is_decided = call.until is not None or call.attempts > 0
                if call.state is CallState.APPROVED and is_decided and not db.one("call_of_its_turn", turn=call.turn):
                    due.append(call)
            return tuple(due)

        return await self._core.write(write)

    async def decide(
        self, call: ToolCall, by: str, now: datetime, *, allows: bool, origin: str = "", grant: Grant | None = None
    ) -> ToolCall | None:
        """Decide a call that waits; None if it was decided, or lapsed, before. Exactly one of all deciders succeeds.

        An allowed one is done by the holder of its lane; a refusal is heard there. `grant`: what is remembered with it;
        `origin`: where it was decided, for the audit log.
        """
        act = "tool_deny" if not allows else "tool_grant" if grant else "tool_allow"
        state, at = (CallState.APPROVED, None) if allows else (CallState.REFUSED, stamp(now))
        values = {"id": call.id, "state": state, "by": by, "now": stamp(now), "ended_at": at, "grant": 0}

        def write(db: Database) -> ToolCall | None:
            if not db.change("call_decided", **values):
                return None
            db.run("audit_note", at=stamp(now), who=by, act=act, target=call.tool, origin=origin)
            if grant:
                db.run("grant_new", **_grant_row(grant))
            decided = _call(db, call.id)
            if allows:
                _keep(db, decided, now, key=f"{KEY}{call.id}{GO}", owes=False)
            else:
                _hear(db, decided, now)
            return decided

        return await self._core.write(write)

    def asked_in(self, channel: str, receipt: str) -> ToolCall | None:
        """Return the call whose question is this post of a channel; None if the post asks nothing (any more)."""
        found = self._core.find("call_asked_in", receipt=receipt, place=f"{channel}:", until=f"{channel};")
        return call_of(found) if found else None

    def decided_cards(self) -> tuple[DecidedCard, ...]:
        """Return the posts whose question is decided, and which do not say so yet."""
        return tuple(map(_decided, self._core.look("cards_decided")))

    async def card_settled(self, key: str) -> None:
        """Note that a post shows the verdict."""
        await self._core.write(lambda db: db.change("card_settled", key=key))

    def next_lapse(self) -> datetime | None:
        """Return when the next question lapses; None if none waits."""
        return maybe_instant(self._core.value("calls_lapse_next"))

    async def lapse(self, now: datetime) -> tuple[str, ...]:
        """Let every question lapse whose time is over; return the conversations whose next turn is shown that."""

        def write(db: Database) -> tuple[str, ...]:
            calls = [call_of(row) for row in db.all("calls_lapsed", now=stamp(now))]
            for call in calls:
                _hear(db, call, now, owes=False)
            return tuple([call.conversation for call in calls])

        return await self._core.write(write)

    async def revoke(self, grant: int, now: datetime) -> bool:
        """End a remembered consent; False if there is none in force."""
        return await self._core.write(lambda db: db.change("grant_revoked", id=grant, now=stamp(now))) > 0


_SHOWN = (
    "id", "tool", "cls", "state", "conversation", "person", "args", "reason", "approvers", "allowed_by", "asked_at",
    "until", "attempts",
)  # fmt: skip


def document_of(call: ToolCall) -> dict[str, Any]:
    """Return a call as commands print it, without its result. Pure."""
    found = {RENAMED.get(name, name): getattr(call, name) for name in _SHOWN}
    shown = {name: stamp(one) if isinstance(one, datetime) else one for name, one in found.items()}
    began, ended = call.started_at, call.ended_at
    ms = round((ended - began).total_seconds() * 1000) if began and ended else None
    return shown | {"ms": ms, "chars": len(call.result)}


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


def _left(db: Database, call: ToolCall, now: datetime, *, keyed: bool) -> ToolCall:
    """Judge a call that another process left started: it may be made again, or has ended, which is heard then."""
    state = CallState.FAILED if call.cls.is_safe else CallState.UNKNOWN
    if (call.cls.is_safe or keyed) and call.attempts < ATTEMPTS:
        state = CallState.APPROVED
    call = replace(call, state=state, reason=LEFT if state.is_final else call.reason)
    ended_at = stamp(now) if state.is_final else None
    db.run("call_left", id=call.id, state=state, reason=call.reason, now=ended_at)
    if state.is_final and not db.one("call_of_its_turn", turn=call.turn):
        _hear(db, call, now)
    return call


def _grant_row(grant: Grant) -> dict[str, Any]:
    names = ("tool", "pin", "scope", "person", "conversation", "granted_by")
    times = {name: stamp(getattr(grant, name)) for name in ("granted_at", "expires_at")}
    return {name: getattr(grant, name) for name in names} | times


def _call(db: Database, call: str) -> ToolCall:
    row = db.one("call_found", id=call)
    assert row is not None  # noqa: S101 - it was written in this transaction
    return call_of(row)


def _hear(db: Database, call: ToolCall, now: datetime, *, owes: bool = True) -> None:
    """Have the end of a call be heard, after everything that waits in its conversation."""
    _keep(db, call, now, key=f"{KEY}{call.id}", owes=owes and bool(call.person))


def _keep(db: Database, call: ToolCall, now: datetime, *, key: str, owes: bool) -> None:
    perception = Perception(
        key=key,
        conversation=call.conversation,
        audience=call.audience,
        person=call.person,
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


class Pin(Struct, frozen=True, kw_only=True):
    """One definition, as the owner saw it."""

    server: str
    tool: str
    """Its name at the server."""
    sha256: str
    description: str
    schema: JSON
    cls: ToolClass
    """What the owner said that it may do."""
    pinned_by: str
    pinned_at: datetime


class PinStore:
    """Keep what was agreed to, a server at a time."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def all(self) -> Sequence[Pin]:
        """Return every pin, by server and tool."""
        with self._core.snapshot() as db:
            return pins_in(db)

    async def replace(self, server: str, pins: Iterable[Pin]) -> None:
        """Put these in the place of a server's pins; none = it has none any more."""

        def write(db: Database) -> None:
            db.run("unpin", server=server)
            db.each("pin", map(_pin_row, pins))

        await self._core.write(write)


def pins_in(db: Database) -> list[Pin]:
    """Return every pin, by server and tool."""
    return [struct_of(Pin, row, _READ) for row in db.all("pins")]


def _pin_row(pin: Pin) -> dict[str, Any]:
    same = {name: getattr(pin, name) for name in ("server", "tool", "sha256", "description")}
    return same | {"schema": dump(pin.schema), "class": pin.cls, "by": pin.pinned_by, "now": stamp(pin.pinned_at)}
