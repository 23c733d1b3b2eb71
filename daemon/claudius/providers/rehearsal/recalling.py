"""Answer a question from what the prompt holds: memory's lines, this conversation, and the notes on the speaker. Pure.

Whose words a line is decides what it may be used for: only the speaker's own answer a question about themself, and what
somebody else said is told with their name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Literal

from msgspec import Struct

from claudius.memory.facts import CONSTRAINTS, KEYS
from claudius.memory.ranking import stemmed
from claudius.providers.rehearsal.lines import Lines, plain, say
from claudius.providers.rehearsal.reading import ReadLine, ReadRequest, hides, is_question, quoted, told_facts

MOST = 2
"""How many lines are read out at most."""
MOST_LIMITS = 6
LINE_CHARS = 240
WHOLE, MORE, HALF = 1.0, 0.6, 0.5
"""The share of a question's stems that an answer holds: all of them; what is enough for a long question; for others."""
MOST_PLAIN = 2
YOU = "you"
_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_OF_THE_SOUL = re.compile(
    r"^ (?:\w+ )?(?:do|are|can|could|would|will|did|have|were|does|what do|what are|why do|why are) you (\w+)"
)
_SAID_BY_SOUL = re.compile(r" you (?:say|said|tell|told|promise|promised|answer|answered|call|called|think|thought) ")

_DIET = re.compile(r"vegan|vegetarian|pescatarian|coeliac|celiac|intolerant|diabetic|teetotal|sober", re.IGNORECASE)

By = Literal["speaker", "soul", "other"]
Section = Literal["recalled", "recalled beside", "recalled of others", "recalled of mine", "not remembered", ""]


class Candidate(Struct, frozen=True):
    """Something that may answer a question."""

    line: ReadLine
    by: By
    stems: frozenset[str]
    is_fact: bool = False
    """It is a fact of memory's, `key: value`, and not the words that were said."""
    is_note: bool = False


class Recalled(Struct, frozen=True):
    """How a question is answered: by which section of the lines, with what read out."""

    section: Section = ""
    text: str = ""


def recall(seen: ReadRequest, lines: Lines, cue: str) -> Recalled:
    """Return what memory says to a message that asks, beyond the words of the `cue` that it was recognised by. Pure."""
    text = plain(seen.message)
    wanted = _wanted(text.replace(cue.strip(), " "), lines, is_rest=True) if cue else _wanted(text, lines)
    if not wanted:
        return Recalled()
    of_soul = _OF_THE_SOUL.match(text)
    is_own = bool(_SAID_BY_SOUL.search(text))
    if of_soul and not is_own and of_soul[1] not in lines.words.remembering:
        return Recalled()
    is_about_them = any(f" {word} " in text for word in (*lines.words.third_person, "we", "our", "us"))
    found = [
        one for one in _candidates(seen, lines) if _may_answer(one, text, is_own=is_own, is_about_them=is_about_them)
    ]
    best = max([_share(one, wanted) for one in found], default=0.0)
    if best < (HALF if is_about_them or len(wanted) <= MOST_PLAIN else MORE):
        return Recalled("not remembered") if is_about_them and _is_recall(text, lines) else Recalled()
    fitting = _told([one for one in found if _share(one, wanted) == best])
    section: Section = "recalled" if is_about_them or best == WHOLE else "recalled beside"
    section = "recalled of mine" if is_own else section
    if all(one.by == "other" for one in fitting):
        section = "recalled of others"
    return Recalled(section, "\n".join(filter(None, [_line(one, lines) for one in fitting[:MOST]])))


def warned(seen: ReadRequest, lines: Lines) -> str:
    """Return what the speaker said that they must not, if what they say now touches it; "" if nothing does. Pure."""
    heard = frozenset(stemmed(seen.message))
    for value, told in _limits(seen, lines):
        if not heard.isdisjoint(stemmed(value)) and plain(value) not in plain(seen.message):
            return _line(told, lines)
    return ""


def limits(seen: ReadRequest, lines: Lines) -> str:
    """Return what the speaker said that they must not, one line each, the newest here first; "" if nothing. Pure."""
    told = dict.fromkeys([_line(one, lines) for _, one in _limits(seen, lines)])
    return "\n".join(list(filter(None, told))[:MOST_LIMITS])


