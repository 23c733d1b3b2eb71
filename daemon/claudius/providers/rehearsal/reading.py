"""Read a request: its records, the steps it asks for, what was said before, and what a message reveals by its words.

A message reveals facts about its speaker, a topic, a mood, and what it asks for. A question is answered from memory's
lines, this conversation, and the notes on the speaker: only the speaker's own lines answer a question about themself,
and what somebody else said is told with their name. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Literal

from msgspec import Struct

from claudius.memory.ranking import stemmed
from claudius.perception import Kind
from claudius.prompt import RecordKind
from claudius.provider import Message, Request
from claudius.providers.rehearsal.lines import EDGES, FactKind, Lines, fits, plain, say

READ_CHARS = 4000
"""Only the start of a longer message is read."""
WORDS_CHARS = 160
TOPIC_CHARS = 80
SMALL_TALK_WORDS = 6
"""A greeting with more other words than this does not count as small talk."""

_SENTENCES = re.compile(r"(?<=[.!?。！？؟])\s+|[\n。！？]+")
_QUESTIONS = ("?", "？", "؟")
_RECORD = re.compile(r"<data-([0-9a-f]+)>\n(.*)\n</data-\1>")
_SPOKEN = re.compile(r"<external_dialogue(?:\s[^>]*)?>(.*?)</external_dialogue>", re.DOTALL)
_LT = re.compile(r"[<＜﹤]|&(?:lt|#0*60|#x0*3c);?|\\u003c", re.IGNORECASE)
_BLANKS = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")


class ShownModel(Struct, frozen=True):
    """One user model of the speaker, as last shown."""

    markdown: str
    writable: bool

    def body(self, section: str) -> str:
        """Return the text under a level-2 heading, matched without case, or "" if there is none."""
        _, *parts = re.split(r"^##[ \t]+(.*)$", self.markdown, flags=re.MULTILINE)
        bodies = {heading.strip().casefold(): text for heading, text in zip(parts[::2], parts[1::2], strict=True)}
        return bodies.get(section.casefold(), "").strip()

    def notes(self) -> Iterator[str]:
        """Yield the lines with content, without headings and bullets."""
        for line in self.markdown.splitlines():
            text = re.sub(r"^[-*•\s]+", "", line).strip()
            if text and not text.startswith("#"):
                yield text


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
    models: tuple[ShownModel, ...]
    state: dict[str, str]
    felt: dict[str, str]
    """The psyche's words for how the soul feels."""
    present: str
    """The sentence that names the instant; empty = it is not told."""
    due: str
    """What was asked for or promised, and comes due in this turn; empty = nothing does."""
    known: str
    """Who the speaker is to the soul, in words; empty = nobody spoke."""
    is_first: bool
    """Nothing was ever answered in this home."""
    summary: str
    title: str
    headings: tuple[str, ...]


