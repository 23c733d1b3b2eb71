"""Assemble the prompt of a small model: the soul, a short form, one example; and a tail whose data share one fence.

The turn is the same as any other; only the texts are shorter, and the steps fewer. Equal arguments give equal bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from string import Template

from msgspec.structs import replace

from claudius.cognition.history import feels, fixed, heard_records, intuition_record, lengths, shown_record
from claudius.cognition.plan import SPEECH, THOUGHT, EngineSettings, Plan
from claudius.cognition.prompt.parts import exchanges, present, soul_state
from claudius.memory.ledger import format_beliefs
from claudius.prompt import RecordKind, Scalar, clear_nonce, data_line, fence
from claudius.provider import ModelLimits
from claudius.recollection import Recollection
from claudius.soul import SoulText

FILE = "small.md"
PORTRAIT_CHARS = 1200
"""The most that is shown of a portrait (300 tokens)."""
MEMORY_CHARS = 800
"""The most that is shown of memory, facts first (with its keys some 300 tokens)."""
TAIL_TOKENS = 700
"""Kept free for the tail, besides what was heard."""
REPLY_LEAST, REPLY_MOST = 256, 1024
WINDOW = 4
"""The number of entries that always stay in the history."""
_OTHERS = re.compile(r"<((?!internal_monologue|external_dialogue)[a-z_]+)\b[^>]*>.*?</\1>\s*", re.DOTALL)
_ALL_ASKED = "Asked for all of it, you write:"


def system_text(soul: SoulText, settings: EngineSettings) -> str:
    """Assemble the static part. Pure."""
    key = ("small", settings.form)
    known = soul.derived.get(key)
    if known is None:
        known = soul.derived[key] = "\n\n".join(part.strip() for part in _parts(soul, settings) if part.strip())
    return str(known)


def _parts(soul: SoulText, settings: EngineSettings) -> Iterator[str]:
    yield soul.text("soul.md")
    head = soul.files[FILE].head if FILE in soul.files else {}
    yield "\n".join(filter(None, [soul.text(FILE), str(head.get(settings.form, ""))]))
    if settings.form == "words":
        yield exchanges(soul)
        return
    yield _OTHERS.sub("", soul.text("example.md")).replace(_ALL_ASKED, "You write:")
    yield from (soul.steps[name].instruction for name in (THOUGHT, SPEECH) if name in soul.steps)


def tail(plan: Plan, recollection: Recollection, soul: SoulText, settings: EngineSettings) -> str:
    """Assemble this turn's part: every record in one fence, the rare steps' instructions, and what to write. Pure."""
    lines = [data_line(record) for record in _records(plan, recollection, settings.message_chars)]
    nonce = clear_nonce(recollection.nonce, lines)
    data = ["## Data", fence("\n".join(lines), nonce)] if lines else []
    rare = [soul.steps[name].instruction for name in plan.asked if name not in (THOUGHT, SPEECH) and name in soul.steps]
    said = [override for name, override in plan.overrides.items() if name in plan.asked]
    now = filter(None, [present(recollection, soul, settings.zone)])
    return "\n".join([*now, *data, *rare, *said, _wanted(plan, soul, settings)])


def words_tail(plan: Plan, recollection: Recollection, soul: SoulText, settings: EngineSettings) -> str:
    """Assemble the tail of a repair: the words aloud alone. A small model that is shown its draft repeats it. Pure."""
    alone = replace(plan, asked=(SPEECH,), overrides={})
    return tail(alone, recollection, soul, replace(settings, form="words"))


def _wanted(plan: Plan, soul: SoulText, settings: EngineSettings) -> str:
    words = soul.files[FILE].head
    if settings.form == "words" and plan.asked == (SPEECH,):
        return str(words["words"])
    return Template(str(words["order"])).substitute(steps=", ".join(plan.asked))


def _records(plan: Plan, recollection: Recollection, chars: int) -> Iterator[Mapping[str, Scalar]]:
    """Yield what the turn knows, then at most `chars` characters of each message heard."""
    if state := soul_state(plan, recollection):
        yield {"kind": RecordKind.SOUL_STATE, **state}
    if feels(plan.asked):
        yield from map(intuition_record, recollection.intuitions)
    for shown in plan.shown:
        if not shown.pointer and shown.version:
            yield shown_record(replace(shown, text=shown.text[:PORTRAIT_CHARS]))
    told = {
        RecordKind.SECOND_THOUGHT: recollection.second_thought,
        RecordKind.BELIEFS: format_beliefs(recollection.beliefs),
    }
    yield from ({"kind": kind, "text": text} for kind, text in told.items() if text)
    if plan.felt.record:
        yield {"kind": RecordKind.PSYCHE, **plan.felt.record}
    room = MEMORY_CHARS
    for line in plan.remembered.lines:
        room -= sum(map(len, line.values()))
        if room < 0:
            break
        yield {"kind": RecordKind.MEMORY, **line}
    yield from heard_records(recollection, chars)


def fitted(
    settings: EngineSettings, limits: ModelLimits, recollection: Recollection, system: Callable[[EngineSettings], str]
) -> EngineSettings:
    """Return the settings for a model with these limits: the history gets what system, tail and reply leave. Pure.

    `system` returns the static part of the prompt under given settings.
    """
    settings = replace(settings, profile=limits.profile, form=limits.form)
    if not limits.context_tokens:
        return settings
    reply = min(settings.max_tokens, max(REPLY_LEAST, min(REPLY_MOST, limits.context_tokens // 4)))
    summary = len(recollection.summary.text) if recollection.summary else 0
    heard = sum(min(length, settings.message_chars) for length in lengths(recollection.perceptions))
    known = len(system(settings)) + summary + heard
    left_chars = (limits.context_tokens - reply - TAIL_TOKENS) * limits.chars_per_token - known
    past = [fixed(turn) for turn in recollection.past]
    chars_per_token = sum(one.chars for one in past) / max(1, sum(one.tokens for one in past)) if past else 4.0
    return replace(
        settings,
        max_tokens=reply,
        budget_tokens=int(min(settings.budget_tokens, max(1.0, left_chars / max(1.0, chars_per_token)))),
        window=min(settings.window, WINDOW),
    )
