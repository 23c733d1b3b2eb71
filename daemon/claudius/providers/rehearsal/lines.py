"""Parse `soul/rehearsal.md`: what the voice without a model listens for, and the lines that it says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from string import Template

from msgspec import Struct, ValidationError, convert, field

from claudius.decoding import ready
from claudius.errors import BadSoul
from claudius.soul import SoulFile

VALUES = "name again soul said summary recalled present due limits known plans about env told clock"
"""The `$` placeholders that a line may contain."""


def plain(text: str) -> str:
    """Reduce a text to its words in lower case, a blank between them and `^`, `$` at its ends. Pure."""
    return " ".join(["^", *re.findall(r"[\w'|]+", text.casefold().replace("’", "'")), "$"])


def cues(text: str) -> Iterator[str]:
    """Yield the `plain` phrases that a cue stands for. Pure."""
    begins, ends = text.startswith("=") or text.endswith("…"), text.startswith(("=", "…"))
    words = plain(text)[not begins : None if ends else -1]
    yield from map(" ".join, product(*[word.split("|") for word in words.split(" ")]))


class FactKind(Struct, frozen=True, forbid_unknown_fields=True):
    """A kind of statement about oneself, what is kept and told of it, and patterns of its opening and of what follows.

    kind: as `know` names it. keys: by what it may be asked for. single: a newer one replaces it.
    """

    hears: str
    keeps: str
    tells: str
    kind: str = "other"
    keys: tuple[str, ...] = ()
    single: bool = False
    only: str = ".+"
    but_not: str = r"\Z"
    until: str = r"\Z"
    says: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()


class LinesHead(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The head of rehearsal.md, where comments explain each of these; `names` are the capitals in patterns."""

    feelings: tuple[str, ...]
    appraises: Mapping[str, str]
    never_keep: tuple[str, ...]
    thinks: tuple[str, ...]
    speaks: tuple[str, ...]
    thoughts: tuple[str, ...]
    small_words: str
    asks_with: str
    recalled: Mapping[str, str]
    folded: Mapping[str, str]
    spelled: Mapping[str, str]
    third_person: Mapping[str, str]
    second_person: Mapping[str, str]
    names: dict[str, str]
    patterns: Mapping[str, str]
    times: tuple[str, ...]
    arithmetic: Mapping[str, str]
    counts: Mapping[str, float]
    hours: Mapping[str, int]
    rhythms: Mapping[str, str]
    facts: tuple[FactKind, ...]


class TopicLines(Struct):
    """What answers one topic, from which `line` of the file on, and its `stray` lines that are of no kind."""

    cues: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    groups: list[list[str]] = field(default_factory=lambda: [[]])
    line: int = 0
    stray: list[int] = field(default_factory=list)


class Lines:
    """The content of rehearsal.md; what an owner's file leaves out is as in the `shipped` one. Raises: BadSoul."""

    def __init__(self, file: SoulFile, shipped: SoulFile | None = None) -> None:
        try:
            base = (shipped or file).head
            head = {**base, **file.head}
            words = convert({**head, "patterns": {**base["patterns"], **head["patterns"]}}, ready(LinesHead))
            names = words.names | {"HEARS": re.sub(r"\?P<\w+>", "?:", "|".join([fact.hears for fact in words.facts]))}
            self.patterns = {name: _compiled(text, names) for name, text in words.patterns.items()}
            self.times = [_compiled(rf"(?<![\w-])(?:{text})$", names) for text in words.times]
            fits = [rf"(?!(?:{one.but_not})(?![\w']))(?:{one.only})$" for one in words.facts]
            self.facts = [(fact, _compiled(fit, names)) for fact, fit in zip(words.facts, fits, strict=True)]
        except (ValidationError, re.error, KeyError, TypeError) as error:
            raise BadSoul(str(file.source), 1, f"its head: {error}", "the shipped file shows what fits") from error
        self.words, self.sections = words, sections_of(file)
        self.secrets = [cue for text in words.never_keep for cue in cues(text)]
        for name, other in sections_of(shipped).items() if shipped else ():
            own = self.sections.setdefault(name, other)
            own.cues, own.thoughts = own.cues or other.cues, own.thoughts or other.thoughts
            own.groups = own.groups if any(own.groups) else other.groups
        self.tongues = tuple([(name.partition(", in ")[2], " ".join(it.cues)) for name, it in self.sections.items()])

    def answering(self, message: str, tongue: str) -> tuple[str, str]:
        """Return the section of a feeling, else of a tongue, else one whose cue is all of it, and that cue. Pure."""
        ranks = {name: rank for rank, name in enumerate(reversed(self.words.feelings), 1)}
        text, found = plain(message), (0, False, 0, "", "")
        bare, whole = self.patterns["stress"].sub("", text), {text, text[1:], text[:-1], text[1:-1]}
        for name, section in self.sections.items():
            topic, _, language = name.partition(", in ")
            rank, turned = ranks.get(it := topic.partition(",")[0], 0), self.patterns.get(f"turns {it}")
            is_of, few = (language or "English") == tongue, 6 if self.patterns["small talk"].match(topic) else 20
            for cue in section.cues if is_of or rank else whole.intersection(section.cues):
                said = text if cue in text else bare
                if cue in said and (rank, is_of, len(cue)) > found[:3]:
                    most = len(text) * (is_of or " " in cue[1:-1] or it == "plea") if rank else few  # other words
                    is_turned = turned and turned.search(said.replace(cue, " + ", 1))
                    if not (is_turned or text.count(" ") - cue.count(" ") > most):
                        found = (rank, is_of, len(cue), name, cue)
        return found[3:]


def _compiled(pattern: str, names: Mapping[str, str]) -> re.Pattern[str]:
    """Compile a pattern with the alternatives that words in capitals stand for; these may hold other such words."""
    full = re.sub(r"\b[A-Z]{3,}\b", lambda name: f"(?:{names[name[0]]})", pattern)
    return re.compile(full, re.IGNORECASE) if full == pattern else _compiled(full, names)


def say(template: str, values: Mapping[str, str]) -> str:
    """Fill in a line; "" if one of its values is not known. Pure."""
    line = Template(template)
    return line.substitute(values) if all(map(values.get, line.get_identifiers())) else ""


def choose(lines: Iterable[str], values: Mapping[str, str], seed: int, spoken: str = "") -> str:
    """Return the seed's choice of the lines that can be filled in, one not in `spoken` if there is any. Pure."""
    said = [line for template in lines if (line := say(template, values))] or [""]
    turned = said[seed % len(said) :] + said[: seed % len(said)]
    return next(iter([line for line in turned if line not in spoken]), turned[0])


def answer(section: TopicLines, values: Mapping[str, str], seed: int, spoken: str = "") -> str:
    """Return a line from the first group of a section that has one that can be filled in, or "". Pure."""
    return next(filter(None, [choose(group, values, seed, spoken) for group in section.groups]), "")


def sections_of(file: SoulFile) -> dict[str, TopicLines]:
    """Parse the sections of a lines file. Raises: BadSoul for an unknown placeholder."""
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
            may_hold = dict.fromkeys([] if mark == "~" else VALUES.split(), "")
            SoulFile(file.name, line, file.source, "", line=number).fill(**may_hold)
    return sections
