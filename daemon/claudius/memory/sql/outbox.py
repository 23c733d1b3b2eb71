"""`store.outbox`: the parts of committed replies, moved through their states."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from claudius.intent import Utterance
from claudius.memory.outbox import Delivery
from claudius.memory.sql.connection import Cursor, Database
from claudius.memory.sql.core import Core
from claudius.memory.sql.rows import delivery_of, stamp, utterance_row


class SqlOutbox:
    """The parts of committed replies."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def open_stream(self, utterance: Utterance, now: datetime) -> None:
        boot = self._core.boot
        await self._core.write(lambda db: open_stream(db, utterance, now, boot))

    async def deliveries(self, conversation: str) -> tuple[Delivery, ...]:
        return tuple(map(delivery_of, self._core.look("deliveries", conversation=conversation)))

    async def answered(self, key: str) -> tuple[Utterance, ...]:
        return tuple(delivery_of(row).utterance for row in self._core.look("answered", key=key))

    async def attempt(self, key: str) -> bool:
        found = self._core.look("part_state", key=key)
        if found and found[0]["state"] in ("pending", "unknown_after_send"):
            boot = self._core.boot
            return await self._core.write(lambda db: db.change("attempt", key=key, boot=boot)) > 0
        return bool(found)

    async def settle(self, key: str, receipt: str, now: datetime) -> str:
        boot = self._core.boot
        settled = await self._core.write(lambda db: settle(db, key, receipt, now, boot))
        return receipt if settled.rowcount or self._core.look("part_state", key=key) else ""

    async def delay(self, key: str, not_before: datetime | None, reason: str, *, unknown: bool = False) -> None:
        state = "unknown_after_send" if unknown else "pending"
        until = stamp(not_before) if not_before else None
        await self._core.write(lambda db: db.change("delay", key=key, state=state, not_before=until, reason=reason))

    async def doubt(self, conversation: str) -> None:
        await self._core.write(lambda db: db.change("doubt", conversation=conversation))

    async def undeliverable(self, key: str, reason: str) -> None:
        await self._core.write(lambda db: give_up(db, key, reason))

    async def say_instead(self, key: str, line: str) -> bool:
        return await self._core.write(lambda db: say_instead(db, key, line))

    async def posts_for(self, key: str) -> Sequence[tuple[str, str]]:
        with self._core.snapshot() as db:
            return [(row["conversation"], row["receipt"]) for row in db.all("posts_for", key=key)]


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


def open_stream(db: Database, utterance: Utterance, now: datetime, boot: str) -> None:
    """Record that a part is being shown, before its first character is."""
    values = utterance_row(utterance)
    del values["body"]
    db.run("stream_open", **values, boot=boot, at=stamp(now))


def settle(db: Database, key: str, receipt: str, now: datetime, boot: str, *, goes_on: bool = True) -> Cursor:
    """WRITE 3: a part is visible; take the next, if this process `goes_on`, or settle what the turn answers.

    Changes no row, which may be counted after the transaction, if it is settled or given up already.
    """
    at = stamp(now)
    settled = db.run("settle_part", key=key, receipt=receipt, now=at)
    if goes_on:
        db.run("take_next_part", key=key, now=at, boot=boot)
    db.run("settle_turn", key=key, now=at)
    db.run("promise_kept", key=key)
    return settled


def give_up(db: Database, key: str, reason: str) -> None:
    """Mark a part as undeliverable: it, the later parts and what they answer are dead; memory keeps what was heard."""
    found = db.one("part_state", key=key)
    if found is None or found["state"] in ("sent", "dead"):
        return
    turn = found["turn"]
    db.run("dead_parts", turn=turn, part=found["part"], reason=reason)
    db.run("dead_turn", turn=turn, reason=reason)
    said = "".join(db.values("said_of_turn", turn=turn))
    db.run("unsay", turn=turn, said=said)
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
