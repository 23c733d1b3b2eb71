"""Classify a text without a model: five axes, cue classes, load, and whether it needs thought. Pure.

Valence comes from VADER, which scores half of plainly unhappy situations as happy; so cues carry the meaning and
valence only adjusts it. Source: the psyche design, section 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

from msgspec import Struct

from claudius.psyche.cues import Hit, is_negated
from claudius.psyche.events import ADDRESSED
from claudius.psyche.lexicon import Lexicon, lexicon
from claudius.psyche.scope import paired
from claudius.psyche.state import Axes
from claudius.psyche.words import ENDS, GLAD, HEARD_CHARS, SORE, Token, is_signs_only, stems, tokens

Compound = Callable[[str], float]
"""Valence of a text in [-1, 1]."""

TRIVIAL_WORDS = 6
_YOU = frozenset(("you", "you're", "you've", "you'll", "you'd", "your", "yours", "u", "ur", "youre"))
_ONESELF = frozenset(("i", "i'm", "i've", "im", "me", "my", "we", "we're", "our"))
_HAILS = frozenset(("hey", "hi", "hello", "ok", "so", "and", "then", "now", "please"))
_WEIGHT = dict.fromkeys(ADDRESSED, 1.0) | {"thread": 0.5, "named": 0.5}
_SPOKEN_TO = frozenset((*ADDRESSED, "thread"))


class Heard(Struct, frozen=True, kw_only=True):
    """The classification of one text."""

    axes: Axes
    valence: float
    tone: float
    load: float
    novelty: float
    classes: frozenset[str]
    critical: frozenset[str]
    stems: frozenset[str]
    words: frozenset[str]
    is_question: bool
    is_request: bool
    is_trivial: bool
    """The text is only acknowledgements and fillers, or only emoji."""


NOTHING_HEARD = Heard(
    axes=Axes(),
    valence=0.0,
    tone=0.0,
    load=0.0,
    novelty=0.3,
    classes=frozenset(),
    critical=frozenset(),
    stems=frozenset(),
    words=frozenset(),
    is_question=False,
    is_request=False,
    is_trivial=False,
)


@cache
def vader() -> Compound:
    """Load VADER once per process. It takes 50 ms, so the command line never loads it."""
    from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer  # noqa: PLC0415 - 50 ms, the daemon's alone

    scores = SentimentIntensityAnalyzer().polarity_scores
    return lambda text: float(scores(_Signless(text) if text.isascii() else text)["compound"])


class _Signless(str):
    """A text without emoji. VADER iterates over characters to spell emoji out; here it needs one iteration."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        yield str(self)


def classify(text: str, address: str, *, soul_name: str, novelty: float, compound: Compound) -> Heard:
    """Classify one text. Pure."""
    text = text[:HEARD_CHARS]
    book, said = lexicon(), tokens(text)
    words = [token.word for token in said if token.word[0] not in ENDS]
    hits = list(book.cues.hits(said))
    classes, critical = _found(said, words, hits, book, soul_name)
    valence = _valence(text, classes, compound)
    asks, orders = _asks(said, hits, book, soul_name)
    if orders:
        classes.add("request")
    own = bool(classes & {"grief", "joy"}) or (valence <= -0.3 and _speaks_of_oneself(words))
    axes = _axes(classes, valence, address, book, own=own, speaks=soul_name in words or not _YOU.isdisjoint(words))
    return Heard(
        axes=axes,
        valence=valence,
        tone=_tone(classes, axes, own=own),
        load=0.7 * min(1.0, len(words) / 200) + (0.3 if asks > 1 else 0.0),
        novelty=novelty,
        classes=frozenset(classes),
        critical=critical,
        stems=stems(text, soul_name),
        words=frozenset(words),
        is_question="?" in text,
        is_request="request" in classes,
        is_trivial=_is_trivial(text, words, book, soul_name),
    )


