"""Read the values of sections: truth, verbs, state lines, notes. Every reader is pure and prefers no to a guess.

Source: the pipeline design, sections 1, 7 and 9.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from claudius.cognition.reply.tags import NAMES, UNSEEN, Names, escape_heads
from claudius.recollection import MOODS, StateKey

NOTE_CHARS = 200
STATE_CHARS = {StateKey.CONVERSATION_SUMMARY: 600}
"""Longest value of a soul-state key; 200 for the others."""

_YES = frozenset({"true", "yes", "1"})
_NO = frozenset({"false", "no", "0"})
_QUOTES = "\"'`*“”‘’«»"
_WORD = re.compile(r"\w+")
_BULLET = re.compile(r"^\s*(?:[-*+•–]\s+|\d{1,2}[.)]\s+)?")
_KEYS = {key.value.casefold(): key for key in StateKey}


def truth(value: str) -> bool | None:
    """Read a yes or a no; None where it is neither. Pure."""
    whole = value.strip().casefold().strip(_QUOTES).removesuffix(".").strip(_QUOTES).strip()
    first = _WORD.match(whole)
    for word in (whole, first[0] if first else ""):
        if word in _YES:
            return True
        if word in _NO:
            return False
    return None


def read_bool(values: Iterable[str]) -> bool:
    """Read a check that may have come more than once: true only where every readable value says so. Pure.

    Unreadable values count for nothing; none that is readable, or two that disagree, is false.
    """
    readable = {said for value in values if (said := truth(value)) is not None}
    return readable == {True}


def read_verb(written: str | None, allowed: Collection[str], default: str) -> tuple[str, bool]:
    """Look a written verb up in the allowed ones; return it, or the default, and whether it was a bad one. Pure.

    No verb is not a bad verb.
    """
    if written is None:
        return default, False
    verb = " ".join(written.lower().split())
    return (verb, False) if verb in allowed else (default, True)


def one_line(text: str, limit: int) -> str:
    """Return a text as one line of at most `limit` characters, nothing invisible in it. Pure."""
    return " ".join(UNSEEN.sub("", text).split())[:limit].rstrip()


def clean_note(text: str, names: Names = NAMES) -> str:
    """Return a change note as it is stored: one line of at most 200 characters, no heads of ours. Pure."""
    return escape_heads(one_line(text, NOTE_CHARS), names, limit=NOTE_CHARS)


def clean_text(text: str, names: Names = NAMES) -> str:
    """Return a private text as it is stored: nothing invisible, heads of ours as `&lt;`, trimmed. Pure."""
    return escape_heads(UNSEEN.sub("", text), names).strip()


def read_state(text: str, names: Names = NAMES) -> dict[str, str]:
    """Read `key: value` lines into soul-state keys, in the order of `StateKey`. Pure.

    A key's last line wins; an empty value stands for the default; unknown keys, and moods that are none of the five,
    are dropped; values are one line, cut at their cap.
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
