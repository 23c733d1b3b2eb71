"""Fold old turns into the conversation's summary when they expire, or before the history outgrows its budget.

If the model fails, the turns are kept as they are. `summarise` is the shipped subprocess that does it ahead of need, so
that the next turn is quicker.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from string import Template

from msgspec.structs import replace

from claudius.cognition.call import ask_model
from claudius.cognition.history import fixed, merged, render_summary
from claudius.cognition.mind import Mind
from claudius.cognition.plan import EngineSettings, compact
from claudius.cognition.prompt.assembly import system_text
from claudius.cognition.reflection import Idle, Subprocess
from claudius.cognition.reply.parser import plain_reply
from claudius.cognition.turn_state import SUMMARY_CALL, TurnState, settings_now, silent_turn
from claudius.errors import ProviderError, TooLong
from claudius.foreign import unquoted
from claudius.prompt import Prompt
from claudius.provider import Message
from claudius.recollection import PastTurn, Recollection, Summary

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
