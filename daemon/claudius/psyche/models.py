"""The nouns of one event inside the psyche: what happened, what stands around it, what is made of it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from claudius.psyche.classify import NOTHING_HEARD, Heard
from claudius.psyche.personality import Kernel
from claudius.psyche_types import Arc, Edge, Numbers

Outcome = Literal["think", "react", "ignore"]
Triviality = Literal["critical", "trivial", "significant", "moderate"]


class Weighing(Struct, frozen=True, kw_only=True):
    """The settings of the gate."""

    weights: tuple[float, ...] = (0.50, 0.15, 0.15, 0.15, 0.10)
    """Of salience, the most pressed drive, the hottest arc, stakes; and of spent energy, which is subtracted."""
    threshold: float = 0.32
    window_thread_s: float = 60.0
    window_ambient_s: float = 300.0
    window_proactive_s: float = 21_600.0


class Happening(Struct, frozen=True, kw_only=True):
    """One event, classified."""

    kind: str
    address: str
    heard: Heard = NOTHING_HEARD
    level: float = 0.0
    """Of a milestone: what rose."""
    mentions_other: bool = False
    has_attachments: bool = False


class Around(Struct, frozen=True, kw_only=True):
    """What stands around an event, which no number holds."""

    since_thought_s: float | None = None
    """Seconds since the last thought in this conversation; for proactive kinds, since the last unprompted post."""
    has_open_question: bool = False
    """The soul asked this person something, and this is what they say to it."""
    can_speak: bool = True
    bot_streak: int = 0
    """Messages of bots in a row, this one included, without a human."""
    is_repeat: bool = False
    """The same person said the same within ten minutes."""
    reacted_recently: bool = False
    """Looked at only where nothing but a nod may come of it."""
    can_react: bool = True
    is_first_contact: bool = False


class Standing(Struct, frozen=True, kw_only=True):
    """The substrate after the event, as the gate looks at it."""

    numbers: Numbers
    edge: Edge
    arcs: tuple[tuple[Arc, float], ...] = ()
    """The arcs that this event matches and that may be shown here, each with how well."""
    kernel: Kernel = field(default_factory=Kernel)


class Judgement(Struct, frozen=True, kw_only=True):
    """What the gate decides, and from what."""

    outcome: Outcome
    m: float
    theta: float
    salience: float
    triviality: Triviality
    failed: tuple[str, ...]
    """Which of the four conditions do not hold: M, trivial, cooldown, choice."""
    choices: tuple[str, ...]
    parts: dict[str, float] = field(default_factory=dict)
