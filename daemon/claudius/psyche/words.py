"""Split text into tokens and content stems, measure how similar texts are, and match cues. Pure, linear in the text.

A cue is a small pattern: `a/b` matches either word, `word-` any word with that prefix, `…` up to three words between;
there is no other syntax. Cues are indexed by first word, so a text costs one look-up per word; gaps are bounded, so
backtracking is too. Source: the psyche design, section 3: every pattern linear and bounded, no nested repeats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

from msgspec import Struct

from claudius.memory.ranking import FUNCTION_WORDS

HEARD_CHARS = 2000
"""How much of a text is read."""

GLAD = frozenset("👍🙂😀😄😂🤣😊❤🎉🙏💯🥳😍👏🔥✅")
SORE = frozenset("😡😠😢😭👎💔😞🤬")
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[\U0001f300-\U0001faff\u2600-\u27bf$€£]|[.!?。！？؟\n]+")
_WIDE = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Scripts that are written without spaces."""
_ENDINGS = ("ings", "ing", "edly", "ed", "ies", "es", "s", "ly")

ENDS = frozenset(".!\n。！?？؟")
"""The characters that a sentence-ending token begins with."""


class Token(NamedTuple):
    """One word, emoji or sentence end, in lower case, with its position."""

    word: str
    start: int
    end: int

    @property
    def ends_sentence(self) -> bool:
        """Return whether a sentence ends here."""
        return self.word[0] in ENDS


@lru_cache(maxsize=512)
def tokens(text: str) -> tuple[Token, ...]:
    """Split a text into words, signs and sentence ends. Pure; results are cached."""
    lowered = text[:HEARD_CHARS].lower().replace("’", "'")
    return tuple([Token(found[0], found.start(), found.end()) for found in _TOKEN.finditer(lowered)])


def leaning(text: str) -> int:
    """Return 1 if the emoji of a text are mostly positive, -1 if mostly negative, else 0. Pure."""
    glad = sum(sign in GLAD for sign in text) - sum(sign in SORE for sign in text)
    return (glad > 0) - (glad < 0)


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """Strip the first ending that leaves three letters. Pure."""
    word = word.partition("'")[0] or word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


@lru_cache(maxsize=2048)
def stems(text: str, name: str = "") -> frozenset[str]:
    """Return the content stems of a text: words without function words and the soul's name. Pure."""
    return frozenset([one for _, one in content(text, name)])


@lru_cache(maxsize=512)
def content(text: str, name: str = "") -> tuple[tuple[str, str], ...]:
    """Return the content words of a text, each with its stem, in order. Pure; results are cached."""
    found: list[tuple[str, str]] = []
    for token in tokens(text):
        word = token.word
        if not word[0].isalnum():
            continue
        if not word.isascii() and _WIDE.search(word):
            pairs = [word[n : n + 2] for n in range(len(word) - 1)] or [word]
            found += [(pair, pair) for pair in pairs]
        elif word not in FUNCTION_WORDS and word != name and len(word) > 1:
            found.append((word, stem(word)))
    return tuple(found)


def overlap(here: Iterable[str], there: Iterable[str]) -> float:
    """Return how much a text is about a subject; a long subject does not lower the score. Pure."""
    one, other = frozenset(here), frozenset(there)
    if not one or not other:
        return 0.0
    return len(one & other) / (sqrt(len(one)) * sqrt(min(len(other), 8)))


def likeness(here: Iterable[str], there: Iterable[str]) -> float:
    """Return the Jaccard similarity of two sets of words. Pure."""
    one, other = frozenset(here), frozenset(there)
    return len(one & other) / len(one | other) if one or other else 0.0


GAP = 3
"""The most words in a gap, and how many words before a cue a negator reaches."""
_INDEXED_LETTERS = 3
"""How many letters of a prefix are indexed."""

NEGATORS = frozenset(("not", "never", "no", "without", "hardly"))


class CuePart(NamedTuple):
    """One position of a cue: the words it accepts, and whether a gap may precede it."""

    exact: frozenset[str]
    beginnings: tuple[str, ...]
    is_far: bool


class Hit(NamedTuple):
    """A matched cue: the name of its list and its first and last token."""

    name: str
    first: int
    last: int


def read_cue(text: str) -> tuple[CuePart, ...]:
    """Parse one cue. Pure. Raises: ValueError if it begins or ends with a gap."""
    parts: list[CuePart] = []
    is_far = False
    for piece in text.split():
        if piece == "…":
            is_far = True
            continue
        words: list[str] = []
        beginnings: list[str] = []
        for one in piece.split("/"):
            (beginnings if one.endswith("-") else words).append(one.rstrip("-").lower())
        if len(words) == 1 and not beginnings:  # a hyphenated word is two tokens of a text
            parts += [
                CuePart(frozenset((token.word,)), (), is_far and n == 0) for n, token in enumerate(tokens(words[0]))
            ]
        else:
            parts.append(CuePart(frozenset(words), tuple(beginnings), is_far))
        is_far = False
    if is_far or not parts or parts[0].is_far:
        raise ValueError(f"a cue begins and ends with a word: {text!r}")
    return tuple(parts)


class Cues(Struct, frozen=True):
    """Named lists of cues, indexed for matching."""

    exact: Mapping[str, tuple[tuple[str, tuple[CuePart, ...]], ...]]
    beginnings: Mapping[str, tuple[tuple[str, tuple[CuePart, ...]], ...]]

    @classmethod
    def of(cls, lists: Mapping[str, Iterable[str]]) -> Cues:
        """Parse and index lists of cues. Raises: ValueError."""
        exact: dict[str, list[tuple[str, tuple[CuePart, ...]]]] = {}
        begun: dict[str, list[tuple[str, tuple[CuePart, ...]]]] = {}
        for name, cues in lists.items():
            for cue in cues:
                parts = read_cue(cue)
                for word in parts[0].exact:
                    exact.setdefault(word, []).append((name, parts))
                for beginning in {one[:_INDEXED_LETTERS] for one in parts[0].beginnings}:
                    begun.setdefault(beginning, []).append((name, parts))
        return cls(
            {word: tuple(found) for word, found in exact.items()}, {word: tuple(found) for word, found in begun.items()}
        )

    def hits(self, heard: Sequence[Token]) -> Iterator[Hit]:
        """Yield every matched cue, in the order of the text."""
        exact, beginnings = self.exact, self.beginnings
        for at, token in enumerate(heard):
            word = token.word
            near = beginnings.get(word[:_INDEXED_LETTERS], ())
            begun = [one for one in near if word.startswith(one[1][0].beginnings)]
            for name, parts in (*exact.get(word, ()), *begun):
                last = _rest(parts, 1, heard, at)
                if last >= 0:
                    yield Hit(name, at, last)


def _rest(parts: tuple[CuePart, ...], n: int, heard: Sequence[Token], at: int) -> int:
    """Return the last token that the rest of a cue covers, -1 if it does not match."""
    if n == len(parts):
        return at
    part = parts[n]
    for place in range(at + 1, min(len(heard), at + 2 + (GAP if part.is_far else 0))):
        word = heard[place].word
        if word[0] in ENDS:
            return -1
        if word in part.exact or word.startswith(part.beginnings):
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
