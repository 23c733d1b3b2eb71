"""Extract what people say explicitly about themselves, and choose what a prompt shows first. Pure.

Nothing is inferred: a fact is a first-person statement that one of the patterns below takes word for word. Anything
else is still kept as a moment, and found as one. Source: the psyche design, section 10; the memory design, W2.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from claudius.memory.stemming import TEXT_CHARS, stemmed
from claudius.recollection import Fact

CONSTRAINTS = ("allergic to", "must not", "takes", "is")
"""The keys of facts that must not be forgotten, shown before all others."""
TELLS = re.compile(r"\b(?:my|call me|i|im|i'm|i've)\b", re.IGNORECASE)
"""Every stated fact contains one of these words, so texts without them need not be read."""
_NAME = r"([A-Z][\w'-]{0,30}(?: [A-Z][\w'-]{0,30}){0,2})"
_CLAUSE = r"[^.!?,;\n]{2,60}"
_REST = rf"({_CLAUSE})"
_I, _AM = r"\b(?:I|i)", r"\b(?:(?:I|i)(?:['’]m| am)|Im)(?: also| still| actually)?"
_LASTING = (
    r"((?:an? |the |partly |half |completely |severely |recently )*"
    r"(?:vegan|vegetarian|pescatarian|coeliac|celiac|diabetic|asthmatic|epileptic|pregnant|deaf|blind|colou?r-?blind|"
    r"dyslexic|autistic|lactose[ -]intolerant|gluten[ -]intolerant|teetotal|sober|left-handed|married|divorced|widowed|"
    r"single|engaged|retired|unemployed|muslim|jewish|christian|hindu|buddhist|catholic|"
    r"nurse|teacher|doctor|student|engineer|lawyer|carpenter|cook|chef|baker|pilot|driver|gardener|musician|painter|"
    r"writer|designer|programmer|developer|electrician|plumber|accountant|librarian|journalist|photographer|"
    r"\w+ years old|\w+ (?:centimetres|feet) tall)(?: [^.!?,;\n]{1,40})?)"
)
_DEED = rf"((?:eat|drink|tolerate|swim|drive|fly|climb|lift) {_CLAUSE})"
_HELD = (
    r"((?:diabetes|asthma|epilepsy|migraines?|arthritis|coeliac disease|adhd|anxiety|insomnia|"
    r"a (?:pacemaker|bad (?:knee|back|heart)|heart condition|son|daughter|dog|cat)|"
    r"(?:two|three|four|five|\d) (?:sons?|daughters?|children|kids|dogs?|cats?|brothers?|sisters?))"
    rf"(?: {_CLAUSE})?)"
)
_KINDRED = (
    "mum mom mother dad father brother sister son daughter wife husband partner boyfriend girlfriend fiancé fiancée "
    "grandmother grandfather grandma grandpa aunt uncle cousin niece nephew dog cat horse parrot rabbit friend boss"
)
_KIN = "|".join(_KINDRED.split())
_SINGLE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("name", re.compile(rf"\b[Mm]y name(?:['’]s| is) {_NAME}")),
    ("name", re.compile(rf"\b[Cc]all me {_NAME}")),
    ("lives in", re.compile(rf"{_I}(?: now)? live (?:in|at|near) {_REST}")),
    ("comes from", re.compile(rf"{_AM} (?:originally )?from {_REST}")),
    ("works", re.compile(rf"{_I}(?: now)? work ((?:at|as|for|in) [^.!?,;\n]{{2,60}})")),
    ("birthday", re.compile(rf"\b[Mm]y birthday(?:['’]s| is) (?:on )?{_REST}")),
    ("was born", re.compile(rf"{_I} was born ((?:in|on|at) [^.!?,;\n]{{2,60}})")),
)
_MANY: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("allergic to", re.compile(rf"{_AM} (?:\w+ )?allergic to {_REST}")),
    ("allergic to", re.compile(rf"{_I} have an? ([\w-]+ allergy)")),
    ("must not", re.compile(rf"{_I} (?:must not|mustn['’]t|am not allowed to|cannot|can['’]t) {_DEED}")),
    ("must not", re.compile(rf"{_I} (?:don['’]t|do not|never) ((?:eat|drink) {_CLAUSE})")),
    ("takes", re.compile(rf"{_I} take ([^.!?,;\n]{{2,40}} (?:a day|daily|every \w+|at night|for my \w+))")),
    ("is", re.compile(rf"{_AM} {_LASTING}", re.IGNORECASE)),
    ("has", re.compile(rf"{_I} have {_HELD}", re.IGNORECASE)),
    ("prefers", re.compile(rf"{_I} prefer {_REST}")),
    ("loves", re.compile(rf"{_I} (?:really )?love (?!you\b){_REST}")),
    ("hates", re.compile(rf"{_I} (?:really )?(?:hate|can['’]t stand|dislike) (?!you\b){_REST}")),
    ("is afraid of", re.compile(rf"{_AM} (?:afraid|scared|terrified) of {_REST}")),
)
KEYS = frozenset([*(key for key, _ in (*_SINGLE, *_MANY)), *_KINDRED.split()])
"""Every key that a fact may have."""
_KIN_NAMED = re.compile(rf"\b[Mm]y ({_KIN})(?:['’]s name)? is (?:called |named )?{_NAME}")


def stated_facts(text: str, person: str, sources: tuple[str, ...], turn: str, stated_s: float) -> tuple[Fact, ...]:
    """Return the facts that a person states explicitly about themself; nothing is inferred. Pure."""
    text = text[:TEXT_CHARS]
    found: dict[tuple[str, str], None] = {}
    for key, pattern in (*_SINGLE, *_MANY):
        for match in pattern.finditer(text):
            found[key, " ".join(match[1].split())] = None
    for match in _KIN_NAMED.finditer(text):
        found[match[1].lower(), match[2]] = None
    return tuple(
        [
            Fact(
                person=person,
                key=key,
                value=value,
                sources=sources,
                turn=turn,
                stated_s=stated_s,
                is_single=is_single_valued(key),
            )
            for key, value in found
        ]
    )


def is_single_valued(key: str) -> bool:
    """Return whether a newer value of this key replaces an older one. Pure."""
    return key not in {name for name, _ in _MANY}


def in_order(facts: Iterable[Fact], asked: Collection[str]) -> list[Fact]:
    """Return facts in the order in which they are shown: constraints, those that share a stem, the newest. Pure."""
    return sorted(
        facts,
        key=lambda one: (
            one.key not in CONSTRAINTS,
            frozenset(asked).isdisjoint(stemmed(f"{one.key} {one.value}")),
            -one.stated_s,
        ),
    )
