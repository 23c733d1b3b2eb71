"""The event that the psyche works on: its kinds and their claims, what was heard, its context and the gate's judgement.

A claim is what an event asks of attention before anything else is known. Whether a reply is owed is decided when a
message is accepted, never here. Source: the psyche design, section 2.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field

from claudius.memory.ranking import FUNCTION_WORDS, FUNCTION_WORDS_OF, questions, tongue
from claudius.perception import Kind
from claudius.psyche.personality import Kernel
from claudius.psyche.words import HEARD_CHARS, Cues, is_negated, stems, tokens
from claudius.psyche_types import Arc, Edge, Numbers

Address = Literal["dm", "mention", "command", "reply", "thread", "named", "ambient", "self"]
Outcome = Literal["think", "react", "ignore"]
Triviality = Literal["critical", "trivial", "significant", "moderate"]


class Claim(NamedTuple):
    """An event's base salience, the bonus for a person's stakes, and its cooldown."""

    base: float
    bonus: float
    window_s: float
    """How long after a thought nothing of this kind is thought about."""


ADDRESSED = frozenset(("dm", "mention", "command", "reply"))
MESSAGES = frozenset((Kind.MESSAGE.value, Kind.MENTION.value, Kind.COMMAND.value))
OWN = frozenset(("promise_due", "directive", "scheduled", "tick", "silence", "news", "milestone"))
"""Kinds that come from the soul itself or its clock."""
SOUGHT = frozenset(("promise_due", "directive", "scheduled"))
"""Own kinds that somebody asked for; they count as addressed."""

NOTICED = frozenset(("tick", "silence"))
"""Own kinds that happen in no conversation of anybody's."""

UNASKED_S, AMBIENT_S = 6 * 3600.0, 300.0
_MESSAGE: dict[str, Claim] = {
    "dm": Claim(1.00, 0.30, 0.0),
    "mention": Claim(1.00, 0.30, 0.0),
    "command": Claim(1.00, 0.30, 0.0),
    "reply": Claim(0.98, 0.30, 0.0),
    "thread": Claim(0.45, 0.30, 60.0),
    "named": Claim(0.50, 0.20, 60.0),
    "ambient": Claim(0.15, 0.10, AMBIENT_S),
}
_OWN: dict[str, Claim] = {
    "promise_due": Claim(1.00, 0.0, 0.0),
    "directive": Claim(1.00, 0.0, 0.0),
    "scheduled": Claim(1.00, 0.0, 0.0),
    "tick": Claim(0.10, 0.0, UNASKED_S),
    "silence": Claim(0.10, 0.30, UNASKED_S),
    "news": Claim(0.30, 0.0, UNASKED_S),
    "milestone": Claim(1.00, 0.0, UNASKED_S),
}

SILENCE_EFFECTS = (0.12, 0.0, 0.0, 0.06, 0.0)
"""The effect of a long silence on the drives."""
FAILED_EFFECTS = (0.0, 0.0, 0.15, 0.0, 0.0)
"""The effect on the drives of an answer that was owed and failed."""
OVERRIDDEN_EFFECTS = (0.0, 0.12, 0.0, 0.0, 0.0)
"""The effect of being stopped in the middle of an answer."""
GLAD_REACTION = (0.2, 0.0, 0.3, 0.2, 0.0)
"""The axes of a positive reaction to a post of the soul; `SORE_REACTION` is a negative one. A removal negates."""
SORE_REACTION = (-0.2, -0.1, -0.3, -0.2, 0.0)
HIT = 0.35
"""The lowest match score at which an event is about an arc."""
MILESTONE, MILESTONE_REARMED = 0.80, 0.70
"""A drive or arc that rises past the first is a milestone; it rearms once it has fallen below the second."""


def claim(kind: str, address: str, level: float = 0.0) -> Claim:
    """Return the claim of an event; `level`: how much a milestone, or a silence, means by itself. Pure."""
    if kind in MESSAGES:
        return _MESSAGE[address]
    if kind == "milestone":
        return _OWN[kind]._replace(base=level**1.5)
    if kind == "silence":
        return _OWN[kind]._replace(base=max(_OWN[kind].base, level))
    if kind in _OWN:
        return _OWN[kind]
    return Claim(0.20 if kind == "join" else 0.15, 0.10, AMBIENT_S)


def is_addressed(kind: str, address: str) -> bool:
    """Return whether an event is addressed to the soul, as a message or a `SOUGHT` kind. Pure."""
    return address in ADDRESSED if kind in MESSAGES else kind in SOUGHT


THRESHOLD = 0.32
"""The meaning from which an event is thought about, unless the settings say another."""


