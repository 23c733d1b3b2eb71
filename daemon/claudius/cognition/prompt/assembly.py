"""Assemble the prompt of a turn: static system part, append-only history, this turn's tail.

Equal arguments give equal bytes. A small model is spoken to plainly: `cognition.prompt.plain`. Source: the
pipeline design, section 3; the prompt-cache rules of the performance design, section 4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from string import Template
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from claudius.cognition.history import (
    feels,
    heard_records,
    intuition_record,
    lengths,
    merged,
    perception_record,
    render_left_out,
    render_summary,
    rendered,
    shown_record,
)
from claudius.cognition.plan import SPEECH, EngineSettings, Plan, allowed_verbs, kernel_of, soul_name
from claudius.cognition.prompt.plain import persona, plain_summary, plain_system, plain_tail
from claudius.cognition.prompt.present import MANIFEST, known_records, plans_record, present, skills, tools_here
from claudius.cognition.reply.tags import TOOL_USE
from claudius.cognition.steps import PSYCHE_STEPS
from claudius.memory.ledger import format_beliefs, format_peers
from claudius.perception import private
from claudius.prompt import Prompt, RecordKind, Scalar, clear_nonce, data_line, fence, nested_line, short_name
from claudius.provider import FormStep, Message, ModelLimits
from claudius.psyche.context import MOOD
from claudius.psyche.personality import personality
from claudius.psyche.state import kinds
from claudius.recollection import STATE_DEFAULTS, LeftOut, Recollection
from claudius.soul import SoulText, dossiers


def system_text(soul: SoulText, settings: EngineSettings) -> str:
    """Assemble the static part: who the soul is, what its owner tells it, how it reads and answers. Pure."""
    if settings.profile == "plain":
        return persona(soul)
    key = ("system", settings.dossier_tokens, settings.psyche, settings.wording)
    known = soul.derived.get(key)
    if known is not None:
        return str(known)
    included, _ = dossiers(soul, settings.dossier_tokens)
    parts = [
        soul.text("soul.md"),
        personality(kernel_of(soul)) if settings.psyche else "",
        exchanges(soul),
        skills(soul),
        soul.text(MANIFEST),
        *(dossier.text for dossier in included),
        soul.text("reading.md"),
        soul.text("trust.md") if settings.wording == 1 else "",
        "## Response Format",
        *(
            one.instruction
            for one in soul.steps.values()
            if not one.on_demand and (settings.psyche or one.name not in PSYCHE_STEPS)
            if one.name != TOOL_USE or MANIFEST in soul.files
        ),
        soul.text("example.md"),
    ]
    text = "\n\n".join(part.strip() for part in parts if part.strip())
    soul.derived[key] = text
    return text


def history(
    recollection: Recollection, plan: Plan, soul: SoulText, settings: EngineSettings
) -> tuple[tuple[Message, ...], int]:
    """Render the history; the number counts the leading messages that the last prompt already contained. Pure."""
    is_plain = settings.profile == "plain"
    fold = partial(plain_summary, soul) if is_plain else render_summary
    opening = [fold(recollection.summary)] if recollection.summary else []
    left_out = recollection.left_out
    dropped = [turn for turn in recollection.past if turn.number < plan.history_from]
    if times := [entry.at for turn in dropped for entry in turn.entries]:
        count, first_at = (left_out.count, left_out.first_at) if left_out else (0, min(times))
        left_out = LeftOut(count=len(dropped) + count, first_at=first_at, last_at=max(times))
    if left_out and not is_plain:
        opening.append(render_left_out(left_out))
    turns = [turn for turn in recollection.past if turn.number >= plan.history_from]
    is_alone = recollection.audience.startswith(private(""))
    written = [
        rendered(turn, settings.profile, is_newest=turn is turns[-1], is_alone=is_alone).messages for turn in turns
    ]
    before = merged([*opening, *[message for messages in written[:-1] for message in messages]])
    newest = written[-1] if written else ()
    now = (*before[:-1], *merged([*before[-1:], *newest]))
    kept = len(before) - (1 if before and now[len(before) - 1] != before[-1] else 0)
    if now and now[0].role == "assistant":
        return (Message("user", "…"), *now), kept + 1 if kept else 0
    return now, kept


def build_prompt(plan: Plan, recollection: Recollection, soul: SoulText, settings: EngineSettings) -> Prompt:
    """Assemble the whole prompt of a turn. Pure."""
    messages, cached = history(recollection, plan, soul, settings)
    if settings.profile == "plain":
        return Prompt(
            plain_system(plan, recollection, soul, settings),
            messages,
            plain_tail(plan, recollection, soul, settings),
            cached,
        )
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
    return "\n".join([f"## This Turn\n{wanted}", *tools_here(plan, soul), *said, *rare])


def context_blocks(plan: Plan, recollection: Recollection, soul: SoulText, settings: EngineSettings) -> dict[str, str]:
    """Assemble the current context, heading → block, with the message last. Pure."""
    blocks: list[TailBlock] = []
    if state := soul_state(plan, recollection):
        blocks.append(TailBlock("Soul State", [{"kind": RecordKind.SOUL_STATE, **state}]))
    if shows_intuition(plan, recollection):
        records = [intuition_record(one) for one in recollection.intuitions]
        blocks.append(TailBlock("Daimonic Intuition", records, str(soul.files["tail.md"].head["intuition"])))
    if plan.shown:
        blocks.append(TailBlock("User Model", [shown_record(shown) for shown in plan.shown]))
    # short, as in every other block, but in a turn that was kept before
    called: Callable[[str], str] = short_name if settings.wording >= SHORT_NAMES else str
    is_judged, is_among_several = "assess_peer" in plan.asked, not recollection.audience.startswith(private(""))
    shows_peers = is_judged or is_among_several or settings.wording < SHORT_NAMES
    told = {
        "Second Thought": (RecordKind.SECOND_THOUGHT, recollection.second_thought),
        "Cortex Beliefs": (RecordKind.BELIEFS, format_beliefs(recollection.beliefs, called)),
        "Peers": (RecordKind.PEERS, format_peers(recollection.peers, called) if shows_peers else ""),
    }
    for heading, (kind, text) in told.items():
        if text:
            blocks.append(TailBlock(heading, [{"kind": kind, "text": text}]))
    if plan.felt.record:
        blocks.append(TailBlock("Psyche", [{"kind": RecordKind.PSYCHE, **plan.felt.record}]))
    blocks += [TailBlock(heading, [one]) for heading, one in known_records(recollection, settings.zone).items()]
    if recollection.plans:
        names_zones = settings.wording >= NAMED_CLOCKS
        blocks.append(TailBlock("Plans", [plans_record(recollection, settings.zone, names_zones=names_zones)]))
    if plan.remembered.lines:
        record = {"kind": RecordKind.MEMORY, "lines": plan.remembered.lines}
        blocks.append(TailBlock("Remembered", [record], write=nested_line))
    if heard := heard_records(recollection, settings.message_chars):
        blocks.append(TailBlock("Current Message", heard))
    shown = _fenced(blocks, recollection.nonce)
    now = present(recollection, soul, settings.zone)
    return ({PRESENT: f"## {PRESENT}\n{now}"} if now else {}) | shown


def shows_intuition(plan: Plan, recollection: Recollection) -> bool:
    """Return whether the prompt contains a whisper. Pure. A function's plan asks no steps yet but may think later."""
    return bool(recollection.intuitions) and (feels(plan.asked) or not plan.asked)


