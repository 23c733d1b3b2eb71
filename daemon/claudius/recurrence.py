"""Find the instants of a local time, once or again and again: what the clock on the wall shows counts. Pure.

Source: the design of acts, sections 2, 3 and 10.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from itertools import count
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WORKDAYS = DAYS[:5]
_MONTHS = {"monthly": 1, "yearly": 12}


def zone_named(name: str | None) -> tzinfo:
    """Return a zone by its IANA name; UTC for one that is empty or unknown here. Pure."""
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return UTC


def local_instant(day: date, at: time, zone: tzinfo) -> datetime:
    """Return the instant of a local time on a day, in UTC. Pure.

    An ambiguous time means its first occurrence; a nonexistent one means the first instant after the gap.
    """
    naive = datetime.combine(day, at)
    late = naive.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if late.astimezone(zone).replace(tzinfo=None) == naive:
        return late
    early = naive.replace(tzinfo=zone, fold=1).astimezone(UTC)
    before = early.astimezone(zone).utcoffset()
    while late - early > timedelta(seconds=1):
        middle = early + (late - early) / 2
        early, late = (middle, late) if middle.astimezone(zone).utcoffset() == before else (early, middle)
    return (late + timedelta(milliseconds=500)).replace(microsecond=0)


def days_of(repeat: str) -> tuple[str, ...]:
    """Return the days of the week on which a repetition comes; empty if it goes by another measure. Pure."""
    return WORKDAYS if repeat == "weekdays" else tuple([day for day in DAYS if day in repeat.split(",")])


def fitting(at: datetime, zone: tzinfo, repeat: str) -> datetime:
    """Return an instant; where its day is none of a repetition's, the next one that is. Pure."""
    days = days_of(repeat)
    is_day = not days or DAYS[at.astimezone(zone).weekday()] in days
    return at if is_day else following(at, zone, repeat, at) or at


def following(
    first: datetime, zone: tzinfo, repeat: str, after: datetime, until: date | None = None
) -> datetime | None:
    """Return the first instant of a repetition after another one, in UTC; None if there is none. Pure.

    It comes at the wall clock that `first` shows in the zone, or is if it has no zone of its own: its first day may
    have no such hour. A day that a month does not have is its last one.
    """
    begin = first.astimezone(zone) if first.tzinfo else first
    since = after.astimezone(zone).date() - timedelta(days=1)
    for day in _days(begin.date(), repeat, since):
        if until is not None and day > until:
            return None
        at = local_instant(day, begin.time(), zone) if day != begin.date() or not first.tzinfo else first
        if at > after:
            return at
    return None


def _days(first: date, repeat: str, since: date) -> Iterator[date]:
    """Yield the days of a repetition in order, from shortly before `since`; `first` is one of them whatever it is."""
    if step := _MONTHS.get(repeat):
        months = (since.year - first.year) * 12 + since.month - first.month
        for n in count(max(0, months // step - 1)):
            years, month = divmod(first.month - 1 + n * step, 12)
            year, month = first.year + years, month + 1
            yield date(year, month, min(first.day, monthrange(year, month)[1]))
    wanted = {DAYS.index(day) for day in days_of(repeat)}
    if repeat in ("daily", "weekly"):
        wanted = set(range(len(DAYS))) if repeat == "daily" else {first.weekday()}
    if since <= first:
        yield first
    for n in count(max(1, (since - first).days)) if wanted else ():
        day = first + timedelta(days=n)
        if day.weekday() in wanted:
            yield day
