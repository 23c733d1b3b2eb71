"""Disk space: keeps 16 MiB in reserve for replies that are already decided, and stops intake while there is no room.

Source: the reliability design, section 9.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from claudius.errors import BadHome, StoreError, StoreFull, StoreReadOnly
from claudius.home import FILE_MODE, Home, write_all

log = logging.getLogger(__name__)

RESERVE_MB = 16
LOOK_S = 2.0
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

    async def watch(self) -> None:
        """Check the disk every few seconds. Raises: StoreReadOnly if the home stays read-only."""
        while True:
            await asyncio.to_thread(self.look)
            await asyncio.sleep(LOOK_S)

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
