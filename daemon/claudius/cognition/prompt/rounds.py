"""Build the further prompts of a turn that uses tools: each begins with all of the one before. Pure.

A turn's own entries say what its rounds were, so `further` rebuilds every prompt from those that were stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from msgspec.structs import replace

from claudius.cognition.history import section, tool_record
from claudius.cognition.plan import THOUGHT, Plan
from claudius.cognition.prompt.assembly import this_turn
from claudius.cognition.reply.tags import TOOL_USE
from claudius.prompt import Prompt, data_line, fence
from claudius.provider import Message
from claudius.recollection import Entry, EntryType
from claudius.soul import SoulText
from claudius.tool import CallState, ToolStep

LIMIT = "refused: limit"
"""The state of a request beyond what a turn, a person or a conversation may have; no more is asked for."""
_OWN = {EntryType.INTERNAL_MONOLOGUE: THOUGHT, EntryType.TOOL_USE: TOOL_USE}
_WITHOUT_RESULT = (CallState.WAITING, CallState.STARTED)


def used_entries(step: ToolStep, at: datetime) -> tuple[Entry, ...]:
    """Return the entries of one request for a tool: what was asked, and what came of it if the turn learned that."""
    asked = step.written or json.dumps({"tool": step.tool, "args": step.args}, ensure_ascii=False)
    about = {"call": step.id, "tool": step.tool, "state": str(step.state)} | ({"third": True} if step.third else {})
    use = Entry(entry_type=EntryType.TOOL_USE, content=asked, at=at, metadata={"call": step.id} if step.id else {})
    if step.state in _WITHOUT_RESULT:
        return (use,)
    return use, Entry(entry_type=EntryType.TOOL_RESULT, content=step.text, at=at, metadata=about)


def next_plan(plan: Plan, result: Entry) -> Plan:
    """Return what the call after a tool asks: all but the thought, and no tool where the limit was met."""
    gone = (THOUGHT, TOOL_USE) if result.metadata["state"] == LIMIT else (THOUGHT,)
    asked = tuple([name for name in plan.asked if name not in gone])
    return replace(plan, asked=asked, tools=plan.tools if TOOL_USE in asked else ())


def following(prompt: Prompt, entries: Sequence[Entry], plan: Plan, soul: SoulText, nonce: str) -> Prompt:
    """Return the prompt after a round: `entries` are what the soul wrote in it, and at last what the tool gave."""
    *own, result = entries
    written = "\n".join([section(_OWN[one.entry_type], one.content, one.verb) for one in own])
    history = (*prompt.history, Message("user", prompt.tail), Message("assistant", written))
    given = fence(data_line(tool_record(result.content, result.metadata)), nonce)
    tail = "\n".join([given, soul.text("more.md").strip(), this_turn(plan, soul), soul.text("tail.md").strip()])
    return Prompt(prompt.system, history, tail, len(prompt.history) + 1)


def further(prompt: Prompt, plan: Plan, entries: Iterable[Entry], soul: SoulText, nonce: str) -> Iterator[Prompt]:
    """Yield the prompts that followed the first one of a turn, read off its own entries."""
    own: list[Entry] = []
    for entry in entries:
        if entry.entry_type in _OWN:
            own.append(entry)
        elif entry.entry_type is EntryType.TOOL_RESULT and own:  # not one that the turn only heard of
            plan = next_plan(plan, entry)
            prompt = following(prompt, [*own, entry], plan, soul, nonce)
            own = []
            yield prompt
