"""The value types of the cortex."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

from claudius.config.schema import Config, CortexSettings
from claudius.ledger_types import Belief, Grounds, Promise, Reflected, Reflection
from claudius.memory.store import Store
from claudius.observed import Observed
from claudius.provider import Provider, Usage
from claudius.soul import SoulText


class CortexEvent(Struct, frozen=True, kw_only=True):
    """One observed event that waits for a cycle; it holds no words."""

    timestamp: datetime
    audience: str
    turn: str
    direction: Literal["in", "out", ""] = ""
    """Whether it is a message of a peer or what was said to one; empty = a model call."""
    peer_id: str = ""
    channel_type: str = ""
    scope: int = 0
    tokens: int = 0

    @property
    def is_message(self) -> bool:
        """Whether it is an external message."""
        return self.direction == "in"


TRIGGERS = ("promise_timeout", "farming", "interaction_count", "new_peer", "timer", "manual")
"""Trigger names, in order of precedence: a pass is named after the first that fired."""


class Thresholds(Struct, frozen=True, kw_only=True):
    """The thresholds that decide when to reflect."""

    enabled: frozenset[str]
    schedule_minutes: float = 30.0
    interaction_threshold: int = 5

    @classmethod
    def of(cls, settings: CortexSettings, tuned: Mapping[str, float] | None = None) -> Thresholds:
        """Build thresholds from the settings (including a trigger `interaction_count: n`) and the tuned values."""
        minutes = settings.reflection_interval or settings.schedule_minutes
        count = settings.interaction_threshold
        names = set()
        for written in settings.triggers:
            name, _, number = written.replace("=", ":").partition(":")
            names.add(name.strip())
            if name.strip() == "interaction_count" and number.strip().isdigit():
                count = max(1, int(number))
        tuned = tuned or {}
        return cls(
            enabled=frozenset(names),
            schedule_minutes=tuned.get("timer", minutes),
            interaction_threshold=round(tuned.get("interaction_count", count)),
        )

    @property
    def bases(self) -> Mapping[str, float]:
        """The base values of the tunable triggers."""
        return {"timer": self.schedule_minutes, "interaction_count": float(self.interaction_threshold)}


class State(Struct, kw_only=True):
    """What the triggers evaluate; held in memory only."""

    since: datetime
    """When the last cycle began, or when the cortex started."""
    events: list[CortexEvent] = field(default_factory=list)
    promises: tuple[Promise, ...] = ()
    """What peers were to have done by a day; set by `watch`."""
    next_overdue: datetime | None = None
    """When the first of them becomes overdue."""
    farming: Mapping[str, str] = field(default_factory=dict)
    """Peer whose newest burst is an outlier → the audience it came in."""
    new_peers: Mapping[str, str] = field(default_factory=dict)
    """Peer heard for the first time → the audience in which they were heard."""
    retry_at: datetime | None = None
    """After a failure, no trigger fires before this time."""
    failures: int = 0

    def watch(self, promises: Iterable[Promise]) -> None:
        """Watch exactly these promises."""
        self.promises = tuple(promises)
        self.next_overdue = min((promise.overdue_at for promise in self.promises), default=None)


class Output(Struct, frozen=True, kw_only=True):
    """The parsed output of the model. Lists hold its entries in order, objects only."""

    summary: str
    assessments: tuple[Mapping[str, Any], ...] = ()
    beliefs: tuple[Mapping[str, Any], ...] = ()
    directives: tuple[Mapping[str, Any], ...] = ()
    alignment: Mapping[str, Any] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    """What was dropped, described for the log."""


class Part(Struct, frozen=True, kw_only=True):
    """One audience's share of a pass."""

    audience: str
    events: tuple[CortexEvent, ...] = ()
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Peer → why a trigger flagged them."""
    overdue: tuple[Promise, ...] = ()


class CycleDocument(Struct, frozen=True, kw_only=True):
    """What one cycle shows the model, and the sources it was built from."""

    content: Mapping[str, Any]
    peers: frozenset[str]
    """The peers that it shows; only these may be assessed."""
    evidence: tuple[int, ...]
    sources: tuple[str, ...]
    """The audiences of everything that was read."""


class Cycle(Struct, frozen=True, kw_only=True):
    """A cycle's state when it begins."""

    number: int
    triggers: tuple[str, ...]
    part: Part
    grounds: Grounds
    document: CycleDocument
    start: Mapping[str, int]
    """Each peer's trust at the start of the pass; the budget of change is measured from it."""
    at: datetime
    settings: CortexSettings

    @property
    def trigger(self) -> str:
        """The trigger that names the cycle."""
        return self.triggers[0]


class ModelAnswer(Struct, frozen=True, kw_only=True):
    """The model's answer and its cost."""

    text: str
    usage: Usage
    provider: str = ""
    model: str = ""
    ms: int = 0


class Changed(Struct, frozen=True, kw_only=True):
    """How a cycle changes the beliefs."""

    put: tuple[Belief, ...] = ()
    gone: tuple[tuple[str, str], ...] = ()
    added: tuple[str, ...] = ()
    reaffirmed: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()
    revised: tuple[str, ...] = ()


class Ties(Struct, frozen=True, kw_only=True):
    """The dependencies of the cortex. Built once, in `compose`; tests build their own."""

    store: Store
    voice: Callable[[str], Provider]
    """Return the provider of that name; an empty name means the soul's provider. Raises: ClaudiusError."""
    soul: Callable[[], SoulText]
    config: Callable[[], Config]
    """Return the configuration in force; read at the start of each cycle."""
    clock: Callable[[], datetime]
    nonce: Callable[[], str]
    emit: Callable[[Observed], None]
    """Emit an event to its observers; never raises."""
    may_spend: Callable[[], bool]
    """Whether the day's budget still allows a reflection."""
    wake: Callable[[str], None] = lambda _: None
    """Make a conversation check for pending perceptions."""
    secrets: Sequence[str] = ()
    """Values that no prompt may contain."""


class Ended(Struct, frozen=True, kw_only=True):
    """How one cycle ended, with or without changes."""

    record: Reflection
    reflected: Reflected | None = None
    peers: frozenset[str] = frozenset()
    """The peers that the cycle saw."""


class CycleTally(Struct):
    """What the cycles of this process came to, for its metrics."""

    cycles: dict[tuple[str, str], int] = field(default_factory=dict)
    """(trigger, outcome) → how many."""
    assessments: int = 0
    seconds: float = 0.0
    """How long they took, together."""

    def count(self, record: Reflection) -> None:
        """Count one cycle."""
        key = record.trigger, record.outcome
        self.cycles[key] = self.cycles.get(key, 0) + 1
        self.assessments += len(record.peers_assessed)
        self.seconds += record.duration_s
