"""Read off a text, without a model: five axes, cue classes, load, and how much it asks for. Pure.

Valence comes from VADER, which scores half of plainly unhappy situations as happy; so cues carry the meaning and
valence only adjusts it. VADER knows English only, and would read the German `die` and `war` as it does in English.
Source: the psyche design, section 3; the cortex design, section 8.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from claudius.memory.ranking import is_english
from claudius.psyche.events import ADDRESSED, Compound, Heard
from claudius.psyche.state import Axes
from claudius.psyche.words import (
    ENDS,
    GLAD,
    HEARD_CHARS,
    QUESTION_MARKS,
    SORE,
    Cues,
    Hit,
    Token,
    is_negated,
    stems,
    tokens,
)

ACKNOWLEDGEMENT_CHARS = 60
"""No message that only acknowledges is longer."""
GRIEF = "grief"
_YOU = frozenset(("you", "you're", "you've", "you'll", "you'd", "your", "yours", "u", "ur", "youre"))
_ONESELF = frozenset(("i", "i'm", "i've", "im", "me", "my", "we", "we're", "our"))
_HAILS = frozenset(("hey", "hi", "hello", "ok", "so", "and", "then", "now", "please"))
_WEIGHT = dict.fromkeys(ADDRESSED, 1.0) | {"thread": 0.5, "named": 0.5}
_SPOKEN_TO = frozenset((*ADDRESSED, "thread"))
PAIR_CHARS = 40
"""The largest distance between the two halves of a critical cue."""
QUESTION_WORTH, ASK_WORTH, CRITICAL_WORTH, ATTACHMENT_WORTH = 5, 30, 40, 15

_PAUSES = re.compile(r"[\s.,;!…@~。、，！]+")
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"[^.!?。！？؟\n]+[.!?。！？؟]*")
_REQUEST = re.compile(
    r"\b(?:please|bitte|por\s+favor|s['’]il\s+\w+\s+pla[iî]t|per\s+favore)\b"
    r"|\b(?:can|could|would|will)\s+(?:you|someone|anyone)\b|\bi'd\s+like\s+you\s+to\b|\bneed\s+you\s+to\b"
    r"|^\s*(?:(?:hey|hi|hello|and|then)\b,?\s+)?(?:\w+,\s+)?(?:send|show|tell|give|explain|write|make|help|find|check|fix"
    r"|run|look|summari[sz]e|remind|list|add|remove|delete|create|draft|review|translate|compare|describe|read|open|stop"
    r"|plan|pick|name|suggest|recall|collect|export|pull|merge|copy|put|set|sort|mark|search|update)\b",
    re.IGNORECASE,
)
_LISTED = re.compile(r"^\s*(?:[-*•‣]|\d{1,2}[.)])\s+\S")
"""A line of a list. Lines that are listed for a soul are wishes."""
_CLAUSES = re.compile(r"[,;:，；、،]")
CLAUSE_WORDS = 3
"""A part between commas with so many words counts as a request of its own."""


class Lexicon(Struct, frozen=True, kw_only=True):
    """Everything that classification looks up."""

    cues: Cues
    critical: Cues
    """The cues of the critical classes only."""
    grief: Cues
    """The cues of grief only."""
    vectors: Mapping[str, Axes]
    negatable: frozenset[str]
    openers: Mapping[str, str]
    """First words of a text → class."""
    imperatives: frozenset[str]
    """First words of a sentence that asks."""
    whole: Mapping[tuple[str, ...], str]
    """Whole texts → class."""
    acknowledgements: frozenset[tuple[str, ...]]
    """Whole messages that only acknowledge, as words."""
    nods: re.Pattern[str]
    """The signs that do."""


@cache
def lexicon() -> Lexicon:
    """Read the lexicon; cached for the life of the process. Raises: ValueError if the file is malformed."""
    tree: dict[str, Any] = tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text("utf-8"))
    classes, critical = tree["classes"], tree["critical"]
    lists: dict[str, list[str]] = {name: entry["cues"] for name, entry in classes.items()}
    grave: dict[str, list[str]] = {
        f"{name}!{part}": cues for name, entry in critical.items() for part, cues in entry.items()
    }
    for name, entry in classes.items():
        lists[f"{name}^"] = entry.get("first_cues", [])
    return Lexicon(
        cues=Cues.of(lists | grave),
        critical=Cues.of(grave),
        grief=Cues.of({GRIEF: lists[GRIEF]}),
        vectors={name: Axes(*entry["vector"]) for name, entry in classes.items()},
        negatable=frozenset(name for name, entry in classes.items() if entry.get("negatable", True)),
        openers={f"{name}^": name for name in classes},
        imperatives=frozenset(
            word for entry in classes.values() for cue in entry.get("sentence_cues", ()) for word in cue.split("/")
        ),
        whole={
            tuple(token.word for token in tokens(text)): name
            for name, entry in classes.items()
            for text in entry.get("whole_cues", ())
        },
        acknowledgements=frozenset(
            tuple(phrase.split()) for phrases in tree["trivial"]["phrases"].values() for phrase in phrases
        ),
        nods=re.compile(f"[{tree['trivial']['signs']}][\U0001f3fb-\U0001f3ff]?\ufe0f?"),
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


GRIEF_TONE = -1.0
"""How being told of grief feels: it weighs on the mood until the evening."""


def classify(text: str, address: str, *, soul_name: str, novelty: float, compound: Compound) -> Heard:
    """Classify one text. Pure."""
    return replace(_heard(text[:HEARD_CHARS], address, soul_name, compound), novelty=novelty)


@lru_cache(maxsize=64)  # what was said lately is judged again with every word that hurts
def _heard(text: str, address: str, soul_name: str, compound: Compound) -> Heard:
    book, said = lexicon(), tokens(text)
    words = [token.word for token in said if token.word[0] not in ENDS]
    hits = list(book.cues.hits(said))
    classes, critical = _found(said, words, hits, book, soul_name)
    valence = _valence(text, classes, compound)
    asks, orders = _asks(said, hits, book, soul_name)
    if orders:
        classes.add("request")
    says_you = not _YOU.isdisjoint(words)
    own = bool(classes & {"grief", "joy"}) or (valence <= -0.3 and not says_you and not _ONESELF.isdisjoint(words))
    axes = _axes(classes, valence, address, book, own=own, speaks=soul_name in words or says_you)
    if "grief" in classes:
        tone = GRIEF_TONE
    elif own and "joy" not in classes and classes.isdisjoint({"insult", "threat", "apology"}):
        tone = -0.4
    else:
        tone = 0.4 if "joy" in classes else (axes.affectionate + axes.supportive) / 2
    return Heard(
        axes=axes,
        valence=valence,
        tone=tone,
        load=0.7 * min(1.0, len(words) / 200) + (0.3 if asks > 1 else 0.0),
        novelty=0.0,
        classes=frozenset(classes),
        critical=critical,
        stems=stems(text, soul_name),
        words=frozenset(words),
        is_question=not QUESTION_MARKS.isdisjoint(text),
        is_request="request" in classes,
        is_trivial=is_trivial(text, soul_name),
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
    valence = compound(text) if is_english(text) else 0.0
    if abs(valence) < 0.05:
        glad = sore = 0
        if not text.isascii():
            glad, sore = sum(sign in GLAD for sign in text), sum(sign in SORE for sign in text)
        valence = 0.5 if glad > sore else -0.5 if sore > glad else valence
    return -0.2 if "danger" in classes and valence > -0.2 else valence


def _asks(said: Sequence[Token], hits: Sequence[Hit], book: Lexicon, soul_name: str) -> tuple[int, bool]:
    """Return how many sentences ask for something, and whether one of them is an imperative."""
    starts = [n for n, one in enumerate(said) if one.word[0] not in ENDS and (n == 0 or said[n - 1].word[0] in ENDS)]
    asking = {hit.first for hit in hits if hit.name == "request"}
    count, orders = 0, False
    for start, end in zip(starts, (*starts[1:], len(said)), strict=False):
        first = start
        while first < len(said) - 1 and (said[first].word in _HAILS or said[first].word == soul_name):
            first += 1
        order = said[first].word in book.imperatives
        asked = not QUESTION_MARKS.isdisjoint("".join([token.word for token in said[start:end]]))
        orders = orders or order
        count += order or asked or not asking.isdisjoint(range(start, end))
    return count, orders


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
    return Axes(*[max(-1.0, min(1.0, total)) for total in summed])


def is_trivial(text: str, soul_name: str) -> bool:
    """Return whether a whole text is a phrase or a sign that only acknowledges, beside the soul's name. Pure."""
    if len(text) > ACKNOWLEDGEMENT_CHARS:
        return False
    book, said = lexicon(), text.lower().replace("’", "'")
    unsigned = book.nods.sub(" ", said)
    words = tuple([word for word in _PAUSES.sub(" ", unsigned).split() if word != soul_name])
    return words in book.acknowledgements or (not words and unsigned != said)


