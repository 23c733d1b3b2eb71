"""Job: makes a verified copy of the database each night; keeps old ones for seven days and four weeks."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

from claudius.cognition.timing import Timing
from claudius.home import Home
from claudius.runtime.jobs.job import Job, Tools

DAYS, WEEKS = 7, 4
YOUNG = timedelta(days=1)
"""Backups younger than this are kept, whoever made them."""
_NAME = re.compile(r"claudius-(\d{8}T\d{6})\.\d{6}Z\.db")


def superfluous(names: Iterable[str], now: datetime) -> list[str]:
    """Return which backups may be deleted: all but the newest of each of seven days and of four weeks. Pure."""
    found = (match for name in names if (match := _NAME.fullmatch(name)))
    made = sorted(((_instant(match[1]), match[0]) for match in found), reverse=True)
    days: dict[object, str] = {}
    weeks: dict[object, str] = {}
    for at, name in made:
        days.setdefault(at.date(), name)
        weeks.setdefault(at.isocalendar()[:2], name)
    kept = {*list(days.values())[:DAYS], *list(weeks.values())[:WEEKS]}
    return [name for at, name in made if name not in kept and now - at > YOUNG]


def _instant(text: str) -> datetime:
    return datetime.strptime(text, "%Y%m%dT%H%M%S").replace(tzinfo=UTC)


def _copy(home: Home, now: datetime) -> Path:
    from claudius.memory.sqlite.backups import PATTERN, back_up, discard  # noqa: PLC0415 - once a night

    made = back_up(home.database, home.backups, now)
    for name in superfluous((path.name for path in home.backups.glob(PATTERN)), now):
        discard(home.backups / name)
    return made.path


async def work(tools: Tools) -> str:
    """Check every page, copy the database and verify the copy. Raises: StoreCorrupt, sqlite3.Error, OSError."""
    await tools.mind.store.check()
    await tools.mind.store.flush()
    made = await asyncio.to_thread(_copy, tools.home, tools.now)
    return f"{made.name}, verified"


JOB = Job("backup", Timing(at=time(3, 30)), work)
