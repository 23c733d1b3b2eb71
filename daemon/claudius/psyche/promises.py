"""Find promises in a text by rule: what the speaker will do, and by when. Without a time there is none. Pure.

Source: the cortex design, section 7.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import lru_cache, partial

from msgspec import Struct

from claudius.psyche.classify import sentences

LEAST_GRACE_S, MOST_GRACE_S = 30 * 60.0, 24 * 3600.0
WHAT_CHARS = 120
STEMS = 12
ABOUT_CHARS = 500
"""How much of a text is read for its stems."""

_FIRST_PERSON = re.compile(
    r"\b(?:(?:i|we)(?:\s+will|'ll|’ll|\s+can|(?:\s+am|\s+are|'m|’m|'re|’re)\s+going\s+to)|let\s+me)\s+"
    r"(?!not\b|never\b|know\b)(?:(?:also|then|just|definitely|certainly|gladly|happily|still)\s+)?[a-z]{2,}",
    re.IGNORECASE,
)
_WILL = ("will", "'ll", "’ll", "can", "going", "let")
"""Every promise contains one of these; searching for them costs a hundredth of the full patterns."""
_COUNTED = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NUMBERS = {word: n for n, word in enumerate(_COUNTED, 1)} | {"a": 1, "an": 1}
_HOURS = "|".join(word for word in _NUMBERS if len(word) > 2)
_UNITS_S = {"second": 1, "sec": 1, "minute": 60, "min": 60, "hour": 3600, "hr": 3600, "day": 86400, "week": 604800}
_SPAN = re.compile(
    rf"\b(?:in|within)\s+(?:the\s+next\s+)?(\d{{1,4}}|{'|'.join(_NUMBERS)})\s*({'|'.join(_UNITS_S)})s?\b",
    re.IGNORECASE,
)
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_WEEKDAY = re.compile(rf"\b(?:by|on|this|next|until|before)\s+({'|'.join(_DAYS)})\b", re.IGNORECASE)
_TONIGHT = re.compile(r"\btonight\b", re.IGNORECASE)
_TOMORROW = re.compile(r"\btomorrow\b", re.IGNORECASE)
_NOON = re.compile(r"\bnoon\b", re.IGNORECASE)
_DAYS_END = re.compile(r"\b(?:end\s+of\s+(?:the\s+)?day|eod)\b", re.IGNORECASE)
_NEXT_WEEK = re.compile(r"\bnext\s+week\b", re.IGNORECASE)
_CLOCK = re.compile(r"\b(?:at|by|before|until|around)?\s*([01]?\d|2[0-3]):([0-5]\d)\b", re.IGNORECASE)
_HALF_DAY = re.compile(r"\b(0?[1-9]|1[0-2])(?::([0-5]\d))?\s*([ap])\.?m\b", re.IGNORECASE)

_AT = re.compile(
    rf"\b(?:at|by|before|until|around)\s+(\d{{1,2}}|{_HOURS})(?:\s*o['’]?clock)?"
    r"(?=\s*(?:$|[.,;!?)](?!\d)|(?:sharp|tomorrow|tonight|today|and|or|to|in\s+the|on|this|next)\b))",
    re.IGNORECASE,
)
_FORENOON = re.compile(r"\bmorning\b", re.IGNORECASE)
_AFTERNOON = re.compile(r"\b(?:afternoon|evening|tonight|night)\b", re.IGNORECASE)
_OFFERS = re.compile(r"\?\W*$|\b(?:if|unless|whether)\b", re.IGNORECASE)
FIRST_HOUR, LAST_HOUR = 7, 22
"""An hour without a.m. or p.m. is taken to be between these."""
EVENING, DAYS_END, NOON = time(22), time(18), time(12)

_DELIVERS = re.compile(
    r"\b(?:sent|done|finished|attached|delivered|pushed|uploaded|here(?:\s+(?:it|they)\s+(?:is|are)|['’]s))\b",
    re.IGNORECASE,
)
_STEM_WORD = re.compile(r"[^\W\d_]{3,}")
_ENDING = re.compile(r"(?<=[^\W\d_]{3})(?:ings|ing|edly|ed|ies|es|s|ly)$")
_FUNCTION_TEXT = (
    "the and for you your our are was were will with that this have has had not but can let going within "
    "from they them their his her its out about into over then than when what which who whom how why all "
    "any some just also here there now today tomorrow tonight noon end day days hour hours minute minutes "
    "week weeks next send give get make take put one two three monday tuesday wednesday thursday friday "
    "saturday sunday please yes okay sure well would could should shall may might must been being does "
    "did done sent"
)
_FUNCTION_WORDS = frozenset(_FUNCTION_TEXT.split())


class Undertaking(Struct, frozen=True, kw_only=True):
    """One promise as it was said."""

    what: str
    due_at: datetime
    grace_s: float
    stems: tuple[str, ...]
    is_offer: bool = False
    """It is a question or depends on a condition, so nobody can count on it yet."""


def promises(text: str, at: datetime, zone: tzinfo = UTC) -> tuple[Undertaking, ...]:
    """Return the promises in a text said at the instant `at`; `zone` is the speaker's time zone. Pure."""
    found: list[Undertaking] = []
    lowered = text.lower()
    if not any(map(lowered.__contains__, _WILL)):
        return ()
    for sentence in sentences(text):
        will = _FIRST_PERSON.search(sentence)
        due_at = due(sentence, at, zone) if will else None
        if due_at is None or due_at <= at:
            continue
        what = " ".join(sentence.split())[:WHAT_CHARS]
        offers = bool(_OFFERS.search(sentence))
        found.append(
            Undertaking(what=what, due_at=due_at, grace_s=grace_s(at, due_at), stems=stems(what), is_offer=offers)
        )
    return tuple(found)


