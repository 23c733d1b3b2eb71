"""Read the instant that a sentence names, in English or German, and put an instant into words in them. Pure.

`times.toml` puts a sentence into plain English; the phrase in it that names a day or a span is read by dateparser, the
hour by rule. dateparser is never given a whole sentence: there it finds dates in "may", "sat" and "die", and reads
"an hour and a half" as an hour. It is loaded with the first such phrase (0.2 s, 20 MB).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

SENTENCE_CHARS = 400
"""Only the start of a sentence is read."""
_COUNTED = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_HOURS = {word: n for n, word in enumerate(_COUNTED, 1)}
_HOUR = rf"(?:\d{{1,2}}|{'|'.join(_COUNTED)})"
_NUMBER = (
    rf"(?:\d{{1,4}}(?:\.\d{{1,2}})?|an?|{'|'.join(_COUNTED)}|fifteen|ninety|sixty"
    rf"|(?:twenty|thirty|forty|fifty)(?:[- ](?:{'|'.join(_COUNTED[:9])}))?)"
)
_UNIT = r"(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|h|days?|weeks?|months?|years?)"
_SPAN = re.compile(
    rf"\b(?:in|within)\s+(?:the\s+next\s+)?({_NUMBER}\s*{_UNIT}(?:\s*,?\s*(?:and\s+)?{_NUMBER}\s*{_UNIT})*)\b"
)
_IN_DAYS = re.compile(r"\b(?:days?|weeks?|months?|years?)\b")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = re.compile(rf"\b(?:(by|on|this|next|until|before)\s+)?({'|'.join(_DAYS)})\b")
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)"
)
_DATE = re.compile(  # "march 3" and "may 3" count after a preposition, or as ordinals
    rf"\b(\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH}\b(?:,?\s+20\d\d\b)?"
    rf"|(?:(?<=\bon )|(?<=\bby )|(?=\w+ \d+(?:st|nd|rd|th)\b)|(?!may|mar)){_MONTH}\s+\d{{1,2}}(?:st|nd|rd|th)?\b"
    rf"(?:,?\s+20\d\d\b)?|20\d\d-\d\d-\d\d|(?<=\bon the )\d{{1,2}}(?:st|nd|rd|th)"
    rf"|(?<=\bon )\d{{1,2}}\.\d{{1,2}}\.(?:20\d\d)?)(?!:)"
)
_DAY_AFTER = re.compile(r"\bday\s+after\s+tomorrow\b")
_TOMORROW = re.compile(r"\btomorrow\b")
_TODAY = re.compile(r"\b(?:today|tonight)\b")
_NEXT_WEEK = re.compile(r"\bnext\s+week\b")
_DAYS_END = re.compile(r"\b(?:end\s+of\s+(?:the\s+)?day|eod)\b")
_NOON, _MIDNIGHT = re.compile(r"\bnoon\b"), re.compile(r"\bmidnight\b")
_CLOCK = re.compile(r"(?<![\d:.])([01]?\d|2[0-3]):([0-5]\d)\b")
_HALF_DAY = re.compile(r"\b(0?[1-9]|1[0-2])(?:[:.]([0-5]\d))?\s*([ap])\.?m\b")
_PAST_MINUTES = {"five": 5, "ten": 10, "quarter": 15, "twenty": 20, "twenty-five": 25, "half": 30}
_PAST = re.compile(
    rf"\b({'|'.join(sorted(_PAST_MINUTES, key=len, reverse=True))}|(?<=\bat )\d{{1,2}})(?:\s+minutes)?\s+(past|to)"
    rf"\s+({_HOUR})\b(?!\s*{_UNIT}\b)"
)
_AT = re.compile(
    rf"\b(?:at|by|before|until|around)\s+({_HOUR})"
    r"(?:\s*o'?clock\b|(?=\s*(?:$|[.,;:!?)](?!\d)|(?:sharp|tomorrow|tonight|today|and|or|to|in\s+the|on|this|next"
    r"|about|that|please|pls|because|so|if|but|with|dass|daran|an|ans|am|im|zu|und|oder|bitte|wegen|mit|den|die|das)"
    r"\b)))"
)
_FORENOON = re.compile(r"\bmorning\b")
_AFTERNOON = re.compile(r"\b(?:afternoon|evening|tonight|night)\b")
_PARTS = (
    (re.compile(r"\btonight\b"), time(20), time(22)),
    (re.compile(r"\bevening\b"), time(19), time(22)),
    (re.compile(r"\bafternoon\b"), time(15), time(18)),
    (re.compile(r"\bmorning\b"), time(9), time(12)),
)
"""A part of the day, with its start and its end."""
FIRST_HOUR, LAST_HOUR = 7, 22
"""An hour without a.m. or p.m. is taken to be between these."""
DAYS_START, DAYS_END, NOON = time(9), time(18), time(12)
_GERMAN = re.compile(
    r"\b(?:ich|du|sie|wir|mich|mir|uns|dich|dir|euch|ihnen|uhr|heute|nicht|erinner\w*|eine?\w?|bitte|und)\b",
    re.IGNORECASE,
)
_EVERY = re.compile(r"\b(?:every|each|daily|weekly|jede[nrsm]?|täglich|wöchentlich)\b", re.IGNORECASE)


def due(sentence: str, at: datetime, zone: tzinfo = UTC, *, is_asked: bool = False) -> datetime | None:
    """Return the instant that a sentence said at the instant `at` names, UTC; None if it names none. Pure.

    A promise is due at the end of the day, week or evening that it names. What is asked for (`is_asked`) comes at its
    start, and may name a weekday without a preposition.
    """
    text = _reworded(sentence)
    here = at.astimezone(zone)
    if span := _SPAN.search(text):
        if not _IN_DAYS.search(span[1]):
            found = _read(f"in {span[1]}", at.astimezone(UTC))
            return found.replace(tzinfo=UTC) if found else None
        day = _read(f"in {span[1]}", here)
        hour = _hour(text, here, day, is_asked=is_asked)
        return datetime.combine(day, hour or day.time(), tzinfo=zone).astimezone(UTC) if day else None
    day = _day(text, here, is_asked=is_asked)
    hour = _hour(text, here, day, is_asked=is_asked)
    if day is None and hour is None:
        return None
    is_today = day is not None and day.date() == here.date()
    whole = DAYS_START if is_asked and not is_today else DAYS_END
    moment = datetime.combine((day or here).date(), hour or whole, tzinfo=zone)
    if day is None and moment <= here:
        moment += timedelta(days=1)
    elif is_today and moment <= here:
        moment = datetime.combine(here.date(), time(23, 59), tzinfo=zone)
    return moment.astimezone(UTC)


def names_instant(sentence: str) -> bool:
    """Return whether a sentence names an hour or a time span, and not only a day. Pure."""
    text = _reworded(sentence)
    return bool(_SPAN.search(text)) or _names_hour(text)


def names_hour(sentence: str) -> bool:
    """Return whether a sentence names an hour. Pure."""
    return _names_hour(_reworded(sentence))


def names_date(sentence: str) -> bool:
    """Return whether a sentence names an hour, a date or a weekday; "tomorrow", "tonight" and spans are none. Pure."""
    text = _reworded(sentence)
    weekday = _WEEKDAY.search(text)
    return bool(_names_hour(text) or _DATE.search(text) or (weekday and weekday[1]))


def repeats(sentence: str) -> bool:
    """Return whether a sentence asks for something again and again ("every Monday"). Pure."""
    return bool(_EVERY.search(sentence))


def said_as(at: datetime, now: datetime, zone: tzinfo, language: str = "english") -> str:
    """Return an instant as a language says it: `at 20:44`, `tomorrow at 09:00`, `on Friday, 9 January, at …`. Pure."""
    words = _words()["says"][language]
    there, here = at.astimezone(zone), now.astimezone(zone)
    days = (there.date() - here.date()).days
    form = "today" if days == 0 else "tomorrow" if days == 1 else "later" if there.year == here.year else "far"
    is_soon = (at - now).total_seconds() < 120 and there.second
    return Template(words[form]).substitute(
        clock=f"{there:%H:%M:%S}" if is_soon else f"{there:%H:%M}",
        weekday=words["weekdays"][there.weekday()],
        day=there.day,
        month=words["months"][there.month - 1],
        year=there.year,
    )


def language_of(sentence: str) -> str:
    """Return the language that a sentence about a time is read in, a table of `times.toml`. Pure."""
    return "german" if _GERMAN.search(sentence) else "english"


@cache
def _words() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name("times.toml").read_text("utf-8"))


@cache
def _rewordings() -> Mapping[str, tuple[tuple[re.Pattern[str], str], ...]]:
    return {
        language: tuple([(re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])"), new) for pattern, new in pairs])
        for language, pairs in _words()["words"].items()
    }


def _reworded(sentence: str) -> str:
    """Return a sentence with its words for times in plain English. Pure."""
    text = " ".join(sentence[:SENTENCE_CHARS].lower().replace("’", "'").split())
    for pattern, new in _rewordings()[language_of(text)]:
        text = pattern.sub(new, text)
    return text


def _read(phrase: str, here: datetime) -> datetime | None:
    """Return the local day and time that a phrase without an hour means. Pure."""
    from dateparser.date import DateDataParser  # noqa: PLC0415 - 0.2 s and 20 MB, only where a time is named

    settings = {"PREFER_DATES_FROM": "future", "DATE_ORDER": "DMY", "RELATIVE_BASE": here.replace(tzinfo=None)}
    found: datetime | None = DateDataParser(languages=["en"], settings=settings).get_date_data(phrase).date_obj
    return found


def _names_hour(text: str) -> bool:
    return any(found.search(text) for found in (_HALF_DAY, _CLOCK, _PAST, _AT, _NOON, _MIDNIGHT))


def _hour(text: str, here: datetime, day: datetime | None, *, is_asked: bool) -> time | None:
    after = here.time() if day is None or day.date() == here.date() else time.min
    if half := _HALF_DAY.search(text):
        return time(int(half[1]) % 12 + (12 if half[3] == "p" else 0), int(half[2] or 0))
    if clock := _CLOCK.search(text):
        is_late = _AFTERNOON.search(text) and int(clock[1]) < NOON.hour
        return time(int(clock[1]) + (12 if is_late else 0), int(clock[2]))
    if (near := _PAST.search(text)) and (hour := _half_named(near[3], text, after)):
        minutes = _PAST_MINUTES.get(near[1]) or int(near[1])
        moved = datetime.combine(here.date(), hour) + timedelta(minutes=minutes if near[2] == "past" else -minutes)
        return moved.time()
    if named := _AT.search(text):
        return _half_named(named[1], text, after)
    return _part(text, is_asked=is_asked) if is_asked or day else _noon(text)


def _part(text: str, *, is_asked: bool) -> time | None:
    """Return when the part of a day that a text names starts, or for a promise ends. Pure."""
    part = next(((start, end) for found, start, end in _PARTS if found.search(text)), None)
    ends = DAYS_END if _DAYS_END.search(text) and not _TOMORROW.search(text) else None
    return _noon(text) or (part[0 if is_asked else 1] if part else ends)


def _noon(text: str) -> time | None:
    return NOON if _NOON.search(text) else time.min if _MIDNIGHT.search(text) else None


def _half_named(word: str, text: str, after: time) -> time | None:
    """Return the time that an hour means: in the named half of the day, else the next one in daytime. Pure."""
    hour = _HOURS.get(word) or int(word)
    if not 0 < hour <= NOON.hour:
        return time(hour % 24) if hour <= 24 else None
    early, late = time(hour % 12), time(hour % 12 + 12)
    if _AFTERNOON.search(text):
        return late
    if _FORENOON.search(text):
        return early
    by_day = [one for one in (early, late) if FIRST_HOUR <= one.hour <= LAST_HOUR]
    return next((one for one in by_day if one > after), by_day[0])


def _day(text: str, here: datetime, *, is_asked: bool) -> datetime | None:
    if _DAY_AFTER.search(text):
        return here + timedelta(days=2)
    if _TOMORROW.search(text):
        return here + timedelta(days=1)
    if date := _DATE.search(text):
        return _read(date[1], here)
    weekday = _WEEKDAY.search(text)
    if weekday and (weekday[1] or is_asked):
        ahead = (_DAYS.index(weekday[2]) - here.weekday()) % 7 or 7
        is_this_week = here.weekday() + ahead < len(_DAYS)
        is_next = weekday[1] == "next" or _NEXT_WEEK.search(text)
        return here + timedelta(days=ahead + (7 if is_next and is_this_week else 0))
    if _NEXT_WEEK.search(text):
        return here + timedelta(days=7 - here.weekday() + (0 if is_asked else 4))
    return here if _TODAY.search(text) or _DAYS_END.search(text) else None
