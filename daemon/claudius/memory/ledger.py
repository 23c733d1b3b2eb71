"""The topic `store.ledger`: peers and what the soul thinks of them, and the pure rules of it.

The rules: evidence scores, limits on changes of trust, and how peers and beliefs appear in a prompt.

Source: seed 004; the cortex design, sections 1 and 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from math import floor, isfinite, log
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from claudius.ledger_types import (
    Author,
    Belief,
    Grounds,
    Interaction,
    OwnersHand,
    Peer,
    Promise,
    Recorded,
    Reflected,
    Reflection,
)

BURST_GAP_S = 120.0
"""A message within this many seconds of the previous one continues its burst."""
DAY_S = 86_400.0
TRUST = 10
MAX_TRUST_DELTA = 3
PEERS_TOKENS, BELIEFS_TOKENS = 150, 200
WHY_CHARS = 200


class Tally(Struct, frozen=True, kw_only=True):
    """Counters of a peer's inbound messages, updated with each message so that a score never rereads the messages."""

    messages: int = 0
    bursts: int = 0
    active_days: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    last_day: date | None = None

    def heard(self, at: datetime) -> Tally:
        """Count one more message. One that arrives late and out of order starts no new burst."""
        day = at.astimezone(UTC).date()
        if self.first_at is None or self.last_at is None or self.last_day is None:
            return Tally(messages=1, bursts=1, active_days=1, first_at=at, last_at=at, last_day=day)
        is_apart = (at - self.last_at).total_seconds() >= BURST_GAP_S
        is_new_day = day > self.last_day or day < self.first_at.astimezone(UTC).date()
        return replace(
            self,
            messages=self.messages + 1,
            bursts=self.bursts + is_apart,
            active_days=self.active_days + is_new_day,
            first_at=min(self.first_at, at),
            last_at=max(self.last_at, at),
            last_day=max(self.last_day, day),
        )

    def info_score(self, assessments: int) -> int:
        """Return how much evidence there is, 0 to 10, given the number of assessments of this peer."""
        span_s = (self.last_at - self.first_at).total_seconds() if self.first_at and self.last_at else 0.0
        return compute_info_score(self.bursts, span_s / DAY_S, self.active_days, assessments)


def together(tallies: Iterable[Tally]) -> Tally:
    """Add up tallies of several places. Pure.

    `active_days` is the largest of any one place: a day in two places is one day, and which days they were is not kept.
    """
    counted = list(tallies)
    if len(counted) == 1:
        return counted[0]
    return Tally(
        messages=sum(one.messages for one in counted),
        bursts=sum(one.bursts for one in counted),
        active_days=max((one.active_days for one in counted), default=0),
        first_at=min((one.first_at for one in counted if one.first_at), default=None),
        last_at=max((one.last_at for one in counted if one.last_at), default=None),
        last_day=max((one.last_day for one in counted if one.last_day), default=None),
    )


def tally(times: Iterable[datetime]) -> Tally:
    """Count messages given in any order. Pure."""
    counted = Tally()
    for at in sorted(set(times)):
        counted = counted.heard(at)
    return counted


def compute_info_score(bursts: int, span_days: float, active_days: int, assessments: int) -> int:
    """Score the amount of evidence on a peer from 0 to 10. Pure.

    The score says how much is known, not what it is worth.
    """
    if bursts <= 0:
        return 0
    often = _clamp(2.2 * log(1 + bursts) - 0.5, 0, 10)
    long = _clamp(0.4 + 1.5 * log(1 + min(span_days, 7 * active_days)), 0, 10)
    evidence = min((often + long) / 2, min(often, long) + 2) + min(0.5, 0.05 * assessments)
    score = int(_clamp(floor(evidence + 0.5), 1, 10))
    if span_days < 1:
        return 1 if bursts <= 2 else min(3, score)
    return score


def _clamp(value: float, low: float, high: float) -> float:
    return max(low, min(high, value))


def clamp_trust(last: int | None, proposed: Any, limit: int = MAX_TRUST_DELTA) -> int | None:
    """Limit a proposed trust to `limit` points around the last one, or around 0 if there is none. Pure.

    Returns None if the proposal is not a number.
    """
    wanted = _number(proposed)
    if wanted is None:
        return None
    around = 0 if last is None else last
    wanted = int(_clamp(wanted, -TRUST, TRUST))
    return int(_clamp(_clamp(wanted, around - limit, around + limit), -TRUST, TRUST))


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return round(number) if isfinite(number) else None


def check_proposal(trust: object, rationale: str) -> None:
    """Validate an assessment's trust and rationale. Raises: ValueError."""
    if isinstance(trust, bool) or not isinstance(trust, int) or not -TRUST <= trust <= TRUST:
        raise ValueError(f"trust is a whole number from -{TRUST} to {TRUST}, not {trust!r}")
    if not rationale.strip():
        raise ValueError("an assessment needs a rationale")


def format_peers(peers: Sequence[Peer], budget_tokens: int = PEERS_TOKENS) -> str:
    """Render peers from the ledger, one line each: the first always, the others while the budget lasts. Pure."""
    lines: list[str] = []
    left = 4 * budget_tokens
    for peer in peers:
        line = _line(peer)
        if lines and len(line) > left:
            break
        lines.append(line)
        left -= len(line) + 1
    return "\n".join(lines)


def format_beliefs(beliefs: Sequence[Belief], budget_tokens: int = BELIEFS_TOKENS) -> str:
    """Render beliefs for a prompt, one line each, while the budget lasts. Pure."""
    lines: list[str] = []
    left = 4 * budget_tokens
    for belief in beliefs:
        whom = f" ({belief.peer_id})" if belief.peer_id else ""
        line = f"- {belief.key}{whom}: {belief.value}"
        if len(line) > left:
            break
        lines.append(line)
        left -= len(line) + 1
    return "\n".join(lines)


def _line(peer: Peer) -> str:
    many = "1 message" if peer.messages == 1 else f"{peer.messages} messages"
    known = f"{many} since {peer.first_at.date()}; information {peer.info_score}/10"
    return f"- {_one_line(peer.name)} ({peer.peer_id}): {known}; {_assessed(peer)}"


def _assessed(peer: Peer) -> str:
    if not peer.assessments:
        return "not yet assessed"
    newest = peer.assessments[0]
    before = ", ".join(map(signed, peer.trajectory[:-1]))
    moved = f" (before {before})" if before else ""
    why = _one_line(newest.rationale)[:WHY_CHARS]
    return f"assessed trust {signed(newest.trust)}{moved} on {newest.created_at.date()}. Why: {why}"


def signed(trust: int) -> str:
    """Render a trust with its sign: `+3`, `0`, `-2`. Pure."""
    return f"{trust:+d}" if trust else "0"


def _one_line(text: str) -> str:
    return " ".join(text.split())


class LedgerStore(Protocol):
    """Peers, and what the soul thinks of them. Reads are filtered for an audience."""

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
        """Return the peers met since then, latest first, as far as this audience may know of it."""
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

    async def promised(self, person: str, audience: str) -> str:
        """Return what the soul promised a person in exactly this audience; empty if nothing is open."""
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
