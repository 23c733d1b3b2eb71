"""APScheduler, as a bell: it rings at an instant, and does nothing else. What it rings for stands in the store.

Its memory store forgets, its default grace of one second drops rings silently, and its date jobs are gone once they
are handed over (measured with 3.11): so nothing is entrusted to it but the ringing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any


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
