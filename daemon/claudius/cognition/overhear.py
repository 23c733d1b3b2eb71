"""Keeping what was only overheard: no model is asked, nothing is said, the words stand in working memory."""

from __future__ import annotations

from dataclasses import replace

from claudius.cognition.encounter import noted, show_committed, show_heard
from claudius.cognition.lapsing import has_lapsed
from claudius.cognition.mind import Mind
from claudius.cognition.processes import route
from claudius.cognition.soul_engine import EngineSettings, conclude_heard
from claudius.memory.store import Pending, RecallLimits
from claudius.perception import Origin


async def overhear(pending: Pending, mind: Mind) -> None:
    """Commit a perception that is owed nothing. Raises: StaleTurn, StoreError."""
    config, now = mind.config(), mind.clock()
    limits = RecallLimits(ttl_hours=config.memory.ttl_hours)
    recollection = await mind.store.recall(pending, nonce=mind.nonce(), now=now, limits=limits)
    show_heard(mind.hooks, recollection)
    intent = conclude_heard(recollection, route(recollection, mind.soul()), EngineSettings.of(config))
    intent = replace(intent, noted=noted(recollection, intent))
    await mind.store.commit(intent)
    show_committed(mind.hooks, intent)


async def passes(pending: Pending, mind: Mind) -> bool:
    """Tell whether a perception is done with unthought: what was only overheard is kept, what came too late let go."""
    perception = pending.perception
    if not perception.owes and perception.origin is Origin.EXTERNAL:
        await overhear(pending, mind)
        return True
    return await has_lapsed(pending, mind)
