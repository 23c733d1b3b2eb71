"""Compose a turn's working memory from the recollection, and build the prompts of function processes from it.

Equal values give equal bytes. Only rows persist; the rest is composed at each recall. `asked` raises BadSoul for a step
without a text. Source: the process design, section 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as replace_line
from itertools import groupby
from operator import attrgetter
from string import Template
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from claudius.cognition.acts import ACTS
from claudius.cognition.asks import QUERY, SPEECH, Ask
from claudius.cognition.history import feels, merged, section, tool_record
from claudius.cognition.plan import EngineSettings, Plan
from claudius.cognition.prompt.assembly import PRESENT, context_blocks, history, system_text
from claudius.cognition.reply.tags import TOOL_USE
from claudius.cognition.steps import STEPS, answered
from claudius.cognition.working_memory import CORE, DEFAULT, ORDER, SUMMARY, MemoryEntry, WorkingMemory
from claudius.errors import BadSoul
from claudius.prompt import Prompt, RecordKind, data_line, fence, quoted
from claudius.provider import Message
from claudius.recollection import EntryType, PastTurn, Recollection
from claudius.soul import SoulText
from claudius.soul.files import StepText, fill, step_text

NAME = "Claudius"
MESSAGE = "message"
"""The region of the current message; it is part of every call."""
INTUITION = "intuition"
"""The region of a daimon's whispers."""
REMEMBERED = "remembered"
"""The region of recalled memories; its records have the kind `memory`."""
REGIONS = {
    PRESENT: "present",
    "Soul State": "state",
    "Daimonic Intuition": INTUITION,
    "User Model": "person",
    "Cortex Beliefs": "beliefs",
    "Peers": "peers",
    "Psyche": "psyche",
    "Remembered": REMEMBERED,
    "Current Message": MESSAGE,
}
"""Heading in the tail → region of the memory."""
_TAGS = {
    EntryType.INTERNAL_MONOLOGUE: "internal_monologue",
    EntryType.EXTERNAL_DIALOG: SPEECH,
    EntryType.TOOL_USE: TOOL_USE,
}
_OF_OTHERS = (EntryType.USER_MESSAGE, EntryType.EVENT, EntryType.DAIMON_SPEECH, EntryType.TOOL_RESULT)


class Wanted(Struct, frozen=True, kw_only=True):
    """What one call asks for: a tag for each section, and a line saying what to write in it."""

    tags: tuple[str, ...]
    lines: tuple[str, ...]
    again: str = ""
    """For a repair call: what was wrong, and the earlier text."""
    head: str = ""
    """The whole This Turn part if a declarative process words it; `lines` is then unused."""
    earlier: str = ""
    """The sections given by earlier calls of the same hop."""
    used: tuple[Message, ...] = ()
    """What stands before those: sections that asked for tools, each with what came of it."""


class Drawn(Struct, frozen=True, kw_only=True):
    """A memory stored relative to the recalled one, for snapshots: a number stands for that recalled entry."""

    order: tuple[str, ...]
    entries: tuple[int | MemoryEntry, ...]
    asked: Wanted
    soul: str = NAME


class PromptSource(Struct, frozen=True):
    """Everything a programmatic call is built from, except the memory."""

    recollection: Recollection
    plan: Plan
    soul: SoulText
    settings: EngineSettings
    base: WorkingMemory = field(default_factory=WorkingMemory)
    """The memory as recalled."""

    @classmethod
    def of(cls, recollection: Recollection, plan: Plan, soul: SoulText, settings: EngineSettings) -> PromptSource:
        """Compose the memory of a turn. Pure."""
        base = WorkingMemory(NAME, tuple(_recalled(recollection, plan, soul, settings)), ORDER)
        return cls(recollection, plan, soul, settings, base)


def _recalled(
    recollection: Recollection, plan: Plan, soul: SoulText, settings: EngineSettings
) -> Iterator[MemoryEntry]:
    yield MemoryEntry(id="core", role="system", content=system_text(soul, settings), region=CORE)
    if recollection.summary:
        yield MemoryEntry(id="summary", role="user", content=recollection.summary.text, region=SUMMARY)
    for past in recollection.past:
        if past.number >= plan.history_from:
            yield from _past(past)
    for heading, block in context_blocks(plan, recollection, soul, settings).items():
        region = REGIONS.get(heading, heading.casefold())
        yield MemoryEntry(id=f"tail/{heading}", role="user", content=block, region=region, name=heading)


def _past(past: PastTurn) -> Iterator[MemoryEntry]:
    for n, shown in enumerate(past.shown):
        if not shown.pointer:
            yield MemoryEntry(
                id=f"{past.turn}/shown/{n}", role="user", content=shown.text, metadata={"turn": past.turn, "shown": n}
            )
    for n, entry in enumerate(past.entries):
        is_own = entry.entry_type not in _OF_OTHERS
        line = MemoryEntry.of(entry, f"{past.turn}/{n}", "assistant" if is_own else "user")
        yield replace_line(line, metadata={**entry.metadata, "turn": past.turn, "n": n})


