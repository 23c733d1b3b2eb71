"""The nouns of the ledger and of the second mind: whom the soul deals with, and what it has come to think of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct, field

from claudius.perception import Perception
from claudius.provider import Usage

Direction = Literal["in", "out"]
Side = Literal["theirs", "mine"]
PromiseState = Literal["open", "kept", "overdue", "dropped"]
BeliefState = Literal["active", "pinned", "disputed"]
Author = Literal["cortex", "inline"]
Outcome = Literal["done", "timeout", "parse_error", "provider_error", "skipped", "triaged"]
OwnersHand = Literal["pin", "dispute", "delete"]

PREVIEW_CHARS = 120
LEAST_AFFIRMED, LEAST_SPAN = 3, timedelta(hours=24)
"""How often, and over how long, a belief is affirmed before it is a lesson."""
TRAJECTORY = 5
"""How many of a peer's newest assessments are looked at together."""


class Interaction(Struct, frozen=True, kw_only=True):
    """One line of a message of a peer, or of ours to them; `reaction`: how ours was taken, gladly 1, sorely -1."""

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
    """As the ledger numbers it; 0 = not kept yet."""


class Promise(Struct, frozen=True, kw_only=True):
    """Something said to be done by a time. It is overdue once its grace has passed too."""

    peer_id: str
    side: Side
    what: str
    made_at: datetime
    due_at: datetime
    grace_s: float
    turn: str
    conversation: str
    audience: str
    stems: tuple[str, ...] = ()
    """What it is about; a later message that shares one of them keeps it."""
    state: PromiseState = "open"
    plan: int = 0
    """The plan that brings it up at its time; 0 = there is none."""
    id: int = 0

    @property
    def overdue_at(self) -> datetime:
        """The instant after which it counts as broken."""
        return self.due_at + timedelta(seconds=self.grace_s)


class Proposal(Struct, frozen=True, kw_only=True):
    """An assessment to be recorded."""

    peer_id: str
    trust: int
    rationale: str
    author: Author = "cortex"
    sources: tuple[str, ...] | None = None
    """The audiences it was learned in; None = every one that this peer was heard in."""
    limit: int | None = None
    """Where it is set, trust is held to so many points around the last one of these sources; None = clamped already."""


class Noted(Struct, frozen=True, kw_only=True):
    """What one turn adds to the ledger. `reaction`: to which turn of ours, and how it was taken."""

    interactions: tuple[Interaction, ...] = ()
    promises: tuple[Promise, ...] = ()
    delivers: bool = False
    """The speaker brought something: a file, a link, or the words that say so."""
    stems: tuple[str, ...] = ()
    """What the speaker's message was about."""
    proposal: Proposal | None = None
    reaction: tuple[str, int] | None = None


class Assessment(Struct, frozen=True, kw_only=True):
    """What the soul once thought of a peer. Never changed afterwards."""

    peer_id: str
    info_score: int
    trust: int
    rationale: str
    created_at: datetime
    author: Author = "cortex"
    sources: tuple[str, ...] = ()
    id: int = 0


class Peer(Struct, frozen=True, kw_only=True):
    """One peer as an audience may see them: what code counted, and the newest assessments that may stand there."""

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
        """The last trusts, oldest first."""
        return tuple(one.trust for one in reversed(self.assessments))


class Belief(Struct, frozen=True, kw_only=True):
    """A line of counsel of the second mind for the first. It runs out unless a later cycle affirms it."""

    key: str
    value: str
    rationale: str
    source_cycle: int
    created_at: datetime
    ttl_minutes: float = 120.0
    peer_id: str | None = None
    sources: tuple[str, ...] = ()
    audience: str = ""
    """In whose cycles it was formed: one key may stand once in each."""
    state: BeliefState = "active"
    evidence: tuple[int, ...] = ()
    """The interactions that its cycle read."""

    def is_expired(self, now: datetime) -> bool:
        """Tell whether it has run out; a pinned or disputed one never does."""
        return self.state == "active" and now - self.created_at > timedelta(minutes=self.ttl_minutes)

    @property
    def expires_at(self) -> datetime | None:
        """When it runs out; None = never."""
        return self.created_at + timedelta(minutes=self.ttl_minutes) if self.state == "active" else None


class Lesson(Struct, frozen=True, kw_only=True):
    """A belief that kept being affirmed. Before it has been often and long enough it is only a candidate."""

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
        """It was affirmed often and long enough."""
        return self.affirmed >= LEAST_AFFIRMED and self.last_at - self.first_at >= LEAST_SPAN


class Reflection(Struct, frozen=True, kw_only=True):
    """One cycle of the second mind, as history keeps it."""

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
    """Something that the second mind would have the first consider saying: heard once, as its own perception."""

    peer_id: str
    action: str
    text: str
    perception: Perception


class Tuned(Struct, frozen=True, kw_only=True):
    """How a trigger has tuned itself: the value in force, what it started from, and which cycles proved useful."""

    trigger: str
    base: float
    value: float
    useful: tuple[bool, ...] = ()
    """The last cycles of this trigger, oldest first."""
    cycles: int = 0


class Reflected(Struct, frozen=True, kw_only=True):
    """Everything that one cycle changes: applied in one transaction, or not at all."""

    record: Reflection
    proposals: tuple[Proposal, ...] = ()
    put: tuple[Belief, ...] = ()
    """Beliefs that are new, changed or affirmed."""
    gone: tuple[tuple[str, str], ...] = ()
    """(key, audience) of beliefs that ran out or made room."""
    lessons: tuple[Lesson, ...] = ()
    lost: tuple[tuple[str, str], ...] = ()
    """(key, audience) of lessons and candidates that made room."""
    directives: tuple[Directive, ...] = ()
    seen: tuple[str, ...] = ()
    """Peers whose interactions in the record's audience, up to `upto`, need no further cycle of their own."""
    upto: int = 0
    overdue: tuple[int, ...] = ()
    """Promises that this cycle has taken up as broken."""
    tuned: tuple[Tuned, ...] = ()
    history_size: int = 50
    was_useful: bool = False
    """It moved a trust, brought a new or changed belief, or a directive."""


class Recorded(Struct, frozen=True, kw_only=True):
    """What became of a cycle's assessments: those that were written, and why others were not."""

    assessments: tuple[Assessment, ...] = ()
    failed: Mapping[str, str] = field(default_factory=dict)
    """Peer → what went wrong."""


class Known(Struct, frozen=True, kw_only=True):
    """What a cycle may read of one peer."""

    peer: Peer
    timeline: tuple[Interaction, ...]
    """Newest last."""
    conversation: str = ""
    """Where they were last dealt with in this very audience; empty = nowhere."""
    directed_at: datetime | None = None
    """When the last directive about this peer was given."""
    promises: tuple[Promise, ...] = ()
    """Theirs that are open or overdue."""


class Grounds(Struct, frozen=True, kw_only=True):
    """Everything that one cycle may read, in one snapshot, within what its audience may see."""

    audience: str
    peers: tuple[Known, ...] = ()
    beliefs: tuple[Belief, ...] = ()
    every_belief: tuple[Belief, ...] = ()
    """The whole set, of all audiences: what the cap counts. Only code looks at these."""
    lessons: tuple[Lesson, ...] = ()
    every_lesson: tuple[Lesson, ...] = ()
    summary: str = ""
    """The last cycle's that may be read here."""
    summary_sources: tuple[str, ...] = ()
    tuned: tuple[Tuned, ...] = ()
    cycle: int = 1
    """The number that the next cycle has."""
    upto: int = 0
    """The newest interaction of the ledger at this moment."""
