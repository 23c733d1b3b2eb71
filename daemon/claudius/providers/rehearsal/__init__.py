"""Provide the embedded default: a deterministic offline voice that remembers, recalls, and says that it is no model."""

from __future__ import annotations

import json
import logging
import re
import unicodedata
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from claudius.config import Loaded
from claudius.errors import BadSoul
from claudius.home import Home, shipped
from claudius.prompt import RecordKind
from claudius.provider import Delta, Done, Event, Provider, Request, estimate
from claudius.providers.rehearsal.deeds import wanted_in
from claudius.providers.rehearsal.lines import Lines, TopicLines, answer, choose, plain, say, unused
from claudius.providers.rehearsal.reading import (
    Noticed,
    ReadRequest,
    ShownModel,
    facts_in,
    hides,
    intent_of,
    is_question,
    lasts,
    limits,
    mood_in,
    quoted,
    read,
    recall,
    records,
    spoken,
    subject,
    topics_in,
    warned,
)
from claudius.providers.rehearsal.times import peel
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
ANY_DAY = datetime(2026, 1, 5, tzinfo=UTC)
"""A request is only asked whether it names a time: the prompt is all that this voice knows."""
SECTION_BYTES = 2000
MODEL_BYTES = 8000
SECTIONS_A_TURN = 3
NOTES = 12
NOTE_CHARS = 160
KNOWN_CHARS = 500
"""The longest line of the document of who somebody is."""
RECENT = 10
"""Older messages are not searched for the topic."""
TOPIC_MESSAGES = 3
"""The state is derived from this many of the newest messages, because it is not requested at every turn."""
SUBJECT_CHARS = 8
BY_TIME = "what was said then"
RECALLING = ("who am I", "remember", "what did I say", BY_TIME, "what is this about")
"""The sections for questions that memory may answer more exactly."""


class RehearsedTurn(Struct, frozen=True, kw_only=True):
    """What is concluded from one request before any wording."""

    seen: ReadRequest
    lines: Lines
    learned: tuple[Noticed, ...]
    """New facts that this turn may write down, and has room for."""
    known: tuple[Noticed, ...]
    unwritten: bool
    """A new fact was stated in a turn that may not write."""
    full: bool
    secret: bool
    warning: str
    """What memory knows that they must not, and that they touch upon; empty = nothing."""
    mood: str
    intent: str
    seed: int
    values: Mapping[str, str]


def reply(request: Request, lines: Lines) -> str:
    """Answer a request as a model would, from its content and the lines alone. Pure."""
    if request.purpose == "summary":
        return summarise(request, lines)
    mind = consider(read(request), lines)
    if request.purpose == "repair":
        return _section("external_dialogue", _speech(mind), _verb(mind))
    if request.purpose == "whisper":
        return answer(lines.sections["whisper"], {}, mind.seed)
    if not mind.seen.asked:
        return answer(lines.sections["elsewhere"], mind.values, mind.seed)
    asked = dict.fromkeys(mind.seen.asked)
    return "\n".join([_section(tag, text, verb) for tag, text, verb in _sections(mind) if tag in asked])


def consider(seen: ReadRequest, lines: Lines) -> RehearsedTurn:
    """Compare what the message reveals with what is known already. Pure."""
    found, secret = ((), False) if seen.is_inner else facts_in(seen.message, lines)
    is_told = not (seen.is_inner or is_question(seen.message))
    secret = secret or (is_told and hides(seen.message, lines))
    notes = {plain(note) for model in seen.models for note in model.notes()}
    known = tuple([fact for fact in found if plain(fact.kept) in notes])
    new = tuple([fact for fact in found if fact not in known])
    may_write = "user_model_update" in seen.asked
    learned = _fitting(seen, new) if may_write and new else ()
    full = may_write and len(learned) < len(new)
    mood = "" if seen.is_inner else mood_in(seen.message, lines)
    intent, recalled = _intent(seen, lines)
    warning = warned(seen, lines) if not (seen.is_inner or recalled) else ""
    if warning and intent == "not remembered":
        intent = ""
    if found and intent and lines.sections[intent].is_small_talk:
        intent = ""
    if not (intent or learned or known or full or secret or warning):
        if not re.search(r"\w", seen.message):
            intent = "silence"
        elif mood:
            intent = f"mood {mood}"
        else:
            lasting = is_told and lasts(seen.message)
            intent = "told of themselves" if lasting else "statement" if is_told else "question"
    told = f"{len(seen.spoken)}\0{seen.message}".encode("utf-8", "replace")
    return RehearsedTurn(
        seen=seen,
        lines=lines,
        learned=learned,
        known=known,
        unwritten=bool(new) and not may_write,
        full=full,
        secret=secret,
        warning=warning,
        mood=mood or seen.state.get("emotionalState", CALM),
        intent=intent,
        seed=int.from_bytes(blake2b(told, digest_size=8).digest(), "big"),
        values={**_values(seen, lines, learned or known, new), "recalled": recalled or warning},
    )


