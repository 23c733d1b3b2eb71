"""Does a text repeat a long stretch of what must not be repeated? Asked every turn, so it is quick."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice

SPAN = 64
"""So many equal characters in a row are no accident."""
LEAST_SUSPICION = 16
"""A stream is held back from so many equal characters on."""

MANY = 500
"""More likely places than this, and looking at each would cost more than looking at everything."""


class Echo:
    """Texts that must not be heard again, built once a turn. What asking costs depends on what is spoken alone."""

    def __init__(self, texts: Iterable[str] = (), span: int = SPAN) -> None:
        """`span`: how many equal characters in a row count as a repetition."""
        self.text = "\0".join(text for text in texts if text)
        self.span = span

    @cached_property
    def _blocks(self) -> frozenset[str]:
        half = self.span // 2
        return frozenset([self.text[at : at + half] for at in range(0, len(self.text) - half + 1, half)])

    @cached_property
    def _windows(self) -> frozenset[str]:
        return frozenset(self.text[at : at + self.span] for at in range(len(self.text) - self.span + 1))

    def repeated_in(self, spoken: str) -> bool:
        """Tell whether `spoken` holds `span` characters in a row of these texts. Pure.

        Any such stretch covers one of the texts' blocks of half its length; around each of those that stands in
        `spoken` the rest is compared. Texts that repeat themselves a lot are compared stretch by stretch instead.
        """
        if len(spoken) < self.span or len(self.text) < self.span:
            return False
        half = self.span // 2
        pieces = [spoken[at : at + half] for at in range(len(spoken) - half + 1)]
        if self._blocks.isdisjoint(pieces):
            return False
        likely = list(islice(self._places(pieces), MANY))
        if len(likely) < MANY:
            return any(self._reaches(spoken, at, place) for at, place in likely)
        return not self._windows.isdisjoint([spoken[at : at + self.span] for at in range(len(spoken) - self.span + 1)])

    def _places(self, pieces: Sequence[str]) -> Iterator[tuple[int, int]]:
        """Find where the pieces that are blocks stand: their number, and their place in the texts."""
        for at, piece in enumerate(pieces):
            place = self.text.find(piece) if piece in self._blocks else -1
            while place >= 0:
                yield at, place
                place = self.text.find(piece, place + 1)

    def _reaches(self, spoken: str, at: int, place: int) -> bool:
        """Tell whether the block at `place`, found at `at`, is part of an equal stretch of the whole span."""
        half, text = self.span // 2, self.text
        left, most = 0, min(half, at, place)
        while left < most and spoken[at - left - 1] == text[place - left - 1]:
            left += 1
        end = self.span - left
        return spoken[at + half : at + end] == text[place + half : place + end] and at + end <= len(spoken)

    def tail(self, spoken: str) -> int:
        """Return the length of the longest end of `spoken` that stands in these texts; 0 under `LEAST_SUSPICION`. Pure.

        At most `span`.
        """
        if len(spoken) < LEAST_SUSPICION or spoken[-LEAST_SUSPICION:] not in self.text:
            return 0
        length, most = LEAST_SUSPICION, min(self.span, len(spoken))
        while length < most and spoken[-length - 1 :] in self.text:
            length += 1
        return length
