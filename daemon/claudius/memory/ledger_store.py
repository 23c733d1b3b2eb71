"""The part of the `Store` protocol for the ledger and the cortex's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

from claudius.intent import Call
from claudius.ledger_types import (
    Author,
    Grounds,
    Interaction,
    OwnersHand,
    Peer,
    Promise,
    Recorded,
    Reflected,
    Reflection,
)


class Ledger(Protocol):
    """Peers, and what the soul makes of them. Reads are filtered for an audience."""

    async def record_assessment(
        self,
        peer_id: str,
        trust: int,
        rationale: str,
        *,
        now: datetime,
        author: Author = "cortex",
        sources: Sequence[str] | None = None,
    ) -> int:
        """Record one assessment, with its information score computed here, and return its id.

        This is the only way to add one. `sources` None means every audience that this peer was heard in. Raises:
        ValueError for an unknown peer, a trust that is not a whole number from -10 to 10, or an empty rationale.
        """
        ...

    async def list_peers(self, audience: str, since: datetime | None = None, limit: int = 1000) -> Sequence[Peer]:
        """Return the peers dealt with since then, latest first, as far as this audience may know of it."""
        ...

    async def query_peer(self, peer_id: str, audience: str) -> Peer | None:
        """Return one peer as an audience may see them."""
        ...

    async def timeline(self, peer_id: str, limit: int, audience: str) -> Sequence[Interaction]:
        """Return a peer's newest interactions that an audience may read, oldest first."""
        ...

    async def get_peer_assessment_summary(self, peer_id: str, audience: str) -> Mapping[str, Any] | None:
        """Return what an audience may know of a peer, as a plain mapping."""
        ...

    async def latest_trust(self) -> Mapping[str, int]:
        """Return each assessed peer's newest trust. Unfiltered: it must not appear in a prompt."""
        ...

    async def unreflected(self, limit: int) -> Sequence[Interaction]:
        """Return the newest interactions that no cycle has processed, oldest first."""
        ...

    async def newest_interactions(self, limit: int) -> Sequence[Interaction]:
        """Return the newest interactions of all peers, newest first."""
        ...

    async def are_noted(self, turns: Sequence[str]) -> bool:
        """Return whether every one of these turns is committed to the ledger."""
        ...

    async def open_promises(self, limit: int = 500) -> Sequence[Promise]:
        """Return peers' promises that are neither kept nor broken, soonest first."""
        ...

    async def inbound(self, peer_id: str, limit: int) -> tuple[Sequence[Interaction], Sequence[int]]:
        """Return a peer's newest messages and newest trusts, each oldest first. For code only, never for a prompt."""
        ...

    async def grounds(self, audience: str, peers: Sequence[str], window: int) -> Grounds:
        """Read, in one snapshot, everything that a cycle in this audience may know of these peers."""
        ...

    async def reflect(self, reflected: Reflected) -> Recorded:
        """Apply a cycle in one transaction; repeating it changes nothing.

        An invalid assessment is skipped; the rest is applied.
        """
        ...

    async def keep_reflection(self, record: Reflection, history_size: int) -> None:
        """Keep the record of a cycle that changed nothing."""
        ...

    async def set_belief(self, key: str, hand: OwnersHand) -> int:
        """Pin, dispute or delete a belief for the owner; return how many rows had that key."""
        ...

    def book(self, job: str, call: Call, at: datetime) -> None:
        """Record the cost of a call that belongs to no turn, under a name that is used once. Not awaited."""
        ...


class LedgerRecords(Protocol):
    """What commands read of the ledger; the owner sees everything."""

    def peers(self) -> Sequence[Mapping[str, Any]]:
        """Return every peer with the newest assessment, latest first."""
        ...

    def peer(self, peer: str) -> Mapping[str, Any] | None:
        """Return one peer (by id or unambiguous name) with every assessment and the newest part of the timeline."""
        ...

    def beliefs(self, now: datetime) -> Mapping[str, Any]:
        """Return `{"last_reflection_at", "beliefs": [...]}`."""
        ...

    def reflections(self, most: int) -> Sequence[Mapping[str, Any]]:
        """Return the newest cycles, newest first."""
        ...
