"""Read a request: its records, the steps it asks for, what was said before, and what a message reveals by its words.

A message reveals facts about its speaker, a mood, and what it asks for. A question is answered from memory's
lines, this conversation, and the notes on the speaker: only the speaker's own lines answer a question about themself,
and what somebody else said is told with their name. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal

from msgspec import Struct

from claudius.memory.ranking import stemmed
from claudius.perception import Kind
from claudius.prompt import RecordKind
from claudius.provider import Message, Request
from claudius.providers.rehearsal.lines import EDGES, FactKind, Lines, fits, plain, say
from claudius.providers.rehearsal.times import instant_of

FORGET = re.compile(
    r"^\W*(?:(?:please|and|also|ok|okay|claudius|(?:can|could|would|will) you(?: please)?)[,\s]+)*"
    r"(?:forget|erase|delete)(?: about)?(?: that| the fact that| what i (?:said|told you) (?:about|of))?"
    r" (?!(?:it|that|me|us|everything|all|my data)\b)(.+?)[.!? ]*$",
    re.IGNORECASE,
)
"""How somebody asks to forget one thing."""
READ_CHARS = 4000
"""Only the start of a longer message is read."""
WORDS_CHARS = 160
SMALL_TALK_WORDS = 6
"""A greeting with more other words than this does not count as small talk."""

_SENTENCES = re.compile(r"(?<=[.!?。！？؟])\s+|[\n。！？]+")
_QUESTIONS = ("?", "？", "؟")
_RECORD = re.compile(r"<data-([0-9a-f]+)>\n(.*)\n</data-\1>")
_SPOKEN = re.compile(r"<external_dialogue(?:\s[^>]*)?>(.*?)</external_dialogue>", re.DOTALL)
_ACTS = re.compile(r"<acts>\s*(.*?)\s*</acts>", re.DOTALL)
_LT = re.compile(r"[<＜﹤]|&(?:lt|#0*60|#x0*3c);?|\\u003c", re.IGNORECASE)
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


class Short(Struct, frozen=True):
    """One line of `## Plans`, `## Known` or `## Open` that this person may change."""

    id: str
    """`p3`, `f7` or `m2`."""
    text: str


class ReadLine(Struct, frozen=True, kw_only=True):
    """One line of memory: who said what, and when."""

    by: str
    """The name of who said it; "you" is the soul."""
    text: str
    when: str = ""
    """The date, as 2026-01-05; empty = in this conversation."""
    ago: str = ""


class ReadRequest(Struct, frozen=True, kw_only=True):
    """Everything on which the reply is based."""

    asked: tuple[str, ...]
    """Every word of the This Turn section that could be a step's name, in order."""
    done: str
    """The acts that an earlier part of this turn wrote; empty = none was asked."""
    message: str
    """The current message. Several messages are joined by a line break."""
    is_inner: bool
    """Nobody said it: it comes from the soul's own schedule or occasion."""
    name: str
    """The speaker's display name."""
    who: str
    """The speaker's short id."""
    said: tuple[str, ...]
    """The speaker's earlier messages here, oldest first."""
    spoken: tuple[str, ...]
    """The soul's own earlier lines here, oldest first."""
    remembered: tuple[ReadLine, ...]
    """What memory found elsewhere, facts first, then the best moments."""
    notes: tuple[str, ...]
    """The lines of the portraits of the speaker, as last shown."""
    plans: tuple[Short, ...]
    known: tuple[Short, ...]
    matters: tuple[Short, ...]
    state: dict[str, str]
    present: str
    """The sentence that names the instant; empty = it is not told."""
    now: datetime | None
    """That instant, in its zone."""
    due: str
    """What was asked for or promised, and comes due in this turn; empty = nothing does."""
    document: str
    """Who the speaker is to the soul, in words; empty = nobody spoke."""
    is_first: bool
    """Nothing was ever answered in this home."""
    summary: str
    title: str
    headings: tuple[str, ...]


