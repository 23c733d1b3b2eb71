"""Split a long reply into posts at natural pauses, closing and reopening code fences. Pure.

Source: the chat design, section 5.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from enum import IntEnum
from itertools import accumulate

from msgspec import Struct

from claudius.cognition.output.markup import Fence, Marks, mark

MOST_PARTS = 8
CUT_OFF = "…"
"""Marks the end of a reply that was longer than its posts allow."""


class Pause(IntEnum):
    """The kinds of places where a text may be cut, best last."""

    GRAPHEME = 0
    BLANK = 1
    SENTENCE = 2
    CODE_LINE = 3
    LINE = 4
    PARAGRAPH = 5


class Piece(Struct, frozen=True):
    """The text shown by one post, and the fence lines added to it."""

    raw: str
    opens: str = ""
    closes: str = ""

    @property
    def shown(self) -> str:
        """The text of the post."""
        return self.opens + self.raw + self.closes


def units(text: str) -> int:
    """Return a text's length in UTF-16 units, as chat networks count. Pure."""
    return len(text) + sum(char > "\uffff" for char in text)


def split(text: str, limit: int) -> tuple[str, ...]:
    """Split a text into posts of at most `limit` UTF-16 units each, in order; none is blank. Pure.

    Apart from added fence lines, the posts joined give the text; runs of blanks that fill a whole post are dropped.
    """
    return tuple(piece.shown for piece in pieces(text, limit))


def in_posts(text: str, limit: int, most: int = MOST_PARTS) -> tuple[str, tuple[str, ...]]:
    """Split a text into at most `most` posts. Returns the text that they show, and the posts. Pure.

    A text that is too long is cut and ends in "…".
    """
    found = pieces(text, limit)
    if len(found) <= most:
        return text, tuple(piece.shown for piece in found)
    kept = "".join(piece.raw for piece in found[:most])
    while True:
        kept = kept[: kept.rfind(" ", 0, -1)] if " " in kept[-limit // 4 : -1] else kept[: -max(1, limit // 8)]
        said = kept.rstrip() + CUT_OFF
        posts = split(said, limit)
        if len(posts) <= most:
            return said, posts


def pieces(text: str, limit: int) -> tuple[Piece, ...]:
    """Return the posts of a text together with the lines added to each. Pure."""
    if units(text) <= limit:
        return (Piece(text),) if text.strip() else ()
    return tuple(piece for piece in _Cutter(text, limit).cut() if piece.raw.strip())


class _Cutter:
    """Splits one text into pieces."""

    def __init__(self, text: str, limit: int) -> None:
        self._text, self._limit = text, limit
        self._marks: Marks = mark(text)
        self._units: Sequence[int] = [0, *accumulate(2 if char > "\uffff" else 1 for char in text)]

    def cut(self) -> Iterator[Piece]:
        start, end = 0, len(self._text)
        while start < end:
            opens = self._opens(self._marks.fence_at(start))
            last = self._last_fence()
            rest = self._units[end] - self._units[start] + units(opens) + units(self._closes(last, end))
            at = end if rest <= self._limit else self._next(start, units(opens))
            inside = last if at == end else self._marks.fence_at(at)
            yield Piece(self._text[start:at], opens, self._closes(inside, at))
            start = at

    def _last_fence(self) -> Fence | None:
        fences = self._marks.fences
        return fences[-1] if fences and not fences[-1].is_closed else None

    def _opens(self, fence: Fence | None) -> str:
        """Return the line that reopens a fence; only its marker if the whole line would take too much of the post."""
        if fence is None:
            return ""
        line = fence.opening + "\n"
        return line if units(line) <= self._limit // 4 else fence.marker + "\n"

    def _closes(self, fence: Fence | None, at: int) -> str:
        if fence is None:
            return ""
        return fence.marker if self._text[at - 1] == "\n" else "\n" + fence.marker

    def _next(self, start: int, opening_units: int) -> int:
        """Find the best place for the next cut: late in the post, at a natural pause."""
        fence_units = max((units(fence.marker) + 1 for fence in self._marks.fences), default=0)
        room = max(2, self._limit - opening_units - fence_units)
        furthest = bisect_right(self._units, self._units[start] + room) - 1
        middle = bisect_right(self._units, self._units[start] + min(self._limit // 2, room - 1))
        for lowest in (middle, start + 1):
            best = max(
                ((self._pause(at), at) for at in range(lowest, furthest + 1) if not self._marks.binds(at)), default=None
            )
            if best is not None:
                return best[1]
        whole = (at for at in range(furthest, start, -1) if not self._marks.joins(at))
        return next(whole, max(furthest, start + 1))

    def _pause(self, at: int) -> Pause:
        """Return the kind of place before the character at `at`."""
        text, before = self._text, self._text[at - 1]
        if before == "\n":
            if self._marks.fence_at(at):
                return Pause.CODE_LINE
            is_paragraph = text[at - 2 : at - 1] == "\n" and text[at : at + 1] != "\n"
            return Pause.PARAGRAPH if is_paragraph else Pause.LINE
        if not before.isspace():
            return Pause.SENTENCE if before in "。！？" else Pause.GRAPHEME
        return Pause.SENTENCE if text[max(0, at - 4) : at].rstrip()[-1:] in tuple(".!?…") else Pause.BLANK
