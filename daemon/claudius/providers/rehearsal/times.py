"""Read when something is to be said, in the forms of the lines file; what it cannot read whole it does not guess. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from math import ceil
from zoneinfo import ZoneInfo, available_timezones

from claudius.providers.rehearsal.lines import Lines

_COUNTED = "zero one two three four five six seven eight nine ten eleven twelve".split()
_NUMBERS = {word: float(number) for number, word in enumerate(_COUNTED)} | {
    "a": 1,
    "an": 1,
    "half an": 0.5,
    "half a": 0.5,
}
_MINUTES = {"s": 1 / 60, "m": 1, "h": 60, "d": 1440, "w": 10080}
"""Of a unit, by its first letter."""
_DAYS = "mon tue wed thu fri sat sun".split()
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
_PARTS = {"morning": 9, "afternoon": 15, "evening": 19, "night": 20}
"""The hours of a part of the day; a day that is named alone begins at the first."""
_EVERY = {"day": "daily", "weekday": "weekdays", "week": "weekly", "month": "monthly", "year": "yearly"}
_FIRST_HOUR, _LAST_HOUR = 7, 22
"""An hour without a.m. or p.m. is taken to be between these."""

Told = Mapping[str, str]
"""What a phrase names of a time, by the names of the groups of its patterns."""


def peel(text: str, lines: Lines, told: Told | None = None) -> tuple[str, Told]:
    """Return a text without the words at its end that say when, and what they say beside what was told. Pure."""
    told, text = told or {}, text.rstrip(" ,.!?;")
    while found := next(filter(None, [form.search(text) for form in lines.times]), None):
        new = {name: words.lower() for name, words in found.groupdict().items() if words}
        if new.keys() & told.keys():
            break
        told, text = {**told, **new}, text[: found.start()].rstrip(" ,;")
    return text, told


def is_whole(told: Told) -> bool:
    """Return whether it names an hour or a span. Pure."""
    return not told.keys().isdisjoint(("hour", "name", "count"))


def day_of(told: Told, now: datetime) -> date | None:
    """Return the day that is named; None = none is. Raises: ValueError for a day that no calendar has. Pure."""
    today = now.date()
    if "iso" in told:
        return date.fromisoformat(told["iso"])
    if near := told.get("near"):
        return today + timedelta(days=2 if "after" in near else near == "tomorrow")
    if "weekday" in told:
        ahead = (_DAYS.index(told["weekday"][:3]) - now.weekday()) % 7 or 7
        is_next = told.get("which") == "next" and now.weekday() + ahead < len(_DAYS)
        return today + timedelta(days=ahead + 7 * is_next)
    if "month" in told:
        day = date(int(told.get("year", today.year)), _MONTHS.index(told["month"][:3]) + 1, int(told["date"]))
        return day if "year" in told or day >= today else day.replace(year=day.year + 1)
    return today + timedelta(minutes=_span_min(told)) if told.get("unit", "h")[0] in "dw" else None


def _span_min(told: Told) -> int:
    count = _NUMBERS.get(told["count"]) or float(told["count"])
    return ceil(_MINUTES[told["unit"][0]] * (count + ("more" in told) / 2))


def planned(told: Told, now: datetime, lines: Lines) -> Told:
    """Return `at`, `repeat` and `until` of an act: the first such instant after `now`; {} if it names none. Pure."""
    try:
        day = day_of(told, now)
        until = day_of(peel(told["until"], lines)[1], now) if "until" in told else day
    except ValueError:
        return {}
    if not told or ("until" in told and until is None):
        return {}
    every = told.get("every", "")
    days = [name for name in _DAYS if re.search(rf"\b{name}\w*day", every)]
    repeat = ",".join(days) or _EVERY.get(every, every if every.endswith("ly") else "daily" if every else "")
    if "count" in told and day is None:
        at = (now.astimezone(UTC) + timedelta(minutes=_span_min(told))).astimezone(now.tzinfo)
    else:
        hours = _hours(told, now)
        dates = [day] if day else [now.date() + timedelta(days=ahead) for ahead in range(8)]
        may = days or (_DAYS[:5] if repeat == "weekdays" else _DAYS)
        found = [
            datetime.combine(one, time(*hour))
            for one in dates
            if _DAYS[one.weekday()] in may
            for hour in (hours[:1] if repeat or day else hours)
        ]
        at = next((one for one in found if one > now.replace(tzinfo=None)), found[0])
    ends = until.isoformat() if until and "until" in told else ""
    named = {"at": at.isoformat(timespec="minutes"), "repeat": repeat, "until": ends}
    return {key: value for key, value in named.items() if value}


def _hours(told: Told, now: datetime) -> list[tuple[int, int]]:
    """Return the hours and minutes that may be meant, the likeliest first."""
    named = " ".join([told.get("part", ""), told.get("near", ""), told.get("every", "")])
    part = next((one for one in _PARTS if one in named), "")
    if "name" in told:
        return [(12 * (told["name"] == "noon"), 0)]
    if "hour" not in told:
        return [(now.hour, now.minute) if "count" in told else (_PARTS.get(part, 9), 0)]
    hour, minute = int(_NUMBERS.get(told["hour"]) or told["hour"]), int(told.get("minute", 0))
    halves = [(hour % 12, minute), (hour % 12 + 12, minute)]
    if half := told.get("half"):
        return [halves[half == "p"]]
    if not 0 < hour <= 12 or ("minute" in told and len(told["hour"]) > 1):
        return [(hour, minute)]
    if part:
        return [halves[part != "morning"]]
    return [one for one in halves if _FIRST_HOUR <= one[0] <= _LAST_HOUR] or halves


def zone_named(words: str) -> str:
    """Return the IANA zone of a name or of its city; "" if there is none. Pure."""
    wanted = words.strip(" .!").replace(" ", "_").casefold()
    named = [
        one for one in sorted(available_timezones()) if wanted in (one.casefold(), one.rpartition("/")[2].casefold())
    ]
    return max(named, key=lambda one: "/" in one, default="")


def instant_of(present: str) -> datetime | None:
    """Return the instant that The Present names, in its zone; None if it names none. Pure."""
    found = re.search(r"(\d+) (\w{3})\w* (\d{4}), (\d\d):(\d\d)[^(]*\(([\w/+-]+)", present)
    if found is None:
        return None
    day, month, year, hour, minute, zone = found.groups()
    return datetime(
        int(year), _MONTHS.index(month.lower()) + 1, int(day), int(hour), int(minute), tzinfo=ZoneInfo(zone)
    )
