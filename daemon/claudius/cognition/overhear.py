"""Keeping what was only overheard: no model is asked, nothing is said, the words stand in working memory."""

from __future__ import annotations

from dataclasses import replace

from claudius.cognition.attending import attend_to
from claudius.cognition.encounter import noted, show_committed, show_heard
from claudius.cognition.lapsing import has_lapsed
from claudius.cognition.mind import Mind
from claudius.cognition.processes import route
from claudius.cognition.soul_engine import EngineSettings, conclude_heard
from claudius.memory.store import Pending, RecallLimits
from claudius.perception import Origin, Perception


async def overhear(pending: Pending, mind: Mind) -> None:
    """Commit a perception that is owed nothing. Raises: StaleTurn, StoreError."""
    config, now = mind.config(), mind.clock()
    limits = RecallLimits(ttl_hours=config.memory.ttl_hours, psyche=config.psyche.enabled)
    recollection = await mind.store.recall(pending, nonce=mind.nonce(), now=now, limits=limits)
    show_heard(mind.hooks, recollection)
    attention = await attend_to(recollection, mind.soul(), config, mind.store) if config.psyche.enabled else None
    process = route(recollection, mind.soul())
    intent = conclude_heard(recollection, process, EngineSettings.of(config), attention)
    intent = replace(intent, noted=noted(recollection, intent))
    await mind.store.commit(intent)
    show_committed(mind.hooks, intent)


async def passes(pending: Pending, mind: Mind) -> bool:
    """Tell whether a perception is done with unthought: what was only overheard is kept, what came too late let go."""
    if _is_overheard(pending.perception):
        await overhear(pending, mind)
        return True
    return await has_lapsed(pending, mind)


def _is_overheard(perception: Perception) -> bool:
    uncalled = not perception.owes and perception.origin is Origin.EXTERNAL
    return uncalled and perception.extra.get("participation") != "group"
