"""Define the assembled prompt, and the fencing that keeps data from being read as structure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Mapping
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from operator import itemgetter
from typing import Any

import msgspec
from msgspec import Struct

from claudius.provider import Message

Scalar = str | int | bool

_PLAIN = re.compile(r"[ !-%'-;=?-_a-~]*+")
"""Text with none of the characters that need escaping, which is most lines."""
SHOWS_NOTHING = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
HIDES = f"\u0000-\u001f\u007f-\u009f\u2028\u2029{SHOWS_NOTHING}"
"""Characters that show nothing by themselves, as a part of a pattern; before it those that are no controls."""
_ESCAPED = re.compile(f"[<>&`{HIDES}]")
UNSEEN = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What a screen obeys and does not show: controls, and what turns the direction of a text."""


@lru_cache(maxsize=4096)
def short_name(person: str) -> str:
    """Return the short name of a person in prompts: `p` and six hex digits. Pure."""
    return "p" + sha256(person.encode()).hexdigest()[:6]


class RecordKind(StrEnum):
    """The `kind` of a data record in a prompt. Internal perceptions and a process's own regions add further kinds."""

    MESSAGE = "message"
    """What somebody said: the only kind that counts as a speaker's words."""
    REACTION = "reaction"
    NEWS = "news"
    FILE = "file"
    SHOWN = "shown"
    """What a message shows besides its own words."""
    DAIMON = "daimon"
    """What a daimon said aloud."""
    SOUL_STATE = "soul_state"
    INTUITION = "intuition"
    USER_MODEL = "user_model"
    SECOND_THOUGHT = "second_thought"
    BELIEF = "belief"
    BELIEFS = "beliefs"
    PEERS = "peers"
    PSYCHE = "psyche"
    MEMORY = "memory"
    """What was remembered: all its lines in one record."""
    KNOWN = "known"
    """What those present are known by, a line each."""
    OPEN = "open"
    """What is open in the addressee's life, a line each."""
    PLANS = "plans"
    RECEIPTS = "receipts"
    """What a turn really did, as code wrote it."""
    SUMMARY = "summary"
    LEFT_OUT = "left_out"
    DRAFT = "draft"
    TOOL = "tool"
    """What came of the use of a tool."""


class Prompt(Struct, frozen=True):
    """The model's input: static `system`, append-only `history`, this turn's `tail` as the last user message."""

    system: str
    history: tuple[Message, ...]
    tail: str
    cached: int = 0
    """How many messages of `history` the previous prompt of this conversation already held."""


def valid(text: str) -> str:
    """Make a text storable: split surrogate pairs are joined; lone ones and U+0000 become U+FFFD. Pure.

    PostgreSQL cannot hold U+0000, and a text must read the same from either database.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "\ufffd")


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def data_line(obj: Mapping[str, Scalar]) -> str:
    """Encode a flat record as one JSON line that cannot form a tag, fence, heading or line break. Pure.

    `json.loads` returns the record (its strings made valid Unicode first).
    """
    try:
        line = msgspec.json.encode(obj).decode()
    except UnicodeEncodeError:
        return data_line({key: valid(value) if isinstance(value, str) else value for key, value in obj.items()})
    return line if _PLAIN.fullmatch(line) else _ESCAPED.sub(_escape, line)


def quoted(text: str) -> str:
    """Write a text as one JSON string that cannot form a tag, heading or line break. Pure."""
    return data_line({"v": text})[len('{"v":') : -1]


def nested_line(document: Any) -> str:
    """Encode a document of valid strings, of any depth, as one line that is as safe as `data_line`. Pure."""
    return _ESCAPED.sub(_escape, msgspec.json.encode(document).decode())


_BLANKS = re.compile(r"(?<=\S)[^\S\n]+")
MARK = "\N{MODIFIER LETTER CIRCUMFLEX ACCENT}"


def datamark(text: str) -> str:
    """Replace the blanks between words by a mark, so that no sentence of a third party reads like one of ours. Pure.

    Source: Hines et al., "Defending Against Indirect Prompt Injection Attacks With Spotlighting", 2024, section 3.2.
    """
    return _BLANKS.sub(MARK, valid(text).replace(MARK, ""))


def next_nonce(nonce: str) -> str:
    """Return the replacement for a nonce that occurs in the data. Pure, so that a replay derives the same one."""
    return sha256(nonce.encode()).hexdigest()[:32]


def clear_nonce(nonce: str, lines: Collection[str]) -> str:
    """Return the nonce, or the first one derived from it that occurs in none of these data lines. Pure."""
    while nonce and [line for line in lines if nonce in line]:
        nonce = next_nonce(nonce)
    return nonce


def fence(line: str, nonce: str) -> str:
    """Put one data line between two markers, which never occur in the line itself. Pure."""
    nonce = clear_nonce(nonce, (line,))
    return f"<data-{nonce}>\n{line}\n</data-{nonce}>"


MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
"""English, as the rest of a prompt is, whatever the machine's locale."""
_NUMBERS = ("a", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_MINUTE_S, _HOUR_S, _DAY_S = 60.0, 3600.0, 86_400.0
_SPANS = (
    (90.0, 0.0, ""),
    (1.5 * _HOUR_S, _MINUTE_S, "minute"),
    (1.5 * _DAY_S, _HOUR_S, "hour"),
    (13.5 * _DAY_S, _DAY_S, "day"),
    (8.5 * 7 * _DAY_S, 7 * _DAY_S, "week"),
    (23.5 * 30.44 * _DAY_S, 30.44 * _DAY_S, "month"),
    (float("inf"), 365.25 * _DAY_S, "year"),
)
"""Up to how many seconds a span is told in a unit, and how long that unit is."""


def ago(seconds: float) -> str:
    """Say in words how long ago something was: "three weeks ago". Pure."""
    _, length, unit = _SPANS[bisect_right(_SPANS, seconds, key=itemgetter(0))]
    if not unit:
        return "a moment ago"
    count = max(1, round(seconds / length))
    if count == 1:
        return f"an {unit} ago" if unit == "hour" else f"a {unit} ago"
    number = _NUMBERS[count - 1] if count <= len(_NUMBERS) else str(count)
    return f"{number} {unit}s ago"
