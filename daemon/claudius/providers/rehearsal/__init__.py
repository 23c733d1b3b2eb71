"""Provide the embedded default: a voice of written lines that keeps, finds, reminds, corrects and forgets, and says so."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

from msgspec.structs import replace

from claudius.config import Loaded
from claudius.errors import BadSoul
from claudius.home import Home, shipped
from claudius.prompt import RecordKind, data_line
from claudius.provider import Delta, Done, Event, Provider, Request, estimate
from claudius.providers.rehearsal.deeds import Deeds, deeds_of
from claudius.providers.rehearsal.lines import Lines, answer, choose, say, unused
from claudius.providers.rehearsal.reading import (
    ReadRequest,
    hides,
    is_open,
    is_question,
    quoted,
    read,
    records,
    spoken,
    told_of,
)
from claudius.providers.rehearsal.recall import limits, recall, warned
from claudius.soul import SoulFile, SoulSource

__all__ = ["FILE", "Lines", "Rehearsal", "build", "greeting", "misfits", "reply"]

NAME, FILE = "rehearsal", "rehearsal.md"
PIECE_CHARS = 24
DEFAULT_CHARS, LINE_CHARS = 1500, 160
"""Of a summary, and of a line in it."""
RECALLING = ("who am I", "what did I say")
"""Questions that memory may answer more exactly."""
_DATA = re.compile(r"<data-[0-9a-f]+>\n.*\n</data-[0-9a-f]+>")

log = logging.getLogger(__name__)


class Rehearsal:
    """The rehearsal provider. Its lines are read again whenever their file changes."""

    name = model = NAME

    def __init__(self, source: SoulSource, home: Path) -> None:
        """Use the lines of a soul. Raises: BadSoul if not even the shipped ones can be read."""
        self._source, self._home = source, str(home).replace(str(Path.home()), "~", 1)
        self._file = _lines_file(source)
        self._shipped = _lines_file(SoulSource(shipped("soul"), shipped("soul"), ()))
        self.lines = self._read(self._file) or Lines.of(self._shipped)

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Yield the reply in small pieces, without delay."""
        if (file := _lines_file(self._source)) is not self._file:
            self._file, self.lines = file, self._read(file) or self.lines
        text = reply(request, self.lines, f"{self._home}/.env")
        for start in range(0, len(text), PIECE_CHARS):
            yield Delta(text[start : start + PIECE_CHARS])
        yield Done(text=text, usage=replace(estimate(request, text), cost_usd=0.0), provider=NAME, model=NAME)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""

    def _read(self, file: SoulFile) -> Lines | None:
        try:
            return Lines.of(file, self._shipped)
        except BadSoul as problem:
            log.warning("rehearsal lines are not in force: %s", problem.message)
            return None


def _lines_file(source: SoulSource) -> SoulFile:
    if found := source.current().files.get(FILE):
        return found
    raise next(iter(source.problems), None) or BadSoul(FILE, 0, "is missing", "install Claudius again")


def greeting(home: Home, name: str = "") -> str:
    """Return the soul's greeting to somebody whom it has not met: no model is asked. Raises: BadSoul."""
    source = SoulSource(home.soul, shipped("soul"), ())
    title = re.search(r"^# +(.+?) *$", source.current().text("soul.md"), re.MULTILINE)
    values = {"soul": title[1].partition(",")[0] if title else "", "name": name}
    return answer(Rehearsal(source, home.root).lines.sections["greeting"], values, 0)


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
    return Rehearsal(SoulSource(home.soul, shipped("soul"), ()), home.root)


def reply(request: Request, lines: Lines, env: str = ".env") -> str:
    """Answer a request as a model would, from its content and the lines alone. Pure."""
    if request.purpose == "summary":
        return _summary(request, lines)
    seen = read(request, lines)
    seed = int.from_bytes(blake2b(f"{len(seen.spoken)}\0{seen.raw}".encode("utf-8", "replace"), digest_size=8).digest())
    asked = {*seen.asked}
    if request.purpose == "repair":
        asked = {"acts", "external_dialogue"} & {*re.findall("[a-z_]+", _DATA.sub("", request.tail))}
    if not asked or request.purpose == "whisper":
        return answer(lines.sections["whisper" if request.purpose == "whisper" else "elsewhere"], {}, seed)
    deeds = Deeds()
    if ("acts" in asked or seen.done) and not (seen.is_inner or hides(seen.raw, lines)):
        deeds = deeds_of(seen, lines)
    is_refused = request.purpose == "repair" and "acts" in asked
    if is_refused or (seen.done and seen.done != _written(deeds)):
        deeds = Deeds(sections=("not done",))
    occasions, recalled = _occasions(seen, lines, deeds)
    values = {**_values(seen, lines, deeds), "recalled": recalled, "env": env}
    heard = [lines.sections[name].thoughts or lines.words.thoughts for name in occasions]
    thinks, speaks = lines.words.thinks, lines.words.speaks
    appraised = "" if is_question(seen.raw) else lines.words.appraises.get(occasions[0].partition(",")[0], "")
    written = {
        f'internal_monologue verb="{thinks[seed % len(thinks)]}"': " ".join([choose(one, {}, seed) for one in heard]),
        "appraisal": appraised or "nothing",
        "acts": _written(deeds),
        f'external_dialogue verb="{speaks[seed % len(speaks)]}"': _speech(seen, lines, deeds, occasions, values, seed),
        "user_model_check": "false",
        "mental_query": "false",
        "action_choice": '{"actions": ["respond"], "reasoning": "This voice only rehearses."}',
        "soul_state_check": "false",
    }
    tags = [(tag, tag.partition(" ")[0], text) for tag, text in written.items()]
    return "\n".join(
        [
            f"<{tag}>\n{text}\n</{name}>" if "\n" in text else f"<{tag}>{text}</{name}>"
            for tag, name, text in tags
            if name in asked
        ]
    )


