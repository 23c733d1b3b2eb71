"""Find promises in a text by rule: what the speaker will do, and by when. Without a time there is none. Pure.

Source: the cortex design, section 7.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from functools import lru_cache, partial

from msgspec import Struct

from claudius.psyche.classify import sentences
from claudius.psyche.times import due, names_date

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
_HANDS_OVER = re.compile(
    r"\b(?:i|we)(?:\s+will|'ll|’ll|(?:\s+am|\s+are|'m|’m|'re|’re)\s+going\s+to)\s+"
    r"(?:(?:also|then|just|definitely|certainly|gladly|happily|still)\s+)?"
    r"(?:(?:send|deliver|bring|e?mail|forward|upload|post|remind|ping|nudge|wake)\b(?!\s+(?:\w+\s+)?up\b)"
    r"|have\s+(?:\w+\s+){1,3}(?:ready|done|for\s+you)\b)",
    re.IGNORECASE,
)
_WILL = ("will", "'ll", "’ll", "can", "going", "let")
"""Every promise contains one of these; searching for them costs a hundredth of the full patterns."""
_OFFERS = re.compile(r"\?\W*$|\b(?:if|unless|whether)\b", re.IGNORECASE)
_DELIVERS = re.compile(
    r"\b(?:sent|done|finished|attached|delivered|pushed|uploaded|here(?:\s+(?:it|they)\s+(?:is|are)|['’]s))\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+")
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
_NO_SUBJECT_TEXT = (
    "remind reminder nudge ping poke wake alarm timer need set don forget half quarter past morning noon clock min "
    "month months four five six seven eight nine ten eleven twelve erinnere erinner erinnern erinnert erinnerung weck "
    "wecke wecker vergessen lass stell kannst könntest würdest bitte brauche der die das den dem des einer eine einem "
    "einen ans zum zur für mit von vor nach und oder nicht ich mir mich uns daran dass heute morgen abend früh mittag "
    "uhr stunde stunden minute minuten tag tagen woche wochen monat halben halbe viertel viertelstunde nächsten "
    "montag dienstag mittwoch donnerstag freitag samstag sonntag"
)


class Undertaking(Struct, frozen=True, kw_only=True):
    """One promise as it was said."""

    what: str
    due_at: datetime
    grace_s: float
    stems: tuple[str, ...]
    is_offer: bool = False
    """It is a question or depends on a condition, so nobody can count on it yet."""
    is_delivery: bool = False
    """Something is to be handed over or said, by an hour or date that is named: one may rely on it to come."""


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
            Undertaking(
                what=what,
                due_at=due_at,
                grace_s=grace_s(at, due_at),
                stems=stems(what),
                is_offer=offers,
                is_delivery=not offers and bool(_HANDS_OVER.search(sentence)) and names_date(sentence),
            )
        )
    return tuple(found)


def grace_s(made_at: datetime, due_at: datetime) -> float:
    """Return the grace period after which an overdue promise is broken, in seconds. Pure."""
    return max(LEAST_GRACE_S, min(MOST_GRACE_S, (due_at - made_at).total_seconds() / 4))


def delivers(text: str, attachments: int = 0) -> bool:
    """Return whether a message delivers something: an attachment, a link, or words that say so. Pure."""
    return attachments > 0 or "://" in text or bool(_DELIVERS.search(text))


_stem = lru_cache(maxsize=4096)(partial(_ENDING.sub, ""))


_NO_SUBJECT = _FUNCTION_WORDS | {_stem(word) for word in _NO_SUBJECT_TEXT.split()}


def matter(text: str) -> str:
    """Return the words that tell what a promise or a reminder is about, not when or how it was asked for. Pure."""
    return " ".join([word for word in _WORD.findall(text) if _stem(word.lower()) not in _NO_SUBJECT])


def stems(text: str) -> tuple[str, ...]:
    """Return the stems of a text's content words, in order. Pure."""
    words = dict.fromkeys(_STEM_WORD.findall(text[:ABOUT_CHARS].lower()))
    return tuple(dict.fromkeys([_stem(word) for word in words if word not in _FUNCTION_WORDS]))[:STEMS]
