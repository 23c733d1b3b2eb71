"""The scheduler: a timer (APScheduler) wakes the process, what is due becomes a perception, a lane does a job's work.

No run of a job is lost or doubled. Source: the daimon design, section 6; the reliability design, section 8.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from importlib import import_module
from typing import TYPE_CHECKING, Any

from claudius.cognition.mind import Mind
from claudius.cognition.timing import FAILS, is_quiet, read_hours, zone_of
from claudius.config.schema import daimons
from claudius.errors import BadConfiguration, RowInvalid, StoreError
from claudius.home import Home
from claudius.memory.inbox import Pending
from claudius.memory.plans import Due
from claudius.memory.store import Store
from claudius.perception import TickExtra
from claudius.runtime.jobs import Job, Tools
from claudius.runtime.jobs.inner_life import SILENCE, SOUL_STATE_CHECK, TICK, whisper_job
from claudius.runtime.jobs.upkeep import BACKUP, MEMORY_EXPIRY, RECORDS, overwriting

if TYPE_CHECKING:
    from claudius.runtime.daimons import Daimons

log = logging.getLogger(__name__)


class Bell:
    """A timer of one process."""

    def __init__(self, scheduler: Any, ring: Callable[[], None]) -> None:
        """Call `ring` in the event loop when the timer expires; `scheduler` is running already."""
        self._scheduler, self._ring = scheduler, ring

    def ring_in(self, wait_s: float) -> None:
        """Set the timer to expire once, after `wait_s` seconds; replaces an earlier setting."""
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
        """Stop the timer."""
        self._scheduler.shutdown(wait=False)


async def open_bell(ring: Callable[[], None]) -> Bell:
    """Load the scheduler in a thread, and start it."""
    logging.getLogger("apscheduler").setLevel(logging.WARNING)
    loaded = await asyncio.to_thread(import_module, "apscheduler.schedulers.asyncio")  # takes a quarter of a second
    scheduler = loaded.AsyncIOScheduler(timezone=UTC)
    scheduler.start()
    return Bell(scheduler, ring)


LOOK_S = 30.0
"""The longest time between two checks: the clock may have been set, and other commands may make plans."""
GRACE_HOURS = 24.0
"""After how long a plan of the soul's own lapses."""
FIRST_S = 0.05


async def fire_due(now: datetime, mind: Mind, wake: Callable[[str], None]) -> None:
    """Turn what is due into perceptions, and wake their conversations. Raises: StoreError."""
    for conversation in await mind.store.plans.fire_due(now, GRACE_HOURS):
        log.info("due", extra={"conversation": conversation})
        wake(conversation)


Look = Callable[[datetime], Awaitable[datetime | None]]
"""Runs the jobs that are due; returns when the next one is due."""


async def tick(mind: Mind, wake: Callable[[str], None], look: Look | None = None) -> float:
    """Fire what is due. Returns how many seconds until the next check. Raises: StoreError."""
    due, now = mind.store.plans.next_due(), mind.clock()
    if due is not None and due <= now:
        await fire_due(now, mind, wake)
        due = mind.store.plans.next_due()
    gone = mind.store.facts.next_destroyed()
    if gone is not None and gone <= now:
        await mind.store.facts.destroy(now)
        gone = mind.store.facts.next_destroyed()
    lapses = mind.store.calls.next_lapse()
    if lapses is not None and lapses <= now:
        for conversation in await mind.store.calls.lapse(now):
            wake(conversation)
        lapses = mind.store.calls.next_lapse()
    job = await look(now) if look else None
    nearest = min((one for one in (due, gone, lapses, job) if one), default=None)
    return LOOK_S if nearest is None else min(LOOK_S, max(FIRST_S, (nearest - now).total_seconds()))


async def keep_time(mind: Mind, wake: Callable[[str], None], planned: asyncio.Event, look: Look | None = None) -> None:
    """Check the clock for as long as the process lives; `planned` is set when a plan may have been made."""

    async def due_in_s() -> float:
        planned.clear()
        try:
            return await tick(mind, wake, look)
        except (StoreError, RowInvalid) as error:
            log.warning("what is due could not be read", extra={"error": error.message})
            return LOOK_S

    while not planned.is_set():  # the timer's library is loaded with the first turn: a start is quick and small
        wait_s = await due_in_s()  # outside: what it raises is told
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await planned.wait()
    bell = await open_bell(planned.set)
    try:
        while True:
            bell.ring_in(await due_in_s())
            await planned.wait()
    finally:
        bell.close()


INNER = "self:claudius:inner:"
"""The conversation of scheduled jobs; the job's name follows it."""
JOBS: tuple[Job, ...] = (SOUL_STATE_CHECK, MEMORY_EXPIRY, RECORDS, BACKUP)
"""The jobs of every soul; each daimon that is on adds one, a soul that feels two, erasures one."""
ENDED_PROCESSES = 2
"""A run whose work ended this many processes is dropped."""