def _written(deeds: Deeds) -> str:
    return "\n".join([data_line(act) for act in deeds.acts]) or "none"


def _occasions(seen: ReadRequest, lines: Lines, deeds: Deeds) -> tuple[list[str], str]:
    """Return the sections of the lines that a turn calls for, in speaking order, and what memory says to it."""
    if seen.is_inner:
        return ["due" if seen.due else "elsewhere"], ""
    first = ["unattached"] if seen.is_first else []
    if deeds.sections:
        return [*deeds.sections, *(["learned"] if deeds.learned else []), *first], ""
    name, cue = lines.answering(seen.message)
    if name.partition(",")[0] in lines.words.feelings:
        return [name], ""
    if hides(seen.raw, lines) and not is_question(seen.raw):
        return ["not kept", *first], ""
    if deeds.learned or deeds.known:
        return ["learned" if deeds.learned else "already known", *first], ""
    recalled = ""
    if (not name or name in RECALLING) and (is_question(seen.raw) or lines.patterns["asks first"].match(seen.message)):
        section, recalled = recall(seen, lines, cue)
        name = section if section and (recalled or not name) else name
    warning = "" if recalled else warned(seen, lines)
    if warning and name in ("", "not remembered"):
        return ["beware", *first], warning
    is_mute = not re.search(r"\w", seen.raw)
    return [name or ("silence" if is_mute else "question" if is_question(seen.raw) else "statement"), *first], recalled


def _values(seen: ReadRequest, lines: Lines, deeds: Deeds) -> Mapping[str, str]:
    said = [text for text in seen.said[-10:] if is_open(text, seen, lines)]
    names = [one.words for one in deeds.learned if one.fact.kind == "name"]
    called = [one.text.removeprefix("called ") for one in seen.known if one.text.startswith("called ")]
    return {
        "name": quoted((names[::-1] or called[::-1] or [seen.name])[0], 40),
        "again": "again" if called or seen.said else "",
        "soul": seen.title.partition(",")[0],
        "title": seen.title,
        "last": quoted(said[-1], 80) if said else "",
        "said": "\n".join([f"- “{quoted(text, 120)}”" for text in said[-3:]]),
        "summary": quoted(seen.summary, 300),
        "present": seen.present,
        "due": quoted(seen.due, 300),
        "limits": "; ".join([quoted(told_of(one, lines), 160) for one in limits(seen, lines)]),
        "known": "\n".join([quoted(line, 500) for line in seen.document.splitlines()]),
        "plans": "\n".join([f"- {one.id}: {quoted(one.text, 160)}" for one in seen.plans]),
        "about": quoted(deeds.about, 160),
    }


def _speech(
    seen: ReadRequest, lines: Lines, deeds: Deeds, occasions: Sequence[str], values: Mapping[str, str], seed: int
) -> str:
    before, said = "\n".join(seen.spoken[-20:]), []
    facts = deeds.learned or deeds.known
    for name in occasions:
        own = [
            choose(one.fact.says, {"words": one.words}, seed, before)
            for one in facts
            if one.fact.says and name == "learned"
        ]
        rest = [one.told for one in facts if name != "learned" or not one.fact.says]
        told = f"{', '.join(rest[:-1])} and {rest[-1]}" if rest[:-1] else "".join(rest)
        said.append(
            " ".join(
                [*own, "" if own and not rest else answer(lines.sections[name], {**values, "told": told}, seed, before)]
            ).strip()
        )
    if deeds.learned and occasions[0] == "learned" and not before.endswith("?"):
        said.append(choose(deeds.learned[-1].fact.asks, {"words": deeds.learned[-1].words}, seed >> 8, before))
    return "\n\n".join(filter(None, said)) or lines.sections["silence"].groups[0][0]


def _summary(request: Request, lines: Lines) -> str:
    """Shorten a request's earlier summary and messages to the requested length; the newest words are kept."""
    asked = re.findall(r"(?<![\w-])\d{2,5}(?![\w-])", _DATA.sub("", request.tail))
    left, earlier, told = int(asked[-1]) if asked else DEFAULT_CHARS, "", []
    for record in _heard(request):
        words = quoted(str(record["text"]), LINE_CHARS)
        if record["kind"] == RecordKind.SUMMARY:
            earlier = quoted(str(record["text"]), left // 3)
        else:
            form = lines.words.answered if record["kind"] == "spoken" else lines.words.heard
            told.append(say(form, {"name": quoted(str(record.get("from", "…")), 40), "words": words}))
    kept: list[str] = []
    for line in reversed(told):
        if len("\n".join([earlier, line, *kept])) > left:
            break
        kept.insert(0, line)
    return "\n".join(filter(None, [earlier, *kept])) or quoted(answer(lines.sections["summary"], {}, 0), left)


def _heard(request: Request) -> Iterator[Mapping[str, str]]:
    """Yield what was said aloud and earlier summaries of it, oldest first."""
    kinds = (RecordKind.MESSAGE, RecordKind.DAIMON, RecordKind.SUMMARY)
    for message in (*request.history, request):
        text = message.tail if isinstance(message, Request) else message.content if message.role == "user" else ""
        yield from [one for one in records(text) if one.get("text") and one.get("kind") in kinds]
        yield from [
            {"kind": "spoken", "text": line} for line in (() if isinstance(message, Request) else spoken((message,)))
        ]
