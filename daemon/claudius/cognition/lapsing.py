"""What the soul told itself to do lapses where it was not taken up in time."""

from __future__ import annotations

from datetime import datetime

from claudius.cognition.mind import Mind
from claudius.memory.store import Pending
from claudius.perception import Origin


async def has_lapsed(pending: Pending, mind: Mind) -> bool:
    """Tell whether an internal perception came too late, and let it go where it did."""
    perception = pending.perception
    until = perception.extra.get("lapses_at")
    if perception.origin is not Origin.INTERNAL or not isinstance(until, str):
        return False
    if mind.clock() <= datetime.fromisoformat(until):
        return False
    await mind.store.withdraw(pending.seq, "lapsed: it was not taken up in time")
    return True
