"""Parse and match cues, a small pattern language, in linear time.

`a/b` matches either word, `word-` any word with that prefix, `…` up to three words between; there is no other syntax.
Cues are indexed by first word, so a text costs one look-up per word; gaps are bounded, so backtracking is too.
Source: the psyche design, section 3: every pattern linear and bounded, no nested repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from claudius.psyche.words import ENDS, Token, tokens

GAP = 3
"""The most words in a gap, and how many words before a cue a negator reaches."""
_HEAD = 3
"""How many letters of a prefix are indexed."""

NEGATORS = frozenset(("not", "never", "no", "without", "hardly"))


class Part(NamedTuple):
    """One position of a cue: the words it accepts, and whether a gap may precede it."""

    exact: frozenset[str]
    beginnings: tuple[str, ...]
    is_far: bool

    def takes(self, word: str) -> bool:
        """Return whether this position accepts a word."""
        return word in self.exact or (bool(self.beginnings) and word.startswith(self.beginnings))


class Hit(NamedTuple):
    """A matched cue: the name of its list and its first and last token."""

    name: str
    first: int
    last: int


def read_cue(text: str) -> tuple[Part, ...]:
    """Parse one cue. Pure. Raises: ValueError if it begins or ends with a gap."""
    parts: list[Part] = []
    is_far = False
    for piece in text.split():
        if piece == "…":
            is_far = True
            continue
        words: list[str] = []
        beginnings: list[str] = []
        for one in piece.split("/"):
            (beginnings if one.endswith("-") else words).append(one.rstrip("-").lower())
        parts += _split(words, beginnings, is_far=is_far)
        is_far = False
    if is_far or not parts or parts[0].is_far:
        raise ValueError(f"a cue begins and ends with a word: {text!r}")
    return tuple(parts)


def _split(words: Sequence[str], beginnings: Sequence[str], *, is_far: bool) -> list[Part]:
    """Return the positions of one piece: a hyphenated word is two tokens of a text."""
    if len(words) == 1 and not beginnings:
        return [
            Part(frozenset((token.word,)), (), is_far=is_far and n == 0) for n, token in enumerate(tokens(words[0]))
        ]
    return [Part(frozenset(words), tuple(beginnings), is_far)]


class Cues(Struct, frozen=True):
    """Named lists of cues, indexed for matching."""

    exact: Mapping[str, tuple[tuple[str, tuple[Part, ...]], ...]]
    beginnings: Mapping[str, tuple[tuple[str, tuple[Part, ...]], ...]]

    @classmethod
    def of(cls, lists: Mapping[str, Iterable[str]]) -> Cues:
        """Parse and index lists of cues. Raises: ValueError."""
        exact: dict[str, list[tuple[str, tuple[Part, ...]]]] = {}
        begun: dict[str, list[tuple[str, tuple[Part, ...]]]] = {}
        for name, cues in lists.items():
            for cue in cues:
                parts = read_cue(cue)
                for word in parts[0].exact:
                    exact.setdefault(word, []).append((name, parts))
                for beginning in {one[:_HEAD] for one in parts[0].beginnings}:
                    begun.setdefault(beginning, []).append((name, parts))
        return cls(
            {word: tuple(found) for word, found in exact.items()},
            {word: tuple(found) for word, found in begun.items()},
        )

    def hits(self, heard: Sequence[Token]) -> Iterator[Hit]:
        """Yield every matched cue, in the order of the text."""
        exact, beginnings = self.exact, self.beginnings
        for at, token in enumerate(heard):
            word = token.word
            for name, parts in exact.get(word, ()):
                last = _rest(parts, 1, heard, at)
                if last >= 0:
                    yield Hit(name, at, last)
            for name, parts in beginnings.get(word[:_HEAD], ()):
                if word.startswith(parts[0].beginnings):
                    last = _rest(parts, 1, heard, at)
                    if last >= 0:
                        yield Hit(name, at, last)


def _rest(parts: tuple[Part, ...], n: int, heard: Sequence[Token], at: int) -> int:
    """Return the last token that the rest of a cue covers, -1 if it does not match."""
    if n == len(parts):
        return at
    part = parts[n]
    for place in range(at + 1, min(len(heard), at + 2 + (GAP if part.is_far else 0))):
        if heard[place].word[0] in ENDS:
            return -1
        if part.takes(heard[place].word):
            last = _rest(parts, n + 1, heard, place)
            if last >= 0:
                return last
    return -1


def is_negated(heard: Sequence[Token], first: int, last: int = -1) -> bool:
    """Return whether a negator is in a cue's gap, or within three words before it in its sentence. Pure."""
    if any(_negates(heard[place].word) for place in range(first + 1, last)):
        return True
    for place in range(first - 1, max(-1, first - 1 - GAP), -1):
        word = heard[place].word
        if word[0] in ENDS:
            return False
        if _negates(word):
            return True
    return False


def _negates(word: str) -> bool:
    return word in NEGATORS or word.endswith("n't")
