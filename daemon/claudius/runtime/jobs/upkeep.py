"""Jobs of upkeep: expired memory is summarised, old records are deleted, and each night the database is backed up."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, time, timedelta
from pathlib import Path

from msgspec.structs import replace

from claudius.cognition.reflection import fold_whole
from claudius.cognition.timing import Timing, quiet_begin, read_hours
from claudius.home import Home
from claudius.memory.erasure import OVERWRITING
from claudius.memory.inbox import Pending
from claudius.memory.recall import RecallLimits
from claudius.memory.store import Store
from claudius.perception import Kind, Origin, Perception
from claudius.recollection import turn_of
from claudius.runtime.jobs import Job, Tools, calls_left

MOST_FOLDED = 5
"""Conversations per run; the rest follow in the next run."""


async def expire_memory(tools: Tools) -> str:
    """Summarise and remove the expired entries of conversations that nobody resumes.

    What a day of rest does not pay for (`calls_left`) waits: no prompt shows it, and whoever resumes one of these
    conversations has it summarised at once. Raises: StoreError.
    """
    mind = tools.mind
    most = min(MOST_FOLDED, calls_left(tools))
    if not most:
        return "it is a day of rest"
    limits = RecallLimits(ttl_hours=mind.config().memory.ttl_hours, aged_at=mind.aged_at())
    before = min(tools.now, limits.aged_at or tools.now) - timedelta(hours=limits.ttl_hours)
    folded = 0
    for conversation, audience in mind.store.turns.expired(before, most, tried=tools.now - timedelta(days=1)):
        pending = _looking(conversation, audience, tools)
        known = await mind.store.turns.recall(pending, nonce=mind.nonce(), now=tools.now, limits=limits)
        folded += await fold_whole(replace(known, perceptions=()), mind)
    return f"{folded} conversations folded" if folded else "nothing is expired"


def _looking(conversation: str, audience: str, tools: Tools) -> Pending:
    """Return a synthetic perception, through which a conversation is recalled as it was said."""
    key = f"expiry:{conversation}:{tools.now.isoformat()}"
    perception = Perception(
        key=key,
        conversation=conversation,
        audience=audience,
        at=tools.now,
        kind=Kind.TICK,
        origin=Origin.INTERNAL,
        owes=False,
    )
    return Pending(seq=0, perception=perception, turn=turn_of(key), heard_at=tools.now)


MEMORY_EXPIRY = Job("memory_expiry", Timing(every=timedelta(hours=1)), expire_memory)


AT_ONCE, BATCHES = 100, 100
"""Rows per transaction, and transactions per run; the rest follow in the next run."""
PAGES = 256
"""Pages freed in one transaction: 1 MiB."""


async def expire_records(tools: Tools) -> str:
    """Delete what is older than `memory.records_days`, in small steps and quiet hours, and free its disk space.

    Raises: StoreError.
    """
    if not tools.is_quiet:
        return "it is not quiet"
    store, days = tools.mind.store, tools.mind.config().memory.records_days
    went = 0
    if days:
        before = min(tools.now, tools.mind.aged_at() or tools.now) - timedelta(days=days)
        for _ in range(BATCHES):
            found = await store.turns.expire_records(before, tools.now, AT_ONCE)
            went += found
            if found < AT_ONCE:
                break
        for _ in range(BATCHES):
            if await store.psyche.expire_traces(before, AT_ONCE) < AT_ONCE:
                break
    left = await _give_back(store)
    told = f"{went} records are past their time" if went else "no record is past its time"
    return f"{told}; {left} free pages" if left else told


async def _give_back(store: Store) -> int:
    left = await store.give_back(PAGES)
    for _ in range(BATCHES):
        before, left = left, await store.give_back(PAGES) if left else 0
        if not left or left >= before:
            break
    return left


RECORDS = Job("records", Timing(every=timedelta(hours=1)), expire_records)


def overwriting(quiet: str, overwrite: Callable[[], Awaitable[str]]) -> Job:
    """Return the job that overwrites what was erased, once a day when the quiet hours begin. Pure."""
    return Job(OVERWRITING, Timing(at=quiet_begin(read_hours(quiet))), lambda _: overwrite())


DAYS, WEEKS = 7, 4
YOUNG = timedelta(days=1)
"""Backups younger than this are kept, whoever made them."""
_NAME = re.compile(r"claudius-(\d{8}T\d{6})\.\d{6}Z\.(?:db|sql\.gz)")


def superfluous(names: Iterable[str], now: datetime) -> list[str]:
    """Return which backups may be deleted: all but the newest of each of seven days and of four weeks. Pure."""
    found = (match for name in names if (match := _NAME.fullmatch(name)))
    made = sorted(
        ((datetime.strptime(match[1], "%Y%m%dT%H%M%S").replace(tzinfo=UTC), match[0]) for match in found), reverse=True
    )
    days: dict[object, str] = {}
    weeks: dict[object, str] = {}
    for at, name in made:
        days.setdefault(at.date(), name)
        weeks.setdefault(at.isocalendar()[:2], name)
    kept = {*list(days.values())[:DAYS], *list(weeks.values())[:WEEKS]}
    return [name for at, name in made if name not in kept and now - at > YOUNG]


def _copy(store: Store, home: Home, now: datetime) -> Path:
    from claudius.memory.sqlite.backups import copies_in, discard  # noqa: PLC0415 - once a night

    made = store.back_up(home.backups, now)
    for name in superfluous((path.name for path in copies_in(home.backups)), now):
        discard(home.backups / name)
    return made


async def back_up_nightly(tools: Tools) -> str:
    """Check every page, copy the database and verify the copy. Raises: StoreError, OSError."""
    await tools.mind.store.check()
    await tools.mind.store.flush()
    made = await asyncio.to_thread(_copy, tools.mind.store, tools.home, tools.now)
    return f"{made.name}, verified"


BACKUP = Job("backup", Timing(at=time(3, 30)), back_up_nightly)
