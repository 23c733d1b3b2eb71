"""Buffer events for the cortex, and read from the ledger what the triggers need beyond them.

What the cortex is shown of a turn becomes one small struct without words. The ledger is read in the cortex's task, so
it never delays a reply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from claudius.cortex.models import CortexEvent
from claudius.cortex.triggers import LEAST_SCOPE, WINDOW, is_farming
from claudius.ledger_types import Interaction
from claudius.memory.ledger import BURST_GAP_S, LedgerStore
from claudius.observed import MessageHeard, ModelAnswered, Sent
from claudius.perception import SELF

MOST_EVENTS = 2000
RETURNED_EVENTS = 500
"""The most events that are put back after a failed cycle."""
Seen = MessageHeard | Sent | ModelAnswered
OBSERVED: tuple[type[Seen], ...] = (MessageHeard, Sent, ModelAnswered)
"""What the cortex listens to."""
LOOKED_AT = 300
"""How many of a peer's newest messages are examined for bursts."""
MOST_KNOWN = 10_000


class Buffer:
    """The events that wait for a cycle. When the buffer is full, the oldest are dropped."""

    def __init__(self, bell: Callable[[], None] = lambda: None) -> None:
        self.events: list[CortexEvent] = []
        self.dropped = 0
        self._bell = bell

    def observe(self, seen: Seen) -> None:
        """Append one event, and ring."""
        if isinstance(seen, ModelAnswered):
            tokens = seen.tokens_in + seen.tokens_out
            event = CortexEvent(timestamp=seen.timestamp, audience=seen.audience, turn=seen.turn, tokens=tokens)
        else:
            event = CortexEvent(
                timestamp=seen.timestamp,
                audience=seen.audience,
                turn=seen.turn,
                direction="in" if isinstance(seen, MessageHeard) else "out",
                peer_id=seen.peer_id,
                channel_type=seen.channel_type,
                scope=seen.scope if isinstance(seen, MessageHeard) else 0,
            )
        self.events.append(event)
        self._trim()
        self._bell()

    def take(self, audience: str) -> tuple[CortexEvent, ...]:
        """Remove and return one audience's events; events that arrive later wait for the next cycle."""
        taken = tuple(event for event in self.events if event.audience == audience)
        self.events[:] = [event for event in self.events if event.audience != audience]
        return taken

    def give_back(self, events: Sequence[CortexEvent]) -> None:
        """Put the events of a failed cycle back, before those that arrived since."""
        self.events[:0] = events[-RETURNED_EVENTS:]
        self._trim()

    def restore(self, kept: Sequence[Interaction]) -> None:
        """After a restart, rebuild the events that no cycle has seen from ledger entries; oldest first."""
        known = {(event.turn, event.direction) for event in self.events}
        self.give_back(
            [
                CortexEvent(
                    timestamp=one.at,
                    audience=one.audience,
                    turn=one.turn,
                    direction=one.direction,
                    peer_id=one.peer_id,
                    channel_type=one.channel_type,
                    scope=one.scope,
                )
                for one in kept
                if (one.turn, one.direction) not in known
            ]
        )

    def _trim(self) -> None:
        over = len(self.events) - MOST_EVENTS
        if over > 0:
            del self.events[:over]
            self.dropped += over


def messages(events: Sequence[CortexEvent]) -> list[CortexEvent]:
    """Return the external messages among the events. Pure."""
    return [event for event in events if event.is_message]


class Watch:
    """Finds peers whose newest burst is an outlier and peers never met before; each is reported once."""

    def __init__(self, ledger: LedgerStore) -> None:
        self._ledger = ledger
        self._told: set[tuple[str, datetime]] = set()
        self._known: set[str] = set()

    def farming(self, events: Sequence[CortexEvent]) -> Mapping[str, str]:
        """Return the peers whose newest burst is an outlier and was not reported before, each with its audience."""
        sizes: dict[str, int] = {}
        for event in messages(events):
            sizes[event.peer_id] = sizes.get(event.peer_id, 0) + event.scope
        found: dict[str, str] = {}
        for peer in (peer for peer, size in sizes.items() if size >= LEAST_SCOPE):
            heard, trusts = self._ledger.inbound(peer, LOOKED_AT)
            runs = bursts(heard)[-WINDOW - 1 :]
            if runs and is_farming([sum(one.scope for one in run) for run in runs], trusts):
                begun = (peer, runs[-1][0].at)
                if begun not in self._told:
                    self._told.add(begun)
                    found[peer] = runs[-1][-1].audience
        return found

    def new_peers(self, events: Sequence[CortexEvent]) -> Mapping[str, str]:
        """Return the peers whose first message is among these events, each with its audience."""
        found: dict[str, str] = {}
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        for event in messages(events):
            peer_id = event.peer_id
            if peer_id in self._known:
                continue
            peer = self._ledger.query_peer(peer_id, SELF)
            if peer is None:
                continue  # its turn is not committed yet: retry at the next look
            self._known.add(peer_id)
            if peer.messages <= 1:
                found[peer_id] = event.audience
        return found


def bursts(heard: Sequence[Interaction]) -> list[list[Interaction]]:
    """Group messages, oldest first, into runs with gaps of less than 120 s. Pure."""
    runs: list[list[Interaction]] = []
    for one in heard:
        if runs and (one.at - runs[-1][-1].at).total_seconds() < BURST_GAP_S:
            runs[-1].append(one)
        else:
            runs.append([one])
    return runs
