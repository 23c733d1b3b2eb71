"""Detect whether a text repeats a long stretch of forbidden texts. Fast, because every turn runs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import islice

SPAN = 64
"""This many equal characters in a row are no accident."""
LEAST_SUSPICION = 16
"""A stream is held back from this many equal characters on."""

MANY = 500
"""Above this many candidate places, comparing each would cost more than comparing everything."""

_STEP = 3
"""Every third piece of the spoken text is looked up."""
_REMEMBERED_CHARS = 2000
"""The pieces of a longer text are computed anew each time, so that the cache stays small."""


class Echo:
    """Texts that must not be repeated. A check is cheap, because only a few pieces of each side are looked up.

    A piece is three eighths of a span. Every n-th piece of the texts is indexed, and every third piece of the spoken
    text is looked up; n and 3 have no common divisor, and 3n positions plus a piece fit into a span, so every equal
    stretch of one span contains a piece that is both indexed and looked up.
    """

    def __init__(self, texts: Iterable[str] = (), span: int = SPAN, *, aloud: Iterable[str] = ()) -> None:
        """`span`: how many equal characters in a row are a repetition; text in `aloud` may be repeated."""
        self._texts = tuple(text for text in texts if text)
        self._aloud = tuple(text for text in aloud if len(text) >= span)
        self.span = span
        self._piece = span * 3 // 8
        every = (span - self._piece + 1) // _STEP
        self._every = every if every % _STEP else every - 1

    @cached_property
    def text(self) -> str:
        """All texts joined."""
        return "\0".join(self._texts)

    @cached_property
    def _known(self) -> tuple[frozenset[str], ...]:
        return tuple(
            (_remembered if len(text) <= _REMEMBERED_CHARS else _pieces)(text, self._piece, self._every)
            for text in self._texts
        )

    @cached_property
    def _windows(self) -> frozenset[str]:
        return _pieces(self.text, self.span, 1)

    @cached_property
    def _known_aloud(self) -> frozenset[str]:
        return _pieces("\0".join(self._aloud), self.span, 1)

    def repeated_in(self, spoken: str) -> bool:
        """Return whether `spoken` contains `span` characters in a row from these texts. Pure.

        Compares the surroundings of each piece found in both. If the texts repeat themselves a lot, all stretches are
        compared instead.
        """
        return self._is_repeated(spoken) and not (self._aloud and self._is_known(spoken))

    def _is_known(self, spoken: str) -> bool:
        """Return whether everything repeated was also said aloud, word for word."""
        return self._windows & _pieces(spoken, self.span, 1) <= self._known_aloud

    def _is_repeated(self, spoken: str) -> bool:
        if len(spoken) < self.span or not self._texts:
            return False
        asked = _asked(spoken, self._piece)
        if all(map(asked.isdisjoint, self._known)):
            return False
        likely = list(islice(self._places(spoken), MANY))
        if len(likely) < MANY:
            return any(self._reaches(spoken, at, place) for at, place in likely)
        return not self._windows.isdisjoint(_pieces(spoken, self.span, 1))

    def _places(self, spoken: str) -> Iterator[tuple[int, int]]:
        """Yield the position of each looked-up piece in `spoken` and in the texts."""
        known = frozenset().union(*self._known)
        for at in range(0, len(spoken) - self._piece + 1, _STEP):
            piece = spoken[at : at + self._piece]
            place = self.text.find(piece) if piece in known else -1
            while place >= 0:
                yield at, place
                place = self.text.find(piece, place + 1)

    def _reaches(self, spoken: str, at: int, place: int) -> bool:
        """Return whether the piece at `at` and `place` is part of an equal stretch of a whole span."""
        text, rest = self.text, self.span - self._piece
        left, most = 0, min(rest, at, place)
        while left < most and spoken[at - left - 1] == text[place - left - 1]:
            left += 1
        start, end = self._piece, self.span - left
        return spoken[at + start : at + end] == text[place + start : place + end] and at + end <= len(spoken)

    def tail(self, spoken: str) -> int:
        """Return the length of the longest end of `spoken` found in these texts; 0 below `LEAST_SUSPICION`. Pure.

        At most `span`.
        """
        if len(spoken) < LEAST_SUSPICION or spoken[-LEAST_SUSPICION:] not in self.text:
            return 0
        length, most = LEAST_SUSPICION, min(self.span, len(spoken))
        while length < most and spoken[-length - 1 :] in self.text:
            length += 1
        return length


def _pieces(text: str, length: int, every: int) -> frozenset[str]:
    return frozenset([text[at : at + length] for at in range(0, len(text) - length + 1, every)])


_remembered = lru_cache(maxsize=2048)(_pieces)
"""A past thought is checked in the twenty turns after it, an instruction in every turn."""


@lru_cache(maxsize=2)
def _asked(spoken: str, length: int) -> frozenset[str]:
    """Cut the spoken text into pieces; cached because one text is checked several times in a row."""
    return _pieces(spoken, length, _STEP)
