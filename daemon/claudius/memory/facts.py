"""Extract what people say explicitly about themselves, and choose what a prompt shows first. Pure.

Nothing is inferred: a fact is a first-person statement that one of the patterns below takes word for word, and that
opens its sentence, so that nobody else says it and nothing is supposed. Anything else is still kept as a moment, and
found as one. A fact ends with a statement that something is no longer so and that shares a stem with it.
Source: the psyche design, section 10; the memory design, W2.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import takewhile

from claudius.acts import FactEnded, FactKnown, Forgotten, MatterClosed, MatterOpened
from claudius.intent import Intent
from claudius.memory.database import Database
from claudius.memory.ranking import TEXT_CHARS, stemmed
from claudius.recollection import Fact

CONSTRAINTS = ("allergic to", "must not", "takes", "is")
"""The keys of facts that must not be forgotten, shown before all others."""
ENDED = "no longer"
"""The key of a statement that ends other facts, and is never shown as one."""
TELLS = re.compile(r"\b(?:my|i|im|i'm|i've|we|we've|no longer|any ?more|called off|left)\b", re.IGNORECASE)
"""Every stated fact, and everything that ends one, contains one of these words: other texts need not be read."""
_NAME = r"([^\W\d_][\w'-]{0,30}(?: [^\W\d_][\w'-]{0,30}){0,2})"
_CLAUSE = r"[^.!?,;\n]{2,60}"
_REST = rf"({_CLAUSE})"
_THING = rf"(?!(?:you|it|this|that|these|those|them|him|her)\b){_REST}"
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
_NAMED = re.compile(rf"\b[Mm]y name(?:['’]s| is) {_NAME}")
_INTRODUCED = re.compile(rf"\b[Ii](?:['’]m| am)(?: also| still| actually)? {_NAME}")
_MOVED = re.compile(rf"\b(?:I|We|we)(?:['’]ve| have)?(?: just)? moved to {_NAME}")
_KIN_NAMED = re.compile(rf"\b[Mm]y ({_KIN})(?:['’]s name)? is (?:called |named )?{_NAME}")
_OF_NAMES = (_NAMED, _INTRODUCED, _MOVED, _KIN_NAMED)
_SINGLE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("name", _NAMED),
    ("name", _INTRODUCED),
    ("lives in", re.compile(rf"{_I}(?: now)? live (?:in|at|near) {_REST}")),
    ("lives in", _MOVED),
    ("comes from", re.compile(rf"{_AM} (?:originally )?from {_REST}")),
    ("works", re.compile(rf"{_I}(?: now)? work ((?:at|as|for|in) [^.!?,;\n]{{2,60}})")),
    ("birthday", re.compile(rf"\b[Mm]y birthday(?:['’]s| is) (?:on )?(?!today|tomorrow|in |next |this ){_REST}")),
    ("was born", re.compile(rf"{_I} was born ((?:in|on|at) [^.!?,;\n]{{2,60}})")),
)
_MANY: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("allergic to", re.compile(rf"{_AM} (?:(?!not|never|hardly)\w+ )?allergic to {_REST}")),
    ("allergic to", re.compile(rf"{_I} have an? ([\w-]+ allergy)")),
    ("must not", re.compile(rf"{_I} (?:must not|mustn['’]t|am not allowed to|cannot|can['’]t) {_DEED}")),
    ("must not", re.compile(rf"{_I} (?:don['’]t|do not|never) ((?:eat|drink) {_CLAUSE})")),
    ("takes", re.compile(rf"{_I} take ([^.!?,;\n]{{2,40}} (?:a day|daily|every \w+|at night|for my \w+))")),
    ("is", re.compile(rf"{_AM} {_LASTING}", re.IGNORECASE)),
    ("has", re.compile(rf"{_I} have {_HELD}", re.IGNORECASE)),
    ("prefers", re.compile(rf"{_I} prefer {_REST}")),
    ("loves", re.compile(rf"{_I} (?:really )?love {_THING}")),
    ("hates", re.compile(rf"{_I} (?:really )?(?:hate|can['’]t stand|dislike) {_THING}")),
    ("is afraid of", re.compile(rf"{_AM} (?:afraid|scared|terrified) of {_REST}")),
)
KEYS = frozenset([*(key for key, _ in (*_SINGLE, *_MANY)), *_KINDRED.split()])
"""Every key that a fact may have."""
_ENDED_NAME = re.compile(r"\s*(?:$|[.!,;:)\n–—。！，]|- |(?:and|but|from)\b)")
_ALONE = re.compile(r"[^\w?]*$|[.!]\s|\W{1,2}(?:and|but|from)\b")
"""What may follow a name without a greeting before it: the end of the sentence, or more of whoever has it."""
_GREETS = re.compile(r"(?:hi|hello|hey|good \w+)\b", re.IGNORECASE)
_GREETED = re.compile(rf"(?:^|[.!?;\n])\s{{0,9}}{_GREETS.pattern}[^.!?;\n]*[.!\n]\s{{0,9}}$", re.IGNORECASE)
"""A sentence before that greets."""
_NO_NAME = re.compile(rf"\w{{2,}}(?:ish|ese)|\w{{4,}}(?:ian|ean|can)|{_LASTING}", re.IGNORECASE)
"""What begins with a capital after "I'm" and is no name, unless a greeting goes before: of a people, of a faith."""
_PREDICATES = """
    a about above absent afraid all almost alone alright angry anxious asleep at available awake away awesome
    back bad better bored busy changed cold confused curious done down drunk early excited exhausted fine
    finished free full glad going gone good great happy hard here home hot hungry ill in inside interested just
    kidding late leaving long looking lost mad missing misspelled nervous new no not off ok okay old on online
    out outside over pleased private proud ready right sad safe scared secret serious short sick so sorry
    starving stuck sure surprised taken thankful the there thirsty thrilled through tired too trying under
    unknown unsure up upset very waiting well working worried wrong yours
