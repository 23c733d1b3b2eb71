"""Split text into tokens and content stems, and measure how similar two texts are. Pure, and linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from math import sqrt
from typing import NamedTuple

HEARD_CHARS = 2000
"""How much of a text is read."""

GLAD = frozenset("👍🙂😀😄😂🤣😊❤🎉🙏💯🥳😍👏🔥✅")
SORE = frozenset("😡😠😢😭👎💔😞🤬")
_SIGNS = re.compile(
    r"[\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff\u2600-\u27bf\u2190-\u21ff\u2b00-\u2bff\ufe0f\u200d\U000e0020-\U000e007f\s]+"
)
_TOKEN = re.compile(
    r"[^\W_]+(?:['’][^\W_]+)*|[\U0001f300-\U0001faff\u2600-\u27bf$€£]|[.!?\n]+",
)
_WIDE = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Scripts that are written without spaces."""
_ENDINGS = ("ings", "ing", "edly", "ed", "ies", "es", "s", "ly")
FUNCTION_WORDS = frozenset(
    """a about above after again against all also am an and any anyone anything are aren't as at be because been before
    being below between both but by can can't cannot could couldn't did didn't do does doesn't doing don't down during
    each either else ever every everyone everything few for from further get gets getting give go goes going gonna got
    had hadn't has hasn't have haven't having he he's her here here's hers herself hey hi him himself his how how's i
    i'd i'll i'm i've if in into is isn't it it's its itself just know let let's like me might more most much must my
    myself need never no nobody none nor not nothing now of off oh ok okay on once one only or other our ours
    ourselves out over own per please quite rather really said same say says see she she's should shouldn't since so
    some someone something still such sure than thank thanks that that's the their theirs them themselves then there
    there's these they they'd they'll they're they've thing things this those though through to too under until up us
    very want wants was wasn't we we'd we'll we're we've well were weren't what what's when where where's which while
    who who's whom why will with without won't would wouldn't yes yet you you'd you'll you're you've your yours
    yourself yourselves""".split()  # noqa: SIM905 - a list of words reads best as words
)


ENDS = frozenset(".!?\n")
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


def is_signs_only(text: str) -> bool:
    """Return whether a text is emoji and nothing else. Pure."""
    return bool(text.strip()) and _SIGNS.fullmatch(text) is not None


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
    """Return the content stems of a text: words less function words and the soul's name. Pure."""
    return frozenset(stem_list(text, name))


def stem_list(text: str, name: str = "") -> tuple[str, ...]:
    """Return the content stems of a text in order, with repetitions. Pure."""
    return tuple(one for word, one in content(text, name))


@lru_cache(maxsize=512)
def content(text: str, name: str = "") -> tuple[tuple[str, str], ...]:
    """Return the content words of a text, each with its stem, in order. Pure; results are cached."""
    found: list[tuple[str, str]] = []
    for token in tokens(text):
        word = token.word
        if not word[0].isalnum():
            continue
        if not word.isascii() and _WIDE.search(word):
            found += [(pair, pair) for pair in pairs(word)]
        elif word not in FUNCTION_WORDS and word != name and len(word) > 1:
            found.append((word, stem(word)))
    return tuple(found)


def pairs(word: str) -> list[str]:
    """Return the character pairs of a word in a script without spaces; a lone character is itself. Pure."""
    return [word[n : n + 2] for n in range(len(word) - 1)] or [word]


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
