"""The value types of the ledger and the cortex: peers, interactions, promises, assessments, beliefs and cycles."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct, field

from claudius.perception import Perception
from claudius.provider import Usage

Direction = Literal["in", "out"]
BeliefState = Literal["active", "pinned", "disputed"]
Author = Literal["cortex", "inline"]
Outcome = Literal["done", "timeout", "parse_error", "provider_error", "skipped", "triaged"]
OwnersHand = Literal["pin", "dispute", "delete"]

PREVIEW_CHARS = 120
LEAST_AFFIRMED, LEAST_SPAN = 3, timedelta(hours=24)
"""How often, and over how long, a belief must be affirmed to become a lesson."""
TRAJECTORY = 5
"""How many of a peer's newest assessments form the trajectory."""


class Interaction(Struct, frozen=True, kw_only=True):
    """One ledger line: a peer's message or ours to them; `reaction`: how ours was received, well 1, badly -1."""

    peer_id: str
    at: datetime
    direction: Direction
    channel_type: str
    conversation: str
    audience: str
    turn: str
    scope: int = 0
    """How much was asked: words, requests, risk, attachments."""
    preview: str = ""
    reaction: int = 0
    name: str = ""
    is_bot: bool = False
    id: int = 0
    """The row's id in the ledger; 0 = not stored yet."""


class Promise(Struct, frozen=True, kw_only=True):
    """An open matter of a peer's life that was to be done by a certain day."""

    id: int
    """Of the row in `matter`."""
    peer_id: str
    what: str
    audience: str
    overdue_at: datetime
    """The day after, at noon UTC: then that day is over everywhere."""


class Proposal(Struct, frozen=True, kw_only=True):
    """An assessment to be recorded."""

    peer_id: str
    trust: int
    rationale: str
    author: Author = "cortex"
    sources: tuple[str, ...] | None = None
    """The audiences that it was learned in; None = every audience in which this peer was heard."""
    limit: int | None = None
    """If set, trust may differ by at most this much from the last one of these sources; None = already clamped."""


class Noted(Struct, frozen=True, kw_only=True):
    """What one turn adds to the ledger. `reaction`: which of our turns was reacted to, and how it was received."""

    interactions: tuple[Interaction, ...] = ()
    proposal: Proposal | None = None
    reaction: tuple[str, int] | None = None


class Assessment(Struct, frozen=True, kw_only=True):
    """The soul's assessment of a peer at one time. It is never changed afterwards."""

    peer_id: str
    info_score: int
    trust: int
    rationale: str
    created_at: datetime
    author: Author = "cortex"
    sources: tuple[str, ...] = ()
    id: int = 0


class Peer(Struct, frozen=True, kw_only=True):
    """One peer as an audience may see them: counts, and the newest assessments that may be shown there."""

    peer_id: str
    name: str
    messages: int
    info_score: int
    first_at: datetime
    last_at: datetime
    is_bot: bool = False
    assessments: tuple[Assessment, ...] = ()
    """Newest first, at most `TRAJECTORY`."""

    @property
    def newest(self) -> Assessment | None:
        """The assessment in force."""
        return self.assessments[0] if self.assessments else None

    @property
    def trajectory(self) -> tuple[int, ...]:
        """The latest trust values, oldest first."""
        return tuple(one.trust for one in reversed(self.assessments))


class Belief(Struct, frozen=True, kw_only=True):
    """A line of advice from the cortex for the soul. It expires unless a later cycle affirms it."""

    key: str
    value: str
    rationale: str
    source_cycle: int
    created_at: datetime
    ttl_minutes: float = 120.0
    peer_id: str | None = None
    sources: tuple[str, ...] = ()
    audience: str = ""
    """The audience whose cycles formed it; each audience may hold one belief per key."""
    state: BeliefState = "active"
    evidence: tuple[int, ...] = ()
    """The interactions that its cycle read."""

    def is_expired(self, now: datetime) -> bool:
        """Return whether it has expired; a pinned or disputed belief never does."""
        return self.state == "active" and now - self.created_at > timedelta(minutes=self.ttl_minutes)

    @property
    def expires_at(self) -> datetime | None:
        """When it expires; None = never."""
        return self.created_at + timedelta(minutes=self.ttl_minutes) if self.state == "active" else None


