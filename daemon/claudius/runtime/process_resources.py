"""The resources of a soul's process beside its mind: clock, admission control and the disk.

Source: the reliability design, sections 8 and 9.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from claudius.errors import BadConfiguration, BadHome, StoreError, StoreFull, StoreReadOnly
from claudius.foreign import unquoted
from claudius.home import FILE_MODE, Home, write_all
from claudius.provider import CallTally, Rests
from claudius.runtime.failures import CrashRecovery

log = logging.getLogger(__name__)

LOGGED = timedelta(seconds=60)
"""A step of the wall clock beyond this is logged, and everything that waits for an instant checks again."""
DISTRUSTED = timedelta(hours=24)
"""After a step beyond this, nothing expires before the next start."""
OURS = ("terminal",)
"""Networks whose timestamps come from this machine."""

running_s = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
"""Returns monotonic seconds; they include time spent suspended if the system counts it."""


def set_wall(env: Mapping[str, str]) -> Callable[[], datetime]:
    """Return the wall clock, UTC. `CLAUDIUS_CLOCK` sets the instant at which it starts. Raises: BadConfiguration."""
    given = env.get("CLAUDIUS_CLOCK", "")
    if not given:
        return partial(datetime.now, UTC)
    try:
        near = given if given[0] in "12" else ""  # what is reckoned from the years 1 or 9999 has no date
        offset = datetime.fromisoformat(near) - datetime.now(UTC)
    except (ValueError, TypeError) as error:
        raise BadConfiguration(
            "environment", "CLAUDIUS_CLOCK", f"{given!r} is no usable instant", "write it as 2026-01-01T00:00:00Z"
        ) from error
    return lambda: datetime.now(UTC) + offset


class Clock:
    """The clocks of one process: the wall clock, which others may set, and a monotonic one.

    Source: the reliability design, section 8.
    """

    def __init__(self, wall: Callable[[], datetime], running: Callable[[], float] = running_s) -> None:
        """Take `wall`, which others may set at any time, and `running`, monotonic seconds."""
        self._wall, self._running = wall, running
        self._began, self._began_s = wall(), running()
        self._stepped = timedelta(0)
        self._frozen: datetime | None = None
        self._platform: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """Return the wall clock's instant, as shown to people and in prompts."""
        return self._wall()

    def steady(self) -> datetime:
        """Return an instant that no step of the wall clock moves, for waits and durations within this process."""
        return self._began + timedelta(seconds=self._running() - self._began_s)

    def follow(self, other: Callable[[Callable[[], datetime]], Callable[[], datetime]]) -> None:
        """Show from now on what `other` makes of the wall clock."""
        self._wall = other(self._wall)
        self._began, self._began_s = self._wall(), self._running()

    def heard(self, network: str, at: datetime) -> None:
        """Record a platform's own timestamp."""
        if network not in OURS and (self._platform is None or at > self._platform_now(*self._platform)):
            self._platform = (at, self._running())

    def expiry(self) -> datetime:
        """Return the instant that ages are measured from: the earlier of the wall clock's and the platforms' time.

        After a step of more than a day it is frozen, so that a jump forward expires no live conversation.
        """
        self.look()
        known = [self.now()]
        if self._platform:
            known.append(self._platform_now(*self._platform))
        if self._frozen:
            known.append(self._frozen)
        return min(known)

    def look(self) -> bool:
        """Compare the clocks. Returns whether the wall clock was set by more than a minute since the last call."""
        stepped = self.now() - self.steady()
        step, before = stepped - self._stepped, self._stepped
        if abs(step) <= LOGGED:
            return False
        self._stepped = stepped
        log.warning("the wall clock was set", extra={"step_s": round(step.total_seconds())})
        if abs(stepped) > DISTRUSTED and self._frozen is None:
            self._frozen = self.steady() + before
            log.warning("nothing expires before the next start", extra={"frozen_at": self._frozen.isoformat()})
        return True

    def _platform_now(self, at: datetime, seen_s: float) -> datetime:
        return at + timedelta(seconds=self._running() - seen_s)


BUSY_S = 0.25
"""For how long at most one turn keeps others from beginning."""
ABREAST = 4
"""How many turns may be on their way to the model, or on from its answer, where another one begins."""


