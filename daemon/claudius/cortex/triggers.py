"""Decide when to reflect and on which audiences: evaluate and tune the triggers, score and split the events.

Flagged audiences come first, then the fullest; each part gets one cycle. Source: the cortex design, section 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from statistics import median

from msgspec.structs import replace

from claudius.cortex.models import TRIGGERS, CortexEvent, Part, State, Thresholds, Ties
from claudius.ledger_types import Belief, Tuned

PARTS = 3
"""The most audiences in one pass."""
WORTH_IT = 2
SOON = timedelta(minutes=30)
_BY_TRIGGER = {"promise_timeout": 3, "farming": 3, "new_peer": 2, "interaction_count": 2, "manual": WORTH_IT}
CRITICAL_SCOPE = 75
"""From this scope on, a message held a critical class or something equally large."""
LEAST_BEFORE, WINDOW = 4, 20
"""The minimum number of earlier bursts, and how many of the latest are examined."""
LEAST_SCOPE = 60
OVER_MEDIAN, OVER_MAX = 5, 3
TRUSTS = 5
LEAST_BACKOFF = timedelta(minutes=1)
TUNED_OVER, TUNED_EVERY = 20, 10
LOW, HIGH = 0.3, 0.7
MINUTES, COUNTS = (10.0, 120.0), (3.0, 15.0)
TUNABLE = ("timer", "interaction_count")


def parts(ties: Ties, state: State, fired: Sequence[str]) -> list[Part]:
    """Return the parts of a pass without taking their events; a single part if the owner asked for the pass."""
    now = ties.clock()
    overdue = [one for one in state.promises if one.overdue_at < now] if "promise_timeout" in fired else []
    pointed = [*(one.audience for one in overdue), *state.farming.values(), *state.new_peers.values()]
    found = []
    for audience in fullest(state.events, 1 if "manual" in fired else PARTS, pointed):
        flags: dict[str, tuple[str, ...]] = {}
        mine = tuple(one for one in overdue if one.audience == audience)
        for promise in mine:
            said = f"its day is over, and it is open: {promise.what}"
            flags[promise.peer_id] = (*flags.get(promise.peer_id, ()), said)
        for name, peers in (("farming pattern", state.farming), ("first contact", state.new_peers)):
            for peer in (peer for peer, where in peers.items() if where == audience):
                flags[peer] = (*flags.get(peer, ()), name)
        found.append(Part(audience=audience, flags=flags, overdue=mine))
    if not found and "manual" in fired:  # no event waits: the pass is about whoever was heard last
        newest = ties.store.ledger.newest_interactions(ties.config().cortex.context_window)
        if newest:
            audience = newest[0].audience
            found = [Part(audience=audience, flags={one.peer_id: () for one in newest if one.audience == audience})]
    return found


def fullest(events: Sequence[CortexEvent], most: int, first: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the audiences for a pass: those in `first`, then those with the most peer events; ties by name. Pure."""
    counts: dict[str, int] = {}
    for event in events:
        if event.peer_id:
            counts[event.audience] = counts.get(event.audience, 0) + 1
    ranked = sorted(counts, key=lambda audience: (-counts[audience], audience))
    return tuple(dict.fromkeys((*first, *ranked)))[:most]


def score(triggers: Sequence[str], events: Sequence[CortexEvent], beliefs: Sequence[Belief], now: datetime) -> int:
    """Return how much there is to reflect on; the model is asked from `WORTH_IT` on. Pure."""
    found = sum(_BY_TRIGGER.get(name, 0) for name in triggers)
    found += 2 * any(event.scope >= CRITICAL_SCOPE for event in events)
    ends = [belief.expires_at for belief in beliefs]
    return int(found + any(until is not None and now < until <= now + SOON for until in ends))


def is_farming(scopes: Sequence[int], trusts: Sequence[int] = ()) -> bool:
    """Return whether the last of these bursts is an outlier among the earlier ones. `trusts`: oldest first. Pure."""
    *before, newest = scopes or (0,)
    before = before[-WINDOW:]
    if len(before) < LEAST_BEFORE or newest < LEAST_SCOPE:
        return False
    recent = trusts[-TRUSTS:]
    if recent and recent[-1] < recent[0]:
        return False
    return newest >= OVER_MEDIAN * median(before) and newest >= OVER_MAX * max(before)


def evaluate(state: State, now: datetime, config: Thresholds) -> tuple[str, ...]:
    """Return every trigger that fires now, in the order of `TRIGGERS`. Pure; uses neither database nor model."""
    if state.retry_at and now < state.retry_at:
        return ()
    enough = islice((event for event in state.events if event.is_message), config.interaction_threshold - 1, None)
    holds = {
        "promise_timeout": state.next_overdue is not None and state.next_overdue < now,
        "farming": bool(state.farming),
        "interaction_count": any(enough),
        "new_peer": bool(state.new_peers),
        "timer": now - state.since >= timedelta(minutes=config.schedule_minutes)
        and any(event.peer_id for event in state.events),
    }
    return tuple([name for name in TRIGGERS if name in config.enabled and holds.get(name, False)])


def next_look(state: State, now: datetime, config: Thresholds) -> datetime | None:
    """Return the next time at which a trigger may fire without a new event; None = none. Pure."""
    moments: list[datetime] = []
    if "timer" in config.enabled and any(event.peer_id for event in state.events):
        moments.append(state.since + timedelta(minutes=config.schedule_minutes))
    if "promise_timeout" in config.enabled and state.next_overdue:
        moments.append(state.next_overdue + timedelta(milliseconds=1))
    if not moments:
        return state.retry_at if state.retry_at and state.retry_at > now else None
    soonest = min(moments)
    return max(soonest, state.retry_at) if state.retry_at else soonest


def backoff(failures: int, config: Thresholds) -> timedelta:
    """Return how long to hold triggers after consecutive failures: 1, 2, 4 … minutes, at most the schedule. Pure."""
    doubled: timedelta = LEAST_BACKOFF * 2 ** min(failures - 1, 20)
    return min(doubled, timedelta(minutes=config.schedule_minutes))


def thresholds_in_force(tuned: Sequence[Tuned], bases: Mapping[str, float]) -> dict[str, float]:
    """Return the threshold in force for each trigger; a trigger whose base setting changed starts over. Pure."""
    return {one.trigger: one.value for one in tuned if bases.get(one.trigger) == one.base}


def tune(before: Tuned | None, trigger: str, base: float, *, was_useful: bool) -> Tuned:
    """Count one cycle of a trigger; every tenth cycle may move its threshold. Pure."""
    if before is None or before.base != base:
        before = Tuned(trigger=trigger, base=base, value=base)
    useful = (*before.useful, was_useful)[-TUNED_OVER:]
    after = replace(before, useful=useful, cycles=before.cycles + 1)
    if after.cycles % TUNED_EVERY or trigger not in TUNABLE:
        return after
    share, value = sum(useful) / len(useful), after.value
    if LOW <= share <= HIGH:
        return after
    if trigger == "timer":
        value = value * 1.25 if share < LOW else value * 0.8
    else:
        value = value + 1 if share < LOW else value - 1
    low, high = MINUTES if trigger == "timer" else COUNTS
    return replace(after, value=max(low, min(high, value)))