class Heard(Struct, frozen=True, kw_only=True):
    """The classification of one text."""

    load: float = 0.0
    novelty: float = 0.3
    classes: frozenset[str] = frozenset()
    """Cue classes, of overheard English only: a weak hint, since no model has read it yet."""
    critical: frozenset[str] = frozenset()
    stems: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    is_question: bool = False
    is_trivial: bool = False
    """The whole text is a phrase or a sign that only acknowledges."""


NOTHING_HEARD = Heard()


class Happening(Struct, frozen=True, kw_only=True):
    """One event, classified."""

    kind: str
    address: str
    heard: Heard = NOTHING_HEARD
    level: float = 0.0
    """For a milestone: the level that rose."""
    mentions_other: bool = False
    has_attachments: bool = False


class EventContext(Struct, frozen=True, kw_only=True):
    """The context of an event that the numbers do not hold."""

    since_thought_s: float | None = None
    """Seconds since the last thought in this conversation; for proactive kinds, since the last unprompted post."""
    has_open_question: bool = False
    """The soul asked this person something, or something of theirs is open: this message may answer it."""
    can_speak: bool = True
    bot_streak: int = 0
    """Consecutive bot messages without a human one, this one included."""
    is_repeat: bool = False
    """The same person said nearly the same within ten minutes."""
    reacted_recently: bool = False
    """Computed only if a reaction is the most that may result."""
    can_react: bool = True
    is_first_contact: bool = False


class PsycheState(Struct, frozen=True, kw_only=True):
    """The psyche's state after the event, as the gate sees it."""

    numbers: Numbers
    edge: Edge
    arcs: tuple[tuple[Arc, float], ...] = ()
    """The arcs that this event matches and that may be shown here, each with its match score."""
    kernel: Kernel = field(default_factory=Kernel)


class Judgement(Struct, frozen=True, kw_only=True):
    """The gate's decision and the values behind it."""

    outcome: Outcome
    m: float
    theta: float
    salience: float
    triviality: Triviality
    failed: tuple[str, ...]
    """Which of the four conditions do not hold: M, trivial, cooldown, choice."""
    choices: tuple[str, ...]
    parts: dict[str, float] = field(default_factory=dict)


class GateSettings(Struct, frozen=True, kw_only=True):
    """What attention needs to know of the soul and its settings."""

    kernel: Kernel
    """As compiled from soul.md, without drift."""
    soul_name: str
    """In lower case."""
    threshold: float = THRESHOLD
    acknowledges_by_emoji: bool = False
    milestone: str = ""
    """The text with which the soul tells itself that a level has grown strong; empty = no milestones."""
    can_acknowledge: bool = True
    """The soul has lines for acknowledging a message without thought."""


ACKNOWLEDGEMENT_CHARS = 60
"""No message that only acknowledges is longer."""
PAIR_CHARS = 40
"""The largest distance between the two halves of a critical cue."""
QUESTION_WORTH, ASK_WORTH, CRITICAL_WORTH, ATTACHMENT_WORTH = 5, 30, 40, 15

_PAUSES = re.compile(r"[\s.,;!…@~。、，！]+")
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]{1,2}|[^\W\u3040-\u30ff\u3400-\u9fff]+")
"""A word; of a script that is written without spaces a pair of signs."""
_SENTENCE = re.compile(r"[^.!?。！？؟\n]+[.!?。！？؟]*")
_REQUEST = re.compile(
    r"(?P<asked>\b(?:please|bitte|por\s+favor|s['’]il\s+\w+\s+pla[iî]t|per\s+favore|alsjeblieft|alstublieft|proszę"
    r"|lütfen|tolong)\b|пожалуйста|будь ласка|ください|下さい|お願い|请|請|주세요|부탁|من فضلك|לבקשה|कृपया|παρακαλώ"
    r"|\b(?:can|could|would|will)\s+(?:you|u|some(?:one|body)|any(?:one|body))\b|\b(?:i'd\s+like|need)\s+you\s+to\b)"
    r"|^\s*(?:(?:hey|hi|hello|and|then)\b,?\s+)?(?:\w+,\s+)?(?:send|show|tell|give|explain|write|make|help|find|check|fix"
    r"|run|look|summari[sz]e|remind|list|add|remove|delete|create|draft|review|translate|compare|describe|read|open|stop"
    r"|plan|pick|name|suggest|recall|collect|export|pull|merge|copy|put|set|sort|mark|search|update)\b",
    re.IGNORECASE,
)
_SHOWN = re.compile(
    r"```[\s\S]*?(?:```|\Z)|^[ \t]*>.*|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|「[^「」]*」|\"[^\"\n]*\"", re.MULTILINE
)
"""What is shown and not said, code and quotations: its lines ask for nothing."""
_LISTED = re.compile(r"^\s*(?:[-*•‣]|\d{1,2}[.)])\s+\S")
"""A line of a list. Lines that are listed for a soul are wishes."""
_CLAUSES = re.compile(r"[,;:，；、،]")
CLAUSE_WORDS = 3
"""A part between commas with so many words counts as a request of its own."""
LEAST_BIDDEN = 4
"""So many clauses that open with no function word of their language are orders, if one of them has more words than
that: who tells a story opens with one, and a diary is terse."""


