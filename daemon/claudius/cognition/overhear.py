"""Keeping what was only overheard: no model is asked, nothing is said, the words stand in working memory."""

from __future__ import annotations

from claudius.cognition.mind import Mind
from claudius.cognition.processes import route
from claudius.cognition.soul_engine import EngineSettings, conclude_heard
from claudius.memory.store import Pending, RecallLimits


async def overhear(pending: Pending, mind: Mind) -> None:
    """Commit a perception that is owed nothing. Raises: StaleTurn, StoreError."""
    config, now = mind.config(), mind.clock()
    limits = RecallLimits(ttl_hours=config.memory.ttl_hours)
    recollection = await mind.store.recall(pending, nonce=mind.nonce(), now=now, limits=limits)
    intent = conclude_heard(recollection, route(recollection, mind.soul()), EngineSettings.of(config))
    await mind.store.commit(intent)
