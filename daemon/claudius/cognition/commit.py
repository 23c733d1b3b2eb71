"""WRITE 2: the one place where a turn's changes are committed, whatever kind of turn it was.

Turns, reflections and daimons' lines all end here. What goes into the ledger and what is planned from the words is
added to the intent first; observers are told before and after.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from claudius.cognition.encounter import noted, show_calls, show_committed, show_concluded
from claudius.cognition.mind import Mind
from claudius.cognition.reminding import reminded
from claudius.intent import Intent
from claudius.recollection import Recollection


async def commit(intent: Intent, recollection: Recollection, mind: Mind) -> Intent:
    """Commit what a turn changes; return it as it was committed.

    Raises: StaleTurn where the conversation has moved on, StoreError.
    """
    config = mind.config()
    if recollection.perceptions:
        intent = replace(intent, noted=noted(recollection, intent, config))
        intent = reminded(intent, recollection, mind.soul(), config)
    if recollection.intuitions:
        from claudius.cognition.daimonic import felt  # noqa: PLC0415 - not loaded while no daimon whispers

        intent = felt(intent, recollection)
    show_calls(mind.hooks, recollection, intent.calls)
    show_concluded(mind.hooks, recollection, intent)
    await mind.store.commit(intent)
    show_committed(mind.hooks, intent)
    return intent


async def commit_whole(intent: Intent, recollection: Recollection, mind: Mind) -> None:
    """Commit what was thought in the background: once begun it ends, whoever speaks and cancels the rest.

    The next turn must not find it half under way. Raises: StaleTurn, StoreError.
    """
    doing = asyncio.ensure_future(commit(intent, recollection, mind))
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.gather(doing, return_exceptions=True)
        raise
