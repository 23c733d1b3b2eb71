"""What the model says of the soul may hold no number of the psyche: such a line or sentence is dropped. Pure.

Source: the psyche design, section 10.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

NEAR, FOLLOWED = 4, 3
_WORDS = frozenset(
    """trust trusts warmth warm warmer tension tense mood energy comfort affection closeness relatedness autonomy
    competence novelty safety valence arousal familiarity""".split()  # noqa: SIM905 - a list of words
)
_NUMBER_WORDS = frozenset(
    """zero one two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty sixty
    seventy eighty ninety hundred half""".split()  # noqa: SIM905 - likewise
)
_SETTERS = frozenset(("to", "is", "at", "by", "now", "=", ":"))
_TOKEN = re.compile(r"\d+(?:[.,]\d+)?|[^\W\d_]+(?:['’][^\W\d_]+)*|[%=:/.!?\n+-]")
_SCALED = re.compile(r"\d|percent|out of")
"""Without one of these nobody puts a number to anything."""
_OWN = frozenset(("my", "i", "i'm", "me", "mine", "our"))


def numbers_itself(text: str) -> bool:
    """Tell whether a line gives a number to what the soul feels. Pure."""
    said = _TOKEN.findall(text.lower().replace("’", "'"))
    return any(word in _WORDS and (_scaled(said, at) or _set(said, at)) for at, word in enumerate(said))


def spoken_without_numbers(text: str) -> str:
    """Return an utterance without the sentences in which the soul puts a number to its own feeling. Pure."""
    if _SCALED.search(text) is None:
        return text
    kept = []
    for sentence in re.split(r"(?<=[.!?])(?=\s)|(?<=\n)", text):
        words = set(re.findall(r"[^\W\d_]+(?:'[^\W\d_]+)?", sentence.lower()))
        if not (words & _OWN and numbers_itself(sentence)):
            kept.append(sentence)
    return "".join(kept).strip() if len(kept) > 0 else ""


def _is_number(word: str) -> bool:
    return word[0].isdigit() or word in _NUMBER_WORDS


def _scaled(said: Sequence[str], at: int) -> bool:
    """Tell whether a number on a scale stands within four words."""
    near = range(max(0, at - NEAR - 2), min(len(said), at + NEAR + 3))
    for place in near:
        if not _is_number(said[place]) or _words_between(said, at, place) > NEAR:
            continue
        after = said[place + 1 : place + 3]
        if after[:1] in (["%"], ["percent"], ["points"], ["point"]):
            return True
        if after[:1] == ["/"] and after[1:] == ["10"]:
            return True
        if after == ["out", "of"]:
            return True
    return False


def _words_between(said: Sequence[str], one: int, other: int) -> int:
    low, high = sorted((one, other))
    return sum(word[0].isalnum() for word in said[low + 1 : high])


def _set(said: Sequence[str], at: int) -> bool:
    """Tell whether the word is set to a number: `trust is now 8`, `warmth = 0.4`."""
    place = at + 1
    has_setter = False
    while place < len(said) and place <= at + FOLLOWED + 1:
        word = said[place]
        if word in ".!?\n":
            return False
        if _is_number(word):
            return has_setter
        if word in _SETTERS:
            has_setter = True
        place += 1
    return False
