"""Read when something is to be said, in a few English forms; what it cannot read whole it does not guess. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from math import ceil
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import asdict, replace

_COUNTED_TEXT = "zero one two three four five six seven eight nine ten eleven twelve"
_COUNTED = tuple(_COUNTED_TEXT.split())
_NUMBERS = {word: number for number, word in enumerate(_COUNTED)} | {"a": 1, "an": 1, "half an": 0.5}
_NUMBERS |= {"fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "forty-five": 45, "fifty": 50, "ninety": 90}
_NUMBER = rf"(?:\d{{1,4}}|{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})"
_UNITS = {
    "second": 1 / 60,
    "sec": 1 / 60,
    "minute": 1,
    "min": 1,
    "hour": 60,
    "hr": 60,
    "h": 60,
    "day": 1440,
    "week": 10080,
}
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY = rf"(?:{'|'.join(_DAYS)})"
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_NTH = r"(\d{1,2})(?:st|nd|rd|th)?"
_PARTS = {"morning": time(9), "afternoon": time(15), "evening": time(19), "night": time(20)}
_PART = "|".join(_PARTS)
_EVERY = {
    "day": "daily", "weekday": "weekdays", "week": "weekly", "month": "monthly", "year": "yearly", "daily": "daily",
    "weekly": "weekly", "monthly": "monthly", "yearly": "yearly", "morning": "daily", "evening": "daily",
}  # fmt: skip
MORNING = time(9)
"""The hour of a day that is named without one."""
FIRST_HOUR, LAST_HOUR = 7, 22
"""An hour without a.m. or p.m. is taken to be between these."""


class TimeTold(Struct, frozen=True):
    """What a phrase names of a time."""

    span_min: int = 0
    hour: time | None = None
    is_half: bool = False
    """The hour may be that of either half of the day."""
    part: str = ""
    day: date | None = None
    repeat: str = ""
    until: date | None = None

    @property
    def is_any(self) -> bool:
        """Whether it says when."""
        return self != TimeTold()

    @property
    def is_whole(self) -> bool:
        """Whether nothing more of it need be looked for."""
        return self.hour is not None or bool(self.span_min)

    def at(self, now: datetime) -> str:
        """Return the first instant from `now` on, as an act names it: on the wall clock, or exact after a span."""
        if self.span_min and self.hour is None:
            exact = now.astimezone(UTC) + timedelta(minutes=self.span_min)
            if self.span_min % 1440:
                return exact.astimezone(now.tzinfo).isoformat(timespec="minutes")
        day = now.date() + timedelta(days=self.span_min // 1440) if self.span_min else self.day
        hour = self.hour or (now.time() if self.span_min else _PARTS.get(self.part, MORNING))
        hours = [time(hour.hour % 12 + half, hour.minute) for half in (0, 12)] if self.is_half else [hour]
        if self.is_half and self.part:
            hours = hours[:1] if self.part == "morning" else hours[1:]
        by_day = [one for one in hours if FIRST_HOUR <= one.hour <= LAST_HOUR] or hours
        if self.repeat or day:
            by_day = by_day[:1]
        after = now.replace(tzinfo=None)
        days = [day] if day else [after.date() + timedelta(days=ahead) for ahead in range(8)]
        wanted = [_DAYS.index(name) for name in _DAYS if name[:3] in self.repeat.split(",")]
        wanted = [0, 1, 2, 3, 4] if self.repeat == "weekdays" else wanted
        instants = [datetime.combine(one, hour) for one in days for hour in by_day if fits(one, wanted)]
        ahead = [one for one in instants if one > after]
        return (ahead or instants)[0].isoformat(timespec="minutes")


def fits(day: date, weekdays: list[int]) -> bool:
    """Return whether a day is one of the weekdays, if there are any. Pure."""
    return not weekdays or day.weekday() in weekdays


def peel(text: str, now: datetime, told: TimeTold | None = None) -> tuple[str, TimeTold]:
    """Return a text without the words at its end that say when, and what they say beside what was told. Pure."""
    told, text = told or TimeTold(), text.rstrip(" ,.!?;")
    while found := next(((match, read) for pattern, read in _FORMS if (match := pattern.search(text))), None):
        match, read = found
        new = read(match, now)
        if new is None or any(asdict(told)[name] != empty and getattr(new, name) != empty for name, empty in _NONE):
            break
        told = replace(
            told, **{name: value for name, value in asdict(new).items() if value != asdict(TimeTold())[name]}
        )
        text = text[: match.start()].rstrip(" ,;")
    return text, told


def is_unread(text: str) -> bool:
    """Return whether a text still names a time in words that no form reads. Pure."""
    return _UNREAD.search(text) is not None


def zone_named(words: str, zones: set[str]) -> str:
    """Return the IANA zone of a name or of its city; "" if there is none. Pure."""
    wanted = words.strip(" .!").replace(" ", "_").casefold()
    named = [zone for zone in sorted(zones) if wanted in (zone.casefold(), zone.rpartition("/")[2].casefold())]
    return next((zone for zone in named if "/" in zone), named[0] if named else "")


def instant_of(present: str) -> datetime | None:
    """Return the instant that The Present names, in its zone; None if it names none. Pure."""
    found = re.search(rf"(\d{{1,2}}) ({_MONTH}) (\d{{4}}), (\d\d):(\d\d)[^(]*\(([\w/+-]+)", present, re.IGNORECASE)
    if found is None:
        return None
    day = date(int(found[3]), _month(found[2]), int(found[1]))
    return datetime.combine(day, time(int(found[4]), int(found[5])), ZoneInfo(found[6]))


def _month(name: str) -> int:
    return _MONTHS.index(name[:3].lower()) + 1


def _number(word: str) -> float:
    word = " ".join(word.lower().split())
    return _NUMBERS.get(word) or float(word)


def _span(match: re.Match[str], now: datetime) -> TimeTold | None:
    del now
    unit = match[2].lower().rstrip("s")
    minutes = _number(match[1]) * _UNITS[unit] + (_UNITS[unit] / 2 if match[3] else 0)
    return TimeTold(span_min=ceil(minutes))  # The Present names whole minutes


def _clock(match: re.Match[str], now: datetime) -> TimeTold | None:
    del now
    word, minutes, half = match[1].lower(), int(match[2] or 0), (match[3] or "").lower()
    hour = int(_number(word))
    if hour > 24 or minutes > 59 or (half and not 0 < hour <= 12):
        return None
    if half:
        return TimeTold(hour=time(hour % 12 + (12 if half == "p" else 0), minutes))
    is_exact = bool(match[2] and len(match[1]) > 1) or hour > 12 or hour == 0
    return TimeTold(hour=time(hour % 24, minutes), is_half=not is_exact)


def _past(match: re.Match[str], now: datetime) -> TimeTold | None:
    del now
    minutes = {"half": 30, "quarter": 15}.get(match[1].lower()) or int(_number(match[1]))
    at = datetime(2026, 1, 1, int(_number(match[3])) % 12, 0) + timedelta(days=1)  # noqa: DTZ001 - an hour of any day
    return TimeTold(
        hour=(at + timedelta(minutes=minutes if match[2].lower() == "past" else -minutes)).time(), is_half=True
    )


def _relative(match: re.Match[str], now: datetime) -> TimeTold:
    word = match[1].lower()
    ahead = 2 if "after" in word else 1 if word == "tomorrow" else 0
    part = "night" if word == "tonight" else (match[2] or "").lower()
    return TimeTold(day=now.date() + timedelta(days=ahead), part=part)


def _weekday(match: re.Match[str], now: datetime) -> TimeTold:
    ahead = (_DAYS.index(match[2].lower()) - now.weekday()) % 7 or 7
    is_next = (match[1] or "").lower() == "next" and now.weekday() + ahead < len(_DAYS)
    return TimeTold(day=now.date() + timedelta(days=ahead + (7 if is_next else 0)), part=(match[3] or "").lower())


def _dated(day: str, month: str, year: str | None, now: datetime) -> TimeTold | None:
    try:
        found = date(int(year or now.year), _month(month), int(day))
        return TimeTold(day=found if year or found >= now.date() else found.replace(year=now.year + 1))
    except ValueError:
        return None


def _iso(match: re.Match[str], now: datetime) -> TimeTold | None:
    del now
    try:
        hour = time.fromisoformat(match[2]) if match[2] else None
        return TimeTold(day=date.fromisoformat(match[1]), hour=hour)
    except ValueError:
        return None


def _nth(match: re.Match[str], now: datetime) -> TimeTold | None:
    for ahead in range(1, 63):
        day = now.date() + timedelta(days=ahead)
        if day.day == int(match[1]):
            return TimeTold(day=day)
    return None


def _repeat(match: re.Match[str], now: datetime) -> TimeTold | None:
    del now
    words = match[1].lower()
    days = [name[:3] for name in _DAYS if name in words]
    part = next((one for one in _PARTS if one in words), "")
    return TimeTold(repeat=",".join(days) or _EVERY[words.rpartition(" ")[2]], part=part)


def _until(match: re.Match[str], now: datetime) -> TimeTold | None:
    rest, told = peel(match[1], now)
    return TimeTold(until=told.day) if told.day and not rest else None


def _form(pattern: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{pattern})$", re.IGNORECASE)


_FORMS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], datetime], TimeTold | None]], ...] = (
    (_form(r"until (.+)"), _until),
    (_form(rf"(?:every|each) ((?:{_DAY}s?(?:,? and |, )?)+|day|weekday|week|month|year|{_PART})"), _repeat),
    (_form(rf"((?:{_DAY}s(?:,? and |, )?)+|daily|weekly|monthly|yearly)"), _repeat),
    (_form(rf"in ({_NUMBER}) ?({'|'.join(_UNITS)})s?( and a half)?"), _span),
    (_form(rf"(?:at )?(half|quarter|{_NUMBER})(?: minutes)? (past|to) ({_NUMBER})"), _past),
    (_form(r"(?:at |by |around )?([01]?\d|2[0-4])(?:[:.]([0-5]\d))? ?([ap])\.?m\.?"), _clock),
    (_form(r"(?:at |by |around )?([01]?\d|2[0-4]):([0-5]\d)(?: o'clock| sharp)?()"), _clock),
    (_form(rf"(?:at|by|around) ({'|'.join(_COUNTED)}|[01]?\d|2[0-4])()(?: o'clock| sharp)?()"), _clock),
    (_form(r"(?:at )?noon"), lambda _match, _now: TimeTold(hour=time(12))),
    (_form(r"(?:at )?midnight"), lambda _match, _now: TimeTold(hour=time(0))),
    (_form(rf"(the day after tomorrow|tomorrow|today|tonight)(?: ({_PART}))?"), _relative),
    (_form(rf"(?:in the|this) ({_PART})"), lambda match, _now: TimeTold(part=match[1].lower())),
    (_form(rf"(?:on )?(?:(this|next) )?({_DAY})(?: ({_PART}))?"), _weekday),
    (
        _form(rf"(?:on )?(?:the )?{_NTH}(?: of)? ({_MONTH})(?:,? (20\d\d))?"),
        lambda match, now: _dated(match[1], match[2], match[3], now),
    ),
    (
        _form(rf"(?:on )?({_MONTH}) (?:the )?{_NTH}(?:,? (20\d\d))?"),
        lambda match, now: _dated(match[2], match[1], match[3], now),
    ),
    (_form(r"(?:on |at )?(20\d\d-\d\d-\d\d)(?:[T ](\d\d:\d\d))?"), _iso),
    (_form(r"on the (\d{1,2})(?:st|nd|rd|th)"), _nth),
)
_NONE = (("hour", None), ("day", None), ("repeat", ""), ("until", None), ("span_min", 0))
_UNREAD = re.compile(
    rf"\b(?:{_DAY}s?|{_NTH} (?:of )?{_MONTH}|{_MONTH} \d|every|each|o'clock|\d+ ?[ap]\.?m|\d{{1,2}}[:.]\d\d"
    r"|noon|midnight|tomorrow|tonight|daily|weekly"
    rf"|(?:past|to) (?:\d|{'|'.join(_COUNTED[1:])})\b|\d+\s*(?:minutes?|hours?|days?|weeks?|months?)|later|soon"
    rf"|(?:next|this) (?:week|month|year|weekend)|\d{{1,2}}[/.]\d{{1,2}}\b|(?:at|half) (?:{'|'.join(_COUNTED[1:])}))",
    re.IGNORECASE,
)
