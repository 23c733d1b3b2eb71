"""Keeping what was only overheard: no model is asked, nothing is said, the words stand in working memory."""

from __future__ import annotations

from dataclasses import replace

from claudius.cognition.attending import attend_to
from claudius.cognition.encounter import noted, show_committed, show_heard
from claudius.cognition.first_word import is_unasked, withheld
from claudius.cognition.lapsing import has_lapsed
from claudius.cognition.mind import Mind
from claudius.cognition.processes import route
from claudius.cognition.soul_engine import EngineSettings, conclude_heard, conclude_unthought
from claudius.cognition.told import ANSWER, keep_told
from claudius.memory.store import Pending, RecallLimits
from claudius.perception import Origin


async def overhear(pending: Pending, mind: Mind) -> bool:
    """Commit a perception that is owed nothing; False, and nothing is done, where the soul wants to think about it.

    Raises: StaleTurn, StoreError.
    """
    config, now = mind.config(), mind.clock()
    limits = RecallLimits(ttl_hours=config.memory.ttl_hours, psyche=config.psyche.enabled)
    recollection = await mind.store.recall(pending, nonce=mind.nonce(), now=now, limits=limits)
    soul, settings = mind.soul(), EngineSettings.of(config)
    attention = await attend_to(recollection, soul, config, mind.store)
    if attention.outcome == "think":
        return False
    show_heard(mind.hooks, recollection)
    process = route(recollection, soul)
    if attention.outcome == "react":
        lines = soul.steps["external_dialogue"].acknowledge
        intent = conclude_unthought(recollection, process, settings, attention, lines)
    else:
        intent = conclude_heard(recollection, process, settings, attention)
    intent = replace(intent, noted=noted(recollection, intent))
    await mind.store.commit(intent)
    show_committed(mind.hooks, intent)
    return True


async def passes(pending: Pending, mind: Mind) -> bool:
    """Tell whether a perception is done with unthought: what was only overheard is kept, what came too late let go."""
    perception = pending.perception
    if ANSWER in perception.extra:
        await keep_told(pending, mind)
        return True
    if not perception.owes and perception.origin is Origin.EXTERNAL:
        return await overhear(pending, mind)
    if await has_lapsed(pending, mind):
        return True
    return is_unasked(perception) and await withheld(pending, mind)