class Lexicon(Struct, frozen=True, kw_only=True):
    """Everything that classification looks up."""

    cues: Cues
    """The cues of what is overheard."""
    critical: Cues
    """The cues of the critical classes."""
    acknowledgements: frozenset[tuple[str, ...]]
    """Whole messages that only acknowledge, as words."""
    nods: re.Pattern[str]
    """The signs that do."""


@cache
def lexicon() -> Lexicon:
    """Read the lexicon; cached for the life of the process. Raises: ValueError if the file is malformed."""
    tree: dict[str, Any] = tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text("utf-8"))
    classes, critical = tree["classes"], tree["critical"]
    return Lexicon(
        cues=Cues.of({name: entry["cues"] for name, entry in classes.items()}),
        critical=Cues.of({f"{name}!{part}": cues for name, entry in critical.items() for part, cues in entry.items()}),
        acknowledgements=frozenset(
            tuple(phrase.split()) for phrases in tree["trivial"]["phrases"].values() for phrase in phrases
        ),
        nods=re.compile(f"[{tree['trivial']['signs']}][\U0001f3fb-\U0001f3ff]?\ufe0f?"),
    )


def classify(text: str, address: str, *, soul_name: str, novelty: float) -> Heard:
    """Classify one text. Pure."""
    text = text[:HEARD_CHARS]
    said = tokens(text)
    words = [token.word for token in said if not token.ends_sentence]
    return Heard(
        load=0.7 * min(1.0, len(words) / 200) + (0.3 if questions(text) > 1 else 0.0),
        novelty=novelty,
        classes=frozenset() if address in ADDRESSED else overheard(text),
        critical=critical(text),
        stems=stems(text, soul_name),
        words=frozenset(words),
        is_question=questions(text) > 0,
        is_trivial=is_trivial(text, soul_name),
    )


def overheard(text: str) -> frozenset[str]:
    """Return the cue classes of a text that nobody owes a reply; none if it is not English. Pure."""
    if tongue(text) != "english":
        return frozenset()
    said = tokens(text)
    heard = {hit.name for hit in lexicon().cues.hits(said) if not is_negated(said, hit.first, hit.last)}
    asked = [found for one in sentences(text) for found in _REQUEST.finditer(one) if found["asked"]]  # "Open source…"
    return frozenset(heard | {"request"} if asked else heard)


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
    return sum([count or 1 for _, count in _requests(text)])


@lru_cache(maxsize=16)  # a hook and the ledger ask it of the same message
def scope(text: str, attachments: int = 0) -> int:
    """Return how much a message asks for: what asks, in words and requests, the stakes, and the attachments. Pure."""
    found = list(_requests(text))
    words = sum([len(_WORD.findall(sentence)) for sentence, _ in found])
    worth = sum([ASK_WORTH * count or QUESTION_WORTH for _, count in found])
    at_stake = CRITICAL_WORTH if critical(text) else 0
    return words + worth + at_stake + ATTACHMENT_WORTH * attachments


def _requests(text: str) -> Iterator[tuple[str, int]]:
    """Yield each sentence that asks for something, and how many things it wants done; 0 = it is a question."""
    said = dict.fromkeys(map(str.strip, sentences(_SHOWN.sub("", text))))  # what is said twice is asked once
    bidden = _bidden(said, text)
    for sentence in said:
        parts = _CLAUSES.split(sentence)
        if _LISTED.match(sentence) or bidden & set(parts) or any(map(_REQUEST.search, (sentence, *parts))):
            yield sentence, max(1, sum([len(_WORD.findall(part)) >= CLAUSE_WORDS for part in parts]))
        elif questions(sentence[-2:]):
            yield sentence, 0


def _bidden(said: Iterable[str], text: str) -> set[str]:
    """Return the clauses of a text that are a row of orders; none where the function words are not known."""
    parts = [part for sentence in said if not questions(sentence[-2:]) for part in _CLAUSES.split(sentence)]
    language = tongue(text) if len(parts) >= LEAST_BIDDEN else ""
    common, found = FUNCTION_WORDS | FUNCTION_WORDS_OF.get(language, frozenset()), set[str]()
    for part in parts if language else ():
        first, *rest = _WORD.findall(part.lower()) or ("",)
        if rest and len(first) > 1 and first.isalpha() and first not in common:
            found.add(part)
    longest = max([len(_WORD.findall(part)) for part in found], default=0)
    return found if language in FUNCTION_WORDS_OF and len(found) >= LEAST_BIDDEN < longest else set()


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, with their end punctuation. Pure."""
    for found in _SENTENCE.finditer(text[:HEARD_CHARS]):
        if found[0].strip():
            yield found[0]
