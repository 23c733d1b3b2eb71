"""The event that the psyche works on: its kinds and their claims, what was heard, its context and the gate's judgement.

A claim is what an event asks of attention before anything else is known. Whether a reply is owed is decided when a
message is accepted, never here. Source: the psyche design, section 2.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct, field

from claudius.perception import Kind
from claudius.psyche.personality import Kernel
from claudius.psyche_types import Arc, Edge, Numbers

Address = Literal["dm", "mention", "command", "reply", "thread", "named", "ambient", "self"]
Window = Literal["addressed", "thread", "ambient", "proactive"]
Outcome = Literal["think", "react", "ignore"]
Triviality = Literal["critical", "trivial", "significant", "moderate"]


class Claim(NamedTuple):
    """An event's base salience, the bonus for a person's stakes, and the cooldown window that applies."""

    base: float
    bonus: float
    window: Window


ADDRESSED = frozenset(("dm", "mention", "command", "reply"))
MESSAGES = frozenset((Kind.MESSAGE.value, Kind.MENTION.value, Kind.COMMAND.value))
OWN = frozenset(("promise_due", "directive", "scheduled", "tick", "silence", "news", "milestone"))
"""Kinds that come from the soul itself or its clock."""
SOUGHT = frozenset(("promise_due", "directive", "scheduled"))
"""Own kinds that somebody asked for; they count as addressed."""

NOTICED = frozenset(("tick", "silence"))
"""Own kinds that happen in no conversation of anybody's."""

_MESSAGE: dict[str, Claim] = {
    "dm": Claim(1.00, 0.30, "addressed"),
    "mention": Claim(1.00, 0.30, "addressed"),
    "command": Claim(1.00, 0.30, "addressed"),
    "reply": Claim(0.98, 0.30, "addressed"),
    "thread": Claim(0.45, 0.30, "thread"),
    "named": Claim(0.50, 0.20, "thread"),
    "ambient": Claim(0.15, 0.10, "ambient"),
}
_OWN: dict[str, Claim] = {
    "promise_due": Claim(1.00, 0.0, "addressed"),
    "directive": Claim(1.00, 0.0, "addressed"),
    "scheduled": Claim(1.00, 0.0, "addressed"),
    "tick": Claim(0.10, 0.0, "proactive"),
    "silence": Claim(0.10, 0.30, "proactive"),
    "news": Claim(0.30, 0.0, "proactive"),
    "milestone": Claim(1.00, 0.0, "proactive"),
}

SILENCE_EFFECTS = (0.12, 0.0, 0.0, 0.06, 0.0)
"""The effect of a long silence on the drives."""
FAILED_EFFECTS = (0.0, 0.0, 0.15, 0.0, 0.0)
"""The effect on the drives of an answer that was owed and failed."""
OVERRIDDEN_EFFECTS = (0.0, 0.12, 0.0, 0.0, 0.0)
"""The effect of being stopped in the middle of an answer."""
GLAD_REACTION = (0.2, 0.0, 0.3, 0.2, 0.0)
"""The axes of a positive reaction to a post of the soul; `SORE_REACTION` is a negative one. A removal negates."""
SORE_REACTION = (-0.2, -0.1, -0.3, -0.2, 0.0)
HIT = 0.35
"""The lowest match score at which an event is about an arc."""
MILESTONE, MILESTONE_REARMED = 0.80, 0.70
"""A drive or arc that rises past the first is a milestone; it rearms once it has fallen below the second."""


def claim(kind: str, address: str, level: float = 0.0) -> Claim:
    """Return the claim of an event; `level`: how much a milestone, or a silence, means by itself. Pure."""
    if kind in MESSAGES:
        return _MESSAGE[address]
    if kind == "milestone":
        return _OWN[kind]._replace(base=level**1.5)
    if kind == "silence":
        return _OWN[kind]._replace(base=max(_OWN[kind].base, level))
    if kind in _OWN:
        return _OWN[kind]
    return Claim(0.20 if kind == "join" else 0.15, 0.10, "ambient")


def is_addressed(kind: str, address: str) -> bool:
    """Return whether an event is addressed to the soul, as a message or a `SOUGHT` kind. Pure."""
    return address in ADDRESSED if kind in MESSAGES else kind in SOUGHT


class Weighing(Struct, frozen=True, kw_only=True):
    """The settings of the gate."""

    weights: tuple[float, ...] = (0.50, 0.15, 0.15, 0.15, 0.10)
    """Weights of salience, the strongest drive, the hottest arc, stakes, and spent energy (subtracted)."""
    threshold: float = 0.32
    window_thread_s: float = 60.0
    window_ambient_s: float = 300.0
    window_proactive_s: float = 21_600.0


class Heard(Struct, frozen=True, kw_only=True):
    """The classification of one text."""

    load: float = 0.0
    novelty: float = 0.3
    classes: frozenset[str] = frozenset()
    """Cue classes, of overheard English only: a weak hint, since no model has read it yet."""
    critical: frozenset[str] = frozenset()
    stems: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    is_question: bool = False
    is_trivial: bool = False
    """The whole text is a phrase or a sign that only acknowledges."""


NOTHING_HEARD = Heard()


class Happening(Struct, frozen=True, kw_only=True):
    """One event, classified."""

    kind: str
    address: str
    heard: Heard = NOTHING_HEARD
    level: float = 0.0
    """For a milestone: the level that rose."""
    mentions_other: bool = False
    has_attachments: bool = False


class EventContext(Struct, frozen=True, kw_only=True):
    """The context of an event that the numbers do not hold."""

    since_thought_s: float | None = None
    """Seconds since the last thought in this conversation; for proactive kinds, since the last unprompted post."""
    has_open_question: bool = False
    """The soul asked this person something, or something of theirs is open: this message may answer it."""
    can_speak: bool = True
    bot_streak: int = 0
    """Consecutive bot messages without a human one, this one included."""
    is_repeat: bool = False
    """The same person said nearly the same within ten minutes."""
    reacted_recently: bool = False
    """Computed only if a reaction is the most that may result."""
    can_react: bool = True
    is_first_contact: bool = False


class PsycheState(Struct, frozen=True, kw_only=True):
    """The psyche's state after the event, as the gate sees it."""

    numbers: Numbers
    edge: Edge
    arcs: tuple[tuple[Arc, float], ...] = ()
    """The arcs that this event matches and that may be shown here, each with its match score."""
    kernel: Kernel = field(default_factory=Kernel)


class Judgement(Struct, frozen=True, kw_only=True):
    """The gate's decision and the values behind it."""

    outcome: Outcome
    m: float
    theta: float
    salience: float
    triviality: Triviality
    failed: tuple[str, ...]
    """Which of the four conditions do not hold: M, trivial, cooldown, choice."""
    choices: tuple[str, ...]
    parts: dict[str, float] = field(default_factory=dict)


class GateSettings(Struct, frozen=True, kw_only=True):
    """What attention needs to know of the soul and its settings."""

    kernel: Kernel
    """As compiled from soul.md, without drift."""
    soul_name: str
    """In lower case."""
    weighing: Weighing = field(default_factory=Weighing)
    max_arcs: int = 12
    acknowledges_by_emoji: bool = False
    milestone: str = ""
    """The text with which the soul tells itself that a level has grown strong; empty = no milestones."""
    can_acknowledge: bool = True
    """The soul has lines for acknowledging a message without thought."""
