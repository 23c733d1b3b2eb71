"""Commit a turn's changes (WRITE 2). This is the only place that does, for every kind of turn.

Turns, apologies, reflections and daimon lines all end here. Unprompted speech is first checked against the proactive
rules; ledger entries are added; observers are notified before and after.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from claudius.cognition.hooks import noted, show_committed, show_concluded
from claudius.cognition.mind import Mind
from claudius.cognition.plan import soul_name
from claudius.cognition.proactive import allowed
from claudius.cognition.remembering import kept
from claudius.errors import ProcessError
from claudius.intent import Intent
from claudius.recollection import Recollection


async def commit(intent: Intent, recollection: Recollection, mind: Mind, *, is_turn: bool = True) -> Intent:
    """Commit the changes of a turn and return the intent as committed.

    `is_turn`: the turn recalled and heard something. False for apologies and for thoughts or lines beside a turn, which
    add nothing to the ledger or the plans.

    Raises: ProcessError if the turn says nothing although a reply is owed, because a committed turn is never answered
    again; StaleTurn if the conversation has moved on; StoreError.
    """
    if is_turn:
        if not intent.utterances and any(one.owes and one.key in intent.answers for one in recollection.perceptions):
            raise ProcessError(f"process {intent.process}", "ended without a word where a reply is owed")
        if recollection.intuitions:
            from claudius.cognition.daimons import felt  # noqa: PLC0415 - stays unloaded while no daimon whispers

            intent = felt(intent, recollection)
    intent = allowed(intent, recollection, mind)
    if is_turn:
        intent = replace(intent, noted=noted(recollection, intent))
    show_concluded(mind.hooks, recollection, intent.calls, intent.utterances if is_turn else ())
    intent = kept(intent, recollection, soul_name(mind.soul().text("soul.md")))
    intent = await mind.store.turns.commit(intent)
    show_committed(mind.hooks, intent)
    return intent


async def commit_whole(intent: Intent, recollection: Recollection, mind: Mind) -> Intent:
    """Commit a thought from beside a turn; once started, the commit completes even if the task is cancelled.

    The next turn must not find it half done. Raises: StaleTurn, StoreError.
    """
    doing = asyncio.ensure_future(commit(intent, recollection, mind, is_turn=False))
    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.gather(doing, return_exceptions=True)
        raise
