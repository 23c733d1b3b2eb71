"""What was asked and answered elsewhere, in a session that the soul was let into: kept as talk, thought about later."""

from __future__ import annotations

from msgspec.structs import replace

from claudius.cognition.commit import commit
from claudius.cognition.encounter import show_heard
from claudius.cognition.mind import Mind
from claudius.cognition.processes import route
from claudius.cognition.soul_engine import EngineSettings, conclude_heard
from claudius.memory.store import Pending, RecallLimits
from claudius.recollection import Entry, EntryType

ANSWER = "answer"
"""Where a perception carries what was answered to it already."""
SAYS = "says"
"""Where a perception of the soul's own carries the line that it says then, without a thought."""


async def keep_told(pending: Pending, mind: Mind) -> None:
    """Commit a prompt with the answer that it got; no model is asked. Raises: StaleTurn, StoreError."""
    config = mind.config()
    limits = RecallLimits(ttl_hours=config.memory.ttl_hours)
    recollection = await mind.store.recall(pending, nonce=mind.nonce(), now=mind.clock(), limits=limits)
    show_heard(mind.hooks, recollection)
    intent = conclude_heard(recollection, route(recollection, mind.soul()), EngineSettings.of(config))
    said = Entry(
        entry_type=EntryType.EXTERNAL_DIALOG,
        content=str(pending.perception.extra[ANSWER]),
        verb="said",
        at=recollection.now,
        metadata={"elsewhere": True},
    )
    intent = replace(intent, entries=(*intent.entries, said))
    await commit(intent, recollection, mind)