def read(request: Request) -> ReadRequest:
    """Parse the request of one turn. Pure."""
    opening, history, written = "", request.history, ""
    if len(history) > 1 and "## Current Message" in history[-2].content and "## Current Message" not in request.tail:
        # a part of this turn was already asked
        opening, written, history = history[-2].content, history[-1].content, history[:-2]
    tail = list(records(f"{opening}\n{request.tail}"))
    heard = [record for record in tail if record.get("kind") == RecordKind.MESSAGE]
    who = heard[-1].get("who") if heard else None
    before = [record for message in history if message.role == "user" for record in records(message.content)]
    shown = [*before, *tail]
    _, _, turn = request.tail.partition("## This Turn\n")
    headings = re.findall(r"^## +(.+?) *$", request.system, re.MULTILINE)
    titles = re.findall(r"^# +(.+?) *$", request.system, re.MULTILINE)
    found = {str(record.get("kind")): record for record in tail}
    lines = found.get(RecordKind.MEMORY, {}).get("lines")
    _, _, present = f"{opening}\n{request.tail}".partition("## The Present\n")
    present = present.partition("\n")[0]
    summaries = [_text(record) for record in shown if record.get("kind") == RecordKind.SUMMARY]
    earlier = [record for record in before if record.get("kind") == RecordKind.MESSAGE]
    return ReadRequest(
        asked=tuple(re.findall(r"[a-z]+(?:_[a-z]+)+|\b(?:acts|appraisal)\b", turn.partition("\n## ")[0])),
        done=next(iter(_ACTS.findall(written)), ""),
        message="\n".join([_text(record) for record in heard]),
        is_inner=not heard,
        name=str(heard[-1].get("from", "")) if heard else "",
        said=tuple([_text(record) for record in earlier if record.get("who") == who]),
        spoken=spoken(history),
        who=str(who or ""),
        remembered=tuple(
            [
                ReadLine(
                    by=str(line.get("from", "")), **{key: str(line.get(key, "")) for key in ("text", "when", "ago")}
                )
                for line in (lines if isinstance(lines, list) else ())
            ]
        ),
        notes=_notes(shown, who),
        plans=_shorts(found, "plans"),
        known=_shorts(found, "known"),
        matters=_shorts(found, "open"),
        state={key: str(value) for key, value in found.get(RecordKind.SOUL_STATE, {}).items()},
        present=present.partition(". ")[0].rstrip("."),
        now=instant_of(present),
        due="" if heard else _text(found.get(Kind.SCHEDULED.value, {})).partition('"')[2].rpartition('"')[0],
        document=request.known,
        is_first=request.is_first,
        summary=summaries[-1] if summaries else "",
        title=titles[0] if titles else "",
        headings=tuple(headings[:4]),
    )