def repair_tail(recollection: Recollection, soul: SoulText, broken: str, chars: int, refused: str = "") -> str:
    """Assemble the tail of the repair call: the message, the broken reply as data, one instruction. Pure.

    `chars`: the most that is shown of each message; `refused`: why acts were, if that is the reason for the call.
    """
    heard = [perception_record(one, recollection.called(one), chars) for one in recollection.perceptions]
    draft: Mapping[str, Scalar] = {"kind": RecordKind.DRAFT, "text": broken[:BROKEN_CHARS]}
    message = _fenced([TailBlock("Current Message", [*heard, draft])], recollection.nonce)
    words = soul.files["repair_acts.md"].fill(reasons=refused) if refused else soul.text("repair.md")
    return "\n".join([*message.values(), words.strip()])


def prompt_sha256(prompt: Prompt) -> str:
    """Hash the bytes of a prompt, part by part. Pure."""
    parts = (prompt.system, [(message.role, message.content) for message in prompt.history], prompt.tail)
    return sha256(msgspec.json.encode(parts)).hexdigest()


class TailBlock(NamedTuple):
    """One part of the tail: data lines under a heading."""

    heading: str
    records: Sequence[Mapping[str, Any]]
    lead: str = ""
    """What is said of the lines; empty = nothing."""
    write: Callable[[Mapping[str, Any]], str] = data_line
    """How a record becomes one line."""


