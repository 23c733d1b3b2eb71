"""Parse `soul/rehearsal.md`: the cues that the offline voice recognises and the lines that it says.

A cue is a phrase in a message, or the opening of a clause that states something.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import Template
from typing import Literal

import msgspec
from msgspec import Struct, field

from claudius.decoding import ready
from claudius.errors import BadSoul, near
from claudius.soul import SoulFile

SECTIONS = (
    "unattached",
    "learned",
    "already known",
    "not kept",
    "question",
    "statement",
    "silence",
    "summary",
    "elsewhere",
    "recalled",
    "recalled beside",
    "recalled of others",
    "recalled of mine",
    "not remembered",
    "beware",
    "reminder",
    "reminder without a time",
    "plans",
    "no plan",
    "which plan",
    "cancelled",
    "moved",
    "forgotten",
    "no such fact",
    "no longer",
    "opened",
    "closed",
    "zone",
    "no such zone",
    "not done",
    "due",
    "whisper",
)
"""The sections that are not chosen by a cue. Those of the moods are called `mood NAME`."""
VALUES = frozenset(
    (
        *("name", "soul", "title", "headings", "notes", "note", "topic", "last", "said", "summary", "mood", "quote"),
        *("kept", "recalled", "present", "due", "limits", "known", "plans", "about"),
    )
)
"""The `$` placeholders that a line may contain."""
NAME_WORDS = 3
EDGES = ' \t,;:.!–—-()[]“”"…'
"""Characters stripped from the ends of a clause."""

_BEFORE_CHARS = 40
_WORD = re.compile(r"[\w']+")


def plain(text: str) -> str:
    """Reduce a text to lower-case words with one blank between and around them, for finding cues. Pure."""
    words = _WORD.findall(text.casefold().replace("’", "'"))
    return f" {' '.join(words)} "


class Cue(Struct, frozen=True):
    """One phrase, matched anywhere, at the end (… cue), at the start (cue …), or alone (= cue)."""

    words: str
    place: Literal["anywhere", "start", "end", "alone"]

    @classmethod
    def of(cls, text: str) -> Cue:
        """Parse a cue as written in the lines file. Pure."""
        if text.startswith("="):
            return cls(plain(text), "alone")
        if text.startswith("…"):
            return cls(plain(text), "end")
        return cls(plain(text), "start" if text.endswith("…") else "anywhere")

    def is_in(self, text: str) -> bool:
        """Return whether it occurs in a `plain` text. Pure."""
        match self.place:
            case "start":
                return text.startswith(self.words)
            case "end":
                return text.endswith(self.words)
            case "alone":
                return text == self.words
        return self.words in text


def cues(texts: Iterable[str]) -> tuple[Cue, ...]:
    """Parse several cues. Pure."""
    return tuple(map(Cue.of, texts))


class Openings(Struct, frozen=True):
    """Phrases that count at the start of a sentence or clause, each with the words that follow it."""

    _phrase: re.Pattern[str]
    _before: re.Pattern[str]
    _follows: tuple[str, ...]

    @classmethod
    def of(cls, phrases: Iterable[str], may_follow: Sequence[str]) -> Openings:
        """Compile the phrases. `may_follow` are the words after which a clause may open. Pure."""
        longest_first = "|".join(map(_pattern, sorted(phrases, key=len, reverse=True)))
        after = "|".join(map(_pattern, may_follow))
        return cls(
            re.compile(rf"(?<![\w'])(?:{longest_first})(?![\w'])", re.IGNORECASE),
            re.compile(rf"(?:^|[,;:(–—-]|(?<![\w'])(?:{after}))\W*$", re.IGNORECASE),
            tuple(may_follow),
        )

    def find(self, sentence: str) -> list[tuple[str, str]]:
        """Return each phrase that opens a clause, in lower case, with the words up to the next one. Pure."""
        hits = [hit for hit in self._phrase.finditer(sentence) if self._opens(sentence, hit.start())]
        found = []
        for number, hit in enumerate(hits):
            is_last = number + 1 == len(hits)
            words = sentence[hit.end() : None if is_last else hits[number + 1].start()].strip(EDGES)
            if words := words if is_last else self._without_follower(words):
                found.append((" ".join(hit[0].lower().split()), words))
        return found

    def _opens(self, sentence: str, start: int) -> bool:
        return self._before.search(sentence[max(0, start - _BEFORE_CHARS) : start]) is not None

    def _without_follower(self, words: str) -> str:
        for follower in self._follows:
            if f" {words.lower()}".endswith(f" {follower}"):
                return words[: len(words) - len(follower)].rstrip(EDGES)
        return words


def _pattern(phrase: str) -> str:
    return r"\s+".join(re.escape(word).replace(r"\*", r"\w+") for word in phrase.split())


class FactKind(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kind of statement about oneself: its cues, and where and how it is kept."""

    hears: tuple[str, ...]
    keeps: str
    kind: str = "other"
    """Of a fact, as the act `know` names it."""
    keys: tuple[str, ...] = ()
    """Words by which it may be asked for."""
    single: bool = False
    """A newer one stands instead of the older."""
    only: tuple[str, ...] = ()
    """What the words must begin with, if anything."""
    but_not: tuple[str, ...] = ()
    but_ends: tuple[str, ...] = ()
    """How the words must not end."""
    until: tuple[str, ...] = ()
    """The words are cut before the first of these."""
    capital: bool = False
    """Accept only a name: up to three words, the first with a capital letter."""
    says: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()

    def begins(self, phrase: str) -> bool:
        """Return whether a phrase is one of its cues. Pure."""
        return any(re.fullmatch(_pattern(cue), phrase) for cue in self.hears)


