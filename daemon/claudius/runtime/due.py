"""The soul's own clock: what is due becomes a perception. APScheduler, later, only calls `fire_due` in its place."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from claudius.cognition.mind import Mind
from claudius.errors import StoreError

log = logging.getLogger("claudius.due")

LOOK_S = 30.0
"""The clock is looked at no less often: it may have been set, and commands may plan beside us."""
FIRST_S = 0.05


async def fire_due(now: datetime, mind: Mind, wake: Callable[[str], None]) -> None:
    """Turn what is due into perceptions, and wake the conversations that hear one. Raises: StoreError."""
    for conversation in await mind.store.fire_due(now, mind.config().schedule.grace_hours):
        log.info("due", extra={"conversation": conversation})
        wake(conversation)


async def tick(mind: Mind, wake: Callable[[str], None]) -> float:
    """Fire what is due where anything is; return how many seconds until the next look. Raises: StoreError."""
    due, now = await mind.store.next_due(), mind.clock()
    if due is not None and due <= now:
        await fire_due(now, mind, wake)
        due = await mind.store.next_due()
    return LOOK_S if due is None else min(LOOK_S, max(FIRST_S, (due - now).total_seconds()))


async def keep_time(mind: Mind, wake: Callable[[str], None], planned: asyncio.Event) -> None:
    """Look at the clock for as long as the process lives; `planned` is set where a plan may have been made."""
    while True:
        planned.clear()
        try:
            wait_s = await tick(mind, wake)
        except StoreError as error:
            log.warning("nothing was fired", extra={"error": error.message})
            wait_s = LOOK_S
        try:
            async with asyncio.timeout(wait_s):
                await planned.wait()
        except TimeoutError:
            continue
