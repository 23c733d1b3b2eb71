"""Ask once and, where something of the reply cannot be used, once more: the one loop of hops and of process functions.

A declarative hop needs one thing of its reply, the words aloud; a process function needs a value for each of its asks.
Source: the pipeline design, section 6; the process design, section 2.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace

from claudius.cognition.asks import SPEECH, THOUGHT, Ask, read, without_prefix
from claudius.cognition.call import ModelReply, ask_model
from claudius.cognition.conclude.conclusion import interpret
from claudius.cognition.output.ladder import NeedsRepair, Spoken, climb
from claudius.cognition.plan import allowed_verbs
from claudius.cognition.prompt.assembly import BROKEN_CHARS, build_prompt, repair_tail, words_tail
from claudius.cognition.prompt.function_prompts import (
    NAME,
    Asked,
    PromptSource,
    asked,
    draw,
    fresh,
    is_told_apart,
    prompt_of,
    quoted,
)
from claudius.cognition.reply.parser import Section, clean_text, read_verb
from claudius.cognition.reply.tags import is_structured
from claudius.cognition.steps import STEPS
from claudius.cognition.turn_state import TurnState, Words
from claudius.cognition.working_memory import WorkingMemory
from claudius.config import blot
from claudius.errors import ProviderError, Unreadable
from claudius.failure import failure_of, unspeakable
from claudius.intent import Thoughts
from claudius.prompt import RecordKind, data_line, fence
from claudius.recollection import EntryType

Replies = Sequence[ModelReply | None]
"""The first reply, and the second one if there was a second call; None = that call failed."""
Failed = Mapping[int, Unreadable]


async def _read_or_repair(
    turn: TurnState,
    first: ModelReply,
    parts: Sequence[Callable[[ModelReply, Replies], Any]],
    again: Callable[[Failed], Awaitable[ModelReply | None]],
) -> list[Any]:
    """Read the parts of a reply, in order, and ask again, once, for those that cannot be used.

    Each of `parts` is called with the first reply and, after the second call, with its reply. Raises: Unreadable,
    ProviderError.
    """
    found: dict[int, Any] = {}
    second: Replies = ()
    while True:
        failed: dict[int, Unreadable] = {}
        for place, part in enumerate(parts):
            try:
                found[place] = found[place] if place in found else part(first, second)
            except Unreadable as error:
                failed[place] = error
        if not failed:
            break
        if second:
            raise next(iter(failed.values()))
        turn.guard(first.parsed.private)
        second = (await again(failed),)
    fixed = [one for one in found.values() if isinstance(one, Spoken) and one.rung == "fixed"]
    if fixed and turn.failure is None:
        await turn.fail(unspeakable(fixed[0].flags, turn.calls[-1].provider))
    return [found[place] for place in range(len(parts))]


def spoken_of(turn: TurnState, first: ModelReply, second: Replies) -> Spoken:
    """Return what may be said of a reply. Raises: Unreadable if the words aloud must be asked for once more."""
    rules = replace(turn.rules, repairs=0) if second else turn.rules
    repair = second[0].parsed if second and second[0] else None
    spoken = climb(first.parsed, rules, refused=first.is_refused, streamed=first.streamed, repair=repair)
    if isinstance(spoken, NeedsRepair):
        raise Unreadable(SPEECH, "nothing in it can be said aloud")
    return spoken


# -- a declarative hop -----------------------------------------------------------------------------------------------


async def thoughts(turn: TurnState, reply: ModelReply) -> Thoughts:
    """Return what the reply of a declarative hop says, after a second call if nothing in it can be said."""

    async def again(_: Failed) -> ModelReply | None:
        prompt = build_prompt(turn.plan, turn.recollection, turn.soul, turn.settings)
        tail = (
            words_tail(turn.plan, turn.recollection, turn.soul, turn.settings)
            if turn.settings.profile == "small"
            else repair_tail(turn.recollection, turn.soul, reply.parsed.raw, turn.settings.message_chars)
        )
        try:
            return await ask_model(turn, replace(prompt, tail=tail), "repair")
        except ProviderError as error:
            await turn.fail(failure_of(error))
            return None

    (spoken,) = await _read_or_repair(turn, reply, (partial(spoken_of, turn),), again)
    return thoughts_of(turn, reply, spoken)


def thoughts_of(turn: TurnState, reply: ModelReply, spoken: Spoken) -> Thoughts:
    """Gather what a reply says and thinks. If the plan asked for no speech, any speech is dropped. Pure."""
    found, flags = interpret(reply.parsed, turn.plan, turn.soul)
    if not turn.plan.speaks:
        flags = (*flags, "unasked:external_dialogue") if spoken.speech else flags
        spoken = replace(spoken, speech="", rung="silent", truncated=False)
    return Thoughts(
        thoughts=found,
        speech=spoken.speech,
        verb=spoken.verb,
        rung=spoken.rung,
        flags=tuple(dict.fromkeys((*spoken.flags, *flags))),
        streamed=reply.streamed,
        truncated=spoken.truncated,
    )


# -- a process function ----------------------------------------------------------------------------------------------


async def answers(
    turn: TurnState, source: PromptSource, memory: WorkingMemory, asks: Sequence[Ask[Any]], *, streams: bool = False
) -> list[Any]:
    """Ask for several values in one call. Returns them in order. Raises: Unreadable, ProviderError, BadSoul."""
    wanted = asked(asks, source)

    async def once(wanted: Asked, purpose: str, *, streams: bool = False) -> ModelReply:
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
        return await once(_again(first, source, wanted, asks, failed), asks[min(failed)].step)

    first = await once(wanted, asks[0].step, streams=streams)
    parts = [
        partial(spoken_of, turn) if ask.step == SPEECH else partial(_value, source, asks, place)
        for place, ask in enumerate(asks)
    ]
    found = await _read_or_repair(turn, first, parts, again)
    return [_clean(one, turn, first) for one in found]


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


def _again(first: ModelReply, source: PromptSource, wanted: Asked, asks: Sequence[Ask[Any]], failed: Failed) -> Asked:
    """Ask again for the failed sections, giving the reason and the earlier text."""
    broken = {"kind": RecordKind.DRAFT, "text": first.parsed.raw[:BROKEN_CHARS]}
    words = source.soul.files["reask.md"]
    told = [words.fill(step=asks[place].step, reason=quoted(error.detail)) for place, error in failed.items()]
    return Asked(
        tags=tuple(wanted.tags[place] for place in failed),
        lines=tuple(wanted.lines[place] for place in failed),
        again="\n".join([fence(data_line(broken), source.recollection.nonce), *told]),
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