class Clockwork:
    """Runs the scheduled jobs of one soul."""

    def __init__(self, mind: Mind, home: Home, daimons: Callable[[], Daimons], chance: Callable[[], float]) -> None:
        """Run the jobs of `mind`; `daimons` returns what asks daimons, `chance` draws jitter in [0, 1)."""
        self._mind, self._home, self._daimons, self._chance = mind, home, daimons, chance
        self._wake: Callable[[str], None] = lambda _: None
        self._overwrite: Callable[[], Awaitable[str]]
        self._zone: tuple[str, tzinfo] | None = None

    def start(self, wake: Callable[[str], None], overwrite: Callable[[], Awaitable[str]]) -> None:
        """Start; `wake` has a conversation check for what waits, `overwrite` overwrites what was erased."""
        self._wake, self._overwrite = wake, overwrite

    def jobs(self) -> dict[str, Job]:
        """Return the jobs that exist now, by name."""
        config = self._mind.config()
        asked = [whisper_job(name, one) for name, one in daimons(config).items() if one.is_on and one.mode != "off"]
        felt = (SILENCE, TICK) if config.psyche.enabled else ()
        return {job.name: job for job in (*JOBS, overwriting(config.clock.quiet, self._overwrite), *felt, *asked)}

    def zone(self) -> tzinfo:
        """Return the time zone in which local times are read."""
        name = self._mind.config().clock.timezone
        if self._zone is None or self._zone[0] != name:
            try:
                self._zone = (name, zone_of(name))
            except BadConfiguration as error:
                log.error("the time zone is unknown", extra={"error": error.message})  # noqa: TRY400 - no trace
                self._zone = (name, zone_of("UTC"))
        return self._zone[1]

    async def look(self, now: datetime) -> datetime | None:
        """Enqueue the jobs that are due. Returns when the next job is due. Raises: StoreError."""
        jobs, known, zone = self.jobs(), dict(self._mind.store.plans.jobs()), self.zone()
        armed = {
            name: job.timing.after(now, zone, self._chance(), known[name].failures if name in known else 0)
            for name, job in jobs.items()
            if name not in known or known[name].next_due > job.timing.latest(now, zone, known[name].failures)
        }
        gone = [name for name in known if name not in jobs]
        if armed or gone:
            await self._mind.store.plans.arm(armed, gone)
        for name, at in armed.items():
            known[name] = Due(at, known[name].failures if name in known else 0)
        for name, job in jobs.items():
            if known[name].next_due <= now:
                known[name] = await self._ring(job, known[name], now, zone)
        return min((known[name].next_due for name in jobs), default=None)

    async def _ring(self, job: Job, due: Due, now: datetime, zone: tzinfo) -> Due:
        following = job.timing.after(now, zone, self._chance(), due.failures)
        conversation = INNER + job.name
        if await self._mind.store.plans.ring(job.name, conversation, due.next_due, following, now):
            log.info("rung", extra={"job": job.name})
            self._wake(conversation)
        return Due(following, due.failures)

    async def work(self, pending: Pending, store: Store) -> bool:
        """Do the work of a scheduled run once; it is finished whatever the result. Returns False if it is no such run.

        `store` writes as the holder of its lane. Raises: StoreError.
        """
        if not pending.perception.conversation.startswith(INNER):
            return False
        extra = pending.perception.extra
        name = extra.job if isinstance(extra, TickExtra) else ""
        job, began = self.jobs().get(name), self._mind.clock()
        if job is None or pending.ended >= ENDED_PROCESSES:
            await store.inbox.withdraw(pending.seq, "there is no such job" if job is None else "it ended two processes")
            return True
        store.inbox.take(pending.seq, {}, began)
        known: Mapping[str, Due] = store.plans.jobs()
        failures = known[name].failures if name in known else 0
        try:
            outcome, failures = await job.work(self._tools(began)), 0
        except StoreError:
            raise
        except Exception as error:  # a job may be the owner's own code; it is planned again, later each time
            failures += 1
            outcome = f"failed: {type(error).__name__}"
            log.exception("a job failed", extra={"job": name, "times": failures})
        await store.plans.job_ended(name, began, self._mind.clock(), outcome, failures)
        if failures >= FAILS:
            now = self._mind.clock()
            await store.plans.arm({name: job.timing.after(now, self.zone(), self._chance(), failures)})
        await store.inbox.withdraw(pending.seq, outcome)
        log.info("a job is done", extra={"job": name, "outcome": outcome})
        return True

    def _tools(self, now: datetime) -> Tools:
        zone = self.zone()
        return Tools(
            mind=self._mind,
            home=self._home,
            now=now,
            zone=zone,
            wake=self._wake,
            daimons=self._daimons,
            is_quiet=is_quiet(now, zone, read_hours(self._mind.config().clock.quiet)),
        )
