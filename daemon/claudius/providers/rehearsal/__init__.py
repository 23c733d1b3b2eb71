"""Provide the embedded default: a voice of written lines that keeps, finds, reminds, corrects, forgets, and says so."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from hashlib import blake2b
from pathlib import Path

from msgspec.structs import replace

from claudius.config.load import Loaded
from claudius.errors import BadSoul
from claudius.home import Home, shipped
from claudius.memory.ranking import tongue
from claudius.prompt import MARK, RecordKind, nested_line
from claudius.provider import Delta, Done, Event, Message, Provider, Request, estimate
from claudius.providers.rehearsal import reading as reads
from claudius.providers.rehearsal.lines import Lines, answer, choose, say
from claudius.soul import SoulSource

NAME, FILE = "rehearsal", "rehearsal.md"
_DATA = re.compile(r"<data-[0-9a-f]+>\n.*\n</data-[0-9a-f]+>")


class Rehearsal:
    """The rehearsal provider. Its lines are read again whenever their file changes."""

    name = model = NAME

    def __init__(self, home: Home) -> None:
        self.source = SoulSource(home.soul, shipped("soul"), ())
        self._env = str(home.env_file).replace(str(Path.home()), "~", 1)
        self._shipped = self._file = SoulSource(shipped("soul"), shipped("soul"), ()).current().files[FILE]
        self.lines = Lines(self._shipped)
        self.refresh()

    def refresh(self) -> None:
        """Read the lines again if their file changed; unusable ones are told to the log, and the last stay in force."""
        if (file := self.source.current().files[FILE]) is not self._file:
            self._file = file
            try:
                self.lines = Lines(file, self._shipped)
            except BadSoul as problem:
                logging.getLogger(__name__).warning("rehearsal lines are not in force: %s", problem.message)

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Yield the reply in small pieces, without delay."""
        self.refresh()
        text = reply(request, self.lines, self._env)
        for start in range(0, len(text), 24):
            yield Delta(text[start : start + 24])
        yield Done(text=text, usage=replace(estimate(request, text), cost_usd=0.0), provider=NAME, model=NAME)

    async def aclose(self) -> None:
        """Do nothing: there is nothing to close."""


def build(_: Loaded, home: Home) -> Provider:
    """Build the provider, with the home's lines taking precedence over the shipped ones. Raises: BadSoul."""
    return Rehearsal(home)


def greeting(home: Home, name: str = "") -> str:
    """Return the soul's greeting to somebody whom it has not met: no model is asked. Raises: BadSoul."""
    voice = Rehearsal(home)
    title = re.search(r"^# +([^,\n]+)", voice.source.current().text("soul.md"), re.MULTILINE)
    return answer(voice.lines.sections["greeting"], {"soul": title[1].strip() if title else "", "name": name}, 0)


