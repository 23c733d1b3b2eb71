"""Ask a model, and ask once more where something of the reply cannot be used: the one loop of hops and of functions.

`ask_model` is the only function in a turn that awaits a model: it sends a request or reuses a paid reply, parses the
stream, and shows what the output gate allows. If the stream breaks after its first piece, the partial reply counts as
cut off by length; if nothing arrived, it raises ProviderError. A declarative hop needs one thing of its reply, the
words aloud; a process function needs a value for each of its asks.
Source: the pipeline design, section 6; the process design, section 2.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack, aclosing
from functools import partial
from math import ceil
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from claudius.cognition.acts import ACTS, ActsBasis, ReadActs, RefusedAct, read_acts
from claudius.cognition.asks import SPEECH, THOUGHT, Ask, read, without_prefix
from claudius.cognition.conclude.conclusion import interpret
from claudius.cognition.hooks import ThoughtStream, show_prompt
from claudius.cognition.mind import StepVoice, is_by_owner
from claudius.cognition.output.gate import StreamGate
from claudius.cognition.output.rules import NeedsRepair, Spoken, climb, repeats
from claudius.cognition.plan import allowed_verbs, soul_name
from claudius.cognition.prompt.assembly import BROKEN_CHARS, build_prompt, prompt_sha256, repair_tail
from claudius.cognition.prompt.function_prompts import (
    NAME,
    Drawn,
    PromptSource,
    Wanted,
    asked,
    draw,
    fresh,
    is_told_apart,
    prompt_of,
)
from claudius.cognition.prompt.plain import again_tail
from claudius.cognition.reading import Alone, ReplyReading, without_forged
from claudius.cognition.reply.parser import Parsed, Parser, Section, clean_text, read_verb
from claudius.cognition.reply.tags import TOOL_USE, is_structured
from claudius.cognition.steps import STEPS, names_of
from claudius.cognition.timing import known_zone
from claudius.cognition.turn_state import SUMMARY_CALL, FirstCall, TurnState, Words
from claudius.cognition.working_memory import WorkingMemory
from claudius.config.load import blot
from claudius.errors import OverBudget, ProviderError, RefusedReply, Unreadable
from claudius.failure import failure_of, unspeakable
from claudius.intent import Call, Thought, Thoughts
from claudius.memory.facts import greeted, told
from claudius.observed import Thinking
from claudius.prompt import Prompt, RecordKind, data_line, fence, quoted, valid
from claudius.provider import Done, Event, FormStep, Provider, Request, Usage, estimate, reading_s
from claudius.recollection import EntryType


class ModelReply(Struct, frozen=True):
    """One parsed reply."""

    parsed: Parsed
    text: str
    """The full reply, with secrets masked."""
    is_refused: bool = False
    streamed: str = ""
    """The part of the reply that was already shown."""
    prompt: Prompt | None = None
    """What it answers; None if several were asked."""
    is_canned: bool = False
    """Its words are a fixed line."""


async def ask_model(  # noqa: PLR0913 - the ways in which a request may differ; each has a default
    turn: TurnState,
    prompt: Prompt,
    purpose: str,
    *,
    steps: Sequence[str] = (),
    form: tuple[FormStep, ...] = (),
    drawn: Drawn | None = None,
    voice: StepVoice | None = None,
    streams: bool = False,
    conversation: str = "",
    keep_session: bool = True,
    number: int | None = None,
) -> ModelReply:
    """Make one model call for a turn and store it, or reuse the paid reply of an earlier run.

    `form`: the sections that a server may enforce. `conversation` lets a transport continue that conversation's
    session; `keep_session` says whether the prompt may stay in it. `drawn` is the form in which a snapshot stores the
    prompt. A reply that breaks off after its first piece counts as cut off by length, and the ladder decides what is
    said. Raises: ProviderError, StoreError; OverBudget if other processes have meanwhile booked what is left.
    """
    mind, sha = turn.mind, prompt_sha256(prompt)
    if turn.first is None and number is None:
        turn.first = FirstCall(sha, turn.plan, drawn)
    turn.asked += [step for step in steps if step not in turn.asked]
    provider = voice.provider if voice else mind.provider
    reading = _reading(turn, purpose, steps, streams=streams)
    thoughts = reading.thoughts
    made = turn.paid.get(sha)
    if made is not None:
        await reading.take(made.response)
    else:
        if turn.calls:
            await mind.store.flush()  # a paid reply must be durable before the next call is paid for
        request = Request(
            system=prompt.system,
            history=prompt.history,
            tail=prompt.tail,
            max_tokens=turn.settings.max_tokens,
            cached=prompt.cached,
            conversation=conversation,
            keep_session=keep_session,
            purpose=purpose,
            model=voice.model if voice else None,
            is_first=turn.recollection.is_first,
            known=lambda: _known(turn),
            images=() if voice else turn.images,
            form=form,
            tries_now=is_by_owner(turn.recollection.perceptions, turn.config),
        )
        with ExitStack() as undo:
            undo.callback(mind.store.turns.call_failed, turn.recollection.conversation)
            if not await mind.may_ask(turn.recollection):
                raise OverBudget
            if thoughts:
                undo.callback(thoughts.void)
            show_prompt(mind.hooks, turn.recollection, steps, prompt, provider.model)
            started = time.monotonic()
            if turn.surface.read and not turn.streamed and (seconds := reading_s(provider, request)):
                await turn.surface.read(f"… reading, about {ceil(seconds)} s")
            with turn.surface.waiting():
                done = await _read(turn, provider, request, reading)
            undo.pop_all()
        known = [call.n for call in (*turn.calls, *turn.paid.values()) if call.n < SUMMARY_CALL]
        made = Call(
            n=max(known, default=-1) + 1 if number is None else number,
            purpose=purpose,
            request_sha256=sha,
            response=blot(reading.text, mind.secrets),
            stop_reason=done.stop_reason,
            usage=done.usage,
            provider=done.provider or provider.name,
            model=done.model or provider.model,
            ms=round((time.monotonic() - started) * 1000),
        )
        mind.store.turns.keep_call(turn.turn, made)
    if made.stop_reason != "max_tokens":
        await reading.close()
    turn.calls.append(made)
    turn.streamed += reading.shown
    parsed = reading.parser.finish(truncated=made.stop_reason == "max_tokens")
    parsed = without_forged(reading.alone.whole(parsed, valid(reading.text)) if reading.alone else parsed)
    if thoughts:
        thoughts.end()
    return ModelReply(parsed, made.response, made.stop_reason == "refusal", reading.shown, prompt)


def _reading(turn: TurnState, purpose: str, steps: Sequence[str], *, streams: bool) -> ReplyReading:
    mind = turn.mind
    is_final = not turn.process.may_execute_now and not turn.lines  # nothing may be shown before the last hop
    show = turn.surface.show if streams and is_final else None
    thoughts = ThoughtStream(mind.hooks, turn.recollection, mind.secrets) if mind.hooks.has(Thinking.point) else None
    gate = StreamGate(turn.rules) if show else None
    parser = Parser(turn.rules.names, think=thoughts.tell if thoughts else None)
    reading = ReplyReading(parser, gate, show, turn.surface.tell, thoughts)
    if turn.settings.profile == "plain" and purpose in ALONE:
        reading.alone = Alone(turn.rules, soul_name(turn.soul.text("soul.md")))
    if ACTS in steps:
        reading.may_show = lambda section: not read_acts(section.text, known_to(turn)).refused
    reading.uses = TOOL_USE in steps
    return reading


def _known(turn: TurnState) -> str:
    """Return who the speaker is to the soul, as far as it may be said aloud here; "" if nobody spoke."""
    perception = turn.recollection.perception
    if turn.recollection.speaker is None:
        return ""
    known = turn.mind.store.people.known_in(perception)
    return "\n".join([greeted(known), *told(known, known_zone(known.zone, turn.settings.zone))])


ALONE = ("turn", "repair")
"""The calls that ask a model of the plain profile for its words."""


async def _read(turn: TurnState, provider: Provider, request: Request, reading: ReplyReading) -> Done:
    """Read one reply to its end, or as far as it arrived. Raises: ProviderError if nothing arrived."""
    try:
        async with aclosing(cast(AsyncGenerator[Event, None], provider.complete(request))) as events:
            async for event in events:
                await reading.hear(event)
                if isinstance(event, Done):
                    return event
                if reading.parser.full or (reading.alone and reading.alone.goes_round(reading.text)):
                    break
    except RefusedReply as error:
        await turn.fail(failure_of(error))
        return Done(text="", usage=Usage(), stop_reason="refusal")
    except ProviderError as error:
        if not reading.text:
            raise
        await turn.fail(failure_of(error))
    return Done(text="", usage=estimate(request, reading.text), stop_reason="max_tokens")


NOT_WHOLE = ReadActs(refused=(RefusedAct("", "the section was not written to its end"),))
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
    said = [one.spoken if isinstance(one, Decided) else one for one in found.values()]
    fixed = [one for one in said if isinstance(one, Spoken) and one.rung == "fixed"]
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


class Decided(Struct, frozen=True):
    """What a turn will say and do."""

    spoken: Spoken
    acts: ReadActs


def acts_of(turn: TurnState, parsed: Parsed) -> ReadActs | None:
    """Return the acts of a reply; None if it has none. One that was not written to its end is refused."""
    found = [one for one in parsed.sections if one.name == ACTS]
    if not found:
        return None
    whole = [one for one in found if one.complete]
    return read_acts(whole[0].text, known_to(turn)) if whole else NOT_WHOLE


def known_to(turn: TurnState) -> ActsBasis:
    """Return what the acts of a turn are checked against."""
    agrees = turn.mind.store.people.wants_proactive
    return ActsBasis(recollection=turn.recollection, zone=turn.settings.zone, agrees=agrees, tainted=turn.tainted)


def decided_by(turn: TurnState, first: ModelReply, second: Replies, *, does: bool = True) -> Decided:
    """Return what a reply says and does, as one decision. Raises: Unreadable if it must be asked for once more.

    `does`: acts were asked for.
    """
    acts = (acts_of(turn, first.parsed) if does else None) or ReadActs()
    is_last = bool(second) or turn.rules.repairs == 0 or first.is_refused
    if acts.refused and not is_last:
        raise Unreadable(ACTS, acts.reasons)
    repair = second[0] if second else None
    if acts.refused and repair is not None:
        # its words may stand on what was done now; where it has none, the first ones do
        words = climb(repair.parsed, replace(turn.rules, repairs=0), refused=repair.is_refused)
        is_said = isinstance(words, Spoken) and words.rung == "complete"
        spoken = words if isinstance(words, Spoken) and is_said else spoken_of(turn, first, (None,))
        acts = acts_of(turn, repair.parsed) or acts
    else:
        spoken = spoken_of(turn, first, second)
    flags = ["missing:acts"] * (does and not acts.written) + ["dropped:acts"] * bool(acts.refused)
    speech = f"{spoken.speech}\n\n{not_done(turn, acts)}" if spoken.speech and acts.refused else spoken.speech
    return Decided(replace(spoken, speech=speech, flags=(*spoken.flags, *flags)), acts)


async def thoughts(turn: TurnState, reply: ModelReply) -> Thoughts:
    """Return what the reply of a declarative hop says and does, after a second call if it cannot be used."""

    async def again(failed: Failed) -> ModelReply | None:
        refused = failed[0].detail if failed[0].name == ACTS else ""
        prompt = reply.prompt or build_prompt(turn.plan, turn.recollection, turn.soul, turn.settings)
        tail = (
            again_tail(prompt.tail, turn.recollection, turn.soul)
            if turn.settings.profile == "plain"
            else repair_tail(turn.recollection, turn.soul, reply.parsed.raw, turn.settings.message_chars, refused)
        )
        try:
            return await ask_model(turn, replace(prompt, tail=tail), "repair")
        except ProviderError as error:
            await turn.fail(failure_of(error))
            return None

    part = partial(decided_by, turn, does=ACTS in turn.plan.asked)
    (decided,) = await _read_or_repair(turn, reply, (part,), again)
    keep_acts(turn, decided.acts)
    _note_echo(turn, decided.spoken)
    return thoughts_of(turn, reply, decided)


def _note_echo(turn: TurnState, spoken: Spoken) -> None:
    """Tell the provider of a model that was given the whole prompt, and only repeated what it was to answer."""
    note = getattr(turn.mind.provider, "echoed", None)
    if note and turn.calls and turn.settings.profile == "full" and repeats(spoken.speech, turn.rules):
        note(turn.calls[-1].provider, turn.calls[-1].model)


def keep_acts(turn: TurnState, acts: ReadActs) -> None:
    """Keep what is to be booked with the turn, each act once, and what `why` tells of those that were written."""
    turn.acts += [one.act for one in acts.done if one.act not in turn.acts]
    turn.acted += acts.told


def thoughts_of(turn: TurnState, reply: ModelReply, decided: Decided) -> Thoughts:
    """Gather what a reply says and thinks. If the plan asked for no speech, any speech is dropped. Pure."""
    spoken, acts = decided.spoken, decided.acts
    found, flags = interpret(reply.parsed, turn.plan, turn.soul)
    found = tuple([one for one in found if one.step != ACTS])
    found = (*found, Thought(step=ACTS, content=acts.written)) if acts.written else found
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
        is_canned=reply.is_canned,
    )


def not_done(turn: TurnState, acts: ReadActs) -> str:
    """Return the fixed line that says which acts could not be done, in the listener's language."""
    told = dict.fromkeys([one.what for one in acts.refused if one.what])
    to = turn.recollection.addressee
    return turn.soul.steps[ACTS].failed(", ".join(told) or "…", to.locale if to else "")


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
    found = await _read_or_repair(turn, first, parts, again)
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
    if found is None and is_alone and not parsed.truncated and not is_structured(parsed.raw, names_of(source.soul)):
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