def records(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the records between data markers, in order. Pure."""
    for match in _RECORD.finditer(text):
        try:
            record = json.loads(match[2])
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def spoken(history: Sequence[Message]) -> tuple[str, ...]:
    """Return the soul's own lines in a history, oldest first. Pure."""
    said = [message.content for message in history if message.role == "assistant"]
    return tuple([line.strip() for content in said for line in _SPOKEN.findall(content)])


def quoted(text: str, chars: int) -> str:
    """Reduce foreign text to one line of at most `chars` characters in which no parser finds a tag. Pure."""
    line = _BLANKS.sub(" ", _LT.sub("‹", text)).strip()
    if len(line) <= chars:
        return line
    cut = line[: chars - 1]
    return (cut.rsplit(" ", 1)[0] if " " in cut[chars // 2 :] else cut).rstrip(" ,;:.") + "…"


def _text(record: Mapping[str, Any]) -> str:
    return str(record.get("text", ""))


def _shorts(found: Mapping[str, Mapping[str, Any]], kind: str) -> tuple[Short, ...]:
    """Return the lines of a block that bear an id; those of other people bear none."""
    lines = re.findall(r"^([pfm]\d+) (.+)$", _text(found.get(kind, {})), re.MULTILINE)
    return tuple([Short(short, text.removesuffix(" (unchecked)")) for short, text in lines])


def _notes(shown: Sequence[Mapping[str, Any]], who: Any) -> tuple[str, ...]:
    """Return the lines with content of the speaker's portraits, without headings and bullets."""
    texts: list[str] = []
    for record in shown:
        if record.get("kind") == RecordKind.USER_MODEL and record.get("who") == who and not record.get("above"):
            texts = [_text(record)] if record.get("writable") else [*texts, _text(record)]
    lines = [re.sub(r"^[-*•\s]+", "", line).strip() for text in texts for line in text.splitlines()]
    return tuple([line for line in lines if line and not line.startswith("#")])


class Noticed(Struct, frozen=True):
    """One fact: the words after the cue, and the line that is kept of it."""

    fact: FactKind
    words: str
    kept: str

    @property
    def text(self) -> str:
        """What is booked of it: of a name the name alone."""
        return self.words if self.fact.kind == "name" else self.kept.rstrip(".")

    def is_in(self, one: Short) -> bool:
        """Return whether a line of `## Known` says the same."""
        said = plain(f"called {self.words}" if self.fact.kind == "name" else self.kept)
        return plain(one.text).startswith(said)


def facts_in(message: str, lines: Lines) -> tuple[tuple[Noticed, ...], bool]:
    """Return the facts that a message states about its speaker, in order, and whether it also held a secret. Pure."""
    found: dict[str, Noticed] = {}
    secret = False
    for sentence in sentences(message):
        if sentence.endswith(_QUESTIONS):
            continue
        hidden = hides(sentence, lines)
        for phrase, rest in lines.fact_openings.find(sentence):
            told = [(fact, _until(rest, fact.until)) for fact in lines.facts if fact.begins(phrase)]
            fitting = [(fact, words) for fact, words in told if fits(words, fact)]
            secret = secret or bool(fitting and hidden)
            for fact, words in fitting[: 0 if hidden else 1]:
                kept = _kept(fact, phrase, words, lines)
                found.setdefault(plain(kept), Noticed(fact, quoted(words, WORDS_CHARS), kept))
    return tuple(found.values()), secret


def _kept(fact: FactKind, phrase: str, words: str, lines: Lines) -> str:
    """Return the line that is kept: in the third person, with whom "my sister is called" names."""
    third = re.sub(r"[\w']+", lambda match: lines.words.third_person.get(match[0].lower(), match[0]), words)
    values = {"words": quoted(third, WORDS_CHARS), "kin": phrase.partition(" ")[2].partition(" ")[0].removesuffix("'s")}
    return say(fact.keeps, values) or ""


def hides(message: str, lines: Lines) -> bool:
    """Return whether a message seems to hold a secret, which is neither kept nor repeated. Pure."""
    text = plain(message[:READ_CHARS])
    return bool([cue for cue in lines.secrets if cue.is_in(text)])


def open_words(said: Sequence[str], lines: Lines) -> list[str]:
    """Return what was said that may be said again: no secret, and nothing that was to be forgotten. Pure."""
    gone = _gone(said)
    return [
        text
        for text in said
        if not (hides(text, lines) or FORGET.match(text) or any(words <= set(stemmed(text)) for words in gone))
    ]


def _gone(said: Sequence[str]) -> list[frozenset[str]]:
    """Return the stems of each thing that was asked to be forgotten."""
    asked = [found[1] for text in said if (found := FORGET.match(text))]
    return [stems for words in asked if (stems := frozenset(stemmed(words)))]


def mood_in(message: str, lines: Lines) -> str:
    """Return the mood that a message causes, or "" for none. Pure."""
    text = plain(message[:READ_CHARS])
    found = [mood for mood, heard in lines.moods.items() for cue in heard if cue.is_in(text)]
    return found[0] if found else ""


def intent_of(message: str, lines: Lines) -> tuple[str, str]:
    """Return the section that answers a message, the one with the longest matching cue, and that cue; or "". Pure."""
    text = plain(message[:READ_CHARS])
    length, best, size = len(text.split()), ("", ""), 0
    for name, section in lines.sections.items():
        for cue in section.cues:
            if len(cue.words) > size and cue.is_in(text):
                beside = length - len(cue.words.split())
                if beside <= SMALL_TALK_WORDS or not section.is_small_talk:
                    best, size = (name, cue.words), len(cue.words)
    return best


def is_question(message: str) -> bool:
    """Return whether a message ends in a question mark of any script. Pure."""
    return message.rstrip(EDGES).endswith(_QUESTIONS)


def sentences(message: str) -> Iterator[str]:
    """Yield the sentences of the start of a message. Pure."""
    for sentence in _SENTENCES.split(message[:READ_CHARS].replace("’", "'")):
        if sentence.strip():
            yield sentence.strip()


def _until(words: str, ends: Sequence[str]) -> str:
    cuts = [place for end in ends if (place := words.find(end)) > 0]
    return words[: min(cuts)].rstrip(EDGES) if cuts else words


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

_LIMIT = re.compile(
    r"allerg|(?:must not|mustn't|cannot|can't) (?:eat|drink|have|take)|intoleran|vegan|vegetarian|pescatarian|coeliac"
    r"|celiac|diabetic|teetotal",
    re.IGNORECASE,
)
"""What a fact says that must be kept from somebody."""
_LIMIT_WORDS = re.compile(r"\b(?:is|allergic|allergy|to|must|not|eat|drink|cannot|can't)\b", re.IGNORECASE)

By = Literal["speaker", "soul", "other"]
Section = Literal["recalled", "recalled beside", "recalled of others", "recalled of mine", "not remembered", ""]


class Candidate(Struct, frozen=True):
    """Something that may answer a question."""

    line: ReadLine
    by: By
    stems: frozenset[str]
    is_note: bool = False
    """It is a fact in force or a line of a portrait, and not the words that were said."""


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


def warned(seen: ReadRequest) -> str:
    """Return what is known that the speaker must not, if what they say now touches it; "" if nothing does. Pure."""
    heard, said = frozenset(stemmed(seen.message)), plain(seen.message)
    for text in _limits(seen):
        value = _LIMIT_WORDS.sub(" ", text)
        if not heard.isdisjoint(stemmed(value)) and plain(value) not in said:
            return f"- {quoted(text, LINE_CHARS)}"
    return ""


def limits(seen: ReadRequest) -> str:
    """Return what is known that the speaker must not, one line each, the newest first; "" if nothing. Pure."""
    return "\n".join([f"- {quoted(text, LINE_CHARS)}" for text in list(_limits(seen))[:MOST_LIMITS]])


def _limits(seen: ReadRequest) -> Iterator[str]:
    known = sorted(seen.known, key=lambda one: -int(one.id[1:]))
    return filter(_LIMIT.search, [one.text for one in known])


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
    """Yield what may answer, and no secret: facts in force, words said here and before, the newest first, notes."""
    for fact in seen.known:
        yield Candidate(ReadLine(by=seen.name, text=fact.text), "speaker", frozenset(stemmed(fact.text)), is_note=True)
    names = (seen.name, seen.who, f"{seen.name} ({seen.who})")
    here = [ReadLine(by=seen.name, text=text) for text in reversed(open_words(seen.said, lines))]
    gone = _gone(seen.said)
    for line in (*here, *seen.remembered):
        by: By = "soul" if line.by == YOU else "speaker" if line.by in names else "other"
        stems = frozenset(stemmed(line.text, line.by if by == "other" else ""))
        if not (is_question(line.text) or hides(line.text, lines) or any(words <= stems for words in gone)):
            yield Candidate(line, by, stems)
    for note in seen.notes:
        yield Candidate(ReadLine(by=seen.name, text=note), "speaker", frozenset(stemmed(note)), is_note=True)


def _told(found: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates without repetition; notes only where nothing was found before them. Pure."""
    kept: list[Candidate] = []
    for one in found:
        if one not in kept and not (one.is_note and kept):
            kept.append(one)
    return kept


def _line(one: Candidate, lines: Lines) -> str:
    values = {"words": quoted(one.line.text, LINE_CHARS), "when": _when(one.line), "name": quoted(one.line.by, 40)}
    form = "note" if one.is_note else "here" if not one.line.when else one.by
    return say(lines.words.recalled[form], values) or ""


def _when(line: ReadLine) -> str:
    """Return `15 December 2025, three weeks ago`. Pure."""
    try:
        day = date.fromisoformat(line.when)
    except ValueError:
        return line.ago
    return ", ".join(filter(None, [f"{day.day} {_MONTHS[day.month - 1]} {day.year}", line.ago]))
