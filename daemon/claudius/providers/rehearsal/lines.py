"""Parse `soul/rehearsal.md`: what the voice without a model listens for, and the lines that it says.

A cue is a phrase of a message; `…` marks an end of the message that it must touch, `=` that it is all of it, and
`a|b` are two words that it may hold in one place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from string import Template

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from claudius.decoding import ready
from claudius.errors import BadSoul, near
from claudius.soul import SoulFile

SECTIONS = (
    "unattached, learned, already known, corrected, not kept, question, statement, silence, summary, elsewhere, recalled, "
    "recalled beside, recalled of others, recalled of mine, not remembered, beware, reminder, reminder without a time, plans, "
    "no plan, which plan, cancelled, moved, forgotten, no such fact, no longer, zone, no such zone, not done, due, whisper"
).split(", ")
"""The sections that code calls for by their names."""
VALUES = "name again soul title said last summary recalled present due limits known plans about env told".split()
"""The `$` placeholders that a line may contain."""
SMALL_TALK_WORDS = 6
"""A cue at an end of a message counts where the message has no more words beside it."""


def plain(text: str) -> str:
    """Reduce a text to its words in lower case, a blank between them and `^`, `$` at its ends. Pure."""
    words = re.findall(r"[\w'|]+", text.casefold().replace("’", "'"))
    return f"^ {' '.join(words)} $"


def cues(text: str) -> Iterator[str]:
    """Yield the `plain` phrases that a cue stands for. Pure."""
    begins, ends = text.startswith("=") or text.endswith("…"), text.startswith(("=", "…"))
    words = plain(text)[not begins : None if ends else -1]
    yield from map(" ".join, product(*[word.split("|") for word in words.split(" ")]))


class FactKind(Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of statement about oneself. `hears`, `only`, `but_not` and `until` are patterns that ignore case."""

    hears: str
    """Its opening words."""
    keeps: str
    tells: str
    """What is kept, to the speaker."""
    kind: str = "other"
    """As the act `know` names it."""
    keys: tuple[str, ...] = ()
    """Words by which it may be asked for."""
    single: bool = False
    """A newer one stands instead of the older."""
    only: str = ".+"
    """What the words must fit."""
    but_not: str = r"\Z"
    """What they must not begin with."""
    until: str = r"\Z"
    """Before what they are cut."""
    says: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()


