"""The clocks of a process: the wall clock, which others may set, and a monotonic one.

Source: the reliability design, section 8.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta

from claudius.errors import BadConfiguration

log = logging.getLogger("claudius.clock")

LOGGED = timedelta(seconds=60)
"""A step of the wall clock beyond this is logged, and everything that waits for an instant checks again."""
DISTRUSTED = timedelta(hours=24)
"""After a step beyond this, nothing expires before the next start."""
OURS = ("terminal",)
"""Networks whose timestamps come from this machine."""


def running_s() -> float:
    """Return monotonic seconds; they include time spent suspended if the system counts it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def set_wall(env: Mapping[str, str]) -> Callable[[], datetime]:
    """Return the wall clock, UTC. `CLAUDIUS_CLOCK` sets the instant at which it starts. Raises: BadConfiguration."""
    given = env.get("CLAUDIUS_CLOCK", "")
    if not given:
        return lambda: datetime.now(UTC)
    try:
        offset = datetime.fromisoformat(given) - datetime.now(UTC)
    except (ValueError, TypeError) as error:
        raise BadConfiguration(
            "environment", "CLAUDIUS_CLOCK", f"{given!r} is no instant", "write it as 2026-01-01T00:00:00Z"
        ) from error
    return lambda: datetime.now(UTC) + offset


class Clock:
    """The clocks of one process."""

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
