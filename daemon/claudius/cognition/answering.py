"""Ask a model for the values of a process function: each ask has a section, and is read by its schema."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from claudius.cognition.acts import ACTS, ReadActs
from claudius.cognition.asking import (
    Decided,
    Failed,
    ModelReply,
    Replies,
    ask_model,
    decided_by,
    keep_acts,
    read_or_repair,
)
from claudius.cognition.asks import SPEECH, THOUGHT, Ask, read, without_prefix
from claudius.cognition.output.rules import Spoken
from claudius.cognition.plan import allowed_verbs
from claudius.cognition.prompt.assembly import BROKEN_CHARS
from claudius.cognition.prompt.function_prompts import (
    NAME,
    PromptSource,
    Wanted,
    asked,
    draw,
    fresh,
    is_told_apart,
    prompt_of,
)
from claudius.cognition.reply.parser import Section, clean_text, read_verb
from claudius.cognition.reply.tags import is_structured
from claudius.cognition.steps import STEPS
from claudius.cognition.turn_state import TurnState, Words
from claudius.cognition.working_memory import WorkingMemory
from claudius.config import blot
from claudius.errors import Unreadable
from claudius.prompt import RecordKind, data_line, fence, quoted
from claudius.recollection import EntryType


async def answers(
    turn: TurnState, source: PromptSource, memory: WorkingMemory, asks: Sequence[Ask[Any]], *, streams: bool = False
) -> list[Any]:
    """Ask for several values in one call. Returns them in order. Raises: Unreadable, ProviderError, BadSoul."""
    wanted = asked(asks, source)

    async def once(wanted: Wanted, purpose: str, *, streams: bool = False) -> ModelReply:
        lines = fresh(memory, source.base)
        turn.guard(line.content for line in lines if line.entry_type is EntryType.INTERNAL_MONOLOGUE)
        return await ask_model(
            turn,
            prompt_of(source, memory, wanted),
            purpose,
            steps=wanted.tags,
            drawn=draw(source, memory, wanted) if turn.first is None else None,
            streams=streams,
        )

    async def again(failed: Failed) -> ModelReply:
        return await once(_again(first, source, wanted, failed), asks[min(failed)].step)

    first = await once(wanted, asks[0].step, streams=streams)
    does = ACTS in [ask.step for ask in asks]
    decided = partial(decided_by, turn, does=does)  # words and acts are asked for anew together, and read alike
    parts = [
        decided if ask.step in (SPEECH, ACTS) else partial(_value, source, asks, place)
        for place, ask in enumerate(asks)
    ]
    found = await read_or_repair(turn, first, parts, again)
    done = [one.acts if ask.step == ACTS else one for one, ask in zip(found, asks, strict=True)]
    for acts in [one for one in done if isinstance(one, ReadActs)]:
        keep_acts(turn, acts)
    return [_clean(one.spoken if isinstance(one, Decided) else one, turn, first) for one in done]


def _value(source: PromptSource, asks: Sequence[Ask[Any]], place: int, first: ModelReply, second: Replies) -> Any:
    parsed = (second[0] if second and second[0] else first).parsed
    ask, is_alone = asks[place], len(asks) == 1
    tag = ask.step if ask.step in STEPS else "mental_query"
    number = str(place + 1) if is_told_apart(asks, place) else None
    if tag == THOUGHT:
        found = parsed.monologue if parsed.monologue and parsed.monologue.complete else None
    else:
        named = (one for one in parsed.sections if one.name == tag and one.complete)
        found = next((one for one in named if number is None or one.section == number), None)
    if found is None and is_alone and not parsed.truncated and not is_structured(parsed.raw):
        found = Section(name=tag, text=without_prefix(parsed.raw, NAME))
    if found is None:
        raise Unreadable(ask.step, "it was not written, or not to its end")
    if ask.schema is not str:
        return read(ask, found.text)
    text = read(ask, clean_text(without_prefix(found.text, NAME)))
    if ask.step != THOUGHT:
        return text
    verbs, default = allowed_verbs(THOUGHT, source.plan, source.soul)
    return Words.of(str(text), read_verb(found.verb, verbs, default)[0])


def _again(first: ModelReply, source: PromptSource, wanted: Wanted, failed: Failed) -> Wanted:
    """Ask again for the failed sections, giving the reason and the earlier text."""
    broken = {"kind": RecordKind.DRAFT, "text": first.parsed.raw[:BROKEN_CHARS]}
    words = source.soul.files["reask.md"]
    told = [words.fill(step=error.name, reason=quoted(error.detail)) for error in failed.values()]
    return Wanted(
        tags=tuple(wanted.tags[place] for place in failed),
        lines=tuple(wanted.lines[place] for place in failed),
        again="\n".join([fence(data_line(broken), source.recollection.nonce), *dict.fromkeys(told)]),
    )


def _clean(value: Any, turn: TurnState, first: ModelReply) -> Any:
    """Return a value as a process function gets it: words aloud without the soul's name, secrets blotted out."""
    if isinstance(value, Spoken):
        text = value.speech if first.streamed else without_prefix(value.speech, NAME, tuple(turn.rules.verbs))
        value = Words.of(text, value.verb, value.rung, truncated=value.truncated, flags=value.flags)
    if not isinstance(value, str) or not turn.mind.secrets:
        return value
    clean = blot(value, turn.mind.secrets)
    if isinstance(value, Words):
        return Words.of(clean, value.verb, value.rung, truncated=value.truncated, flags=value.flags)
    return clean
