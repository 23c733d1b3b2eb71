"""Does a text repeat a long stretch of what must not be repeated? Asked every turn, so it is quick."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

SPAN = 64
"""So many equal characters in a row are no accident."""
LEAST_SUSPICION = 16
"""A stream is held back from so many equal characters on."""


class Echo:
    """Texts that must not be heard again, built once a turn. What asking costs depends on what is spoken alone."""

    def __init__(self, texts: Iterable[str] = (), span: int = SPAN) -> None:
        """`span`: how many equal characters in a row count as a repetition."""
        self.text = "\0".join(text for text in texts if text)
        self.span = span

    @cached_property
    def _blocks(self) -> frozenset[str]:
        half = self.span // 2
        return frozenset(self.text[at : at + half] for at in range(0, len(self.text) - half + 1, half))

    @cached_property
    def _windows(self) -> frozenset[str]:
        return frozenset(self.text[at : at + self.span] for at in range(len(self.text) - self.span + 1))

    def repeated_in(self, spoken: str) -> bool:
        """Tell whether `spoken` holds `span` characters in a row of these texts. Pure.

        Any such stretch covers one of the texts' blocks of half its length; only where one of those stands in
        `spoken`, which is rare, are whole stretches compared.
        """
        if len(spoken) < self.span or len(self.text) < self.span:
            return False
        half = self.span // 2
        if self._blocks.isdisjoint([spoken[at : at + half] for at in range(len(spoken) - half + 1)]):
            return False
        return not self._windows.isdisjoint([spoken[at : at + self.span] for at in range(len(spoken) - self.span + 1)])

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