def read(request: Request) -> ReadRequest:
    """Parse the request of one turn. Pure."""
    opening, history = "", request.history
    if len(history) > 1 and "## Current Message" in history[-2].content and "## Current Message" not in request.tail:
        opening, history = history[-2].content, history[:-2]  # a part of this turn was already asked
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
    _, _, present = request.tail.partition("## The Present\n")
    summaries = [_text(record) for record in shown if record.get("kind") == RecordKind.SUMMARY]
    earlier = [record for record in before if record.get("kind") == RecordKind.MESSAGE]
    return ReadRequest(
        asked=tuple(re.findall(r"[a-z]+(?:_[a-z]+)+", turn.partition("\n## ")[0])),
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
        models=_models(shown, who),
        state={key: str(value) for key, value in found.get(RecordKind.SOUL_STATE, {}).items()},
        felt={key: str(value) for key, value in found.get(RecordKind.PSYCHE, {}).items()},
        present=present.partition("\n")[0].partition(". ")[0].rstrip("."),
        due="" if heard else _text(found.get(Kind.SCHEDULED.value, {})).partition('"')[2].rpartition('"')[0],
        known=request.known,
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


def _models(shown: Sequence[Mapping[str, Any]], who: Any) -> tuple[ShownModel, ...]:
    models: list[ShownModel] = []
    for record in shown:
        if record.get("kind") != RecordKind.USER_MODEL or record.get("who") != who or record.get("above"):
            continue
        writable = bool(record.get("writable"))
        models = [ShownModel(_text(record), writable)] if writable else [*models, ShownModel(_text(record), writable)]
    return tuple(models)


class Noticed(Struct, frozen=True):
    """One fact: the words after the cue, and the line that is kept of it."""

    fact: FactKind
    words: str
    kept: str


def facts_in(message: str, lines: Lines) -> tuple[tuple[Noticed, ...], bool]:
    """Return the facts that a message states about its speaker, in order, and whether it also held a secret. Pure."""
    found: dict[str, Noticed] = {}
    secret = False

    def in_third_person(match: re.Match[str]) -> str:
        return lines.words.third_person.get(match[0].lower(), match[0])

    for sentence in _sentences(message):
        if sentence.endswith(_QUESTIONS):
            continue
        hidden = hides(sentence, lines)
        for phrase, rest in lines.fact_openings.find(sentence):
            fact = lines.facts[phrase]
            words = _until(rest, fact.until)
            if not fits(words, fact):
                continue
            if fact.capital and not _NO_NAME.fullmatch(words):
                fact = lines.words.facts[0]
            if hidden:
                secret = True
                continue
            told = quoted(re.sub(r"[\w']+", in_third_person, words), WORDS_CHARS)
            kept = fact.keeps.replace("$words", told)
            found.setdefault(plain(kept), Noticed(fact, quoted(words, WORDS_CHARS), kept))
    return tuple(found.values()), secret


def lasts(text: str) -> bool:
    """Return whether a message says of its speaker what will be so next week too. Pure."""
    return _LASTS.search(text) is not None


def hides(message: str, lines: Lines) -> bool:
    """Return whether a message seems to hold a secret, which is neither kept nor repeated. Pure."""
    text = plain(message[:READ_CHARS])
    return bool([cue for cue in lines.secrets if cue.is_in(text)])


def topics_in(message: str, lines: Lines) -> dict[str, str]:
    """Return the soul-state keys that a message sets by naming what it is about. Pure."""
    found: dict[str, str] = {}
    for sentence in _sentences(message):
        for phrase, words in lines.topic_openings.find(sentence):
            found[lines.topics[phrase]] = quoted(_bare(words, lines), TOPIC_CHARS)
    return {key: value for key, value in found.items() if value}


def subject(message: str, lines: Lines) -> str:
    """Return what a message seems to be about: its first sentence without its leading small words. Pure."""
    first = next(_sentences(message), "")
    return quoted(_bare(first, lines), TOPIC_CHARS)


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


def _sentences(message: str) -> Iterator[str]:
    for sentence in _SENTENCES.split(message[:READ_CHARS].replace("’", "'")):
        if sentence.strip():
            yield sentence.strip()


def _until(words: str, ends: Sequence[str]) -> str:
    cuts = [place for end in ends if (place := words.find(end)) > 0]
    return words[: min(cuts)].rstrip(EDGES) if cuts else words


def _bare(words: str, lines: Lines) -> str:
    rest = words.strip(EDGES + "?？؟")
    while True:
        first, blank, after = rest.partition(" ")
        if not blank or first.lower().strip(EDGES) not in lines.words.small_words:
            return rest
        rest = after.lstrip(EDGES)


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

_FACT = re.compile(r"[a-z][a-z ]{1,20}: ")
"""How a line of memory begins that is a fact, and not words that were said."""
_LIMIT = re.compile(r"allergic to (.*)|(?:must not|mustn't|can't|cannot|never) ((?:eat|drink|have) .*)", re.IGNORECASE)
_LASTS = re.compile(r"\b[Mm]y (?:birthday|\w+(?:'s name)?) is\b|\b[Ii] was born\b|\b[Ii](?:'m| am) \w+ years old\b")
_NO_NAME = re.compile(r"\w+(?:ish|ese|ian|ean|can)|muslim|jewish|hindu|buddhist|catholic|vegan", re.IGNORECASE)
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
            text = one.line.text.replace(": ", " ") if one.is_fact else one.line.text
            if found := _LIMIT.search(text) or _DIET.search(text):
                value = next(filter(None, found.groups()), found[0]) if found.groups() else found[0]
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
    names = (seen.name, seen.who, f"{seen.name} ({seen.who})")
    for line in seen.remembered:
        by: By = "soul" if line.by == YOU else "speaker" if line.by in names else "other"
        if not (is_question(line.text) or hides(line.text, lines)):
            stems = frozenset(stemmed(line.text, line.by if by == "other" else ""))
            yield Candidate(line, by, stems, is_fact=bool(_FACT.match(line.text)))
    for model in seen.models:
        for note in model.notes():
            yield Candidate(ReadLine(by=seen.name, text=note), "speaker", frozenset(stemmed(note)), is_note=True)


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
