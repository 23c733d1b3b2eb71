"""Take out of the soul's words each line that looks like a receipt: only code writes those. Pure.

Source: the design of acts, section 10, "Receipts".
"""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from claudius.cognition.reply.parser import Parsed
from claudius.cognition.reply.tags import UNSEEN
from claudius.receipts import CHANGED, DROPPED, PLANNED, ZONE

FORGED: Final = "forged:receipt"
_NAMED: Final = (":alarm_clock:", ":heavy_multiplication_x:")
"""What Slack shows as two of the signs."""
_SIGNS = (PLANNED, DROPPED, CHANGED, ZONE, *_NAMED)
_BREAK = re.compile("([\n\r\x0b\x0c\x85\u2028\u2029])")
_LEAD = re.compile(r"[\s>*_~`#|•.()\[\]\-–—]*")
_ID = re.compile(r"(?<![^\W_])[pfm]\d{1,6}(?![^\W_])", re.IGNORECASE)


def _begins(line: str) -> str:
    """Return a line as it is seen, without what only dresses its beginning."""
    plain = UNSEEN.sub("", line)
    return plain[_LEAD.match(plain).end() :]  # type: ignore[union-attr]  # it matches nothing as well


def _is_forged(line: str) -> bool:
    begun = _begins(line)
    return begun.startswith(_SIGNS) and _ID.search(begun) is not None


def _may_be_forged(line: str) -> bool:
    """Return whether the beginning of a line may still become a forged receipt."""
    begun = _begins(line)
    return not begun or begun.startswith(_SIGNS) or any(one.startswith(begun) for one in _NAMED)


def unforged(text: str) -> str:
    """Return a text without its lines that begin as a receipt does and hold an id. Pure."""
    if text.isascii() and ":" not in text:  # no sign of any spelling
        return text
    parts = _BREAK.split(text)
    lines = list(zip(parts[::2], [*parts[1::2], ""], strict=True))
    own = [line + end for line, end in lines if not _is_forged(line)]
    return text if len(own) == len(lines) else "".join(own).strip()


def without_forged(reply: Parsed) -> Parsed:
    """Return a reply whose words hold no forged receipts, with a flag if they did. Pure."""
    dialogues = tuple([replace(one, text=unforged(one.text)) for one in reply.dialogues])
    raw = reply.raw if reply.dialogues or reply.sections else unforged(reply.raw)
    if dialogues == reply.dialogues and raw == reply.raw:
        return reply
    return replace(reply, dialogues=dialogues, raw=raw, flags=(*reply.flags, FORGED))


class Unforged:
    """The streaming form: what it has let through is always a prefix of `unforged` of the whole text."""

    def __init__(self) -> None:
        self._line = self._blank = ""
        self._is_open = self._has_begun = False
        """The unfinished line is no receipt, so the rest of it is shown as it comes; something was shown before."""

    def take(self, text: str) -> str:
        """Take the next piece of text and return what more may be shown."""
        parts = _BREAK.split(self._line + text)
        said = self._blank
        for line, end in zip(parts[:-1:2], parts[1::2], strict=True):
            said += line + end if self._is_open or not _is_forged(line) else ""
            self._is_open = False
        self._line = parts[-1]
        self._is_open = self._is_open or not _may_be_forged(self._line)
        if self._is_open:
            said, self._line = said + self._line, ""
        shown = said.rstrip()
        self._blank = said[len(shown) :]
        shown = shown if self._has_begun else shown.lstrip()
        self._has_begun = self._has_begun or bool(shown)
        return shown
