"""Read the values of the soul's state out of the section in which a model writes them."""

from __future__ import annotations

import re

from claudius.cognition.reply.parser import QUOTES, one_line
from claudius.cognition.reply.tags import escape_heads
from claudius.recollection import MOODS, StateKey

STATE_CHARS = {StateKey.CONVERSATION_SUMMARY: 600}
"""The longest value of a soul-state key; 200 for the others."""
_BULLET = re.compile(r"^\s*(?:[-*+•–]\s+|\d{1,2}[.)]\s+)?")
_KEYS = {key.value.casefold(): key for key in StateKey}


def read_state(text: str) -> dict[str, str]:
    """Read `key: value` lines into soul-state keys, in the order of `StateKey`. Pure.

    The last line of a key wins; an empty value means the default; unknown keys and moods outside the five are dropped;
    values are one line, cut at their cap.
    """
    found: dict[StateKey, str] = {}
    for line in text.splitlines():
        written, colon, value = _BULLET.sub("", line).partition(":")
        key = _KEYS.get(written.strip().strip(QUOTES).casefold())
        if not colon or key is None:
            continue
        value = one_line(value, STATE_CHARS.get(key, 200)).strip("* ")
        if len(value) > 1 and value[0] == value[-1] and value[0] in QUOTES:
            value = value[1:-1].strip()
        if key is StateKey.EMOTIONAL_STATE:
            value = value.casefold().removesuffix(".")
            if value and value not in MOODS:
                continue
        found[key] = escape_heads(value, limit=STATE_CHARS.get(key, 200))
    return {key.value: found[key] for key in StateKey if key in found}
