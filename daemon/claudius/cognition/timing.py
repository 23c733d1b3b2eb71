"""Compute when a job is next due: intervals ignore daylight saving, local times follow it. Also quiet hours. Pure.

Source: the daimon design, section 6.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, tzinfo

from msgspec import Struct

from claudius.errors import BadConfiguration
from claudius.perception import MessageExtra
from claudius.recollection import Recollection
from claudius.recurrence import local_instant

MOST = timedelta(days=1)
"""The longest interval: a failing job still runs at least once a day."""
FAILS = 3
"""From this many failures in a row, each failure doubles the interval."""
SLACK = timedelta(minutes=1)
_HOURS = re.compile(r"(\d{1,2}):(\d{2})\s*[-–]\s*(\d{1,2}):(\d{2})")


class Timing(Struct, frozen=True, kw_only=True):
    """The schedule of a job: a fixed interval, or a local time each day."""

    every: timedelta | None = None
    at: time | None = None
    jitter: float = 0.0
    """Share by which an interval varies, in both directions."""

    def after(self, now: datetime, zone: tzinfo, chance: float, failures: int = 0) -> datetime:
        """Return the next due time after `now`; `chance` in [0, 1) sets the jitter. Pure."""
        if self.at is not None:
            return next_local(now, self.at, zone)
        every = self.every or MOST
        if failures >= FAILS:
            every = min(MOST, every * 2 ** min(failures - FAILS + 1, 16))
        return now + every * (1 + self.jitter * (2 * chance - 1))

    def latest(self, now: datetime, zone: tzinfo, failures: int = 0) -> datetime:
        """Return the latest instant at which a job armed before `now` may be due. Pure."""
        return max(self.after(now, zone, 1.0, failures), now + MOST if self.at else now) + SLACK


def next_local(now: datetime, at: time, zone: tzinfo) -> datetime:
    """Return the first instant after `now` at which the local time in a zone is `at`. Pure."""
    today = now.astimezone(zone)
    days = (today + timedelta(days=n) for n in range(-1, 4))
    return next(found for day in days if (found := local_instant(day.date(), at, zone)) > now)


def zone_of(name: str) -> tzinfo:
    """Return a zone by its IANA name; empty = the system's zone. Raises: BadConfiguration."""
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError  # noqa: PLC0415 - only where a local time is read

    if not name:
        from tzlocal import get_localzone  # noqa: PLC0415 - APScheduler's own; only where no zone is set

        try:
            return UTC if str(zone := get_localzone()) == "Etc/UTC" else zone  # with all its rules
        except (ValueError, LookupError):  # an unknown zone raises LookupError
            return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        fix = "write an IANA name, such as Europe/Rome"
        raise BadConfiguration("config.toml", "clock.timezone", f"there is no zone {name!r}", fix) from error


def known_zone(*names: str) -> tzinfo:
    """Return the zone of the first valid name, else UTC; an empty last name means the system's zone."""
    *others, last = names
    for name in (*filter(None, others), last):
        try:
            return zone_of(name)
        except BadConfiguration:
            continue
    return UTC


def zone_at(recollection: Recollection, configured: str) -> tzinfo:
    """Return the zone of whom a turn speaks to, in which they name times: their own if known, else the configured."""
    extra, to = recollection.perception.extra, recollection.addressee
    return known_zone(to.zone if to else "", extra.zone if isinstance(extra, MessageExtra) else "", configured)


def zone_name(zone: tzinfo) -> str:
    """Return the name by which a zone is found again on any machine; UTC for one that has none. Pure."""
    return str(known_zone(str(zone), "UTC"))


def read_hours(text: str) -> tuple[time, time] | None:
    """Parse a range such as `21:00-08:00`; empty = None. Pure. Raises: ValueError."""
    if not text.strip():
        return None
    found = _HOURS.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is not written as 21:00-08:00")
    from_h, from_m, to_h, to_m = map(int, found.groups())
    return time(from_h % 24, from_m), time(to_h % 24, to_m)


def is_quiet(now: datetime, zone: tzinfo, hours: tuple[time, time] | None) -> bool:
    """Return whether an instant is within the quiet hours of a zone, which may span midnight. Pure."""
    if hours is None:
        return False
    here, (begin, end) = now.astimezone(zone).time().replace(tzinfo=None), hours
    return begin <= here < end if begin <= end else here >= begin or here < end


def quiet_begin(hours: tuple[time, time] | None) -> time:
    """Return the local time from which on nobody is to be disturbed: 03:00 if no hours are quiet. Pure."""
    return hours[0] if hours else time(3)


def next_quiet(now: datetime, zone: tzinfo, hours: tuple[time, time] | None) -> datetime:
    """Return when the next quiet hours begin, or `now` within them. Pure."""
    return now if is_quiet(now, zone, hours) else next_local(now, quiet_begin(hours), zone)


def quiet_end(now: datetime, zone: tzinfo, hours: tuple[time, time] | None) -> datetime:
    """Return when the current quiet hours end, or `now` if it is outside them. Pure."""
    return next_local(now, hours[1], zone) if hours and is_quiet(now, zone, hours) else now
