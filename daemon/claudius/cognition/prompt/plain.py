"""Speak to a small model as to anybody: a short persona, ordinary turns, memory in prose, and judgements afterwards.

A model of a few billion parameters copies what it is shown. So its prompt has no form to fill in: no section, no
example, and markers only around what a third party wrote. What a larger model writes before its words is asked after
them, in one call that goes on from the same prompt, so that the server's cache serves both. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from string import Template
from typing import Any

from claudius.cognition.history import heard_records, said_plainly, spoken_by, whole_text
from claudius.cognition.plan import EngineSettings, Plan, soul_name
from claudius.cognition.prompt.present import MANIFEST, day_and_place, plan_line, present, tools_here
from claudius.cognition.reply.tags import TOOL_USE
from claudius.perception import Kind, Origin, private
from claudius.prompt import Prompt, RecordKind, clear_nonce, data_line, fence
from claudius.provider import Message
from claudius.recollection import Recollection, Summary
from claudius.soul import SoulText

PLAIN, WORDS = "plain.md", "plain_words.md"
PERSONA_LINES = 12
"""The most lines of a soul.md that stand for a persona that nobody wrote for small models."""
LINE_CHARS = 400
"""The most that a line of memory holds (some 100 tokens)."""
PORTRAIT_CHARS = 1200
"""The most that is shown of a portrait (300 tokens)."""


def persona(soul: SoulText) -> str:
    """Return who the soul is, in at most twelve lines: `plain.md`, or the first lines of another soul's `soul.md`."""
    known = soul.derived.get("persona")
    if known is None:
        whole, file = soul.text("soul.md"), soul.files.get(PLAIN)
        whose = str(file.head.get("soul", "")).casefold() if file else "?"
        if file and whose in ("", soul_name(whole)):
            known = file.text.strip()
        else:
            lines = [line for line in whole.splitlines() if line.strip() and not line.startswith("#")]
            known = "\n".join(lines[:PERSONA_LINES])
        soul.derived["persona"] = known
    return str(known)


def plain_system(plan: Plan, recollection: Recollection, soul: SoulText, settings: EngineSettings) -> str:
    """Return who the soul is, with the day in the first line, and what is remembered, in prose.

    Measured with a real model of 135 million parameters over eighty lines: 55 are answered so, 47 or 48 with the day
    before the persona, 49 to a bare line of persona. A line of what it is not costs answers. A talk of two names no
    place, and the day and not the hour, which keeps a talk's prompt the same from its beginning.
    """
    words, (first, *rest) = soul.files[WORDS].head, persona(soul).split("\n")
    today = day_and_place(recollection, soul, settings.zone, str(words["day"]))
    return "\n".join([f"{first} {today}".rstrip(), *rest, *_memory(plan, recollection, words, settings.zone)])


def plain_tail(plan: Plan, recollection: Recollection, soul: SoulText, settings: EngineSettings) -> str:
    """Return this turn's message; before it, between markers, what others wrote that it shows."""
    words, heard, foreign = soul.files[WORDS].head, list[str](), list[str]()
    due = {one.kind.value for one in recollection.perceptions if one.origin is Origin.INTERNAL} - {Kind.NEWS, Kind.TOOL}
    for record in heard_records(recollection, settings.message_chars):
        if record.get("kind") in (RecordKind.MESSAGE, RecordKind.REACTION):
            name = "" if recollection.audience.startswith(private("")) else str(record.get("from") or "")
            heard.append(spoken_by(name, whole_text(record)))
        elif record.get("kind") in due:
            said = said_plainly(whole_text(record))
            heard.append(Template(str(words["due"])).substitute(name=_who(recollection), text=said))
        else:
            foreign.append(data_line(record))
    tools = [soul.text(MANIFEST), soul.steps[TOOL_USE].instruction, *tools_here(plan, soul), ""] if plan.tools else []
    nonce = clear_nonce(recollection.nonce, foreign)
    shown = [str(words["shown"]), fence("\n".join(foreign), nonce), ""] if foreign else []
    return "\n".join([*tools, *shown, *heard])


def again_tail(tail: str, recollection: Recollection, soul: SoulText) -> str:
    """Return the tail of the second try, after words that nobody can be told."""
    return f"{tail}\n\n{Template(str(soul.files[WORDS].head['again'])).substitute(name=_who(recollection))}"


def judging_prompt(
    asked: Prompt, said: str, judged: Plan, recollection: Recollection, soul: SoulText, zone: str
) -> Prompt:
    """Return the prompt that asks for the judgements: the one that was answered, the answer, and what to judge."""
    words, name = soul.files[WORDS].head, _who(recollection)
    lines: Mapping[str, Any] = words["judged"]
    told = [
        Template(str(lines[step])).safe_substitute(name=name) if step in lines else soul.steps[step].instruction
        for step in judged.asked
    ]
    portraits = [one.text[:PORTRAIT_CHARS] for one in judged.shown if one.text]
    lead = [Template(str(words["portrait"])).substitute(name=name), *map(said_plainly, portraits)] if portraits else []
    asks = Template(str(words["judge"])).substitute(name=name)
    tail = "\n".join([*filter(None, [present(recollection, soul, zone)]), asks, *told, *lead])
    history = (*asked.history, Message("user", asked.tail), Message("assistant", said))
    return Prompt(asked.system, history, tail, len(history))


def _who(recollection: Recollection) -> str:
    to = recollection.addressee
    return " ".join(said_plainly(to.name).split()) if to and to.name else "them"


def _memory(plan: Plan, recollection: Recollection, words: Mapping[str, Any], zone: str) -> Iterator[str]:
    """Yield at most three lines: what is known of the speaker, what waits, what was said before; then counsel."""
    name = _who(recollection)
    facts = [" ".join(one.text.split()) for one in recollection.known]
    plans = [plan_line(one, zone, names_zone=False).partition(" ")[2] for one in recollection.plans]
    matters = [*plans, *[" ".join(one.text.split()) for one in recollection.matters]]
    moments = [
        f"{one.get('ago') or one.get('when', '')} {one.get('from', '')}: {one['text']}" for one in plan.remembered.lines
    ]
    for key, field, texts in (("know", "facts", facts), ("open", "matters", matters), ("remember", "moments", moments)):
        line = ""
        for text in texts:
            if len(line) + len(text) > LINE_CHARS:
                break
            line = f"{line}; {text}" if line else text
        if line:
            yield Template(str(words[key])).substitute({"name": name, field: said_plainly(" ".join(line.split()))})
    if recollection.second_thought:
        yield said_plainly(" ".join(recollection.second_thought.split()))


def plain_summary(soul: SoulText, summary: Summary) -> Message:
    """Render the summary as one user line."""
    said = said_plainly(" ".join(summary.text.split()))
    return Message("user", Template(str(soul.files[WORDS].head["before"])).substitute(summary=said))