class Lesson(Struct, frozen=True, kw_only=True):
    """A belief that was affirmed repeatedly; a candidate until it was affirmed often enough, over long enough."""

    key: str
    value: str
    audience: str
    first_at: datetime
    last_at: datetime
    affirmed: int
    sources: tuple[str, ...] = ()
    peer_id: str | None = None

    @property
    def is_learned(self) -> bool:
        """Whether it was affirmed often enough, over long enough."""
        return self.affirmed >= LEAST_AFFIRMED and self.last_at - self.first_at >= LEAST_SPAN


class Reflection(Struct, frozen=True, kw_only=True):
    """The record of one cycle of the cortex, as kept in its history."""

    cycle: int
    at: datetime
    trigger: str
    audience: str
    outcome: Outcome
    duration_s: float
    summary: str = ""
    sources: tuple[str, ...] = ()
    peers_assessed: tuple[str, ...] = ()
    beliefs_added: tuple[str, ...] = ()
    beliefs_reaffirmed: tuple[str, ...] = ()
    beliefs_expired: tuple[str, ...] = ()
    directives: tuple[str, ...] = ()
    evidence: tuple[int, ...] = ()
    """The interactions that it read."""
    alignment: str = ""
    """Its verdict on the soul's own conduct: aligned, drift, or empty."""
    usage: Usage = field(default_factory=Usage)


class Directive(Struct, frozen=True, kw_only=True):
    """Something that the cortex suggests the soul say: heard once, as a perception of its own."""

    peer_id: str
    action: str
    text: str
    perception: Perception


class Tuned(Struct, frozen=True, kw_only=True):
    """A trigger's tuning state: the value in force, its base value, and which cycles were useful."""

    trigger: str
    base: float
    value: float
    useful: tuple[bool, ...] = ()
    """Whether each of this trigger's latest cycles was useful, oldest first."""
    cycles: int = 0


class Reflected(Struct, frozen=True, kw_only=True):
    """Everything that one cycle changes, applied in one transaction or not at all."""

    record: Reflection
    proposals: tuple[Proposal, ...] = ()
    put: tuple[Belief, ...] = ()
    """Beliefs that are new, changed or affirmed."""
    gone: tuple[tuple[str, str], ...] = ()
    """(key, audience) of beliefs that expired or were dropped to make room."""
    lessons: tuple[Lesson, ...] = ()
    lost: tuple[tuple[str, str], ...] = ()
    """(key, audience) of lessons and candidates that were dropped to make room."""
    directives: tuple[Directive, ...] = ()
    seen: tuple[str, ...] = ()
    """Peers whose interactions in the record's audience, up to `upto`, need no further cycle."""
    upto: int = 0
    overdue: tuple[int, ...] = ()
    """Matters that this cycle has handled as overdue."""
    tuned: tuple[Tuned, ...] = ()
    history_size: int = 50
    was_useful: bool = False
    """Whether it changed a trust, brought a new or changed belief, or gave a directive."""


class Recorded(Struct, frozen=True, kw_only=True):
    """The outcome of recording a cycle's assessments: those written, and why others were not."""

    assessments: tuple[Assessment, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    """Peer → what went wrong."""


class Known(Struct, frozen=True, kw_only=True):
    """What a cycle may read about one peer."""

    peer: Peer
    timeline: tuple[Interaction, ...]
    """Newest last."""
    conversation: str = ""
    """The latest conversation with them in this audience; empty = none."""
    directed_at: datetime | None = None
    """When the last directive about this peer was given."""


class Grounds(Struct, frozen=True, kw_only=True):
    """Everything that one cycle may read: one snapshot, limited to what its audience may see."""

    audience: str
    peers: tuple[Known, ...] = ()
    beliefs: tuple[Belief, ...] = ()
    every_belief: tuple[Belief, ...] = ()
    """The beliefs of all audiences, which the cap counts; only code reads these."""
    lessons: tuple[Lesson, ...] = ()
    every_lesson: tuple[Lesson, ...] = ()
    summary: str = ""
    """The summary of the last cycle that may be read here."""
    summary_sources: tuple[str, ...] = ()
    tuned: tuple[Tuned, ...] = ()
    cycle: int = 1
    """The number of the next cycle."""
    upto: int = 0
    """The id of the newest interaction in the ledger at this moment."""
