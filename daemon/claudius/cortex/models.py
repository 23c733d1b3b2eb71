"""What the second mind tells its observers once a cycle is written: payloads of these keys and no other."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct, field

from claudius.config import Config, Cortex
from claudius.ledger_types import Assessment, Belief, Directive, Grounds, Promise, Recorded, Reflected, Reflection
from claudius.memory.ledger_store import Ledger
from claudius.provider import Provider, Usage
from claudius.soul import SoulText

log = logging.getLogger("claudius.cortex")


def tell(ties: Ties, reflected: Reflected, recorded: Recorded) -> None:
    """Tell what a cycle came to, and have the conversations look that were given a directive."""
    record = reflected.record
    for peer, reason in recorded.failed.items():
        log.error("the assessment of %s in cycle %d is not recorded: %s", peer, record.cycle, reason)
    for one in recorded.assessments:
        ties.emit("cortex.after_assess", after_assess(one, record.cycle))
    for directive in reflected.directives:
        ties.emit("cortex.after_directive", after_directive(directive, record.cycle))
        ties.wake(directive.perception.conversation)
    ties.emit("cortex.after_reflect", after_reflect(record))
    log.info(
        "cycle %d: %s, %.1f s, %d assessed, %d beliefs, %d directives",
        record.cycle,
        record.trigger,
        record.duration_s,
        len(recorded.assessments),
        len(reflected.put),
        len(reflected.directives),
    )


def after_assess(one: Assessment, cycle: int) -> dict[str, Any]:
    """Return the payload of `cortex.after_assess`. Pure."""
    return {
        "peer_id": one.peer_id,
        "trust": one.trust,
        "rationale": one.rationale,
        "info_score": one.info_score,
        "cycle": cycle,
    }


def after_directive(directive: Directive, cycle: int) -> dict[str, Any]:
    """Return the payload of `cortex.after_directive`. Pure."""
    return {
        "cycle": cycle,
        "directive_id": directive.perception.key,
        "peer_id": directive.peer_id,
        "action": directive.action,
        "text": directive.text,
    }


def after_reflect(record: Reflection) -> dict[str, Any]:
    """Return the payload of `cortex.after_reflect`. Pure."""
    return {
        "cycle": record.cycle,
        "trigger": record.trigger,
        "peers_assessed": list(record.peers_assessed),
        "beliefs_added": list(record.beliefs_added),
        "beliefs_reaffirmed": list(record.beliefs_reaffirmed),
        "beliefs_expired": list(record.beliefs_expired),
        "summary": record.summary,
        "elapsed_seconds": record.duration_s,
    }


Event = Mapping[str, Any]
"""One thing observed: `type`, `timestamp`, `audience`, `turn`, and what its hook carries."""
Verdict = Literal["approve", "deny", "conditional"]

TRIGGERS = ("promise_timeout", "farming", "interaction_count", "new_peer", "timer", "manual")
"""In the order in which a pass is named after them."""


class Thresholds(Struct, frozen=True, kw_only=True):
    """What decides when to reflect."""

    enabled: frozenset[str]
    schedule_minutes: float = 30.0
    interaction_threshold: int = 5

    @classmethod
    def of(cls, settings: Cortex, tuned: Mapping[str, float] | None = None) -> Thresholds:
        """Take them from the settings, `interaction_count: n` among the triggers included, and from what was tuned."""
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


class State(Struct, kw_only=True):
    """What the triggers look at, all of it in memory."""

    since: datetime
    """When the last cycle began, or the second mind woke."""
    events: list[Event] = field(default_factory=list)
    promises: tuple[Promise, ...] = ()
    """Theirs that are open; set by `watch`."""
    next_overdue: datetime | None = None
    """When the first of them counts as broken."""
    farming: Mapping[str, str] = field(default_factory=dict)
    """Peer whose newest burst stands out → the audience it came in."""
    new_peers: Mapping[str, str] = field(default_factory=dict)
    """Peer heard for the first time → the audience they were heard in."""
    retry_at: datetime | None = None
    """After a failure: nothing fires before."""
    failures: int = 0

    def watch(self, promises: Iterable[Promise]) -> None:
        """Keep an eye on these promises, and on no others."""
        self.promises = tuple(promises)
        self.next_overdue = min((promise.overdue_at for promise in self.promises), default=None)


class Output(Struct, frozen=True, kw_only=True):
    """What the model said, read strictly. Lists hold the entries as they came, objects only."""

    summary: str
    assessments: tuple[Mapping[str, Any], ...] = ()
    beliefs: tuple[Mapping[str, Any], ...] = ()
    directives: tuple[Mapping[str, Any], ...] = ()
    alignment: Mapping[str, Any] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()
    """What was left out, in words for the log."""


class Part(Struct, frozen=True, kw_only=True):
    """One audience's share of a pass."""

    audience: str
    events: tuple[Event, ...] = ()
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Peer → why code points them out."""
    overdue: tuple[Promise, ...] = ()


class Document(Struct, frozen=True, kw_only=True):
    """What one cycle shows the model, and what that stands on."""

    content: Mapping[str, Any]
    peers: frozenset[str]
    """Peers that it shows, so that may be judged."""
    evidence: tuple[int, ...]
    sources: tuple[str, ...]
    """The audiences of everything that was read."""


class Cycle(Struct, frozen=True, kw_only=True):
    """One cycle as it stands when it begins."""

    number: int
    triggers: tuple[str, ...]
    part: Part
    grounds: Grounds
    document: Document
    start: Mapping[str, int]
    """Each peer's trust as the pass began: what the budget of change is measured from."""
    at: datetime
    settings: Cortex

    @property
    def trigger(self) -> str:
        """The trigger that it is named after."""
        return self.triggers[0]


class Answer(Struct, frozen=True, kw_only=True):
    """What the model said, and what it cost."""

    text: str
    usage: Usage
    provider: str = ""
    model: str = ""
    ms: int = 0


class Changed(Struct, frozen=True, kw_only=True):
    """What a cycle does to the beliefs."""

    put: tuple[Belief, ...] = ()
    gone: tuple[tuple[str, str], ...] = ()
    added: tuple[str, ...] = ()
    reaffirmed: tuple[str, ...] = ()
    expired: tuple[str, ...] = ()
    revised: tuple[str, ...] = ()


class Ties(Struct, frozen=True, kw_only=True):
    """What the second mind lives on. Built once, in `compose`; tests build their own."""

    store: Ledger
    voice: Callable[[str], Provider]
    """The provider of that name; the empty one is the first mind's. Raises: ClaudiusError."""
    soul: Callable[[], SoulText]
    config: Callable[[], Config]
    """The configuration in force now: read at the start of each cycle."""
    clock: Callable[[], datetime]
    nonce: Callable[[], str]
    emit: Callable[[str, Mapping[str, Any]], None]
    """Tells the observers of an event; never raises."""
    may_spend: Callable[[], Awaitable[bool]]
    """Whether the day's budget still has room for reflection."""
    wake: Callable[[str], None] = lambda _: None
    """Has a conversation look at what waits for it."""
    secrets: tuple[str, ...] = ()
    """Values that no prompt may hold."""


class Ended(Struct, frozen=True, kw_only=True):
    """How one cycle ended: with changes, or without."""

    record: Reflection
    reflected: Reflected | None = None
    peers: frozenset[str] = frozenset()
    """Peers that the cycle saw."""


class Counsel(Struct, frozen=True, kw_only=True):
    """The answer to a consultation."""

    verdict: Verdict
    reasoning: str
    conditions: tuple[str, ...] = ()
    suggested_response: str = ""
    timed_out: bool = False
