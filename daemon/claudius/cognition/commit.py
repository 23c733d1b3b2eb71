"""Commit a turn: the one place through which everything passes that a turn changes, or says."""

from __future__ import annotations

from msgspec.structs import replace

from claudius.cognition.encounter import noted, show_committed, show_concluded
from claudius.cognition.first_word import allowed
from claudius.cognition.mind import Mind
from claudius.cognition.reminding import reminded
from claudius.intent import Intent
from claudius.recollection import Recollection


async def commit(intent: Intent, recollection: Recollection, mind: Mind, *, is_turn: bool = True) -> Intent:
    """Commit a turn with what it adds to the ledger and to the plans; return it as committed.

    What it says unasked is said by the rules of writing first, or not at all. `is_turn`: it was heard in this turn;
    False for what is thought or said beside one. Raises: StaleTurn, StoreError.
    """
    config = mind.config()
    intent = await allowed(intent, recollection, mind)
    if is_turn:
        intent = replace(intent, noted=noted(recollection, intent, config))
        intent = reminded(intent, recollection, mind.soul(), config)
        show_concluded(mind.hooks, recollection, intent)
    await mind.store.commit(intent)
    show_committed(mind.hooks, intent)
    return intent
