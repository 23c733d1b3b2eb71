"""Buffer events for the cortex: observers on the hooks append one small dict each and return.

They never change the payload that they receive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from claudius.cortex.models import Event
from claudius.ledger_types import Interaction

MOST_EVENTS = 2000
RETURNED_EVENTS = 500
"""The most events that are put back after a failed cycle."""
OBSERVED: Mapping[str, tuple[str, ...]] = {
    "loop.on_message": ("peer_id", "direction", "channel_type", "scope"),
    "loop.after_send": ("peer_id", "direction", "channel_type"),
    "loop.after_llm": ("model", "tokens_in", "tokens_out"),
}
"""Hook → the fields that are kept, besides turn, audience and timestamp."""
MESSAGE = "loop.on_message"


class Buffer:
    """The events that wait for a cycle. When the buffer is full, the oldest are dropped."""

    def __init__(self, bell: Callable[[], None] = lambda: None) -> None:
        """Create an empty buffer that calls `bell` on each event."""
        self.events: list[Event] = []
        self.dropped = 0
        self._bell = bell

    def handlers(self) -> Mapping[str, Callable[[Mapping[str, Any]], None]]:
        """Return the observers by hook."""
        return {hook: self._observer(hook, fields) for hook, fields in OBSERVED.items()}

    def take(self, audience: str) -> tuple[Event, ...]:
        """Remove and return one audience's events; events that arrive later wait for the next cycle."""
        taken = tuple(event for event in self.events if event["audience"] == audience)
        self.events[:] = [event for event in self.events if event["audience"] != audience]
        return taken

    def give_back(self, events: Sequence[Event]) -> None:
        """Put the events of a failed cycle back, before those that arrived since."""
        self.events[:0] = events[-RETURNED_EVENTS:]
        self._trim()

    def restore(self, kept: Sequence[Interaction]) -> None:
        """After a restart, rebuild the events that no cycle has seen from ledger entries; oldest first."""
        known = {(event["turn"], event.get("direction")) for event in self.events}
        self.give_back([_event(one) for one in kept if (one.turn, one.direction) not in known])

    def _observer(self, hook: str, fields: tuple[str, ...]) -> Callable[[Mapping[str, Any]], None]:
        def observe(seen: Mapping[str, Any]) -> None:
            event = {name: seen.get(name) for name in fields}
            event |= {"type": hook, "timestamp": seen["timestamp"]}
            event |= {"audience": seen["audience"], "turn": seen["turn"]}
            self.events.append(event)
            self._trim()
            self._bell()

        return observe

    def _trim(self) -> None:
        over = len(self.events) - MOST_EVENTS
        if over > 0:
            del self.events[:over]
            self.dropped += over


def _event(one: Interaction) -> Event:
    is_in = one.direction == "in"
    return {
        "type": MESSAGE if is_in else "loop.after_send",
        "peer_id": one.peer_id,
        "direction": one.direction,
        "channel_type": one.channel_type,
        "timestamp": one.at,
        "audience": one.audience,
        "turn": one.turn,
        "scope": one.scope,
    }


def messages(events: Sequence[Event]) -> list[Event]:
    """Return the external messages among the events. Pure."""
    return [event for event in events if event["type"] == MESSAGE]


def dealings(events: Sequence[Event]) -> Iterator[Event]:
    """Yield the events in which the soul dealt with a peer; the others only record its own activity. Pure."""
    return (event for event in events if event.get("peer_id"))


def fullest(events: Sequence[Event], most: int, first: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the audiences for a pass: those in `first`, then those with the most peer events; ties by name. Pure."""
    counts: dict[str, int] = {}
    for event in dealings(events):
        counts[event["audience"]] = counts.get(event["audience"], 0) + 1
    ranked = sorted(counts, key=lambda audience: (-counts[audience], audience))
    return tuple(dict.fromkeys((*first, *ranked)))[:most]


def newest(events: Sequence[Event]) -> datetime | None:
    """Return the time of the last of these events; None if there are none. Pure."""
    return max((event["timestamp"] for event in events), default=None)
