"""Provide the embedded default: a deterministic offline voice that remembers, recalls, and says that it is no model."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from claudius.config import Loaded
from claudius.errors import BadSoul
from claudius.home import Home, shipped
from claudius.prompt import RecordKind, data_line
from claudius.provider import Delta, Done, Event, Provider, Request, estimate
from claudius.providers.rehearsal.deeds import Deeds, deeds_of
from claudius.providers.rehearsal.lines import Lines, answer, choose, plain, say, unused
from claudius.providers.rehearsal.reading import (
    ReadRequest,
    hides,
    intent_of,
    is_question,
    limits,
    mood_in,
    open_words,
    quoted,
    read,
    recall,
    records,
    spoken,
    warned,
)
from claudius.soul import SoulFile, SoulSource

__all__ = ["FILE", "Lines", "Rehearsal", "build", "greeting", "reply"]

NAME = "rehearsal"
FILE = "rehearsal.md"
PIECE_CHARS = 24

log = logging.getLogger(__name__)


class Rehearsal:
    """The rehearsal provider. Its lines are read again whenever their file changes."""

    name = NAME
    model = NAME

    def __init__(self, source: SoulSource) -> None:
        """Use the lines of a soul. Raises: BadSoul if not even the shipped ones can be read."""
        self._source = source
        self._file = _lines_file(source)
        self._shipped = _lines_file(SoulSource(shipped("soul"), shipped("soul"), ()))
        self.lines = self._read(self._file) or Lines.of(self._shipped)

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Yield the reply in small pieces, without delay."""
        file = _lines_file(self._source)
        if file is not self._file:
            self._file, self.lines = file, self._read(file) or self.lines
        text = reply(request, self.lines)
        for start in range(0, len(text), PIECE_CHARS):
            yield Delta(text[start : start + PIECE_CHARS])
        usage = replace(estimate(request, text), cost_usd=0.0)
        yield Done(text=text, usage=usage, provider=self.name, model=self.model)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""

    def _read(self, file: SoulFile) -> Lines | None:
        try:
            return Lines.of(file, self._shipped)
        except BadSoul as problem:
            log.warning("rehearsal lines are not in force: %s", problem.message)
            return None


def _lines_file(source: SoulSource) -> SoulFile:
    found = source.current().files.get(FILE)
    if not found:
        raise next(iter(source.problems), None) or BadSoul(FILE, 0, "is missing", "install Claudius again")
    return found


def greeting(home: Home, name: str = "") -> str:
    """Return the soul's greeting to somebody whom it has not met, from its lines: no model is asked.

    Empty if its lines hold none. Raises: BadSoul.
    """
    source = SoulSource(home.soul, shipped("soul"), ())
    section = Rehearsal(source).lines.sections.get("greeting")
    title = re.search(r"^# +(.+?) *$", source.current().text("soul.md"), re.MULTILINE)
    return answer(section, {"soul": title[1].partition(",")[0] if title else "", "name": name}, 0) if section else ""


def misfits(directory: Path) -> list[BadSoul]:
    """Return what does not fit in a home's own lines: why they are not in force, or which of them are never used."""
    soul = _lines_file(SoulSource(shipped("soul"), shipped("soul"), ()))
    own = SoulSource(directory, shipped("soul"), ()).current().files.get(FILE)
    if own is None or own.source == soul.source:
        return []
    try:
        Lines.of(own, soul)
    except BadSoul as problem:
        return [problem]
    return list(unused(own, soul))


def build(loaded: Loaded, home: Home) -> Provider:
    """Build the provider, with the home's lines taking precedence over the shipped ones. Raises: BadSoul."""
    del loaded
    return Rehearsal(SoulSource(home.soul, shipped("soul"), ()))


DEFAULT_CHARS = 1500
LINE_CHARS = 160
_ASKED = re.compile(r"(?<![\w-])\d{2,5}(?![\w-])")
_WORD = re.compile(r"[a-z_]+")
_DATA = re.compile(r"<data-[0-9a-f]+>\n.*\n</data-[0-9a-f]+>")
_SAID = frozenset({RecordKind.MESSAGE, RecordKind.DAIMON, RecordKind.SUMMARY})
"""What somebody said aloud, and earlier summaries of it."""