def _fenced(blocks: Sequence[TailBlock], nonce: str) -> dict[str, str]:
    """Fence the lines of all blocks with one nonce that occurs in none of them, since a model may echo a marker."""
    written = [[block.write(record) for record in block.records] for block in blocks]
    nonce = clear_nonce(nonce, [line for lines in written for line in lines])
    shown = {}
    for block, unfenced in zip(blocks, written, strict=True):
        lead = [block.lead] if block.lead else []
        lines = [fence(line, nonce) for line in unfenced]
        shown[block.heading] = "\n".join([f"## {block.heading}", *lead, *lines])
    return shown


SHORT_NAMES = 3
"""The wording from which no block holds a whole id, and a talk of two has no line of the ledger."""
NAMED_CLOCKS = 5
"""The wording from which a plan by another clock than The Present's names its zone."""
PRESENT = "The Present"
BROKEN_CHARS = 4000
"""The number of characters of an unusable reply that the second call is shown."""


def exchanges(soul: SoulText) -> str:
    """Return the sample exchanges; empty if they are another soul's. Pure."""
    file = soul.files.get("exchanges.md")
    whose = str(file.head.get("soul", "")).casefold() if file else ""
    return file.text if file and whose in ("", soul_name(soul.text("soul.md"))) else ""


def soul_state(plan: Plan, recollection: Recollection) -> dict[str, str]:
    """Return the soul state that a prompt shows, with the mood from the bands. Pure."""
    state = {value.key: value.value for value in recollection.state if value.value}
    if plan.felt.emotional_state:
        word = plan.felt.emotional_state  # the mood from the bands; a default mood is left out
        state = ({MOOD: word} if word != STATE_DEFAULTS[MOOD] else {}) | {k: v for k, v in state.items() if k != MOOD}
    return state


PLAIN_VALUES = {"acts": "acts", "user_model_update": "portrait"}
"""What the plain profile holds to a narrower form than others."""


def form_of(plan: Plan, soul: SoulText, settings: EngineSettings) -> tuple[FormStep, ...]:
    """Return the sections that a server is to enforce: those of this plan and no others. Pure.

    A model of the plain profile speaks freely; what it judges afterwards is held to closed words and whole acts.
    """
    is_plain = settings.profile == "plain"
    if settings.form == "words" or (is_plain and SPEECH in plan.asked):
        return ()
    return tuple(
        [
            FormStep(
                name=name,
                value=PLAIN_VALUES.get(name, soul.steps[name].value) if is_plain else soul.steps[name].value,
                choices=tuple(kinds()) if is_plain and name == "appraisal" else (),
                verbs=allowed_verbs(name, plan, soul)[0],
                check=plan.conditional.get(name, ""),
                may_lack=name == TOOL_USE,
            )
            for name in plan.asked
            if name in soul.steps
        ]
    )


TAIL_TOKENS = 700
"""Kept free for the tail, besides what was heard."""
REPLY_LEAST, REPLY_MOST, PLAIN_MOST = 256, 1024, 400
WINDOW = 4
"""The number of entries that always stay in the history."""


def fitted(settings: EngineSettings, limits: ModelLimits, recollection: Recollection, soul: SoulText) -> EngineSettings:
    """Return the settings for a model with these limits: the history gets what system, tail and reply leave. Pure."""
    settings = replace(settings, profile=limits.profile, form=limits.form)
    if not limits.context_tokens:
        return settings
    most = PLAIN_MOST if limits.profile == "plain" and not limits.reasons else REPLY_MOST
    reply = min(settings.max_tokens, max(REPLY_LEAST, min(most, limits.context_tokens // 4)))
    summary = len(recollection.summary.text) if recollection.summary else 0
    heard = sum(min(length, settings.message_chars) for length in lengths(recollection.perceptions))
    known = len(system_text(soul, settings)) + summary + heard
    left_chars = (limits.context_tokens - reply - TAIL_TOKENS) * limits.chars_per_token - known
    past = [rendered(turn, settings.profile) for turn in recollection.past]
    chars_per_token = sum(one.chars for one in past) / max(1, sum(one.tokens for one in past)) if past else 4.0
    return replace(
        settings,
        max_tokens=reply,
        budget_tokens=int(min(settings.budget_tokens, max(1.0, left_chars / max(1.0, chars_per_token)))),
        window=min(settings.window, WINDOW),
    )