def critical(text: str) -> frozenset[str]:
    """Return the critical classes of `lexicon.toml` that a text touches. Pure."""
    said, halves = tokens(text[:HEARD_CHARS]), defaultdict(list)
    for hit in lexicon().critical.hits(said):
        halves[hit.name].append((said[hit.first].start, said[hit.last].end))
    return paired(halves)


def paired(halves: Mapping[str, Sequence[tuple[int, int]]]) -> frozenset[str]:
    """Return the critical classes of which a whole cue, or both halves close together, were found. Pure.

    `halves`: `CLASS!cues`, `CLASS!first` or `CLASS!second` → start and end of each such cue.
    """
    found = {name.partition("!")[0] for name in halves if name.endswith("!cues")}
    for name, places in halves.items():
        kind, _, part = name.partition("!")
        if part != "first" or f"{kind}!second" not in halves:
            continue
        if any(
            max(start, first) - min(end, last) <= PAIR_CHARS
            for start, end in places
            for first, last in halves[f"{kind}!second"]
        ):
            found.add(kind)
    return frozenset(found)


def asks(text: str) -> int:
    """Count the requests of a text, one for each thing that is asked: a list of wishes is many. Pure."""
    return sum([count for _, count in _requests(text)])


def scope(text: str, attachments: int = 0) -> int:
    """Return how much a message asks for: what asks, in words and requests, the stakes, and the attachments. Pure."""
    found = list(_requests(text))
    words = sum([len(_WORD.findall(sentence)) for sentence, _ in found])
    worth = sum([_worth(sentence, count) for sentence, count in found])
    at_stake = CRITICAL_WORTH if critical(text) else 0
    return words + worth + at_stake + ATTACHMENT_WORTH * attachments


def _worth(sentence: str, count: int) -> int:
    return ASK_WORTH * count if _is_request(sentence) else QUESTION_WORTH


def _requests(text: str) -> Iterator[tuple[str, int]]:
    """Yield each sentence that asks for something, and for how many things."""
    for sentence in dict.fromkeys(map(str.strip, sentences(text))):  # what is said twice is asked once
        if _is_request(sentence):
            parts = [len(_WORD.findall(part)) >= CLAUSE_WORDS for part in _CLAUSES.split(sentence)]
            yield sentence, max(1, sum(parts))
        elif not QUESTION_MARKS.isdisjoint(sentence[-1:]):
            yield sentence, 1


def _is_request(sentence: str) -> bool:
    return bool(
        _LISTED.match(sentence) or _REQUEST.search(sentence) or any(map(_REQUEST.match, _CLAUSES.split(sentence)))
    )


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, with their end punctuation. Pure."""
    for found in _SENTENCE.finditer(text[:HEARD_CHARS]):
        if found[0].strip():
            yield found[0]