def _found(
    said: Sequence[Token], words: Sequence[str], hits: Sequence[Hit], book: Lexicon, soul_name: str
) -> tuple[set[str], frozenset[str]]:
    classes: set[str] = set()
    halves: dict[str, list[tuple[int, int]]] = {}
    opening = 1 if said and said[0].word == soul_name else 0
    for hit in hits:
        name, _, part = hit.name.partition("!")
        if part:
            halves.setdefault(hit.name, []).append((said[hit.first].start, said[hit.last].end))
        elif name in book.openers:
            if hit.first == opening:
                classes.add(book.openers[name])
        elif not (name in book.negatable and is_negated(said, hit.first, hit.last)):
            classes.add(name)
    whole = book.whole.get(tuple(words))
    if whole:
        classes.add(whole)
    if "insult" in classes:
        classes.discard("praise")
    return classes, paired(halves)


def _valence(text: str, classes: set[str], compound: Compound) -> float:
    valence = compound(text) if text.strip() else 0.0
    if abs(valence) < 0.05:
        glad = sore = 0
        if not text.isascii():
            glad, sore = sum(sign in GLAD for sign in text), sum(sign in SORE for sign in text)
        valence = 0.5 if glad > sore else -0.5 if sore > glad else valence
    return -0.2 if "danger" in classes and valence > -0.2 else valence


def _sentence_starts(said: Sequence[Token]) -> list[int]:
    starts = []
    fresh = True
    for at, token in enumerate(said):
        if token.word[0] in ENDS:
            fresh = True
        elif fresh:
            starts.append(at)
            fresh = False
    return starts


def _is_imperative(said: Sequence[Token], at: int, book: Lexicon, soul_name: str) -> bool:
    while at < len(said) - 1 and (said[at].word in _HAILS or said[at].word == soul_name):
        at += 1
    return said[at].word in book.imperatives


def _asks(said: Sequence[Token], hits: Sequence[Hit], book: Lexicon, soul_name: str) -> tuple[int, bool]:
    """Return how many sentences ask for something, and whether one of them is an imperative."""
    starts = _sentence_starts(said)
    asking = {hit.first for hit in hits if hit.name == "request"}
    count, orders = 0, False
    for start, end in zip(starts, (*starts[1:], len(said)), strict=False):
        order = _is_imperative(said, start, book, soul_name)
        asked = any("?" in said[at].word for at in range(start, end))
        orders = orders or order
        count += order or asked or not asking.isdisjoint(range(start, end))
    return count, orders


def _speaks_of_oneself(words: Sequence[str]) -> bool:
    return not _ONESELF.isdisjoint(words) and _YOU.isdisjoint(words)


def _axes(classes: set[str], valence: float, address: str, book: Lexicon, *, own: bool, speaks: bool) -> Axes:
    if own:
        summed = [0.0, 0.15 * valence, 0.15, 0.05, 0.0]
    else:
        is_judged = bool(classes & {"praise", "insult"}) and address in _SPOKEN_TO
        if is_judged or (address in ADDRESSED and speaks):
            near = 1.0
        else:
            near = 0.5 if address in ADDRESSED else 0.3 if address == "thread" else 0.15
        summed = [valence * near * share for share in (0.4, 0.2, 0.5, 0.2, 0.0)]
    weight = _WEIGHT.get(address, 0.25)
    for name in sorted(classes):
        summed = [total + weight * part for total, part in zip(summed, book.vectors[name], strict=True)]
    return Axes(*(max(-1.0, min(1.0, total)) for total in summed))


def _tone(classes: set[str], axes: Axes, *, own: bool) -> float:
    if "grief" in classes or (own and "joy" not in classes and classes.isdisjoint({"insult", "threat", "apology"})):
        return -0.4
    return 0.4 if "joy" in classes else (axes.affectionate + axes.supportive) / 2


def _is_trivial(text: str, words: Sequence[str], book: Lexicon, soul_name: str) -> bool:
    if "?" in text:
        return False
    if is_signs_only(text):
        return True
    counted = [word for word in words if word != soul_name and (word[0].isalnum())]
    return (
        0 < len(counted) <= TRIVIAL_WORDS
        and all(word in book.acknowledgements or word in book.fillers for word in counted)
        and not book.acknowledgements.isdisjoint(counted)
    )
