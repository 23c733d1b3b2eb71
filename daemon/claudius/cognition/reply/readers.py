"""Read the values of sections: truth values, verbs, state lines, notes. Pure; an unclear value counts as no.

Source: the pipeline design, sections 1, 7 and 9.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from claudius.cognition.reply.tags import NAMES, UNSEEN, Names, escape_heads
from claudius.recollection import MOODS, StateKey

NOTE_CHARS = 200
STATE_CHARS = {StateKey.CONVERSATION_SUMMARY: 600}
"""The longest value of a soul-state key; 200 for the others."""

_YES = frozenset({"true", "yes", "1"})
_NO = frozenset({"false", "no", "0"})
_QUOTES = "\"'`*“”‘’«»"
_WORD = re.compile(r"\w+")
_BULLET = re.compile(r"^\s*(?:[-*+•–]\s+|\d{1,2}[.)]\s+)?")
_KEYS = {key.value.casefold(): key for key in StateKey}


def truth(value: str) -> bool | None:
    """Read a yes or no; None if it is neither. Pure."""
    whole = value.strip().casefold().strip(_QUOTES).removesuffix(".").strip(_QUOTES).strip()
    first = _WORD.match(whole)
    for word in (whole, first[0] if first else ""):
        if word in _YES:
            return True
        if word in _NO:
            return False
    return None


def read_bool(values: Iterable[str]) -> bool:
    """Read a check that may appear more than once: true only if every readable value is true. Pure.

    Unreadable values are ignored; no readable value, or two that disagree, gives false.
    """
    readable = {said for value in values if (said := truth(value)) is not None}
    return readable == {True}


def read_verb(written: str | None, allowed: Collection[str], default: str) -> tuple[str, bool]:
    """Look up a written verb. Returns it or the default, and whether it was invalid. Pure.

    A missing verb is not invalid.
    """
    if written is None:
        return default, False
    verb = " ".join(written.lower().split())
    return (verb, False) if verb in allowed else (default, True)


def one_line(text: str, limit: int) -> str:
    """Return a text as one line of at most `limit` characters without invisible ones. Pure."""
    return " ".join(UNSEEN.sub("", text).split())[:limit].rstrip()


def clean_note(text: str, names: Names = NAMES) -> str:
    """Return a change note as stored: one line of at most 200 characters, with our tags escaped. Pure."""
    return escape_heads(one_line(text, NOTE_CHARS), names, limit=NOTE_CHARS)


def clean_text(text: str, names: Names = NAMES) -> str:
    """Return a private text as stored: no invisible characters, our tags escaped with `&lt;`, trimmed. Pure."""
    return escape_heads(UNSEEN.sub("", text), names).strip()


def read_state(text: str, names: Names = NAMES) -> dict[str, str]:
    """Read `key: value` lines into soul-state keys, in the order of `StateKey`. Pure.

    The last line of a key wins; an empty value means the default; unknown keys and moods outside the five are dropped;
    values are one line, cut at their cap.
    """
    found: dict[StateKey, str] = {}
    for line in text.splitlines():
        written, colon, value = _BULLET.sub("", line).partition(":")
        key = _KEYS.get(written.strip().strip(_QUOTES).casefold())
        if not colon or key is None:
            continue
        value = one_line(value, STATE_CHARS.get(key, 200)).strip("* ")
        if len(value) > 1 and value[0] == value[-1] and value[0] in _QUOTES:
            value = value[1:-1].strip()
        if key is StateKey.EMOTIONAL_STATE:
            value = value.casefold().removesuffix(".")
            if value and value not in MOODS:
                continue
        found[key] = escape_heads(value, names, limit=STATE_CHARS.get(key, 200))
    return {key.value: found[key] for key in StateKey if key in found}
