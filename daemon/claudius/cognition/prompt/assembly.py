"""Assemble the prompt of a turn: static system part, append-only history, this turn's tail.

Equal arguments give equal bytes. Source: the pipeline design, section 3; the prompt-cache rules of the performance
design, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from string import Template
from typing import Any, NamedTuple

import msgspec

from claudius.cognition.history import (
    feels,
    fixed,
    heard_records,
    intuition_record,
    merged,
    perception_record,
    render_left_out,
    render_summary,
    shown_record,
)
from claudius.cognition.plan import EngineSettings, Plan, kernel_of
from claudius.cognition.prompt import small
from claudius.cognition.prompt.parts import PRESENT, exchanges, present, soul_state
from claudius.cognition.steps import PSYCHE_STEPS
from claudius.memory.ledger import format_beliefs, format_peers
from claudius.prompt import Prompt, RecordKind, Scalar, clear_nonce, data_line, fence, nested_line
from claudius.provider import Message
from claudius.psyche.personality import personality
from claudius.recollection import LeftOut, Recollection
from claudius.soul import SoulText, dossiers


def system_text(soul: SoulText, settings: EngineSettings) -> str:
    """Assemble the static part: who the soul is, what its owner tells it, how it reads and answers. Pure."""
    if settings.profile == "small":
        return small.system_text(soul, settings)
    key = ("system", settings.dossier_tokens, settings.psyche, settings.wording)
    known = soul.derived.get(key)
    if known is not None:
        return str(known)
    included, _ = dossiers(soul, settings.dossier_tokens)
    parts = [
        soul.text("soul.md"),
        personality(kernel_of(soul)) if settings.psyche else "",
        exchanges(soul),
        soul.text("skills.md"),
        *(dossier.text for dossier in included),
        soul.text("reading.md"),
        soul.text("trust.md") if settings.wording == 1 else "",
        "## Response Format",
        *(
            one.instruction
            for one in soul.steps.values()
            if not one.on_demand and (settings.psyche or one.name not in PSYCHE_STEPS)
        ),
        soul.text("example.md"),
    ]
    text = "\n\n".join(part.strip() for part in parts if part.strip())
    soul.derived[key] = text
    return text


def history(recollection: Recollection, plan: Plan) -> tuple[tuple[Message, ...], int]:
    """Render the history; the number counts the leading messages that the last prompt already contained. Pure."""
    opening = [render_summary(recollection.summary)] if recollection.summary else []
    left_out = recollection.left_out
    dropped = [turn for turn in recollection.past if turn.number < plan.history_from]
    if times := [entry.at for turn in dropped for entry in turn.entries]:
        count, first_at = (left_out.count, left_out.first_at) if left_out else (0, min(times))
        left_out = LeftOut(count=len(dropped) + count, first_at=first_at, last_at=max(times))
    if left_out:
        opening.append(render_left_out(left_out))
    turns = [turn for turn in recollection.past if turn.number >= plan.history_from]
    rendered = [fixed(turn).messages for turn in turns]
    before = merged([*opening, *[message for messages in rendered[:-1] for message in messages]])
    newest = rendered[-1] if rendered else ()
    now = (*before[:-1], *merged([*before[-1:], *newest]))
    kept = len(before) - (1 if before and now[len(before) - 1] != before[-1] else 0)
    if now and now[0].role == "assistant":
        return (Message("user", "…"), *now), kept + 1 if kept else 0
    return now, kept


def build_prompt(plan: Plan, recollection: Recollection, soul: SoulText, settings: EngineSettings) -> Prompt:
    """Assemble the whole prompt of a turn. Pure."""
    messages, cached = history(recollection, plan)
    if settings.profile == "small":
        return Prompt(system_text(soul, settings), messages, small.tail(plan, recollection, soul, settings), cached)
    blocks = context_blocks(plan, recollection, soul, settings).values()
    tail = "\n".join([this_turn(plan, soul), *blocks, soul.text("tail.md").strip()])
    return Prompt(system_text(soul, settings), messages, tail, cached)


def this_turn(plan: Plan, soul: SoulText) -> str:
    """Name the steps asked for now, and what the process says about each. Pure."""
    words = soul.files["tail.md"].head
    clauses: list[str] = []
    run: list[str] = []
    for name in plan.asked:
        check = plan.conditional.get(name)
        if check and (not run or run[-1] not in plan.conditional):
            clauses.append(", ".join(run))
            run = []
        elif not check and run and run[-1] in plan.conditional:
            clauses.append(Template(words["if_true"]).substitute(steps=", ".join(run)))
            run = []
        run.append(name)
    if run:
        last = ", ".join(run)
        clauses.append(Template(words["if_true"]).substitute(steps=last) if run[-1] in plan.conditional else last)
    wanted = Template(words["order"]).substitute(steps="; ".join(clauses))
    said = [f"{name}: {override}" for name, override in plan.overrides.items() if name in plan.asked]
    rare = [soul.steps[name].instruction for name in plan.asked if soul.steps[name].on_demand]
    return "\n".join([f"## This Turn\n{wanted}", *said, *rare])


def context_blocks(plan: Plan, recollection: Recollection, soul: SoulText, settings: EngineSettings) -> dict[str, str]:
    """Assemble the current context, heading → block, with the message last. Pure."""
    blocks: list[Block] = []
    if state := soul_state(plan, recollection):
        blocks.append(Block("Soul State", [{"kind": RecordKind.SOUL_STATE, **state}]))
    if shows_intuition(plan, recollection):
        records = [intuition_record(one) for one in recollection.intuitions]
        blocks.append(Block("Daimonic Intuition", records, str(soul.files["tail.md"].head["intuition"])))
    if plan.shown:
        blocks.append(Block("User Model", [shown_record(shown) for shown in plan.shown]))
    told = {
        "Second Thought": (RecordKind.SECOND_THOUGHT, recollection.second_thought),
        "Cortex Beliefs": (RecordKind.BELIEFS, format_beliefs(recollection.beliefs)),
        "Peers": (RecordKind.PEERS, format_peers(recollection.peers)),
    }
    for heading, (kind, text) in told.items():
        if text:
            blocks.append(Block(heading, [{"kind": kind, "text": text}]))
    if plan.felt.record:
        blocks.append(Block("Psyche", [{"kind": RecordKind.PSYCHE, **plan.felt.record}]))
    if plan.remembered.lines:
        record = {"kind": RecordKind.MEMORY, "lines": plan.remembered.lines}
        blocks.append(Block("Remembered", [record], write=nested_line))
    if heard := heard_records(recollection, settings.message_chars):
        blocks.append(Block("Current Message", heard))
    shown = _fenced(blocks, recollection.nonce)
    now = present(recollection, soul, settings.zone)
    return ({PRESENT: f"## {PRESENT}\n{now}"} if now else {}) | shown


def shows_intuition(plan: Plan, recollection: Recollection) -> bool:
    """Return whether the prompt contains a whisper. Pure. A function's plan asks no steps yet but may think later."""
    return bool(recollection.intuitions) and (feels(plan.asked) or not plan.asked)