def fresh(memory: WorkingMemory, base: WorkingMemory) -> tuple[MemoryEntry, ...]:
    """Return what this turn has added to its memory, in order. Pure."""
    known = {entry.id for entry in base.entries}
    return tuple(entry for entry in memory.entries if entry.id not in known)


def prompt_of(source: PromptSource, memory: WorkingMemory, asked: Wanted) -> Prompt:
    """Build the prompt of one call: the regions of the memory in their places, then what is asked. Pure."""
    system = "\n\n".join(entry.content for entry in memory.region(CORE))
    messages, cached = _history(source, memory)
    opening = _opening(source, memory, asked)
    own = _own(fresh(memory, source.base), asked, source.recollection.nonce)
    wanted = _wanted(source, asked)
    if not own:
        return Prompt(system, messages, "\n".join([*opening, wanted]), cached)
    given = [own.pop().content] if own[-1].role == "user" else []
    now = (Message("user", "\n".join(opening)), *own)
    tail = "\n".join([*given, source.soul.text("more.md").strip(), wanted])
    return Prompt(system, merged((*messages, *now)), tail, cached)


def _history(source: PromptSource, memory: WorkingMemory) -> tuple[tuple[Message, ...], int]:
    turns = {past.turn: past for past in source.recollection.past}
    lines = [entry for entry in memory.region(DEFAULT) if entry.metadata.get("turn") in turns]
    kept: list[PastTurn] = []
    for turn, group in groupby(lines, key=lambda entry: str(entry.metadata["turn"])):
        kept.append(_part(turns[turn], list(group)))
    has_summary = bool(memory.region(SUMMARY))
    known = replace(source.recollection, past=tuple(kept), summary=source.recollection.summary if has_summary else None)
    if [past.turn for past in kept] == [turn.turn for turn in source.recollection.past if _stands(turn, source.plan)]:
        dropped = tuple(turn for turn in source.recollection.past if not _stands(turn, source.plan))
        known = replace(known, past=(*dropped, *kept))
        return history(known, source.plan, source.soul, source.settings)
    return history(known, replace(source.plan, history_from=0), source.soul, source.settings)


def _stands(turn: PastTurn, plan: Plan) -> bool:
    return turn.number >= plan.history_from


def _part(past: PastTurn, lines: Sequence[MemoryEntry]) -> PastTurn:
    """Return a past turn reduced to the lines still in the memory; the same object if all are."""
    entries = [int(line.metadata["n"]) for line in lines if "n" in line.metadata]
    shown = {int(line.metadata["shown"]) for line in lines if "shown" in line.metadata}
    whole = {n for n, one in enumerate(past.shown) if not one.pointer}
    if entries == list(range(len(past.entries))) and shown == whole:
        return past
    return replace(
        past,
        entries=tuple(past.entries[n] for n in entries),
        shown=tuple(one for n, one in enumerate(past.shown) if n in shown or one.pointer),
    )


def _opening(source: PromptSource, memory: WorkingMemory, asked: Wanted) -> list[str]:
    """Return the blocks of this turn; additional regions come before the message.

    Whispers are included from the first thought of the turn on, and never in a turn that does not think.
    """
    has_thought = any(one.entry_type is EntryType.INTERNAL_MONOLOGUE for one in fresh(memory, source.base))
    is_felt = has_thought or feels(asked.tags)
    base = {entry.id: entry for entry in source.base.entries}
    known = {entry.id: entry for entry in memory.entries}
    blocks = [
        entry.content
        for entry in source.base.entries
        if entry.id.startswith("tail/") and entry.region != MESSAGE and known.get(entry.id) == entry
        if is_felt or entry.region != INTUITION
    ]
    regions: dict[str, list[MemoryEntry]] = {}
    for entry in memory.entries:
        is_own = entry.role == "assistant" and entry.region == DEFAULT
        if entry.id not in base and not is_own and entry.region != CORE and not _is_result(entry):
            regions.setdefault(entry.region, []).append(entry)
    for region, entries in regions.items():
        blocks.append(_block(region, entries, source.recollection.nonce))
    return [*blocks, *(entry.content for entry in source.base.entries if entry.region == MESSAGE)]


def _block(region: str, entries: Sequence[MemoryEntry], nonce: str) -> str:
    heading = "Notes" if region == DEFAULT else region.replace("_", " ").title()
    return "\n".join([f"## {heading}", *(_noted(entry, region, nonce) for entry in entries)])


def _noted(entry: MemoryEntry, region: str, nonce: str) -> str:
    """Write one line of a region: system entries verbatim, everything else as data."""
    if entry.role == "system":
        return " ".join(entry.content.split())
    kind = RecordKind.MEMORY if region == REMEMBERED else region
    return fence(data_line({"kind": kind, "text": entry.content}), nonce)