def _intent(seen: ReadRequest, lines: Lines) -> tuple[str, str]:
    """Return the section that answers a message, "" for none by its words, and what memory says to it. Pure."""
    if seen.is_inner:
        return ("due" if seen.due else "elsewhere"), ""
    if wanted := wanted_in(seen.message, ANY_DAY):
        return ("reminder" if wanted.when else "reminder without a time"), ""
    asked = [line for group in lines.sections["reminder without a time"].groups for line in group]
    if seen.spoken and any(line in seen.spoken[-1] for line in asked) and peel(seen.message, ANY_DAY)[1].is_any:
        return "reminder", ""
    intent, cue = intent_of(seen.message, lines)
    if intent and intent not in RECALLING:
        return intent, ""
    if not is_question(seen.message) and plain(seen.message).split(" ", 2)[1] not in lines.words.asks_first:
        return intent, ""
    recalled = recall(seen, lines, cue)
    is_answered = recalled.section and (recalled.text or intent != BY_TIME)
    return (recalled.section, recalled.text) if is_answered else (intent, "")


def _values(seen: ReadRequest, lines: Lines, told: Sequence[Noticed], new: Sequence[Noticed]) -> Mapping[str, str]:
    open_words = [text for text in seen.said[-RECENT:] if not hides(text, lines)]
    told_here = [text for text in open_words if not intent_of(text, lines)[0]]
    about = _latest_topics(told_here[::-1], lines) | seen.state
    named = [about[key] for key in ("currentTopic", "currentTask", "currentProject") if about.get(key)]
    notes = list(dict.fromkeys([quoted(note, NOTE_CHARS) for model in seen.models for note in model.notes()]))
    return {
        "name": quoted(_called(seen, lines, new), 40),
        "soul": seen.title.partition(",")[0],
        "title": seen.title,
        "headings": ", ".join(seen.headings),
        "notes": "\n".join([f"- {note}" for note in notes[:NOTES]]),
        "note": notes[-1] if notes else "",
        "topic": quoted(named[0], 80) if named else "",
        "last": quoted(told_here[-1], 80) if told_here else "",
        "said": "\n".join([f"- “{quoted(text, 120)}”" for text in open_words[-3:]]),
        "summary": quoted(seen.summary, 300),
        "mood": seen.state.get("emotionalState", CALM),
        "quote": "" if hides(seen.message, lines) else quoted(seen.message, 60),
        "kept": " ".join([f"“{fact.kept}”" for fact in told]),
        "felt": seen.felt.get("mood", ""),
        "present": seen.present,
        "due": quoted(seen.due, 300),
        "limits": limits(seen, lines),
        "known": "\n".join([quoted(line, KNOWN_CHARS) for line in seen.known.splitlines()]),
    }


def _called(seen: ReadRequest, lines: Lines, new: Sequence[Noticed]) -> str:
    naming = lines.words.facts[0]
    for fact in reversed(new):
        if fact.fact is naming:
            return fact.words
    before, _, after = naming.keeps.partition("$words")
    for model in seen.models:
        for note in reversed(list(model.notes())):
            if note.startswith(before) and note.endswith(after):
                return note[len(before) : len(note) - len(after)]
    return seen.name


def _fitting(seen: ReadRequest, new: Sequence[Noticed]) -> tuple[Noticed, ...]:
    """Return the facts that fit into the user model and their sections, from at most three sections."""
    model = _writable(seen)
    room = MODEL_BYTES - len(model.markdown.encode())
    taken: list[Noticed] = []
    for fact in new:
        name = fact.fact.section
        sections = {other.fact.section for other in taken} | {name}
        body = _body(model, name, [other for other in taken if other.fact.section == name] + [fact])
        room -= len(fact.kept.encode()) + len(name) + 8
        if room >= 0 and len(body.encode()) <= SECTION_BYTES and len(sections) <= SECTIONS_A_TURN:
            taken.append(fact)
    return tuple(taken)


def _writable(seen: ReadRequest) -> ShownModel:
    for model in seen.models:
        if model.writable:
            return model
    return ShownModel("", writable=True)


def _body(model: ShownModel, section: str, facts: Sequence[Noticed]) -> str:
    return "\n".join(filter(None, [_unclosed(model.body(section)), *(f"- {fact.kept}" for fact in facts)]))


def _unclosed(body: str) -> str:
    """Keep text of a user model from closing the section that it is written in."""

    def mend(match: re.Match[str]) -> str:
        name = re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", match[1])).casefold()
        return "‹" + match[0][1:] if name.startswith("usermodelupdate") else match[0]

    return re.sub(r"<(?=\s*/([^<>]*))", mend, body)


