"""`store.inbox` in PostgreSQL: who asks too often, and what changes a message before it is known, are rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime

from claudius.errors import OverBudget
from claudius.memory.inbox import (
    SHUT_FOR_NOW,
    UNLIMITED,
    Amended,
    InboxStore,
    RateLimits,
    RateVerdict,
    accept_one,
    amend,
    exceeds,
    in_force,
    perception_of,
)
from claudius.memory.sql.connection import Core, Database, Row
from claudius.memory.sql.rows import dump_valid, stamp
from claudius.perception import Perception, amended_key

MOST_SHUT = 1000
"""Who is refused without asking the server."""


class PostgresInbox(InboxStore):
    """What was heard by any process of the soul."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self._shut_until_s: dict[tuple[str, str], float] = {}
        """By person and conversation, by this process's clock. It only saves writing for one who asks too often."""

    async def accept(
        self, perceptions: Sequence[Perception], now: datetime, limits: RateLimits = UNLIMITED
    ) -> tuple[bool, ...]:
        at, is_counted = stamp(now), limits.person_per_minute is not None
        places = [(one.person, one.conversation) for one in perceptions]
        if is_counted and any(time.monotonic() < self._shut_until_s.get(place, 0.0) for place in places):
            raise OverBudget(SHUT_FOR_NOW)
        found = await self._core.write(lambda db: [_accept(db, one, at, limits) for one in perceptions])
        for place, (verdict, shut_s) in zip(places, found, strict=True):
            if verdict is RateVerdict.SHUT:
                if len(self._shut_until_s) >= MOST_SHUT:
                    self._shut_until_s.clear()
                self._shut_until_s[place] = time.monotonic() + shut_s
                raise OverBudget(SHUT_FOR_NOW)
        return tuple(verdict in (RateVerdict.WITHIN, RateVerdict.OVER_NOW) for verdict, _ in found)

    async def amend(self, perception: Perception, now: datetime) -> Amended:
        def write(db: Database) -> Amended:
            amended = amend(db, perception, stamp(now))
            if amended.is_early:
                _wait(db, perception)
            return amended

        return await self._amend(write)


def _accept(db: Database, heard: Perception, at: str, limits: RateLimits) -> tuple[RateVerdict | None, float]:
    """Store one perception; None if it is known or not to be kept.

    What the rates refuse is deleted again: that is rare. Returns for how many seconds more nothing of its speaker is
    heard, too.
    """
    by = {"person": heard.person, "conversation": heard.conversation}
    is_counted = limits.person_per_minute is not None or (heard.is_bot and limits.bot_turns is not None)
    if not accept_one(db, heard, at):
        return None, 0.0
    if is_counted:
        counts = db.all("rates", **by)[0]
        verdict, shuts = _judge(counts, limits, is_bot=heard.is_bot)
        if verdict in (RateVerdict.SHUT, RateVerdict.DROPPED):
            db.run("not_heard", key=heard.key)
            return verdict, counts["shut_s"]
        if verdict is RateVerdict.OVER_NOW:
            db.run("heard_over_budget", key=heard.key)
        db.run("rate_counts", **by, shuts=shuts)
        db.run("rate_past", person=heard.person)
    if payload := db.value("early", message=heard.key):
        amend(db, perception_of(payload), at)
        db.run("early_applied", message=heard.key)
    return RateVerdict.WITHIN, 0.0


def _judge(before: Row, limits: RateLimits, *, is_bot: bool) -> tuple[RateVerdict, str]:
    """Judge one message more than these; return also whose rate it is the first over. Pure."""
    if is_bot and exceeds(before["turns"] + 1, limits.bot_turns):
        return RateVerdict.DROPPED, ""
    if limits.person_per_minute is None:
        return RateVerdict.WITHIN, ""
    if before["shut_s"] > 0:
        return RateVerdict.SHUT, ""
    in_minute, in_day = before["in_minute"] + 1, before["in_day"] + 1
    if exceeds(in_minute, limits.person_per_minute) or exceeds(in_day, limits.person_per_day):
        return RateVerdict.OVER_NOW, "person"
    if exceeds(before["in_hour"] + 1, limits.conversation_per_hour):
        return RateVerdict.OVER_NOW, "conversation"
    return RateVerdict.WITHIN, ""


def _wait(db: Database, change: Perception) -> None:
    """Keep a change until its message is accepted."""
    message = amended_key(change)
    kept = db.value("early", message=message)
    holds = in_force(perception_of(kept) if kept else None, change)
    by = {"person": holds.person, "conversation": holds.conversation}
    db.run("early_past")
    db.run("early_waits", message=message, payload=dump_valid(holds), **by)