def _own(entries: Sequence[MemoryEntry], asked: Wanted, nonce: str) -> list[Message]:
    """Write what the soul added this turn as its own sections, and what tools gave between them."""
    messages: list[Message] = []
    for entry in entries:
        if _is_result(entry):
            messages.append(given_by(entry.content, entry.metadata, nonce))
        elif entry.role == "assistant" and entry.region == DEFAULT:
            messages.append(Message("assistant", section(_tag(entry), entry.content, entry.verb)))
    messages += [*asked.used, *([Message("assistant", asked.earlier)] if asked.earlier else [])]
    return [
        Message(role, "\n".join([one.content for one in run])) for role, run in groupby(messages, attrgetter("role"))
    ]


def given_by(text: str, about: Mapping[str, Any], nonce: str) -> Message:
    """Return what a tool gave as a message. Pure."""
    return Message("user", fence(data_line(tool_record(text, about)), nonce))


def _is_result(entry: MemoryEntry) -> bool:
    return entry.entry_type is EntryType.TOOL_RESULT


def _tag(entry: MemoryEntry) -> str:
    if entry.metadata.get("query") == ACTS:
        return ACTS
    if named := answered(entry.entry_type, entry.metadata):
        return named
    return _TAGS.get(entry.entry_type, QUERY) if entry.entry_type else QUERY


def _wanted(source: PromptSource, asked: Wanted) -> str:
    if asked.head:
        return f"{asked.head}\n{source.soul.text('tail.md').strip()}"
    words = source.soul.files["tail.md"].head
    order = Template(words["order"]).substitute(steps=", ".join(dict.fromkeys(asked.tags)))
    lines = [f"## This Turn\n{order}", *(line for line in asked.lines if line)]
    return "\n".join([*lines, *([asked.again] if asked.again else []), source.soul.text("tail.md").strip()])


def asked(asks: Sequence[Ask[Any]], source: PromptSource) -> Wanted:
    """Word what to write for each ask, in order. Pure. Raises: BadSoul for a step without a text."""
    tags: list[str] = []
    lines: list[str] = []
    for place, ask in enumerate(asks):
        step = _step(ask, source.soul)
        tag = ask.step if ask.step in STEPS else QUERY
        tags.append(tag)
        lines.append(_line(ask, step, tag, source, f' section="{place + 1}"' if is_told_apart(asks, place) else ""))
    return Wanted(tags=tuple(tags), lines=tuple(lines))


def is_told_apart(asks: Sequence[Ask[Any]], place: int) -> bool:
    """Return whether a section needs a number because another ask uses the same tag. Pure."""
    tags = [ask.step if ask.step in STEPS else QUERY for ask in asks]
    return tags.count(tags[place]) > 1


def _step(ask: Ask[Any], soul: SoulText) -> StepText:
    known = soul.steps.get(ask.step)
    if known:
        return known
    file = soul.files.get(f"steps/{ask.step}.md")
    if file is None:
        raise BadSoul(f"steps/{ask.step}.md", 0, "is asked for and not there", "write it, in the home's soul/steps")
    return step_text(file)


def _line(ask: Ask[Any], step: StepText, tag: str, source: PromptSource, attribute: str) -> str:
    slots = {name: quoted(value) for name, value in ask.slots.items() if name != "instruction"}
    parts = [source.plan.overrides.get(ask.step, "")]
    if step.on_demand or ask.step not in STEPS:
        where = f"steps/{ask.step}.md"
        parts.append(" ".join(fill(step.instruction, where, 0, {**slots, "step": tag}).split()))
        if tag != ask.step or attribute:
            parts.append(f"The tag: <{tag}{attribute}>…</{tag}>")
    if ask.beside:
        parts.append(source.soul.steps[ask.beside].instruction)
    if "instruction" in ask.slots:
        parts.append(quoted(ask.slots["instruction"]))
    said = " ".join(part for part in parts if part)
    return f"{ask.step}: {said}" if said else ""


def draw(source: PromptSource, memory: WorkingMemory, asked_now: Wanted) -> Drawn:
    """Return a memory in the form that a snapshot stores. Pure."""
    places = {entry.id: (place, entry) for place, entry in enumerate(source.base.entries)}

    def drawn(entry: MemoryEntry) -> int | MemoryEntry:
        place, was = places.get(entry.id, (-1, entry))
        return place if place >= 0 and was == entry else entry

    entries = tuple(drawn(entry) for entry in memory.entries)
    return Drawn(order=memory.order, entries=entries, asked=asked_now, soul=memory.soul)


def redraw(source: PromptSource, drawn: Drawn) -> Prompt:
    """Rebuild the prompt made from a memory. Pure."""
    entries = (source.base.entries[one] if isinstance(one, int) else one for one in drawn.entries)
    memory = WorkingMemory(drawn.soul, tuple(entries), drawn.order)
    return prompt_of(source, memory, drawn.asked)
