"""The resources of a soul's process beside its mind: clock, disk, crash recovery and admission control."""

from __future__ import annotations

import asyncio
import logging
import subprocess
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from claudius.cognition.mind import Mind
from claudius.home import Home
from claudius.runtime.admission import Turnstile
from claudius.runtime.clock import Clock
from claudius.runtime.crash_recovery import Careful
from claudius.runtime.disk import Disk

log = logging.getLogger("claudius.body")


def _no_quarantine(_: datetime) -> Path:
    raise OSError("nobody said where to")


class Body(Struct, frozen=True, kw_only=True):
    """The process's resources. Built once, in `compose`; tests build their own."""

    clock: Clock
    disk: Disk
    careful: Careful = field(default_factory=Careful)
    turnstile: Turnstile = field(default_factory=Turnstile)
    quarantine: Callable[[datetime], Path] = _no_quarantine
    """Copies a damaged database aside; returns the copy's path."""
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    """A short hash of each token, for the lock file."""
    log_dropped: Callable[[], int] = lambda: 0
    """How many lines of the log could not be written."""
    log_leave_out: Callable[[Callable[[str], bool]], int] = lambda _: 0
    """Rewrites the log without some of its lines; returns how many those were."""

    @classmethod
    def of(cls, home: Home, mind: Mind) -> Body:
        """Build one for a home with the mind's clock and no disk reserve, for callers that compose a soul."""
        return cls(clock=Clock(mind.clock), disk=Disk(home, lambda: 0))

    async def set_aside(self, now: datetime) -> None:
        """Copy the damaged database aside, and log the path."""
        try:
            aside = await asyncio.to_thread(self.quarantine, now)
        except (OSError, subprocess.SubprocessError) as error:
            log.critical("the damaged database could not be copied", extra={"error": str(error)})
        else:
            log.critical("the damaged database is copied", extra={"path": str(aside)})

    def told(self) -> dict[str, Any]:
        """Return what `status` reports of it."""
        shut = self.disk.shut
        return {
            "brake": None,
            "careful": self.careful.is_on,
            "disk": {"accepting": shut is None, "problem": shut.error.message if shut else None},
            "log_dropped": self.log_dropped(),
        }

    def notices(self) -> list[str]:
        """Return what the owner should know of it, one line each."""
        shut = self.disk.shut
        return [f"nothing new is accepted: {shut.error.message}"] if shut else []