"""
_NEVER_NAMED = frozenset(_PREDICATES.split())
"""What people say that they, or their names, are; nobody is called so, with a capital or a greeting or without."""
_QUOTED = re.compile(r"“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|\"[^\"\n]*\"|^>.*$", re.MULTILINE)
_OPENS = re.compile(
    r"(?>(?:hi|hello|hey|there|and|but|so|well|also|oh|yes|no|ok|okay|btw|by the way|actually|please|\w+(?=,))\W+)*+"
    r"(?:(?:i|i['’]m|i['’]ve|im|my|we|we['’]ve)\b"
    r"(?!.*\b(?:if|wish|wished|would|suppose|imagine|pretend|think|guess|might)\b).*)?",
    re.IGNORECASE,
)
"""What may stand before a fact in its sentence: nothing, a greeting, or more that is said in the first person."""
_ENDS = re.compile(
    r"\b(?:no longer|any ?more|called off)\b"
    r"|\b(?:I|we|he|she|they)(?:['’]ve|['’]s| have| has)?(?: just| finally)? left\b"
    rf"|{_AM} not (?:allergic|afraid|from|{_LASTING})",
    re.IGNORECASE,
)
_LEFT = re.compile(r"\b(?:left|called off)\b", re.IGNORECASE)
_HAS = ("allergic to", "takes")
"""The constraints that end only with a statement that says as much."""
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]*")
_CLAUSE_OF = re.compile(r"[^,;]+")


def stated_facts(text: str, person: str, sources: tuple[str, ...], turn: str, stated_s: float) -> tuple[Fact, ...]:
    """Return the facts that a person states explicitly about themself, and the statements that end some. Pure."""
    text = _QUOTED.sub(" ", text[:TEXT_CHARS])
    found: dict[tuple[str, str], None] = {}
    places: list[int] = []
    for key, pattern in (*_SINGLE, *_MANY, ("", _KIN_NAMED)):
        for match in pattern.finditer(text):
            before = re.split(r"[.!?;\n]", text[: match.start()])[-1].lstrip()
            words = _name(match, before) if pattern in _OF_NAMES else " ".join(match[1].split())
            if not words:
                continue
            places.append(match.start())
            if _OPENS.fullmatch(before):
                found[key or match[1].lower(), words] = None
    for sentence in _SENTENCE.finditer(text):
        if "?" in sentence[0] or not _ENDS.search(sentence[0]):
            continue
        for clause in _CLAUSE_OF.finditer(text, sentence.start(), sentence.end()):
            if _ENDS.search(clause[0]) and not any(clause.start() <= place < clause.end() for place in places):
                found[ENDED, " ".join(clause[0].split()).rstrip(".!")] = None
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


def book_fact(
    db: Database, intent: Intent, act: FactKnown | FactEnded | Forgotten | MatterOpened | MatterClosed
) -> str:
    """Book one act about facts or matters; return its receipt, empty if it has none."""
    raise NotImplementedError


def _name(match: re.Match[str], before: str) -> str:
    """Return the name that a text tells, of any script; "" if it tells none. `before`: the sentence up to it. Pure."""
    words, begin = match[match.lastindex or 0], match.start(match.lastindex or 0)
    name = " ".join(takewhile(lambda word: not word[0].islower(), words.split()))
    is_own = match.re in (_NAMED, _INTRODUCED)
    if is_own and (words.split()[0].casefold() in _NEVER_NAMED or name.endswith("'s")):
        return ""
    if match.re is _NAMED and not name:  # "my name is ada" and nothing more
        first = words.split()[0]
        return first.title() if _ENDED_NAME.match(match.string, begin + len(first)) else ""
    if match.re is _INTRODUCED:
        end = begin + len(name)
        if not name or name.isupper() or not _ENDED_NAME.match(match.string, end):
            return ""
        if _GREETS.match(before):
            return name
        is_told = _GREETED.search(match.string, 0, match.start()) or _ALONE.match(match.string, end)
        return name if is_told and not _NO_NAME.fullmatch(name) else ""
    return name


def is_single_valued(key: str) -> bool:
    """Return whether a newer value of this key replaces an older one. Pure."""
    return key != ENDED and key not in {name for name, _ in _MANY}


def in_force(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    """Return the facts that no later one replaces or ends. Pure."""
    newest: dict[tuple[str, ...], Fact] = {}
    for fact in sorted(facts, key=lambda one: one.stated_s):
        if fact.key == ENDED:
            stems = frozenset(stemmed(fact.value))
            ended = [
                key
                for key, one in newest.items()
                if one.person == fact.person
                and one.stated_s < fact.stated_s
                and not stems.isdisjoint(stemmed(one.value))
                and _may_end(one.key, fact.value, stems)
            ]
            for key in ended:
                del newest[key]
        else:
            newest[(fact.person, fact.key) if fact.is_single else (fact.person, fact.key, fact.value)] = fact
    return tuple(newest.values())


def _may_end(key: str, said: str, stems: Collection[str]) -> bool:
    """Return whether such a statement ends a fact of this key: what was left at home ends no constraint. Pure."""
    if key not in CONSTRAINTS:
        return True
    is_of_it = key not in _HAS or not set(stemmed(key)).isdisjoint(stems) or "allergy" in said.lower()
    return is_of_it and not _LEFT.search(said)


def in_order(facts: Iterable[Fact], asked: Collection[str]) -> list[Fact]:
    """Return the facts that share a stem with what is heard, in their order: constraints first, then the newest. Pure.

    A pattern may have read one wrongly, so none is shown where nothing said bears on it.
    """
    stems = frozenset(asked)
    near = [one for one in facts if not stems.isdisjoint(stemmed(f"{one.key} {one.value}"))]
    return sorted(near, key=lambda one: (one.key not in CONSTRAINTS, -one.stated_s))