def _limits(seen: ReadRequest, lines: Lines) -> Iterator[tuple[str, Candidate]]:
    """Yield each thing that the speaker must not, with the words to tell it in: those said here, then memory's."""
    every = list(_candidates(seen, lines))
    for one in every:
        if one.by == "speaker" and not one.is_note:
            key, _, value = one.line.text.partition(": ") if one.is_fact else ("", "", "")
            said = [(key, value)] if one.is_fact else [(fact.key, fact.value) for fact in told_facts(one.line.text)]
            for key, value in said:
                if key in CONSTRAINTS[:-1] or (key in CONSTRAINTS and _DIET.search(value)):
                    yield value, _told([one, *every])[0]


def _is_recall(text: str, lines: Lines) -> bool:
    """Return whether a question asks for what was, and not for advice ("should I", "how do I"). Pure."""
    return not any(text.startswith(f" {opening} ") for opening in lines.words.asks_advice)


def _wanted(text: str, lines: Lines, *, is_rest: bool = False) -> frozenset[str]:
    """Return the stems that an answer should hold: those of the rarer words, else, of a whole text, of all. Pure."""
    every = frozenset(stemmed(" ".join(word for word in text.split() if word not in lines.words.small_words)))
    rarer = every - frozenset(stemmed(" ".join(lines.words.asks_with)))
    return rarer if rarer or is_rest else every


def _may_answer(one: Candidate, text: str, *, is_own: bool, is_about_them: bool) -> bool:
    if is_own != (one.by == "soul"):
        return False
    if one.by == "other":
        return any(len(word) > 2 and plain(one.line.by).startswith(f" {word}") for word in text.split())
    return one.by == "speaker" or is_own or not is_about_them


def _share(one: Candidate, wanted: frozenset[str]) -> float:
    return len(one.stems & wanted) / len(wanted)


def _candidates(seen: ReadRequest, lines: Lines) -> Iterator[Candidate]:
    """Yield what may answer, and no secret: the newest words here, memory's facts and moments, then the notes. Pure."""
    for text in reversed(seen.said):
        if not (is_question(text) or hides(text, lines)):
            yield Candidate(ReadLine(by=seen.name, text=text), "speaker", frozenset(stemmed(text)))
    for line in seen.remembered:
        key = line.text.partition(": ")[0]
        by: By = "soul" if line.by == YOU else "speaker" if _is_speaker(line.by, seen) else "other"
        if not (is_question(line.text) or hides(line.text, lines)):
            stems = frozenset(stemmed(line.text, line.by if by == "other" else ""))
            yield Candidate(line, by, stems, is_fact=key in KEYS and ": " in line.text)
    for model in seen.models:
        for note in model.notes():
            yield Candidate(ReadLine(by=seen.name, text=note), "speaker", frozenset(stemmed(note)), is_note=True)


def _is_speaker(name: str, seen: ReadRequest) -> bool:
    return name in (seen.name, seen.who, f"{seen.name} ({seen.who})")


def _told(found: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates without repeating a fact that the speaker's own words hold; the words stand for it. Pure."""
    kept: list[Candidate] = []
    found = list(found)
    for one in found:
        value = one.line.text.partition(": ")[2]
        words = [
            other
            for other in found
            if one.is_fact and not (other.is_fact or other.is_note) and plain(value) in plain(other.line.text)
        ]
        told = words[0] if words else one
        if told not in kept and not (one.is_note and kept):
            kept.append(told)
    return kept


def _line(one: Candidate, lines: Lines) -> str:
    words = quoted(one.line.text.partition(": ")[2] if one.is_fact else one.line.text, LINE_CHARS)
    values = {"words": words, "when": _when(one.line), "name": quoted(one.line.by, 40)}
    values["key"] = one.line.text.partition(": ")[0] if one.is_fact else ""
    told = lines.words.recalled
    form = "fact" if one.is_fact else "note" if one.is_note else "here" if not one.line.when else one.by
    return say(told[form], values) or ""


def _when(line: ReadLine) -> str:
    """Return `15 December 2025, three weeks ago`. Pure."""
    try:
        day = date.fromisoformat(line.when)
    except ValueError:
        return line.ago
    return ", ".join(filter(None, [f"{day.day} {_MONTHS[day.month - 1]} {day.year}", line.ago]))
