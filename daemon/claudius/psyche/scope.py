"""Measure how much a message asks for and what is at stake in it, by rule and without a model. Pure.

Source: the psyche design, section 3; the cortex design, section 8.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from claudius.psyche.lexicon import PAIR_CHARS, lexicon
from claudius.psyche.words import tokens

READ_CHARS = 2000
"""How much of a message is read."""
ASK_WORTH, CRITICAL_WORTH, ATTACHMENT_WORTH = 20, 40, 15

_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_REQUEST = re.compile(
    r"\bplease\b|\b(?:can|could|would|will)\s+(?:you|someone|anyone)\b|\bi'd\s+like\s+you\s+to\b|\bneed\s+you\s+to\b"
    r"|^\s*(?:(?:hey|hi|hello)\b,?\s+)?(?:\w+,\s+)?(?:send|show|tell|give|explain|write|make|help|find|check|fix|run|look"
    r"|summari[sz]e|remind|list|add|remove|delete|create|draft|review|translate|compare|describe|read|open|stop|plan"
    r"|pick|name|suggest|recall)\b",
    re.IGNORECASE,
)


_LETTERS = re.compile(r"[a-z]+")
_REQUEST_TEXT = (
    "please can could would will like need send show tell give explain write make help find check "
    "fix run look summarise summarize remind list add remove delete create draft review translate "
    "compare describe read open stop plan pick name suggest recall"
)
_REQUEST_SIGNS = frozenset(_REQUEST_TEXT.split())


def critical(text: str) -> frozenset[str]:
    """Return the critical classes of `lexicon.toml` that a text touches. Pure."""
    said, halves = tokens(text[:READ_CHARS]), defaultdict(list)
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
    """Count the sentences that ask for something. Pure."""
    is_likely = not _words(text).isdisjoint(_REQUEST_SIGNS)
    return sum(
        sentence.rstrip().endswith("?") or (is_likely and bool(_REQUEST.search(sentence)))
        for sentence in sentences(text)
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(_LETTERS.findall(text[:READ_CHARS].lower()))


def scope(text: str, attachments: int = 0) -> int:
    """Return how much a message asks for: words plus weights for requests, stakes and attachments. Pure."""
    words = len(_WORD.findall(text[:READ_CHARS]))
    at_stake = CRITICAL_WORTH if critical(text) else 0
    return words + ASK_WORTH * asks(text) + at_stake + ATTACHMENT_WORTH * attachments


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, with their end punctuation. Pure."""
    for found in _SENTENCE.finditer(text[:READ_CHARS]):
        if found[0].strip():
            yield found[0]
