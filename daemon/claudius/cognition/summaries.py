"""Fold old turns into the conversation's summary when they expire, or before the history outgrows its budget.

If the model fails, the turns are kept as they are. `summarise` is the shipped subprocess that does it ahead of need, so
that the next turn is quicker; `judge` asks a small model, while nobody speaks, the steps that a turn left for later.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from string import Template

from msgspec.structs import replace

from claudius.cognition.call import ask_model
from claudius.cognition.commit import commit_whole
from claudius.cognition.conclude.conclusion import conclude, heard, interpret
from claudius.cognition.history import fixed, merged, render_summary
from claudius.cognition.mind import Mind
from claudius.cognition.plan import EngineSettings, compact
from claudius.cognition.prompt.assembly import build_prompt, system_text
from claudius.cognition.prompt.parts import form_of
from claudius.cognition.reflection import Idle, Subprocess
from claudius.cognition.reply.parser import plain_reply, read_bool
from claudius.cognition.steps import step
from claudius.cognition.turn_state import SUMMARY_CALL, TurnState, recorded, settings_now, silent_turn
from claudius.errors import ProviderError, TooLong
from claudius.foreign import unquoted
from claudius.intent import Thought, Thoughts
from claudius.memory.inbox import turn_of
from claudius.memory.turns import RecallLimits
from claudius.prompt import Prompt
from claudius.provider import Message
from claudius.recollection import PastTurn, Person, Recollection, Shown, Summary

log = logging.getLogger(__name__)

ROOM = 0.85
"""The share of the history budget from which old turns are folded in advance."""


async def fold_expired(turn: TurnState) -> None:
    """Summarise expired turns when a conversation resumes; if the model fails, the old summary stays."""
    known = turn.recollection
    if known.expired:
        summary = await _summarise(turn, known.expired, _history(known, known.expired))
        turn.recollection = replace(known, summary=summary or known.summary, expired=())


async def fold_for_room(idle: Idle, mind: Mind) -> None:
    """Fold the oldest turns of an idle conversation: those that its last prompt, or the next one, has no room for."""
    recollection, past = idle.recollection, idle.recollection.past
    settings = await settings_now(mind, recollection, EngineSettings.of(mind.config()))
    first = max(compact(past, settings, share=ROOM), idle.history_from)
    leaving = [turn for turn in past if turn.number < first]
    if not leaving:
        return
    is_whole = idle.history_from <= past[0].number  # then the same history as in the last turn is in the cache
    await _fold(recollection, leaving, _history(recollection, past if is_whole else leaving), mind)


async def fold_whole(recollection: Recollection, mind: Mind) -> bool:
    """Fold all expired turns of an idle conversation. Returns False if nothing was folded."""
    if not recollection.expired:
        return False
    return await _fold(recollection, recollection.expired, _history(recollection, recollection.expired), mind)


async def _fold(
    recollection: Recollection, turns: Sequence[PastTurn], history: tuple[Message, ...], mind: Mind
) -> bool:
    """Summarise turns of an idle conversation and store the summary. Returns False if there is none."""
    turn = await silent_turn("", recollection, mind)
    summary = await _summarise(turn, turns, history)
    if summary or turn.calls:
        await mind.store.turns.fold(
            recollection.conversation, recollection.turn, summary, tuple(turn.calls), mind.clock()
        )
    return summary is not None


async def _summarise(turn: TurnState, turns: Sequence[PastTurn], history: tuple[Message, ...]) -> Summary | None:
    known, settings = turn.recollection, turn.settings
    instruction = Template(turn.soul.text("summary.md")).safe_substitute(chars=settings.summary_chars)
    prompt = Prompt(system_text(turn.soul, settings), history, instruction.strip(), len(history))
    try:
        reply = await ask_model(turn, prompt, "summary", number=SUMMARY_CALL)
    except ProviderError as error:
        if isinstance(error, TooLong) and (half := turns[: len(turns) // 2]):
            return await _summarise(turn, half, _history(known, half))
        log.warning("nothing was folded", extra={"turn": known.turn, "error": unquoted(error)})
        return None
    text = plain_reply(reply.text)[: settings.summary_chars].strip()
    if not text:
        return None
    sources = {known.audience, *(known.summary.sources if known.summary else ())}
    return Summary(text=text, sources=tuple(sorted(sources)), upto=turns[-1].number, nonce=turn.mind.nonce())


def _history(recollection: Recollection, turns: Sequence[PastTurn]) -> tuple[Message, ...]:
    before = [render_summary(recollection.summary)] if recollection.summary else []
    messages = merged([*before, *(message for turn in turns for message in fixed(turn).messages)])
    return (Message("user", "…"), *messages) if messages and messages[0].role == "assistant" else messages


summarise = Subprocess(name="summarise", order=0, work=fold_for_room, description="Fold old turns into the summary.")


async def judge_later(idle: Idle, mind: Mind) -> None:
    """Ask the steps that the last turn left, and commit what they change. Raises: StaleTurn, StoreError."""
    later = idle.intent.later
    pending = replace(idle.pending, turn=turn_of(f"{idle.intent.turn}/judge"))
    limits = RecallLimits(ttl_hours=mind.config().memory.ttl_hours, aged_at=mind.aged_at())
    known = await mind.store.turns.recall(pending, nonce=mind.nonce(), now=mind.clock(), limits=limits)
    turn = await silent_turn("judge", known, mind)
    plan = replace(
        turn.plan,
        process=idle.intent.process,
        asked=later,
        conditional={name: check for name in later if (check := step(name).after)},
        shown=_portrait(known.speaker),
        seen=known.speaker is not None and not known.speaker.is_bot,
    )
    turn.plan = plan
    found: list[Thought] = []
    for name in later:
        check = plan.conditional.get(name)
        if check in later and not read_bool(one.content for one in found if one.step == check):
            continue
        try:
            found += await _judged(turn, name)
        except ProviderError:
            break  # what was judged so far counts; the next turn judges again
    turn.plan = plan
    if not found:
        return
    thoughts = Thoughts(thoughts=tuple(found), speech="", verb="", rung="silent", flags=(), streamed="")
    intent = conclude(plan, known, thoughts, turn.soul, turn.settings, turn.rules, None)
    intent = replace(
        recorded(turn, intent),
        answers=(),
        entries=intent.entries[len(heard(known)) :],
        shown=(),
        utterances=(),
        next_process=known.process,
        attention={"outcome": "reflect", "reason": "idle"},
        steps=later,
    )
    await commit_whole(intent, known, mind)


async def _judged(turn: TurnState, name: str) -> tuple[Thought, ...]:
    """Ask one step in a call of its own. Raises: ProviderError, StoreError."""
    plan = turn.plan
    turn.plan = replace(plan, asked=(name,), conditional={})
    try:
        prompt = build_prompt(turn.plan, turn.recollection, turn.soul, turn.settings)
        form = form_of(turn.plan, turn.soul, turn.settings)
        reply = await ask_model(turn, prompt, name, steps=(name,), form=form)
        return interpret(reply.parsed, turn.plan, turn.soul)[0]
    finally:
        turn.plan = plan


def _portrait(speaker: Person | None) -> tuple[Shown, ...]:
    """Return the speaker's portrait that an update may write."""
    if speaker is None or speaker.is_bot or not speaker.models:
        return ()
    own = speaker.models[0]
    return (Shown(person=own.person, audience=own.audience, version=own.version, writable=True, text=own.markdown),)


judge = Subprocess(
    name="judge", order=1, is_for_later=True, work=judge_later, description="Judge what a turn left for later."
)
