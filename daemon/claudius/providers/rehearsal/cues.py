"""Find cues: phrases in a message, and openings of clauses that state something."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

EDGES = ' \t,;:.!–—-()[]“”"…'
"""Characters stripped from the ends of a clause."""

_BEFORE_CHARS = 40
_WORD = re.compile(r"[\w']+")


def plain(text: str) -> str:
    """Reduce a text to lower-case words with one blank between and around them, for finding cues. Pure."""
    words = _WORD.findall(text.casefold().replace("’", "'"))
    return f" {' '.join(words)} "


class Cue(Struct, frozen=True):
    """One phrase, matched anywhere, at the end (… cue), at the start (cue …), or alone (= cue)."""

    words: str
    place: Literal["anywhere", "start", "end", "alone"]

    @classmethod
    def of(cls, text: str) -> Cue:
        """Parse a cue as written in the lines file. Pure."""
        if text.startswith("="):
            return cls(plain(text), "alone")
        if text.startswith("…"):
            return cls(plain(text), "end")
        return cls(plain(text), "start" if text.endswith("…") else "anywhere")

    def is_in(self, text: str) -> bool:
        """Return whether it occurs in a `plain` text. Pure."""
        match self.place:
            case "start":
                return text.startswith(self.words)
            case "end":
                return text.endswith(self.words)
            case "alone":
                return text == self.words
        return self.words in text


def cues(texts: Iterable[str]) -> tuple[Cue, ...]:
    """Parse several cues. Pure."""
    return tuple(map(Cue.of, texts))


class Openings(Struct, frozen=True):
    """Phrases that count at the start of a sentence or clause, each with the words that follow it."""

    _phrase: re.Pattern[str]
    _before: re.Pattern[str]
    _follows: tuple[str, ...]

    @classmethod
    def of(cls, phrases: Iterable[str], may_follow: Sequence[str]) -> Openings:
        """Compile the phrases. `may_follow` are the words after which a clause may open. Pure."""
        longest_first = "|".join(map(_pattern, sorted(phrases, key=len, reverse=True)))
        after = "|".join(map(_pattern, may_follow))
        return cls(
            re.compile(rf"(?<![\w'])(?:{longest_first})(?![\w'])", re.IGNORECASE),
            re.compile(rf"(?:^|[,;:(–—-]|(?<![\w'])(?:{after}))\W*$", re.IGNORECASE),
            tuple(may_follow),
        )

    def find(self, sentence: str) -> list[tuple[str, str]]:
        """Return each phrase that opens a clause, in lower case, with the words up to the next one. Pure."""
        hits = [hit for hit in self._phrase.finditer(sentence) if self._opens(sentence, hit.start())]
        found = []
        for number, hit in enumerate(hits):
            is_last = number + 1 == len(hits)
            words = sentence[hit.end() : None if is_last else hits[number + 1].start()].strip(EDGES)
            if words := words if is_last else self._without_follower(words):
                found.append((" ".join(hit[0].lower().split()), words))
        return found

    def _opens(self, sentence: str, start: int) -> bool:
        return self._before.search(sentence[max(0, start - _BEFORE_CHARS) : start]) is not None

    def _without_follower(self, words: str) -> str:
        for follower in self._follows:
            if f" {words.lower()}".endswith(f" {follower}"):
                return words[: len(words) - len(follower)].rstrip(EDGES)
        return words


def _pattern(phrase: str) -> str:
    return r"\s+".join(re.escape(word) for word in phrase.split())
