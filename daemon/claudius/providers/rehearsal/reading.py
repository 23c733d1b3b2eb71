"""Read a request: its records, the steps it asks for, what was said before, and what a message reveals by its words.

A message reveals facts about its speaker, a topic, a mood, and what it asks for.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from claudius.memory.facts import TELLS, stated_facts
from claudius.perception import Kind
from claudius.prompt import RecordKind
from claudius.provider import Message, Request
from claudius.providers.rehearsal.lines import EDGES, FactKind, Lines, fits, plain
from claudius.recollection import Fact

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
    opening, history = _opening(request)
    tail = list(records(f"{opening}\n{request.tail}"))
    heard = [record for record in tail if record.get("kind") == RecordKind.MESSAGE]
    who = heard[-1].get("who") if heard else None
    before = [record for message in history if message.role == "user" for record in records(message.content)]
    shown = [*before, *tail]
    _, _, turn = request.tail.partition("## This Turn\n")
    headings = re.findall(r"^## +(.+?) *$", request.system, re.MULTILINE)
    titles = re.findall(r"^# +(.+?) *$", request.system, re.MULTILINE)
    found = {str(record.get("kind")): record for record in tail}
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
        remembered=tuple(_remembered(found.get(RecordKind.MEMORY, {}))),
        models=_models(shown, who),
        state={key: str(value) for key, value in found.get(RecordKind.SOUL_STATE, {}).items()},
        felt={key: str(value) for key, value in found.get(RecordKind.PSYCHE, {}).items()},
        present=present.partition("\n")[0].partition(". ")[0].rstrip("."),
        due="" if heard else _quoted_in(_text(found.get(Kind.SCHEDULED.value, {}))),
        known=request.known,
        is_first=request.is_first,
        summary=summaries[-1] if summaries else "",
        title=titles[0] if titles else "",
        headings=tuple(headings[:4]),
    )


def _opening(request: Request) -> tuple[str, Sequence[Message]]:
    """Split off this turn's opening message from earlier history, if part of the turn was already asked. Pure."""
    if "## Current Message" in request.tail or len(request.history) < 2:
        return "", request.history
    *before, opening, _ = request.history
    return (opening.content, before) if "## Current Message" in opening.content else ("", request.history)


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


def _quoted_in(text: str) -> str:
    """Return what is between the first and the last quotation mark of a text. Pure."""
    _, _, opened = text.partition('"')
    return opened.rpartition('"')[0]


def _remembered(record: Mapping[str, Any]) -> Iterator[ReadLine]:
    lines = record.get("lines")
    for line in lines if isinstance(lines, list) else ():
        words = {key: str(line.get(key, "")) for key in ("text", "when", "ago")}
        yield ReadLine(by=str(line.get("from", "")), **words)


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
            named = [one.value for one in told_facts(sentence) if one.key == "name"] if fact.capital else []
            if named and words.startswith(named[0]):
                fact, words = lines.words.facts[0], named[0]
            if not fits(words, fact):
                continue
            if hidden:
                secret = True
                continue
            told = quoted(re.sub(r"[\w']+", in_third_person, words), WORDS_CHARS)
            kept = fact.keeps.replace("$words", told)
            found.setdefault(plain(kept), Noticed(fact, quoted(words, WORDS_CHARS), kept))
    return tuple(found.values()), secret


def told_facts(text: str) -> tuple[Fact, ...]:
    """Return what a message says of its speaker, as memory reads it. Pure."""
    return stated_facts(text, "", (), "", 0.0) if TELLS.search(text) else ()


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
