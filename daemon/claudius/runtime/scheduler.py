"""The scheduler: APScheduler wakes at an instant, and what is due in the store becomes a perception."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from claudius.cognition.mind import Mind
from claudius.errors import RowInvalid, StoreError


class Bell:
    """One bell of one process."""

    def __init__(self, scheduler: Any, ring: Callable[[], None]) -> None:
        """Ring by calling `ring`, in the event loop; `scheduler` runs already."""
        self._scheduler, self._ring = scheduler, ring

    def ring_in(self, wait_s: float) -> None:
        """Ring once, after so many seconds, in place of any earlier order."""
        self._scheduler.add_job(
            self._rung,
            "date",
            run_date=datetime.now(UTC) + timedelta(seconds=wait_s),
            id="look",
            replace_existing=True,
            misfire_grace_time=None,
            coalesce=True,
            max_instances=1,
        )

    async def _rung(self) -> None:
        self._ring()

    def close(self) -> None:
        """Ring no more."""
        self._scheduler.shutdown(wait=False)


async def open_bell(ring: Callable[[], None]) -> Bell:
    """Load the scheduler, off the event loop, and start it."""
    logging.getLogger("apscheduler").setLevel(logging.WARNING)
    kind = await asyncio.to_thread(_load)
    scheduler = kind(timezone=UTC)
    scheduler.start()
    return Bell(scheduler, ring)


def _load() -> Any:
    from apscheduler.schedulers.asyncio import AsyncIOScheduler  # noqa: PLC0415 - a quarter of a second

    return AsyncIOScheduler


log = logging.getLogger("claudius.due")

LOOK_S = 30.0
"""The clock is looked at no less often: it may have been set, and commands may plan beside us."""
FIRST_S = 0.05
SETTLED_S = 2.0
"""The start is over after so long."""
QUICK_S = 0.5
"""Nothing is loaded while something is due sooner than this."""


async def fire_due(now: datetime, mind: Mind, wake: Callable[[str], None]) -> None:
    """Turn what is due into perceptions, and wake the conversations that hear one. Raises: StoreError."""
    for conversation in await mind.store.fire_due(now, mind.config().schedule.grace_hours):
        log.info("due", extra={"conversation": conversation})
        wake(conversation)


Look = Callable[[datetime], Awaitable[datetime | None]]
"""Rings the jobs that are due; returns when the next one is."""


async def tick(mind: Mind, wake: Callable[[str], None], look: Look | None = None) -> float:
    """Fire what is due where anything is; return how many seconds until the next look. Raises: StoreError."""
    due, now = await mind.store.next_due(), mind.clock()
    if due is not None and due <= now:
        await fire_due(now, mind, wake)
        due = await mind.store.next_due()
    job = await look(now) if look else None
    nearest = min((one for one in (due, job) if one), default=None)
    return LOOK_S if nearest is None else min(LOOK_S, max(FIRST_S, (nearest - now).total_seconds()))


async def keep_time(mind: Mind, wake: Callable[[str], None], planned: asyncio.Event, look: Look | None = None) -> None:
    """Look at the clock for as long as the process lives; `planned` is set where a plan may have been made.

    The first looks need no scheduler: it takes long to load, and a start is to be quick.
    """
    bell: Bell | None = None
    looks = 0
    try:
        while True:
            planned.clear()
            try:
                wait_s = await tick(mind, wake, look)
            except (StoreError, RowInvalid) as error:
                log.warning("nothing was fired", extra={"error": error.message})
                wait_s = LOOK_S
            looks += 1
            if bell is None and looks > 1 and wait_s > QUICK_S:
                bell = await open_bell(planned.set)
            if bell:
                bell.ring_in(wait_s)
                await planned.wait()
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(wait_s, SETTLED_S)):
                    await planned.wait()
    finally:
        if bell:
            bell.close()