class Mood(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The verbs of one mood, and its cues."""

    verbs: tuple[str, ...]
    hears: tuple[str, ...] = ()


class LinesHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The head of rehearsal.md."""

    may_follow: tuple[str, ...]
    never_keep: tuple[str, ...]
    small_words: tuple[str, ...]
    thinks: tuple[str, ...]
    heard: str
    answered: str
    asks_first: tuple[str, ...]
    """The first word of a message that asks without a question mark."""
    asks_advice: tuple[str, ...]
    """How a question begins that asks for advice, and not for what was."""
    asks_with: tuple[str, ...]
    """Words of a question that say nothing of what it is about."""
    remembering: tuple[str, ...]
    """What a question asks of the soul (`do you …`) that asks for what the speaker said."""
    recalled: Mapping[Literal["speaker", "soul", "other", "here", "note"], str]
    """How a line of memory is read out, by what it is."""
    appraises: Mapping[str, str]
    """The kind of an appraisal, by the section that answers what was said."""
    appraisals: Mapping[str, tuple[str, ...]]
    """Words that tell of such a kind, where no section does."""
    third_person: Mapping[str, str]
    facts: tuple[FactKind, ...]
    moods: Mapping[str, Mood]


class TopicLines(Struct):
    """One topic that the voice can be asked about."""

    cues: list[Cue] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    groups: list[list[str]] = field(default_factory=lambda: [[]])
    """Alternative replies: the first group with a line whose placeholders are all known is used."""
    questions: list[str] = field(default_factory=list)
    line: int = 0
    """Where the file begins it."""
    stray: list[int] = field(default_factory=list)
    """The lines of the file that belong to none of these."""

    @property
    def is_small_talk(self) -> bool:
        """Whether its cues count in short messages only."""
        return any(cue.place in ("start", "end") for cue in self.cues)


class Lines(Struct, frozen=True):
    """The content of rehearsal.md."""

    words: LinesHead
    sections: Mapping[str, TopicLines]
    facts: tuple[FactKind, ...]
    fact_openings: Openings
    moods: Mapping[str, tuple[Cue, ...]]
    appraisals: Mapping[str, tuple[Cue, ...]]
    secrets: tuple[Cue, ...]

    @classmethod
    def of(cls, file: SoulFile, shipped: SoulFile | None = None) -> Lines:
        """Parse the lines file; what it leaves out is as in the `shipped` one. Raises: BadSoul."""
        try:
            words = msgspec.convert({**(shipped.head if shipped else {}), **file.head}, ready(LinesHead))
        except msgspec.ValidationError as error:
            raise BadSoul(
                str(file.source), 1, f"its head: {error}", "the shipped file shows what belongs there"
            ) from error
        sections = _sections(file)
        for name, section in _sections(shipped).items() if shipped else ():
            sections[name] = _completed(sections[name], section) if name in sections else section
        for name in (*SECTIONS, *(f"mood {mood}" for mood in words.moods)):
            if name not in sections:
                raise BadSoul(str(file.source), 0, f"has no section ## {name}", "the shipped file shows it")
        for fact in words.facts:
            for line in (fact.keeps, *fact.says, *fact.asks):
                _check(file, 1, line, {"words", "kin"})
        recalled = [(line, {"name", "words", "when"}) for line in words.recalled.values()]
        told = ((words.heard, {"name", "words"}), (words.answered, {"words"}))
        for line, known in (*told, *recalled):
            _check(file, 1, line, known)
        for section in sections.values():
            section.groups = [group for group in section.groups if group]
        phrases = [phrase for fact in words.facts for phrase in fact.hears]
        return cls(
            words,
            sections,
            words.facts,
            Openings.of(phrases, words.may_follow),
            {name: cues(mood.hears) for name, mood in words.moods.items()},
            {name: cues(hears) for name, hears in words.appraisals.items()},
            cues(words.never_keep),
        )


def say(template: str, values: Mapping[str, str]) -> str | None:
    """Fill in a line, or return None if one of its values is not known. Pure."""
    line = Template(template)
    unknown = [name for name in line.get_identifiers() if not values.get(name)]
    return None if unknown else line.substitute(values)


def choose(lines: Iterable[str], values: Mapping[str, str], seed: int, spoken: str = "") -> str:
    """Return the seed's choice of the lines that can be filled in, preferably one not in `spoken`. Pure."""
    said = [line for template in lines if (line := say(template, values)) is not None]
    if not said:
        return ""
    turned = said[seed % len(said) :] + said[: seed % len(said)]
    fresh = [line for line in turned if line not in spoken]
    return (fresh or turned)[0]


def answer(section: TopicLines, values: Mapping[str, str], seed: int, spoken: str = "") -> str:
    """Return a line from the first group of a section that has one that can be filled in, or "". Pure."""
    for group in section.groups:
        if line := choose(group, values, seed, spoken):
            return line
    return ""


def unused(own: SoulFile, shipped: SoulFile) -> Iterator[BadSoul]:
    """Yield what has no effect in an owner's file: a section that nothing calls for, a line of no kind. Pure."""
    file, known, sections = str(own.source), _sections(shipped), _sections(own)
    if not (sections or own.head):
        yield BadSoul(file, own.line, "nothing in it is used: it has no section", "begin one with `## ` and its name")
    for name, section in sections.items():
        if name not in known and not (section.cues or name.startswith("mood ")):
            detail = f"## {name} is never said: there is no such section, and it has no `>` line"
            yield BadSoul(file, section.line, detail, f"correct its name, or give it one{near(name, known)}")
        for line in section.stray:
            detail = "is not used: it begins with none of `>`, `~`, `-` and `?`"
            yield BadSoul(file, line, detail, "begin it with `- ` to have it said")


def _completed(own: TopicLines, shipped: TopicLines) -> TopicLines:
    """Return an owner's section, with the shipped cues, thoughts, lines or questions where it has none of its own."""
    has_lines = any(own.groups)
    return TopicLines(
        own.cues or shipped.cues,
        own.thoughts or shipped.thoughts,
        own.groups if has_lines else shipped.groups,
        own.questions if own.questions or has_lines else shipped.questions,
    )


def _sections(file: SoulFile) -> dict[str, TopicLines]:
    sections: dict[str, TopicLines] = {}
    section: TopicLines | None = None
    for number, line in enumerate(file.text.split("\n"), file.line):
        mark, _, text = line.partition(" ")
        if mark == "##":
            section = sections[text.strip()] = TopicLines(line=number)
        elif section and not line:
            section.groups.append([])
        elif section and not _add(section, mark, text):
            if group := section.groups[-1]:
                group[-1] += f"\n{line}"
            else:
                section.stray.append(number)
        if section and mark not in ("##", ">"):
            _check(file, number, line, VALUES if mark != "~" else ())
    return sections


def _add(section: TopicLines, mark: str, text: str) -> bool:
    lines = {"~": section.thoughts, "?": section.questions, "-": section.groups[-1]}
    if mark == ">":
        section.cues.append(Cue.of(text.strip()))
    elif mark in lines:
        lines[mark].append(text.strip())
    return mark == ">" or mark in lines


def _check(file: SoulFile, line: int, template: str, known: Iterable[str]) -> None:
    SoulFile(file.name, template, file.source, "", line=line).fill(**dict.fromkeys(sorted(known), ""))


def fits(words: str, fact: FactKind) -> bool:
    """Return whether the words after a fact's cue are acceptable for it. Pure."""
    said = plain(words)
    if any(cue.is_in(said) if cue.place == "start" else said == cue.words for cue in cues(fact.but_not)):
        return False
    if said.rstrip().endswith(fact.but_ends or " "):
        return False
    if fact.only and not any(said.startswith(cue.words) for cue in cues(fact.only)):
        return False
    return not fact.capital or (words.istitle() and len(words.split()) <= NAME_WORDS)
