"""The types for one event inside the psyche: the event, its context, the psyche's state and the gate's judgement."""

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
    """Weights of salience, the strongest drive, the hottest arc, stakes, and spent energy (subtracted)."""
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
    """For a milestone: the level that rose."""
    mentions_other: bool = False
    has_attachments: bool = False


class Around(Struct, frozen=True, kw_only=True):
    """The context of an event that the numbers do not hold."""

    since_thought_s: float | None = None
    """Seconds since the last thought in this conversation; for proactive kinds, since the last unprompted post."""
    has_open_question: bool = False
    """The soul asked this person something, and this message answers it."""
    can_speak: bool = True
    bot_streak: int = 0
    """Consecutive bot messages without a human one, this one included."""
    is_repeat: bool = False
    """The same person said nearly the same within ten minutes."""
    reacted_recently: bool = False
    """Computed only if a reaction is the most that may result."""
    can_react: bool = True
    is_first_contact: bool = False


class Standing(Struct, frozen=True, kw_only=True):
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