class LinesHead(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The head of rehearsal.md."""

    feelings: tuple[str, ...]
    """Sections that go before others, and are the whole answer."""
    appraises: Mapping[str, str]
    """How what a section answers lands."""
    never_keep: tuple[str, ...]
    thinks: tuple[str, ...]
    speaks: tuple[str, ...]
    thoughts: tuple[str, ...]
    """For sections without a thought of their own."""
    small_words: str
    """Words by which nothing is found."""
    asks_with: str
    """Words of a question that say nothing of what it is about."""
    recalled: Mapping[str, str]
    """How a line of memory is read out, by whose it is."""
    heard: str
    answered: str
    spelled: Mapping[str, str]
    third_person: Mapping[str, str]
    second_person: Mapping[str, str]
    names: Mapping[str, str]
    """What a word in capitals stands for in the patterns: alternatives."""
    patterns: Mapping[str, str]
    times: tuple[str, ...]
    """Patterns of the ends of a phrase that say when, with named groups."""
    facts: tuple[FactKind, ...]


class TopicLines(Struct):
    """What answers one topic: the first group with a line whose placeholders are all known is used."""

    cues: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    groups: list[list[str]] = field(default_factory=lambda: [[]])
    line: int = 0
    """Where the file begins it."""
    stray: list[int] = field(default_factory=list)
    """The lines of the file that belong to none of these."""


class Lines(Struct, frozen=True):
    """The content of rehearsal.md."""

    words: LinesHead
    sections: Mapping[str, TopicLines]
    patterns: Mapping[str, re.Pattern[str]]
    times: tuple[re.Pattern[str], ...]
    secrets: tuple[str, ...]

    @classmethod
    def of(cls, file: SoulFile, shipped: SoulFile | None = None) -> Lines:
        """Parse the lines file; what it leaves out is as in the `shipped` one. Raises: BadSoul."""
        try:
            words = msgspec.convert({**(shipped.head if shipped else {}), **file.head}, ready(LinesHead))
            hears = re.sub(r"\?P<\w+>", "?:", "|".join([fact.hears for fact in words.facts]))
            names = words.names | {"HEARS": hears}
            forms = [{key: _spelt(getattr(one, key), names) for key in ("only", "but_not")} for one in words.facts]
            facts = tuple([replace(one, **form) for one, form in zip(words.facts, forms, strict=True)])
            patterns = {name: re.compile(_spelt(text, names), re.I) for name, text in words.patterns.items()}
            times = tuple([re.compile(rf"(?<![\w-])(?:{_spelt(text, names)})$", re.I) for text in words.times])
        except (msgspec.ValidationError, re.error, KeyError) as error:
            fix = "the shipped file shows what belongs there"
            raise BadSoul(str(file.source), 1, f"its head: {error}", fix) from error
        sections = _sections(file)
        for name, other in _sections(shipped).items() if shipped else ():
            own = sections.setdefault(name, other)
            own.cues, own.thoughts = own.cues or other.cues, own.thoughts or other.thoughts
            own.groups = own.groups if any(own.groups) else other.groups
        for name in SECTIONS:
            if name not in sections:
                raise BadSoul(str(file.source), 0, f"has no section ## {name}", "the shipped file shows it")
        said = [line for fact in words.facts for line in (fact.keeps, fact.tells, *fact.says, *fact.asks)]
        for line in (words.heard, words.answered, *words.recalled.values(), *said):
            _check(file, 1, line, ("words", "kin", "name", "when"))
        words = replace(words, facts=facts)
        return cls(words, sections, patterns, times, tuple(cue for text in words.never_keep for cue in cues(text)))

    def answering(self, message: str) -> tuple[str, str]:
        """Return the section with the longest cue in a message, and that cue; feelings go first. Pure."""
        text = plain(message)
        found = (False, 0, "", "")
        for name, section in self.sections.items():
            is_felt = name.partition(",")[0] in self.words.feelings
            for cue in section.cues:
                if (is_felt, len(cue)) > found[:2] and cue in text:
                    is_small_talk = cue[0] == "^" or cue[-1] == "$"
                    if not is_small_talk or text.count(" ") - cue.count(" ") <= SMALL_TALK_WORDS:
                        found = (is_felt, len(cue), name, cue)
        return found[2:]


def _spelt(pattern: str, names: Mapping[str, str]) -> str:
    """Return a pattern with the alternatives that words in capitals stand for; these may hold other such words."""
    spelt = re.sub(r"\b[A-Z]{3,}\b", lambda name: f"(?:{names[name[0]]})", pattern)
    return spelt if spelt == pattern else _spelt(spelt, names)


def say(template: str, values: Mapping[str, str]) -> str:
    """Fill in a line; "" if one of its values is not known. Pure."""
    line = Template(template)
    return line.substitute(values) if all(values.get(name) for name in line.get_identifiers()) else ""


def choose(lines: Iterable[str], values: Mapping[str, str], seed: int, spoken: str = "") -> str:
    """Return the seed's choice of the lines that can be filled in, one not in `spoken` if there is any. Pure."""
    said = [line for template in lines if (line := say(template, values))] or [""]
    turned = said[seed % len(said) :] + said[: seed % len(said)]
    return next((line for line in turned if line not in spoken), turned[0])


def answer(section: TopicLines, values: Mapping[str, str], seed: int, spoken: str = "") -> str:
    """Return a line from the first group of a section that has one that can be filled in, or "". Pure."""
    return next(filter(None, [choose(group, values, seed, spoken) for group in section.groups]), "")


def unused(own: SoulFile, shipped: SoulFile) -> Iterator[BadSoul]:
    """Yield what has no effect in an owner's file: a section that nothing calls for, a line of no kind. Pure."""
    file, known, sections = str(own.source), _sections(shipped), _sections(own)
    if not (sections or own.head):
        yield BadSoul(file, own.line, "nothing in it is used: it has no section", "begin one with `## ` and its name")
    for name, section in sections.items():
        if name not in known and not section.cues:
            detail = f"## {name} is never said: there is no such section, and it has no `>` line"
            yield BadSoul(file, section.line, detail, f"correct its name, or give it one{near(name, known)}")
        for line in section.stray:
            detail = "is not used: it begins with none of `>`, `~` and `-`"
            yield BadSoul(file, line, detail, "begin it with `- ` to have it said")


def _sections(file: SoulFile) -> dict[str, TopicLines]:
    sections: dict[str, TopicLines] = {}
    section = TopicLines()
    for number, line in enumerate(file.text.split("\n"), file.line):
        mark, _, text = line.partition(" ")
        if mark == "##":
            section = sections[text.strip()] = TopicLines(line=number)
        elif mark == ">":
            section.cues += [cue for one in text.split(" / ") for cue in cues(one.strip())]
        elif mark in ("~", "-"):
            (section.thoughts if mark == "~" else section.groups[-1]).append(text.strip())
        elif not line:
            section.groups.append([])
        elif section.groups[-1]:
            section.groups[-1][-1] += f"\n{line}"
        else:
            section.stray.append(number)
        if section.line and mark not in ("##", ">"):
            _check(file, number, line, () if mark == "~" else VALUES)
    return sections


def _check(file: SoulFile, line: int, template: str, known: Iterable[str]) -> None:
    SoulFile(file.name, template, file.source, "", line=line).fill(**dict.fromkeys(sorted(known), ""))