def reply(request: Request, lines: Lines, env: str = ".env") -> str:
    """Answer a request as a model would, from its content and the lines alone. Pure."""
    if request.purpose == "summary":
        return _summary(request, lines)
    seen = reads.ReadRequest(request, lines)
    said = f"{len(seen.spoken)}\0{seen.message}".encode("utf-8", "replace")
    seed = int.from_bytes(blake2b(said, digest_size=8).digest(), "big")
    is_repair, again = request.purpose == "repair", re.findall("[a-z_]+", _DATA.sub("", request.tail))
    asked = {"acts", "external_dialogue"}.intersection(again) if is_repair else seen.asked
    if not asked or request.purpose == "whisper":
        return answer(lines.sections["whisper" if request.purpose == "whisper" else "elsewhere"], {}, seed)
    may_book = ("acts" in asked or seen.done) and not (seen.is_inner or reads.hides(seen.message, lines))
    is_plea = lines.answering(seen.message, "")[0].startswith("plea")
    deeds = reads.deeds_of(seen, lines) if may_book and not is_plea else reads.Deeds()
    written = "\n".join([nested_line(act) for act in deeds.acts]) or "none"
    if (is_repair and "acts" in asked) or (seen.done and seen.done != written):
        deeds, written = reads.Deeds(("not done",)), "none"
    wish = reads.wished(seen, lines) if "tool_use" in asked and not (deeds.acts or deeds.sections) else {}
    occasions, recalled = _occasions(seen, lines, deeds, wish)
    occasions = [one if one in lines.sections else one.partition(",")[0] for one in occasions]
    asked = {"internal_monologue", "tool_use"} & asked if wish else asked - {"tool_use"}
    values = _values(seen, lines, deeds) | {"recalled": recalled, "env": env}
    if [one for name in occasions for group in lines.sections[name].groups for one in group if "$known" in one]:
        values["known"] = "\n".join([reads.quoted(line, 500) for line in seen.document().splitlines()])
    lands = "" if reads.is_question(seen.message) else lines.words.appraises.get(occasions[0].partition(",")[0], "")
    thoughts = [choose(lines.sections[name].thoughts or lines.words.thoughts, {}, seed) for name in occasions]
    words = _speech("\n".join(seen.spoken[-20:]), lines, deeds, occasions, values, seed)
    steps = {
        "chosen_action": "none" if recalled or is_plea else "stay_silent",
        f'internal_monologue verb="{choose(lines.words.thinks, {}, seed)}"': " ".join(thoughts),
        "appraisal": lands or "nothing",
        "acts": written,
        "tool_use": nested_line(wish),
        f'external_dialogue verb="{choose(lines.words.speaks, {}, seed)}"': words,
        "action_choice": '{"actions": ["respond"], "reasoning": "This voice only rehearses."}',
        **dict.fromkeys(("user_model_check", "mental_query", "soul_state_check"), "false"),
    }
    named = [(tag, tag.partition(" ")[0], f"\n{text}\n" if "\n" in text else text) for tag, text in steps.items()]
    return "\n".join([f"<{tag}>{text}</{name}>" for tag, name, text in named if name in asked])


def _occasions(seen: reads.ReadRequest, lines: Lines, deeds: reads.Deeds, wish: reads.Act) -> tuple[list[str], str]:
    """Return the sections of the lines that a turn calls for, in speaking order, and what memory says to it."""
    if (used := wish or seen.used) or seen.is_inner:
        name = f"told by {used.get('tool')}" if wish or used.get("state") == "done" else "no tool"
        name = name if used else "due" if seen.due else "elsewhere"
        shown = reads.quoted(reads.text_of(seen.used).replace(MARK, " "), 600)
        return [name if name in lines.sections else "told by a tool"], shown
    asks = (is_asked := lines.patterns["asks first"].match(seen.message)) or reads.is_question(seen.message)
    language = tongue(re.sub(rf"(?i)\b{re.escape(seen.soul)}\b", " ", seen.heard), *lines.tongues).title()
    name, cue = lines.answering(seen.message, language)
    language = name.partition(", in ")[2] or language
    first = [f"unattached, in {language}"] if seen.is_first else []
    kind, *_ = [it[5:] for it, fits in lines.patterns.items() if it[:5] == "kind " and fits.search(seen.message)]
    if language != "English" and kind != "silence":
        kind = here if (here := f"{kind}, in {language}") in lines.sections else "a tongue that is not mine"
    is_felt = name.partition(",")[0] in lines.words.feelings
    if name.startswith("plea") or (is_felt and not is_asked and deeds.sections in ((), ("no longer",))):
        return [name], ""
    name = "" if is_felt else name
    if deeds.sections:
        return [*deeds.sections, *(["learned"] if deeds.learned else []), *first], ""
    if reads.hides(seen.message, lines) and not (reads.is_question(seen.message) or name == "forget a message"):
        return ["not kept", *first], ""
    if deeds.learned or deeds.known:
        asked = [name or kind] if reads.is_question(seen.message) else []
        return ["learned" if deeds.learned else "already known", *asked, *first], ""
    recalled, warning = "", reads.warned(seen, lines)
    if asks and (not name or name in ("who am I", "what did I say")):
        section, recalled = reads.recall(seen, lines, cue)
        name = section if section and (recalled or not name or lines.patterns["about"].search(seen.message)) else name
    if warning and not recalled and name in ("", "not remembered"):
        name, recalled = "beware", warning
    return [kind if name == "not remembered" and language != "English" else name or kind, *first], recalled


