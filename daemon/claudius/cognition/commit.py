"""WRITE 2: the one place where a turn's changes are committed, whatever kind of turn it was.

Turns, apologies, reflections and daimons' lines all end here. What is said unasked is judged by the rules of writing
first; what goes into the ledger, and what is planned from the words, is added; observers are told before and after.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.cognition.observer_events import noted, show_calls, show_committed, show_concluded
from claudius.cognition.proactive import allowed
from claudius.cognition.reminders import reminded, within_limit
from claudius.errors import ProcessError
from claudius.intent import Intent
from claudius.recollection import Recollection


async def commit(intent: Intent, recollection: Recollection, mind: Mind, *, is_turn: bool = True) -> Intent:
    """Commit what a turn changes; return it as it was committed.

    `is_turn`: something was heard and recalled in it; False for an apology, and for what is thought or said beside a
    turn, which add nothing to ledger and plans.

    Raises: ProcessError where a turn says nothing and a reply is owed, because what is committed without a word is
    never answered; StaleTurn where the conversation has moved on; StoreError.
    """
    if is_turn:
        if not intent.utterances and any(one.owes and one.key in intent.answers for one in recollection.perceptions):
            raise ProcessError(f"process {intent.process}", "ended without a word where a reply is owed")
        if recollection.intuitions:
            from claudius.cognition.whispers import felt  # noqa: PLC0415 - not loaded while no daimon whispers

            intent = felt(intent, recollection)
    show_calls(mind.hooks, recollection, intent.calls)
    intent = await allowed(intent, recollection, mind)
    if is_turn:
        intent = replace(intent, noted=noted(recollection, intent, mind.config()))
        intent = reminded(intent, recollection, mind.soul(), mind.config())
        if intent.planned is not None and intent.planned.schedules:
            waiting = await mind.store.open_plans(intent.conversation)
            intent = within_limit(intent, recollection, mind.soul(), waiting)
        show_concluded(mind.hooks, recollection, intent)
    await mind.store.commit(intent)
    show_committed(mind.hooks, intent)
    return intent


async def commit_whole(intent: Intent, recollection: Recollection, mind: Mind) -> Intent:
    """Commit what was thought beside a turn: once begun it ends, whoever speaks and cancels the rest.

    The next turn must not find it half under way. Raises: StaleTurn, StoreError.
    """
    doing = asyncio.ensure_future(commit(intent, recollection, mind, is_turn=False))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.gather(doing, return_exceptions=True)
        raise
