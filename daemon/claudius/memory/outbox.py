"""The topic `store.outbox`: the parts of committed replies until each is sent or dead."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import asdict

from claudius.decoding import decoder
from claudius.intent import Utterance
from claudius.memory.database import (
    Core,
    Cursor,
    Database,
    Decoding,
    Readers,
    Row,
    dump,
    instant,
    maybe_instant,
    parse_strings,
    stamp,
    struct_of,
)
from claudius.prompt import valid
from claudius.tool import Card

CARD = decoder(Card)
_READ: Readers = {
    "answers": parse_strings,
    "receipts": parse_strings,
    "person": lambda person: person or "",
    "card": lambda card: CARD.decode(card) if card else None,
}
OutboxState = Literal["pending", "taken", "unknown_after_send", "sent", "dead"]


class Delivery(Struct, frozen=True, kw_only=True):
    """One part that is not yet settled."""

    utterance: Utterance
    state: OutboxState
    attempts: int
    not_before: datetime | None
    decided_at: datetime
    """When it was committed."""
    reason: str = ""
    """Why it waits."""


def utterance_row(utterance: Utterance) -> dict[str, Any]:
    """Return the values of one part's row, except its state. Pure."""
    return {
        **asdict(utterance),
        "body": valid(utterance.body),
        "answers": dump(utterance.answers),
        "receipts": dump(utterance.receipts),
        "card": dump(utterance.card) if utterance.card else "",
    }


def delivery_of(row: Row) -> Delivery:
    """Decode a row of the query `deliveries`. Pure. Raises: RowInvalid."""
    with Decoding("outbox", row["key"]):
        utterance = struct_of(Utterance, row, _READ)
        return Delivery(
            utterance=utterance,
            state=row["state"],
            attempts=row["attempts"],
            not_before=maybe_instant(row["not_before"]),
            decided_at=instant(row["at"]),
            reason=row["reason"] or "",
        )


class OutboxStore:
    """What is to be said: written by the commit of a turn, delivered part by part."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def open_stream(self, utterance: Utterance, now: datetime) -> None:
        """Insert a part's outbox row as `taken` with an empty body, before its first character is shown. Idempotent."""
        boot = self._core.boot
        await self._core.write(lambda db: open_stream(db, utterance, now, boot))

    def deliveries(self, conversation: str) -> tuple[Delivery, ...]:
        """Return the committed parts that are not yet sent or dead, in order of turn and part."""
        return tuple(map(delivery_of, self._core.look("deliveries", conversation=conversation)))

    def answered(self, key: str) -> tuple[Utterance, ...]:
        """Return what was said in answer to a perception, part by part; empty if nothing was said yet."""
        return tuple(delivery_of(row).utterance for row in self._core.look("answered", key=key))

    def was_said(self, turn: str) -> bool:
        """Return whether a part of a turn's words was sent."""
        return bool(self._core.look("said_of_turn", turn=turn))

    async def attempt(self, key: str) -> bool:
        """Mark a part `taken`, durably, before its first byte leaves. No write is needed if it already is.

        False if it was erased, and must not be sent.
        """
        found = self._core.look("part_state", key=key)
        if found and found[0]["state"] in ("pending", "unknown_after_send"):
            boot = self._core.boot
            return await self._core.write(lambda db: db.change("attempt", key=key, boot=boot)) > 0
        return bool(found)

    async def settle(self, key: str, receipt: str, now: datetime, *, is_last: bool = False) -> str:
        """Mark a part sent: WRITE 3. The same transaction takes the turn's next part, or settles its inbox rows.

        `is_last`: the turn has no part after it.

        Returns the receipt that the part has: another one if another process had sent it before, none if it was erased.
        """
        boot = self._core.boot
        done = partial(settle, key=key, receipt=receipt, now=now, boot=boot, goes_on=not is_last)
        settled = await self._core.write(done)
        return receipt if settled.rowcount or self._core.look("part_state", key=key) else ""

    async def delay(self, key: str, not_before: datetime | None, reason: str, *, unknown: bool = False) -> None:
        """Put a part back to pending (definitely not delivered), or to unknown_after_send if `unknown`."""
        state = "unknown_after_send" if unknown else "pending"
        until = stamp(not_before) if not_before else None
        await self._core.write(lambda db: db.change("delay", key=key, state=state, not_before=until, reason=reason))

    async def doubt(self, conversation: str) -> None:
        """Mark every `taken` part of a conversation as possibly visible, because sending it ended unexpectedly."""
        await self._core.write(lambda db: db.change("doubt", conversation=conversation))

    async def drop(self, key: str) -> None:
        """Forget a sign that is of no turn: it was shown, or cannot be."""
        await self._core.write(lambda db: db.run("sign_dropped", key=key))

    async def undeliverable(self, key: str, reason: str) -> None:
        """Mark a part, the turn's later parts and its inbox rows as dead, with the reason."""
        await self._core.write(lambda db: give_up(db, key, reason))

    async def say_instead(self, key: str, line: str) -> bool:
        """Let a turn say a line instead of a reaction; False if it owes nobody a reply."""
        return await self._core.write(lambda db: say_instead(db, key, line))

    def posts_for(self, key: str) -> Sequence[tuple[str, str]]:
        """Return the visible parts of the answer to this message alone, last part first: conversation and receipt."""
        return [(row["conversation"], row["receipt"]) for row in self._core.look("posts_for", key=key)]


