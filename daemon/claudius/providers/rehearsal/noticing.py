"""Extract from a message's words alone: facts about the speaker, a topic, a mood, and what it asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from claudius.providers.rehearsal.cues import EDGES, plain
from claudius.providers.rehearsal.lines import Fact, Lines, fits
from claudius.providers.rehearsal.reading import quoted

READ_CHARS = 4000
"""Only the start of a longer message is read."""
WORDS_CHARS = 160
TOPIC_CHARS = 80
SMALL_TALK_WORDS = 6
"""A greeting with more words than this beside it does not count as small talk."""

_SENTENCES = re.compile(r"(?<=[.!?。！？؟])\s+|[\n。！？]+")
_QUESTIONS = ("?", "？", "؟")


class Noticed(Struct, frozen=True):
    """One fact: the words after the cue, and the line that is kept of it."""

    fact: Fact
    words: str
    kept: str


def facts_in(message: str, lines: Lines) -> tuple[tuple[Noticed, ...], bool]:
    """Return the facts that a message states about its speaker, in order, and whether it also held a secret. Pure."""
    found: dict[str, Noticed] = {}
    secret = False
    for sentence in _sentences(message):
        if sentence.endswith(_QUESTIONS):
            continue
        hidden = hides(sentence, lines)
        for phrase, rest in lines.fact_openings.find(sentence):
            fact = lines.facts[phrase]
            words = _until(rest, fact.until)
            if not fits(words, fact):
                continue
            if hidden:
                secret = True
                continue
            told = quoted(_third(words, lines.words.third_person), WORDS_CHARS)
            kept = fact.keeps.replace("$words", told)
            found.setdefault(same(kept), Noticed(fact, quoted(words, WORDS_CHARS), kept))
    return tuple(found.values()), secret


def hides(message: str, lines: Lines) -> bool:
    """Return whether a message seems to hold a secret, which is neither kept nor repeated. Pure."""
    text = plain(message[:READ_CHARS])
    return any(cue.is_in(text) for cue in lines.secrets)


def same(note: str) -> str:
    """Reduce a note to a form in which equal facts are equal. Pure."""
    return plain(note)


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
    return next((mood for mood, heard in lines.moods.items() if any(cue.is_in(text) for cue in heard)), "")


def intent_of(message: str, lines: Lines) -> str:
    """Return the section that answers a message, the one with the longest matching cue, or "" for none. Pure."""
    text = plain(message[:READ_CHARS])
    length, best, size = len(text.split()), "", 0
    for name, section in lines.sections.items():
        for cue in section.cues:
            if len(cue.words) > size and cue.is_in(text):
                beside = length - len(cue.words.split())
                if beside <= SMALL_TALK_WORDS or not section.is_small_talk:
                    best, size = name, len(cue.words)
    return best


def is_question(message: str) -> bool:
    """Return whether a message ends in a question mark of any script. Pure."""
    return message.rstrip(EDGES).endswith(_QUESTIONS)


def _sentences(message: str) -> Iterator[str]:
    for sentence in _SENTENCES.split(message[:READ_CHARS].replace("’", "'")):
        if sentence.strip():
            yield sentence.strip()


def _until(words: str, ends: Iterable[str]) -> str:
    cuts = [place for end in ends if (place := words.find(end)) > 0]
    return words[: min(cuts)].rstrip(EDGES) if cuts else words


def _third(words: str, third_person: Mapping[str, str]) -> str:
    return re.sub(r"[\w']+", lambda match: third_person.get(match[0].lower(), match[0]), words)


def _bare(words: str, lines: Lines) -> str:
    rest = words.strip(EDGES + "?？؟")
    while True:
        first, blank, after = rest.partition(" ")
        if not blank or first.lower().strip(EDGES) not in lines.words.small_words:
            return rest
        rest = after.lstrip(EDGES)