class Admission:
    """Admission control: lanes begin in order of arrival, a few at a time, and after those that have their answer.

    A turn occupies the event loop for milliseconds before it waits for a model, and again after it. If all of a burst
    began at once, what arrives meanwhile would be acknowledged late, and the first answer would come with the last.
    Nobody waits long for one turn, because it may be waiting for a file or a network itself.
    """

    def __init__(self) -> None:
        self.busy = 0
        self._waiting: deque[Passage] = deque()

    async def through(self) -> Passage:
        """Wait until the calling lane may begin. It ends the passage that it is given."""
        passage = Passage(self)
        self._waiting.append(passage)
        self.open()
        try:
            await passage.may_begin.wait()
        except asyncio.CancelledError:
            passage.end()
            raise
        return passage

    def open(self) -> None:
        """Let those begin who may."""
        while self._waiting and self.busy < ABREAST:
            self._waiting.popleft().occupy()


class Passage(Struct, eq=False):
    """One turn's way through: to the model, and on from its answer."""

    admission: Admission
    may_begin: asyncio.Event = field(default_factory=asyncio.Event)
    busy: asyncio.TimerHandle | None = None
    """Ends its being busy, if it is; None = it is not."""
    is_over: bool = False

    def occupy(self) -> None:
        """Count it among the busy, but not for long."""
        if not (self.is_over or self.busy):
            self.busy = asyncio.get_running_loop().call_later(BUSY_S, self._vacate)
            self.admission.busy += 1
            self.may_begin.set()

    def _vacate(self) -> None:
        if self.busy:
            self.busy.cancel()
            self.busy = None
            self.admission.busy -= 1
            self.admission.open()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let others begin while the block runs; the block waits for the model."""
        self._vacate()
        try:
            yield
        finally:
            self.occupy()

    def end(self) -> None:
        """End it; a second time changes nothing."""
        self.is_over = True
        self._vacate()


def _no_quarantine(_: datetime) -> Path:
    raise OSError("nobody said where to")


class ProcessResources(Struct, frozen=True, kw_only=True):
    """The process's resources. Built once, in `compose`; tests build their own."""

    clock: Clock
    disk: Disk
    recovery: CrashRecovery = field(default_factory=CrashRecovery)
    admission: Admission = field(default_factory=Admission)
    tally: CallTally = field(default_factory=CallTally)
    rests: Rests = field(default_factory=Rests)
    """What the providers did since the start."""
    quarantine: Callable[[datetime], Path] = _no_quarantine
    """Copies a damaged database aside; returns the copy's path."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """A short hash of each token, for the lock file."""
    of_environment: Sequence[str] = ()
    """The names of the secrets that come of the environment and not of `.env`, for the lock file."""
    log_dropped: Callable[[], int] = lambda: 0
    """How many lines of the log could not be written."""
    log_leave_out: Callable[[Callable[[str], bool]], int] = lambda _: 0
    """Rewrites the log without some of its lines; returns how many those were."""

    async def set_aside(self, now: datetime) -> None:
        """Copy the damaged database aside, and log the path."""
        try:
            aside = await asyncio.to_thread(self.quarantine, now)
        except (OSError, subprocess.SubprocessError) as error:
            log.critical("the damaged database could not be copied", extra={"error": unquoted(error)})
        else:
            log.critical("the damaged database is copied", extra={"path": str(aside)})

    def told(self) -> dict[str, Any]:
        """Return what `status` reports of it."""
        shut = self.disk.shut
        return {
            "brake": None,
            "careful": self.recovery.is_on,
            "disk": {"accepting": shut is None, "problem": shut.error.message if shut else None},
            "log_dropped": self.log_dropped(),
        }


RESERVE_MB = 16
READ_ONLY_S = 300.0
"""How long a home may be read-only before the process stops."""
RELAPSE_S = 60.0
"""Trouble that returns within this time counts as the same trouble."""
_MB = 2**20


def check_room(home: Home, reserve_mb: int) -> None:
    """Check that the home has room to store what is heard. Raises: BadHome."""
    for place in (home.state, home.run, home.memory):
        try:
            probe(place)
        except OSError as error:
            owner, mode = place.stat().st_uid, place.stat().st_mode & 0o777
            raise BadHome(
                f"{place} cannot be written ({error.strerror}; owner {owner}, mode {mode:04o}): "
                f"run: chmod u+rwX {place}, or free some space"
            ) from error
    free_mb = shutil.disk_usage(home.root).free // _MB
    if free_mb < reserve_mb:
        raise BadHome(
            f"{home.root}: {free_mb} MB free, {reserve_mb} needed: free some space, or lower storage.reserve_mb"
        )


def probe(directory: Path) -> None:
    """Write a file and delete it again. Raises: OSError."""
    path = directory / f".probe-{os.getpid()}"
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            write_all(file, b"can this be written?")
        finally:
            os.close(file)
    finally:
        path.unlink(missing_ok=True)


class Shut(Struct, frozen=True):
    """Why nothing is accepted, and since when."""

    error: StoreError
    since_s: float


class _Opened(Struct, frozen=True):
    """When intake last reopened, and what had been wrong before."""

    at_s: float
    before: Shut


class Disk:
    """The state of the disk below one home, as seen by the process that writes to it."""

    def __init__(
        self,
        home: Home,
        reserve_mb: Callable[[], int],
        *,
        running: Callable[[], float] = time.monotonic,
        free_mb: Callable[[], int] | None = None,
    ) -> None:
        """Accept while at least `reserve_mb` MB are free; `free_mb` returns the free space."""
        self._home, self._reserve_mb, self._running = home, reserve_mb, running
        state = home.state
        self._path = state / "reserve"
        self._free_mb = free_mb or (lambda: shutil.disk_usage(state).free // _MB)
        self.shut: Shut | None = None
        """Why nothing is accepted now; None while all is well."""
        self._opened: _Opened | None = None
        self.probe_store: Callable[[], None] = lambda: None
        """Raises StoreError if a database on another machine still takes no writes."""

    def strike(self, error: StoreError) -> None:
        """Stop accepting until writing works again, because a write failed for lack of space or permission."""
        if not isinstance(error, (StoreFull, StoreReadOnly)) or self.shut:
            return
        now_s = self._running()
        if self._opened and now_s - self._opened.at_s < RELAPSE_S:  # it only seemed to be over: the same trouble
            self.shut = Shut(error, self._opened.before.since_s)
            return
        self.shut = Shut(error, now_s)
        log.error("nothing is accepted", extra={"error": error.message})

    def release(self) -> bool:
        """Delete the reserve, so that decided replies can be written. Returns whether there was one.

        Called by any writer, in any thread, when a write found no room.
        """
        try:
            self._path.unlink()
        except OSError:
            return False
        log.warning("the reserve is released", extra={"path": str(self._path)})
        return True

    def look(self) -> None:
        """Stop or resume intake by the disk's present state. Raises: StoreReadOnly after 300 s of read-only."""
        error, now_s = self._found(), self._running()
        if error:
            self.strike(error)
        shut = self.shut
        if shut and isinstance(shut.error, StoreReadOnly) and now_s - shut.since_s >= READ_ONLY_S:
            raise shut.error
        if shut and error is None:
            try:
                self.probe_store()
            except StoreError:
                return
            log.warning("there is room again")
            self.shut, self._opened = None, _Opened(now_s, shut)

    def _found(self) -> StoreError | None:
        """Return what prevents writing; if nothing does, recreate the reserve."""
        free_mb, needed_mb = self._free_mb(), self._reserve_mb()
        kept_mb = min(RESERVE_MB, needed_mb)
        has_reserve = not kept_mb or self._path.exists()
        if free_mb + (kept_mb if has_reserve else 0) < needed_mb:
            return StoreFull(f"{self._home.state}: {free_mb} MB free, {needed_mb} needed: free some space")
        try:
            if self.shut or not has_reserve:
                probe(self._home.state)
            if not has_reserve:
                _set_aside(self._path, kept_mb * _MB)
        except PermissionError as error:
            return StoreReadOnly(f"{self._home.state} cannot be written ({error.strerror}): chmod u+rwX it")
        except OSError as error:
            if os.access(self._home.state, os.W_OK):
                return StoreFull(f"{self._home.state}: {error.strerror}: free some space")
            return StoreReadOnly(f"{self._home.state}: {error.strerror}: mount its file system for writing")
        return None


def _set_aside(path: Path, size: int) -> None:
    """Create a file whose blocks are really allocated. Raises: OSError; then no file is left."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
    try:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, 0, size)
        else:  # pragma: no cover - macOS
            for _ in range(size // _MB):
                write_all(file, bytes(_MB))
    except OSError:
        with suppress(OSError):
            path.unlink()
        raise
    finally:
        os.close(file)
