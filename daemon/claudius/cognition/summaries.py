"""Folding old turns into the conversation's summary: when they expire, and before the history outgrows its budget."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from string import Template

from msgspec.structs import replace

from claudius.cognition.call import ask_model
from claudius.cognition.history import merged, render_summary, render_turn
from claudius.cognition.mind import Mind
from claudius.cognition.plan.plan import EngineSettings, compact
from claudius.cognition.prompt.assembly import system_text
from claudius.cognition.reply.parser import plain_reply
from claudius.cognition.turn_state import SUMMARY_CALL, TurnState, silent_turn
from claudius.errors import ProviderError
from claudius.prompt import Prompt
from claudius.provider import Message
from claudius.recollection import PastTurn, Recollection, Summary

log = logging.getLogger("claudius.fold")

ROOM = 0.85
"""The share of the history budget at which old turns are folded ahead of need."""


async def fold_expired(turn: TurnState) -> None:
    """Summarise what has outlived its time, as the talk is taken up again; without a model it stays as it is."""
    known = turn.recollection
    if known.expired:
        summary = await _summarise(turn, known.expired, _history(known, known.expired))
        turn.recollection = replace(known, summary=summary or known.summary, expired=())


async def fold_for_room(recollection: Recollection, mind: Mind) -> None:
    """Fold the oldest turns of an idle conversation whose history nears its budget, in one step."""
    settings = EngineSettings.of(mind.config())
    first = compact(recollection.past, settings, share=ROOM)
    leaving = [turn for turn in recollection.past if turn.number < first]
    if not leaving:
        return
    history = _history(recollection, recollection.past)  # the last turn's own, so that a cache still holds it
    await _fold(recollection, leaving, history, mind)


async def fold_whole(recollection: Recollection, mind: Mind) -> bool:
    """Fold everything that has outlived its time in a conversation that nobody takes up; False where nothing has."""
    if not recollection.expired:
        return False
    return await _fold(recollection, recollection.expired, _history(recollection, recollection.expired), mind)


async def _fold(
    recollection: Recollection, turns: Sequence[PastTurn], history: tuple[Message, ...], mind: Mind
) -> bool:
    """Summarise turns of an idle conversation and write that; False where no summary came of it."""
    turn = silent_turn("", recollection, mind)
    summary = await _summarise(turn, turns, history)
    if summary:
        await mind.store.fold(recollection.conversation, recollection.turn, summary, tuple(turn.calls), mind.clock())
    return summary is not None


async def _summarise(turn: TurnState, turns: Sequence[PastTurn], history: tuple[Message, ...]) -> Summary | None:
    known, settings = turn.recollection, turn.settings
    instruction = Template(turn.soul.text("summary.md")).safe_substitute(chars=settings.summary_chars)
    prompt = Prompt(system_text(turn.soul, settings), history, instruction.strip(), len(history))
    try:
        reply = await ask_model(turn, prompt, "summary", number=SUMMARY_CALL)
    except ProviderError as error:
        log.warning("nothing was folded", extra={"turn": known.turn, "error": repr(error)})
        return None
    text = plain_reply(reply.text)[: settings.summary_chars].strip()
    if not text:
        return None
    sources = {known.audience, *(known.summary.sources if known.summary else ())}
    return Summary(text=text, sources=tuple(sorted(sources)), upto=turns[-1].number, nonce=turn.mind.nonce())


def _history(recollection: Recollection, turns: Sequence[PastTurn]) -> tuple[Message, ...]:
    before = [render_summary(recollection.summary)] if recollection.summary else []
    messages = merged([*before, *(message for turn in turns for message in render_turn(turn))])
    return (Message("user", "…"), *messages) if messages and messages[0].role == "assistant" else messages