def grace_s(made_at: datetime, due_at: datetime) -> float:
    """Return the grace period after which an overdue promise is broken, in seconds. Pure."""
    return max(LEAST_GRACE_S, min(MOST_GRACE_S, (due_at - made_at).total_seconds() / 4))


def names_instant(sentence: str) -> bool:
    """Return whether a sentence names an hour or a time span, and not only a day. Pure."""
    return any(found.search(sentence) for found in (_SPAN, _HALF_DAY, _CLOCK, _AT, _NOON))


def due(sentence: str, at: datetime, zone: tzinfo = UTC) -> datetime | None:
    """Return the instant by which a sentence promises something; None if it names none. Pure."""
    if span := _SPAN.search(sentence):
        count = _NUMBERS.get(span[1].lower()) or int(span[1])
        return at + timedelta(seconds=count * _UNITS_S[span[2].lower()])
    here = at.astimezone(zone)
    day = _day(sentence, here)
    hour = _hour(sentence, here, day or here)
    if day is None and hour is None:
        return None
    moment = datetime.combine((day or here).date(), hour or DAYS_END, tzinfo=zone)
    if day is None and moment <= here:
        moment += timedelta(days=1)
    elif moment <= here:
        moment = datetime.combine(here.date(), time(23, 59), tzinfo=zone)
    return moment.astimezone(UTC)


def _hour(sentence: str, here: datetime, day: datetime) -> time | None:
    if half := _HALF_DAY.search(sentence):
        return time(int(half[1]) % 12 + (12 if half[3].lower() == "p" else 0), int(half[2] or 0))
    if clock := _CLOCK.search(sentence):
        return time(int(clock[1]), int(clock[2]))
    if named := _AT.search(sentence):
        is_today = day.date() == here.date()
        return _half_named(named[1].lower(), sentence, here.time() if is_today else time.min)
    if _NOON.search(sentence):
        return NOON
    if _TONIGHT.search(sentence):
        return EVENING
    return DAYS_END if _DAYS_END.search(sentence) and not _TOMORROW.search(sentence) else None


def _half_named(word: str, sentence: str, after: time) -> time | None:
    """Return the time that an hour means: in the named half of the day, else the next one in daytime. Pure."""
    hour = _NUMBERS.get(word) or int(word)
    if not 0 < hour <= NOON.hour:
        return time(hour % 24) if hour <= 24 else None
    early, late = time(hour % 12), time(hour % 12 + 12)
    if _AFTERNOON.search(sentence):
        return late
    if _FORENOON.search(sentence):
        return early
    by_day = [one for one in (early, late) if FIRST_HOUR <= one.hour <= LAST_HOUR]
    return next((one for one in by_day if one > after), by_day[0])


def _day(sentence: str, here: datetime) -> datetime | None:
    if _TOMORROW.search(sentence):
        return here + timedelta(days=1)
    if weekday := _WEEKDAY.search(sentence):
        ahead = (_DAYS.index(weekday[1].lower()) - here.weekday()) % 7
        return here + timedelta(days=ahead or 7)
    if _NEXT_WEEK.search(sentence):
        return here + timedelta(days=7 - here.weekday() + 4)
    return here if _TONIGHT.search(sentence) or _DAYS_END.search(sentence) else None


def delivers(text: str, attachments: int = 0) -> bool:
    """Return whether a message delivers something: an attachment, a link, or words that say so. Pure."""
    return attachments > 0 or "://" in text or bool(_DELIVERS.search(text))


_stem = lru_cache(maxsize=4096)(partial(_ENDING.sub, ""))


def stems(text: str) -> tuple[str, ...]:
    """Return the stems of a text's content words, in order. Pure."""
    words = dict.fromkeys(_STEM_WORD.findall(text[:ABOUT_CHARS].lower()))
    return tuple(dict.fromkeys([_stem(word) for word in words if word not in _FUNCTION_WORDS]))[:STEMS]