def repair_tail(recollection: Recollection, soul: SoulText, broken: str, chars: int) -> str:
    """Assemble the tail of the repair call: the message, the broken reply as data, one instruction. Pure.

    `chars`: the most that is shown of each message.
    """
    heard = [perception_record(one, recollection.called(one), chars) for one in recollection.perceptions]
    draft: Mapping[str, Scalar] = {"kind": RecordKind.DRAFT, "text": broken[:4000]}
    message = _fenced([Block("Current Message", [*heard, draft])], recollection.nonce)
    return "\n".join([*message.values(), soul.text("repair.md").strip()])


def prompt_sha256(prompt: Prompt) -> str:
    """Hash the bytes of a prompt, part by part. Pure."""
    parts = (prompt.system, [(message.role, message.content) for message in prompt.history], prompt.tail)
    return sha256(msgspec.json.encode(parts)).hexdigest()


class Block(NamedTuple):
    """One part of the tail: data lines under a heading."""

    heading: str
    records: Sequence[Mapping[str, Any]]
    lead: str = ""
    """What is said of the lines; empty = nothing."""
    write: Callable[[Mapping[str, Any]], str] = data_line
    """How a record becomes one line."""


def _fenced(blocks: Sequence[Block], nonce: str) -> dict[str, str]:
    """Fence the lines of all blocks with one nonce that occurs in none of them, since a model may echo a marker."""
    written = [[block.write(record) for record in block.records] for block in blocks]
    nonce = clear_nonce(nonce, [line for lines in written for line in lines])
    shown = {}
    for block, unfenced in zip(blocks, written, strict=True):
        lead = [block.lead] if block.lead else []
        lines = [fence(line, nonce) for line in unfenced]
        shown[block.heading] = "\n".join([f"## {block.heading}", *lead, *lines])
    return shown