def _values(seen: reads.ReadRequest, lines: Lines, deeds: reads.Deeds) -> dict[str, str]:
    said = [text for text in seen.said[-10:] if reads.is_open(text, seen, lines)]
    named = [one.words for one in deeds.learned[::-1] if one.fact.kind == "name"]
    called = [one.removeprefix("called ") for one in seen.known.values() if one.startswith("called ")]
    return {
        "name": reads.quoted([*named, *called, seen.name][0], 40),
        "again": "again" if called or seen.said else "",
        "soul": seen.soul,
        "said": "\n".join([f"- “{reads.quoted(text, 120)}”" for text in said[-3:]]),
        "summary": reads.quoted(seen.summary, 300),
        "present": seen.present,
        "clock": seen.now.strftime(f"%H:%M, %d.%m.%Y ({seen.now.tzinfo})") if seen.now else "",
        "due": reads.quoted(seen.due, 300),
        "limits": "; ".join([reads.quoted(reads.told_of(one, lines), 160) for one in seen.limits]),
        "plans": "\n".join([f"- {one}: {reads.quoted(text, 160)}" for one, text in reversed(seen.plans.items())]),
        "about": reads.quoted(deeds.about, 160),
    }


def _speech(before: str, lines: Lines, deeds: reads.Deeds, names: list[str], values: dict[str, str], seed: int) -> str:
    said: list[str] = []
    for name in names:
        facts = (deeds.learned or deeds.known) if name in ("learned", "already known") else ()
        own = [one for one in facts if one.fact.says and name == "learned"]
        told = " and ".join([one.told for one in facts if one not in own])
        each = [choose(one.fact.says, {"words": one.words}, seed, before) for one in own]
        rest = answer(lines.sections[name], {**values, "told": told}, seed, before) if told or not own else ""
        if name.startswith("unattached") and re.search("mod[eè]l", "".join(said), re.IGNORECASE):  # it is said already
            rest = "" if "`claudius onboard`" in "".join(said) else rest.rpartition("\n")[2]
        said.append(" ".join(filter(None, [*each, rest])))
    if deeds.learned and names[0] == "learned" and not before.endswith("?"):
        said.append(choose(deeds.learned[-1].fact.asks, {"words": deeds.learned[-1].words}, seed >> 8, before))
    return "\n\n".join(filter(None, said)) or lines.sections["silence"].groups[0][0]


def _summary(request: Request, lines: Lines) -> str:
    """Shorten an earlier summary and what was said to the requested length; the newest words are kept."""
    asked = re.findall(r"(?<![\w-])\d{2,5}(?![\w-])", _DATA.sub("", request.tail))
    left, earlier, told = int(asked[-1]) if asked else 1500, "", []
    for message in (*request.history, Message("user", request.tail)):
        said = [{"kind": "spoken", "text": line} for line in reads.spoken([message])]
        for record in (*said, *(reads.records(message.content) if message.role == "user" else ())):
            form = lines.words.folded.get(str(record.get("kind")), "")
            name, text = reads.quoted(str(record.get("from", "…")), 40), reads.text_of(record)
            told.append(say(form, {"name": name, "words": reads.quoted(text, 160)}))
            earlier = reads.quoted(text, left // 3) if record.get("kind") == RecordKind.SUMMARY else earlier
    while told and len("\n".join([earlier, *told])) > left:
        del told[0]
    return "\n".join(filter(None, [earlier, *told])) or reads.quoted(answer(lines.sections["summary"], {}, 0), left)