def _sections(mind: RehearsedTurn) -> Iterator[tuple[str, str, str]]:
    """Yield every section that the turn may request, in writing order: tag, text, attribute."""
    thinks = mind.lines.words.thinks
    thoughts = [choose(section.thoughts, {}, mind.seed) for section in _occasions(mind)]
    yield "internal_monologue", " ".join(filter(None, thoughts)), f' verb="{thinks[mind.seed % len(thinks)]}"'
    yield "external_dialogue", _speech(mind), _verb(mind)
    yield "user_model_check", str(bool(mind.learned) or mind.unwritten).lower(), ""
    if mind.learned:
        for section in dict.fromkeys(fact.fact.section for fact in mind.learned):
            facts = [fact for fact in mind.learned if fact.fact.section == section]
            yield "user_model_update", _body(_writable(mind.seen), section, facts), f' section="{section}"'
        kept = " ".join([fact.kept for fact in mind.learned])
        yield "model_change_note", quoted(say(mind.lines.words.note, {"kept": kept}) or kept, 200), ""
    yield "mental_query", "false", ""
    yield "action_choice", '{"actions": ["respond"], "reasoning": "This voice only rehearses."}', ""
    state = _state(mind)
    yield "soul_state_check", str(bool(state)).lower(), ""
    if state:
        yield "soul_state_update", "\n".join([f"{key}: {value}" for key, value in state.items()]), ""


def _section(tag: str, text: str, attribute: str) -> str:
    return f"<{tag}{attribute}>{text}</{tag}>" if "\n" not in text else f"<{tag}{attribute}>\n{text}\n</{tag}>"


def _verb(mind: RehearsedTurn) -> str:
    of = mind.lines.words.moods.get(mind.mood) or mind.lines.words.moods[CALM]
    return f' verb="{of.verbs[mind.seed % len(of.verbs)]}"'


def _occasions(mind: RehearsedTurn) -> Iterator[TopicLines]:
    """Yield the sections of the lines file that this turn calls for, in speaking order."""
    sections = mind.lines.sections
    if mind.intent:
        yield sections[mind.intent]
    if mind.learned:
        yield sections["learned"]
    elif mind.known:
        yield sections["already known"]
    if mind.full:
        yield sections["page full"]
    if mind.secret:
        yield sections["not kept"]
    if mind.warning:
        yield sections["beware"]
    if mind.seen.is_first and not mind.seen.is_inner and sections["unattached"] is not sections.get(mind.intent):
        yield sections["unattached"]


def _speech(mind: RehearsedTurn) -> str:
    before = mind.seen.spoken[-1] if mind.seen.spoken else ""
    said = []
    occasions = list(_occasions(mind))
    for section in occasions:
        if section is mind.lines.sections["learned"] and len(mind.learned) == 1 and mind.learned[0].fact.says:
            said.append(choose(mind.learned[0].fact.says, {"words": mind.learned[0].words}, mind.seed, before))
        else:
            said.append(answer(section, mind.values, mind.seed, before))
    if mind.learned:  # one question is asked back: the newest fact's, else the first occasion's if it has any
        said.append(choose(mind.learned[-1].fact.asks, {"words": mind.learned[-1].words}, mind.seed >> 8, before))
    elif occasions:
        said.append(choose(occasions[0].questions, mind.values, mind.seed >> 8, before))
    return "\n\n".join(filter(None, said)) or mind.lines.sections["silence"].groups[0][0]


def _state(mind: RehearsedTurn) -> Mapping[str, str]:
    """Return what the newest messages change in the soul's state."""
    now = () if mind.seen.is_inner else (mind.seen.message,)
    newest = [*now, *reversed(mind.seen.said)][:TOPIC_MESSAGES]
    moods = [found for message in newest if (found := mood_in(message, mind.lines))]
    state = {"emotionalState": moods[0] if moods else CALM, **_latest_topics(newest, mind.lines)}
    before = {"emotionalState": CALM, **mind.seen.state}
    return {key: value for key, value in state.items() if before.get(key, "") != value}


def _latest_topics(newest_first: Sequence[str], lines: Lines) -> dict[str, str]:
    """Return the topic that the messages name, else what the newest one of substance seems to be about."""
    open_words = [message for message in newest_first if not hides(message, lines)]
    for message in open_words:
        if topics := topics_in(message, lines):
            return topics
    for message in open_words:
        if not (intent_of(message, lines)[0] or mood_in(message, lines) or facts_in(message, lines)[0]):
            about = subject(message, lines)
            if len(about) >= SUBJECT_CHARS:
                return {"currentTopic": about}
    return {}
