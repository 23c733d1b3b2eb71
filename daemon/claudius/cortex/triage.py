"""Is a cycle worth a model call? A score of observable facts. Pure.

Source: the cortex design, section 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from claudius.cortex.models import Event
from claudius.peers import Belief

WORTH_IT = 2
SOON = timedelta(minutes=30)
STRONG_AXIS, MOST_AXES = 0.5, 3
_BY_TRIGGER = {"promise_timeout": 3, "farming": 3, "new_peer": 2, "interaction_count": 2, "manual": WORTH_IT}
CRITICAL_SCOPE = 60
"""At such a scope a critical class, or something just as large, was in the message."""


def score(triggers: Sequence[str], events: Sequence[Event], beliefs: Sequence[Belief], now: datetime) -> int:
    """Return how much there is to reflect on; from `WORTH_IT` on the model is asked. Pure."""
    found = sum(_BY_TRIGGER.get(name, 0) for name in triggers)
    found += 2 * any(event.get("critical") or (event.get("scope") or 0) >= CRITICAL_SCOPE for event in events)
    found += min(MOST_AXES, sum((event.get("axis") or 0) >= STRONG_AXIS for event in events))
    return int(found + any(_runs_out(belief, now) for belief in beliefs))


def _runs_out(belief: Belief, now: datetime) -> bool:
    until = belief.expires_at
    return until is not None and now < until <= now + SOON