def say(db: Database, utterance: Utterance, at: datetime, boot: str) -> None:
    """Queue one part. The first part of a turn is taken at once, which saves a write before it is sent."""
    is_first = utterance.part == 0
    db.run(
        "say",
        **utterance_row(utterance),
        state="taken" if is_first else "pending",
        boot=boot if is_first else None,
        attempts=int(is_first),
        at=stamp(at),
    )


def say_held(db: Database, sign: Utterance | None, at: str) -> None:
    """Queue the sign of a pause on what was just heard, if that is owed an answer."""
    if sign and db.value("is_owed", key=sign.answers[0]):
        db.run("say", **utterance_row(sign), state="pending", boot=None, attempts=0, at=at)


def open_stream(db: Database, utterance: Utterance, now: datetime, boot: str) -> None:
    """Record that a part is being shown, before its first character is."""
    values = utterance_row(utterance)
    del values["body"]
    db.run("stream_open", **values, boot=boot, at=stamp(now))


def settle(db: Database, key: str, receipt: str, now: datetime, boot: str, *, goes_on: bool = True) -> Cursor:
    """WRITE 3: a part is visible; take the next, if it `goes_on` here, or settle what the turn answers.

    Changes no row, which may be counted after the transaction, if it is settled or given up already.
    """
    at = stamp(now)
    settled = db.run("settle_part", key=key, receipt=receipt, now=at)
    if goes_on:
        db.run("take_next_part", key=key, now=at, boot=boot)
    db.run("settle_turn", key=key, now=at)
    return settled


def give_up(db: Database, key: str, reason: str) -> None:
    """Mark a part as undeliverable: it, the later parts and what they answer are dead; memory keeps what was heard."""
    found = db.one("part_state", key=key)
    if found is None or found["state"] in ("sent", "dead"):
        return
    turn = found["turn"]
    db.run("dead_parts", turn=turn, part=found["part"], reason=reason)
    db.run("dead_turn", turn=turn, reason=reason)
    db.run("unsay", turn=turn, said="".join(db.values("said_of_turn", turn=turn)))
    db.run("own_moments_let_go", conversation=found["conversation"], turn=turn)
    db.run("turn_edited", turn=turn)


def say_instead(db: Database, key: str, line: str) -> bool:
    """Replace a reaction that could not be added with a line of text, if somebody is owed a reply.

    Memory is updated accordingly.
    """
    turn = db.value("say_instead", key=key, line=line)
    if turn is None:
        return False
    db.run("unsay", turn=turn, said=line)
    db.run("acknowledge", turn=turn)
    db.run("turn_edited", turn=turn)
    return True
