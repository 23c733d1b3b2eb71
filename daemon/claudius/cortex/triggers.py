"""When to reflect: observable facts, looked at in memory, judged by nobody. Pure.

Source: the cortex design, section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice

from claudius.cortex.models import TRIGGERS, Event, State, Thresholds
from claudius.cortex.observe import MESSAGE, dealings

LEAST_BACKOFF = timedelta(minutes=1)


def evaluate(state: State, now: datetime, config: Thresholds) -> tuple[str, ...]:
    """Return every trigger that fires now, in the order of `TRIGGERS`. Pure; neither database nor model."""
    if state.retry_at and now < state.retry_at:
        return ()
    return tuple(name for name in TRIGGERS if _fires(name, state, now, config))


def _fires(name: str, state: State, now: datetime, config: Thresholds) -> bool:
    if name not in config.enabled:
        return False
    holds = {
        "promise_timeout": state.next_overdue is not None and state.next_overdue < now,
        "farming": bool(state.farming),
        "interaction_count": _has_messages(state.events, config.interaction_threshold),
        "new_peer": bool(state.new_peers),
        "timer": now - state.since >= timedelta(minutes=config.schedule_minutes) and _has_dealings(state.events),
    }
    return holds.get(name, False)


def _has_messages(events: Sequence[Event], count: int) -> bool:
    """Tell whether at least so many messages are among the events; no further than needed."""
    found = (event for event in events if event["type"] == MESSAGE)
    return next(islice(found, count - 1, None), None) is not None


def _has_dealings(events: Sequence[Event]) -> bool:
    return next(dealings(events), None) is not None


def next_look(state: State, now: datetime, config: Thresholds) -> datetime | None:
    """Return the next instant at which a trigger may fire without anything being observed; None = none. Pure."""
    moments: list[datetime] = []
    if "timer" in config.enabled and _has_dealings(state.events):
        moments.append(state.since + timedelta(minutes=config.schedule_minutes))
    if "promise_timeout" in config.enabled and state.next_overdue:
        moments.append(state.next_overdue + timedelta(milliseconds=1))
    if not moments:
        return state.retry_at if state.retry_at and state.retry_at > now else None
    soonest = min(moments)
    return max(soonest, state.retry_at) if state.retry_at else soonest


def backoff(failures: int, config: Thresholds) -> timedelta:
    """Return how long nothing fires after so many failures in a row: 1, 2, 4 … minutes, at most the schedule. Pure."""
    doubled: timedelta = LEAST_BACKOFF * 2 ** min(failures - 1, 20)
    return min(doubled, timedelta(minutes=config.schedule_minutes))
