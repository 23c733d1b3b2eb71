"""Drop lines and sentences in which the model puts a number to the soul's feelings. Pure.

Source: the psyche design, section 10.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

NEAR, FOLLOWED = 4, 3
FEELINGS = frozenset(
    """trust trusts warmth warm warmer tension tense mood energy comfort affection closeness relatedness autonomy
    competence novelty safety valence arousal familiarity""".split()  # noqa: SIM905 - a list of words
)
_NUMBER_WORDS = frozenset(
    """zero one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty
    seventy eighty ninety hundred half""".split()  # noqa: SIM905 - likewise
)
_SETTERS = frozenset(("to", "is", "at", "by", "now", "=", ":"))
_TOKEN = re.compile(r"\d+(?:[.,]\d+)?|[^\W\d_]+(?:['’][^\W\d_]+)*|[%=:/.!?\n+-]")
_SCALED = re.compile("|".join((r"\d", "percent", "out of", *sorted(_NUMBER_WORDS))), re.IGNORECASE)
"""A text without one of these holds no number; one without one of `FEELINGS` holds none of the psyche."""
_OWN = frozenset(("my", "i", "i'm", "me", "mine", "our"))
_SENTENCE_END = re.compile(r"(?<=[.!?])(?=\s)|(?<=\n)")
_TELLING = (*sorted(FEELINGS), "me", "mine", "my", "our")
"""From one of these words on, a sentence is held back until it is complete."""
_TOLD = re.compile(rf"(?<![^\W\d_])(?:{'|'.join(_TELLING)})(?![^\W\d_])", re.IGNORECASE)
_LAST_WORD = re.compile(r"[^\W\d_]+\Z")
_CUT = "…"
SENTENCE_CHARS = 600
"""Longer text is not treated as a sentence and is said unchanged."""


def numbers_itself(text: str) -> bool:
    """Return whether a line puts a number to what the soul feels. Pure."""
    said = _TOKEN.findall(text.lower().replace("’", "'"))
    return any(word in FEELINGS and (_scaled(said, at) or _set(said, at)) for at, word in enumerate(said))


def spoken_without_numbers(text: str, *, was_shown: bool = False) -> str:
    """Return an utterance without the sentences in which the soul puts a number to its own feelings. Pure.

    `was_shown`: the text was streamed through `Unnumbered`; what was shown of such a sentence stays.
    """
    if not any(map(text.lower().__contains__, FEELINGS)) or _SCALED.search(text) is None:
        return text
    kept = "".join(_without(one, was_shown=was_shown) for one in _SENTENCE_END.split(text))
    return text if kept == text else kept.strip()


def _without(sentence: str, *, was_shown: bool) -> str:
    if len(sentence) > SENTENCE_CHARS:
        return sentence
    words = set(re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", sentence.lower().replace("’", "'")))
    if not (words & _OWN and numbers_itself(sentence)):
        return sentence
    told = _TOLD.search(sentence)
    before = sentence[: told.start()] if told else ""
    return before + _CUT if was_shown and before.strip() else ""


class Unnumbered:
    """The streaming form: what it has let through is always a prefix of `spoken_without_numbers` of the whole text."""

    def __init__(self) -> None:
        self._sentence = ""
        self._shown = 0
        self._blank = ""
        self._has_begun = self._has_cut = self._is_long = False

    def take(self, text: str) -> str:
        """Take the next piece of text and return what more may be shown."""
        *whole, self._sentence = _SENTENCE_END.split(self._sentence + text)
        said = self._blank
        for sentence in whole:
            rest = sentence if self._is_long else _without(sentence, was_shown=True)
            self._has_cut |= rest != sentence
            said += rest[self._shown :]
            self._shown, self._is_long = 0, False
        self._is_long |= len(self._sentence) > SENTENCE_CHARS
        end = len(self._sentence) if self._is_long else self._safe()
        said += self._sentence[self._shown : end]
        self._shown = max(self._shown, end)
        if self._is_long:  # all of it was shown; the last character is kept to detect its end
            self._sentence, self._shown = self._sentence[-1:], 1
        shown = said.rstrip() if len(self._blank) < SENTENCE_CHARS else said
        self._blank = said[len(shown) :]
        if self._has_cut and not self._has_begun:
            shown = shown.lstrip()
        self._has_begun |= bool(shown)
        return shown

    def _safe(self) -> int:
        """Return how many characters of the unfinished sentence may be shown."""
        told, last = _TOLD.search(self._sentence), _LAST_WORD.search(self._sentence)
        end = len(self._sentence)
        if last and any(one.startswith(last[0].lower()) for one in _TELLING):
            end = last.start()
        end = min(end, told.start()) if told else end
        return end if self._sentence[:end].strip() else 0


def _is_number(word: str) -> bool:
    return word[0].isdigit() or word in _NUMBER_WORDS


def _scaled(said: Sequence[str], at: int) -> bool:
    """Return whether a number on a scale is within four words."""
    near = range(max(0, at - NEAR - 2), min(len(said), at + NEAR + 3))
    for place in near:
        between = said[min(at, place) + 1 : max(at, place)]
        if not _is_number(said[place]) or sum(word[0].isalnum() for word in between) > NEAR:
            continue
        after = said[place + 1 : place + 3]
        if after[:1] in (["%"], ["percent"], ["points"], ["point"]):
            return True
        if after[:1] == ["/"] and after[1:] == ["10"]:
            return True
        if after == ["out", "of"]:
            return True
    return False


def _set(said: Sequence[str], at: int) -> bool:
    """Return whether the word is set to a number: `trust is now 8`, `trust in you is at 0.4`, `warmth = 0.4`."""
    words, has_setter = 0, False
    for word in said[at + 1 :]:
        if word in ".!?\n":
            return False
        if _is_number(word):
            return has_setter
        if word in _SETTERS:
            has_setter = True
        elif words == FOLLOWED:
            return False
        words += word[0].isalpha()
    return False
