"""Folding old turns into the conversation's summary: when they expire, and before the history outgrows its budget."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from string import Template

from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.cognition.pipeline import call
from claudius.cognition.soul_engine import (
    EngineSettings,
    compact,
    merged,
    plain_reply,
    prompt_sha256,
    render_summary,
    render_turn,
    system_text,
)
from claudius.errors import ProviderError
from claudius.intent import Call
from claudius.prompt import Prompt
from claudius.provider import Message, Request
from claudius.recollection import PastTurn, Recollection, Summary
from claudius.soul import SoulText

log = logging.getLogger("claudius.fold")

ROOM = 0.85
"""The share of the history budget at which old turns are folded ahead of need."""


async def fold_expired(
    recollection: Recollection, mind: Mind, soul: SoulText, settings: EngineSettings, paid: Mapping[str, Call]
) -> tuple[Recollection, tuple[Call, ...]]:
    """Summarise what has outlived its time, as the talk is taken up again; without a model it stays as it is."""
    if not recollection.expired:
        return recollection, ()
    history = _history(recollection, recollection.expired)
    summary, calls = await _summarise(recollection, recollection.expired, history, mind, soul, settings, paid)
    return replace(recollection, summary=summary or recollection.summary, expired=()), calls


async def fold_for_room(recollection: Recollection, mind: Mind) -> None:
    """Fold the oldest turns of an idle conversation whose history nears its budget, in one step."""
    settings = EngineSettings.of(mind.config())
    first = compact(recollection.past, settings, share=ROOM)
    leaving = [turn for turn in recollection.past if turn.number < first]
    if not leaving:
        return
    history = _history(recollection, recollection.past)  # the last turn's own, so that a cache still holds it
    summary, calls = await _summarise(recollection, leaving, history, mind, mind.soul(), settings, {})
    if summary:
        await mind.store.fold(recollection.conversation, recollection.turn, summary, calls, mind.clock())


async def fold_whole(recollection: Recollection, mind: Mind) -> bool:
    """Fold everything that has outlived its time in a conversation that nobody takes up; False where nothing has."""
    if not recollection.expired:
        return False
    settings = EngineSettings.of(mind.config())
    history = _history(recollection, recollection.expired)
    turns = recollection.expired
    summary, calls = await _summarise(recollection, turns, history, mind, mind.soul(), settings, {})
    if summary:
        await mind.store.fold(recollection.conversation, recollection.turn, summary, calls, mind.clock())
    return summary is not None


async def _summarise(
    recollection: Recollection,
    turns: Sequence[PastTurn],
    history: tuple[Message, ...],
    mind: Mind,
    soul: SoulText,
    settings: EngineSettings,
    paid: Mapping[str, Call],
) -> tuple[Summary | None, tuple[Call, ...]]:
    instruction = Template(soul.text("summary.md")).safe_substitute(chars=settings.summary_chars)
    prompt = Prompt(system_text(soul, settings), history, instruction.strip())
    request = Request(
        system=prompt.system,
        history=prompt.history,
        tail=prompt.tail,
        max_tokens=settings.max_tokens,
        cached=len(history),
        purpose="summary",
    )
    try:
        made = await call(mind, recollection.turn, request, prompt_sha256(prompt), n=SUMMARY_CALL, paid=paid)
    except ProviderError as error:
        log.warning("nothing was folded", extra={"turn": recollection.turn, "error": repr(error)})
        return None, ()
    text = plain_reply(made.response)[: settings.summary_chars].strip()
    if not text:
        return None, (made,)
    sources = {recollection.audience, *(recollection.summary.sources if recollection.summary else ())}
    return (
        Summary(text=text, sources=tuple(sorted(sources)), upto=turns[-1].number, nonce=mind.nonce()),
        (made,),
    )


def _history(recollection: Recollection, turns: Sequence[PastTurn]) -> tuple[Message, ...]:
    before = [render_summary(recollection.summary)] if recollection.summary else []
    messages = merged([*before, *(message for turn in turns for message in render_turn(turn))])
    return (Message("user", "…"), *messages) if messages and messages[0].role == "assistant" else messages


SUMMARY_CALL = 100
"""The number of a turn's summary call, apart from those of its thought."""
