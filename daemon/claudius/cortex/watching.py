"""What the triggers need to know beyond the events themselves, read from the ledger off every reply's path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from claudius.cortex.models import Event
from claudius.cortex.observe import messages
from claudius.cortex.triggers import LEAST_SCOPE, WINDOW, is_farming
from claudius.ledger_types import Interaction
from claudius.memory.ledger import BURST_GAP_S
from claudius.memory.ledger_store import Ledger
from claudius.perception import SELF

LOOKED_AT = 300
"""A peer's newest messages that are looked at for bursts."""
MOST_KNOWN = 10_000


class Watch:
    """Looks for peers whose newest burst stands out, and for peers never met before; each is told once."""

    def __init__(self, ledger: Ledger) -> None:
        """Look into `ledger`."""
        self._ledger = ledger
        self._told: set[tuple[str, datetime]] = set()
        self._known: set[str] = set()

    async def farming(self, events: Sequence[Event]) -> Mapping[str, str]:
        """Return the peers whose newest burst stands out and was not told before, with its audience."""
        sizes: dict[str, int] = {}
        for event in messages(events):
            sizes[event["peer_id"]] = sizes.get(event["peer_id"], 0) + (event["scope"] or 0)
        found: dict[str, str] = {}
        for peer in (peer for peer, size in sizes.items() if size >= LEAST_SCOPE):
            heard, trusts = await self._ledger.inbound(peer, LOOKED_AT)
            runs = bursts(heard)[-WINDOW - 1 :]
            if runs and is_farming([sum(one.scope for one in run) for run in runs], trusts):
                begun = (peer, runs[-1][0].at)
                if begun not in self._told:
                    self._told.add(begun)
                    found[peer] = runs[-1][-1].audience
        return found

    async def new_peers(self, events: Sequence[Event]) -> Mapping[str, str]:
        """Return the peers whose first message is among these events, with its audience."""
        found: dict[str, str] = {}
        if len(self._known) > MOST_KNOWN:
            self._known.clear()
        for event in messages(events):
            peer_id = event["peer_id"]
            if peer_id in self._known:
                continue
            peer = await self._ledger.query_peer(peer_id, SELF)
            if peer is None:
                continue  # its turn is not committed yet: at the next look
            self._known.add(peer_id)
            if peer.messages <= 1:
                found[peer_id] = event["audience"]
        return found


def bursts(heard: Sequence[Interaction]) -> list[list[Interaction]]:
    """Group messages, oldest first, into runs with less than 120 s between two. Pure."""
    runs: list[list[Interaction]] = []
    for one in heard:
        if runs and (one.at - runs[-1][-1].at).total_seconds() < BURST_GAP_S:
            runs[-1].append(one)
        else:
            runs.append([one])
    return runs