def summarise(request: Request, lines: Lines) -> str:
    """Shorten a request's earlier summary and messages to the requested length. Pure."""
    limits = [int(number) for number in _ASKED.findall(_DATA.sub("", request.tail))]
    left = min(limits[-1] if limits else DEFAULT_CHARS, 100_000)
    earlier, told = "", []
    for record in _heard(request):
        if record["kind"] == RecordKind.SUMMARY:
            earlier = str(record["text"])
        elif line := _told(record, lines):
            told.append(line)
    kept: list[str] = []
    opening = quoted(earlier, left // 3) if earlier else ""
    left -= len(opening)
    for line in reversed(told):
        if (left := left - len(line) - 1) < 0:
            break
        kept.append(line)
    text = "\n".join(filter(None, [opening, *reversed(kept)]))
    return text or quoted(answer(lines.sections["summary"], {}, 0), max(left, 1))


def _heard(request: Request) -> Iterator[Mapping[str, Any]]:
    """Yield every record with text, and the soul's own lines as records, oldest first."""
    for message in request.history:
        if message.role == "user":
            yield from filter(_says, records(message.content))
        for line in spoken((message,)):
            yield {"kind": "spoken", "text": line}
    yield from filter(_says, records(request.tail))


def _says(record: Mapping[str, Any]) -> bool:
    return bool(record.get("text")) and record.get("kind") in _SAID


def _told(record: Mapping[str, Any], lines: Lines) -> str:
    words = quoted(str(record["text"]), LINE_CHARS)
    if record["kind"] == "spoken":
        return say(lines.words.answered, {"words": words}) or ""
    return say(lines.words.heard, {"name": quoted(str(record.get("from", "…")), 40), "words": words}) or words


CALM = "neutral"
NOTES = 12
NOTE_CHARS = 160
KNOWN_CHARS = 500
"""The longest line of the document of who somebody is."""
RECENT = 10
"""Older messages are not read out."""
MOOD_MESSAGES = 3
"""The state is derived from this many of the newest messages, because it is not requested at every turn."""
BY_TIME = "what was said then"
RECALLING = ("who am I", "remember", "what did I say", BY_TIME, "what is this about")
"""The sections for questions that memory may answer more exactly."""


class RehearsedTurn(Struct, frozen=True):
    """What is concluded from one request before any wording."""

    seen: ReadRequest
    lines: Lines
    deeds: Deeds
    occasions: tuple[str, ...]
    """The sections of the lines that this turn calls for, in speaking order."""
    mood: str
    appraisal: str
    seed: int
    values: Mapping[str, str]


def reply(request: Request, lines: Lines) -> str:
    """Answer a request as a model would, from its content and the lines alone. Pure."""
    if request.purpose == "summary":
        return summarise(request, lines)
    mind = consider(read(request), lines)
    if request.purpose == "whisper":
        return answer(lines.sections["whisper"], {}, mind.seed)
    asked = {*mind.seen.asked}
    if request.purpose == "repair":
        asked = {"acts", "external_dialogue"} & {*_WORD.findall(_DATA.sub("", request.tail))}
        mind = replace(mind, occasions=("not done",)) if "acts" in asked else mind
    if not asked:
        return answer(lines.sections["elsewhere"], mind.values, mind.seed)
    return "\n".join([_section(tag, text, verb) for tag, text, verb in _sections(mind) if tag in asked])


def consider(seen: ReadRequest, lines: Lines) -> RehearsedTurn:
    """Conclude what a message asks for, and what answers it. Pure."""
    may_book = ("acts" in seen.asked or seen.done) and not seen.is_inner
    is_secret = not (seen.is_inner or is_question(seen.message)) and hides(seen.message, lines)
    deeds = deeds_of(seen, lines) if may_book and not is_secret else Deeds()
    if seen.done and seen.done != _written(deeds):
        deeds = Deeds(sections=("not done",))
    mood = "" if seen.is_inner else mood_in(seen.message, lines)
    intent, recalled = ("", "") if deeds.sections else _intent(seen, lines)
    warning = warned(seen) if not (seen.is_inner or recalled or deeds.sections) else ""
    told = bool(deeds.learned or deeds.known)
    if (warning and intent == "not remembered") or (told and intent and lines.sections[intent].is_small_talk):
        intent = ""
    aside: dict[str, object] = {"learned": deeds.learned, "already known": deeds.known and not deeds.learned}
    aside |= {"not kept": is_secret, "beware": warning}
    occasions = [*deeds.sections, *([intent] if intent else []), *[name for name, holds in aside.items() if holds]]
    occasions = occasions or [_otherwise(seen, mood)]
    if seen.is_first and not seen.is_inner and "unattached" not in occasions:
        occasions.append("unattached")
    said = f"{len(seen.spoken)}\0{seen.message}".encode("utf-8", "replace")
    return RehearsedTurn(
        seen=seen,
        lines=lines,
        deeds=deeds,
        occasions=tuple(occasions),
        mood=mood or seen.state.get("emotionalState", CALM),
        appraisal=_appraisal(seen, lines, intent),
        seed=int.from_bytes(blake2b(said, digest_size=8).digest(), "big"),
        values={**_values(seen, lines, deeds), "recalled": recalled or warning},
    )


def _otherwise(seen: ReadRequest, mood: str) -> str:
    if seen.is_inner:
        return "elsewhere"
    if not re.search(r"\w", seen.message):
        return "silence"
    return f"mood {mood}" if mood else "question" if is_question(seen.message) else "statement"


def _appraisal(seen: ReadRequest, lines: Lines, intent: str) -> str:
    """Return in one closed word how a message lands."""
    if kind := lines.words.appraises.get(intent):
        return kind
    text = plain(seen.message)
    heard = [kind for kind, cues in lines.appraisals.items() if any(cue.is_in(text) for cue in cues)]
    return heard[0] if heard and not (seen.is_inner or is_question(seen.message)) else "nothing"


def _intent(seen: ReadRequest, lines: Lines) -> tuple[str, str]:
    """Return the section that answers a message, "" for none by its words, and what memory says to it. Pure."""
    if seen.is_inner:
        return ("due" if seen.due else "elsewhere"), ""
    intent, cue = intent_of(seen.message, lines)
    if intent and intent not in RECALLING:
        return intent, ""
    if not is_question(seen.message) and plain(seen.message).split(" ", 2)[1] not in lines.words.asks_first:
        return intent, ""
    recalled = recall(seen, lines, cue)
    is_answered = recalled.section and (recalled.text or intent != BY_TIME)
    return (recalled.section, recalled.text) if is_answered else (intent, "")


def _values(seen: ReadRequest, lines: Lines, deeds: Deeds) -> Mapping[str, str]:
    said = open_words(seen.said[-RECENT:], lines)
    told_here = [text for text in said if not intent_of(text, lines)[0]]
    named = [seen.state[key] for key in ("currentTopic", "currentTask", "currentProject") if seen.state.get(key)]
    known = [one.text for one in (*seen.known, *seen.matters) if not one.text.startswith("called ")]
    notes = list(dict.fromkeys([quoted(note, NOTE_CHARS) for note in (*known, *seen.notes)]))
    return {
        "name": quoted(_called(seen, deeds), 40),
        "soul": seen.title.partition(",")[0],
        "title": seen.title,
        "headings": ", ".join(seen.headings),
        "notes": _bullets(notes[:NOTES]),
        "note": notes[-1] if notes else "",
        "topic": quoted(named[0], 80) if named else "",
        "last": quoted(told_here[-1], 80) if told_here else "",
        "said": _bullets([f"“{quoted(text, 120)}”" for text in said[-3:]]),
        "summary": quoted(seen.summary, 300),
        "mood": seen.state.get("emotionalState", CALM),
        "quote": "" if hides(seen.message, lines) else quoted(seen.message, 60),
        "kept": " ".join([f"“{fact.kept}”" for fact in deeds.learned or deeds.known]),
        "present": seen.present,
        "due": quoted(seen.due, 300),
        "limits": limits(seen),
        "known": "\n".join([quoted(line, KNOWN_CHARS) for line in seen.document.splitlines()]),
        "plans": _bullets([f"{one.id}: {quoted(one.text, NOTE_CHARS)}" for one in seen.plans]),
        "about": quoted(deeds.about, NOTE_CHARS),
    }


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join([f"- {line}" for line in lines])


def _called(seen: ReadRequest, deeds: Deeds) -> str:
    told = [fact.words for fact in deeds.learned if fact.fact.kind == "name"]
    named = [one.text.removeprefix("called ") for one in seen.known if one.text.startswith("called ")]
    return (told[::-1] or named[::-1] or [seen.name])[0]


def _sections(mind: RehearsedTurn) -> Iterator[tuple[str, str, str]]:
    """Yield every section that the turn may request, in writing order: tag, text, attribute."""
    thinks = mind.lines.words.thinks
    thoughts = [choose(mind.lines.sections[name].thoughts, {}, mind.seed) for name in mind.occasions]
    yield "internal_monologue", " ".join(filter(None, thoughts)), f' verb="{thinks[mind.seed % len(thinks)]}"'
    yield "appraisal", mind.appraisal, ""
    yield "acts", _written(mind.deeds), ""
    of = mind.lines.words.moods.get(mind.mood) or mind.lines.words.moods[CALM]
    yield "external_dialogue", _speech(mind), f' verb="{of.verbs[mind.seed % len(of.verbs)]}"'
    yield "user_model_check", "false", ""
    yield "mental_query", "false", ""
    yield "action_choice", '{"actions": ["respond"], "reasoning": "This voice only rehearses."}', ""
    state = _state(mind)
    yield "soul_state_check", str(bool(state)).lower(), ""
    if state:
        yield "soul_state_update", "\n".join([f"{key}: {value}" for key, value in state.items()]), ""


def _written(deeds: Deeds) -> str:
    return "\n".join([data_line(act) for act in deeds.acts]) or "none"


def _section(tag: str, text: str, attribute: str) -> str:
    return f"<{tag}{attribute}>{text}</{tag}>" if "\n" not in text else f"<{tag}{attribute}>\n{text}\n</{tag}>"


def _speech(mind: RehearsedTurn) -> str:
    before = mind.seen.spoken[-1] if mind.seen.spoken else ""
    said, learned = [], mind.deeds.learned
    occasions = [mind.lines.sections[name] for name in mind.occasions]
    for section in occasions:
        if section is mind.lines.sections["learned"] and len(learned) == 1 and learned[0].fact.says:
            said.append(choose(learned[0].fact.says, {"words": learned[0].words}, mind.seed, before))
        else:
            said.append(answer(section, mind.values, mind.seed, before))
    # one question is asked back: the newest fact's, else the first occasion's if it has any
    asks = learned[-1].fact.asks if learned else occasions[0].questions
    values = {"words": learned[-1].words} if learned else mind.values
    said.append(choose(asks, values, mind.seed >> 8, before))
    return "\n\n".join(filter(None, said)) or mind.lines.sections["silence"].groups[0][0]


def _state(mind: RehearsedTurn) -> Mapping[str, str]:
    """Return what the newest messages change in the soul's state."""
    now = () if mind.seen.is_inner else (mind.seen.message,)
    newest = [*now, *reversed(mind.seen.said)][:MOOD_MESSAGES]
    moods = [found for message in newest if (found := mood_in(message, mind.lines))]
    mood = moods[0] if moods else CALM
    return {"emotionalState": mood} if mood != mind.seen.state.get("emotionalState", CALM) else {}
