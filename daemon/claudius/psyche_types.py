"""The value types of the psyche: mood, drives, energy, edges, arcs, appraisals.

Nothing is computed here; `claudius.psyche` does that. They are created and written in every turn, so they are structs.
Times are seconds since 1970 (UTC), so that differences are plain subtraction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self

import msgspec

FAULTS = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
)
"""The exceptions that a bug in the psyche or an unreadable row can raise; the soul continues without the psyche."""
DRIVES = ("relatedness", "autonomy", "competence", "novelty", "safety")
"""The five needs, in the order of `Numbers.drives`. A level is unmet need, in [0, 1]."""


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """The soul's own numbers at one time."""

    at_s: float
    energy: float = 0.85
    """In (0, 1]."""
    valence: float = 0.10
    """In [-1, 1]."""
    arousal: float = 0.30
    """In [0, 1]."""
    drives: tuple[float, float, float, float, float] = (0.35, 0.35, 0.35, 0.35, 0.35)
    bands: tuple[int, ...] = ()
    """The band that each number was last in, for the choice of words; empty = none yet."""
    mood: str = ""
    """The soul's state, in one of the five words of the soul state, after the last turn."""
    colour: str = ""
    """The mood of the newest appraisal that has one; it holds until `colour_until_s`, then the bands decide."""
    colour_until_s: float = 0.0
    company_s: float = 0.0
    """Since when nobody was there for the soul; what was only overheard counts in part. 0 = nobody ever was."""
    fresh_s: float = 0.0
    """Since when it has heard nothing new. 0 = it never heard anything."""
    hinted_s: float = 0.0
    """When the model's own mood word last changed a number."""
    high: tuple[str, ...] = ()
    """Needs by name, and arcs by id, that rose past a milestone and have not fallen well below it since."""


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """The soul's feeling towards one person, never theirs towards the soul."""

    person: str
    at_s: float
    warmth: float = 0.0
    trust: float = 0.0
    tension: float = 0.0
    comfort: float = 0.5
    comfort_target: float = 0.5
    familiarity: float = 0.0
    volatility: float = 0.4
    bands: tuple[int, ...] = ()
    name: str = ""
    """The display name last heard."""


class Arc(msgspec.Struct, frozen=True, kw_only=True):
    """A recurring subject."""

    arc: str
    """Its id: the turn in which it began."""
    label: str
    stems: tuple[str, ...]
    at_s: float
    intensity: float = 0.30
    bias: float = 0.0
    """How it feels, in [-1, 1]."""
    sources: tuple[str, ...] = ()
    """The audiences whose words it was built from."""
    persons: tuple[str, ...] = ()
    """The persons whose words it was built from."""
    band: int = 0


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """How far slow drift has moved traits from the compiled kernel."""

    compiled: str = ""
    """The hash of the kernel that it moves; the drift ends when soul.md changes."""
    began_s: float = 0.0
    looked_s: float = 0.0
    """When it was last evaluated."""
    by: tuple[tuple[str, float], ...] = ()
    since_s: tuple[tuple[str, float], ...] = ()
    """When each trait last moved."""


class Appraisal(msgspec.Struct, frozen=True, kw_only=True):
    """How the soul took what somebody said or did, in closed words."""

    person: str
    """Whose words or deeds they were: a canonical id."""
    kind: str
    strength: str = "clear"
    """`slight`, `clear` or `strong`."""


class Appraised(Appraisal, frozen=True, kw_only=True):
    """An appraisal as it is kept."""

    at_s: float
    audience: str = ""


class Psyche(msgspec.Struct, frozen=True, kw_only=True):
    """The psyche as one turn sees it, without anything built from words that may not be shown there."""

    version: int = 0
    numbers: Numbers | None = None
    """None = nothing was ever felt."""
    kernel: str = ""
    """The traits that the numbers were worked out with last."""
    edges: tuple[Edge, ...] = ()
    """The existing edges to the speaker and the others present."""
    arcs: tuple[Arc, ...] = ()
    appraisals: tuple[Appraised, ...] = ()
    """How the newest words of the speaker and the others present landed, as far as it may be shown here."""
    drift: Drift = Drift()
    since: tuple[tuple[float, str], ...] | None = None
    """The kinds of appraisals since the drift began, oldest first, each with its time; None = not requested."""


class Milestone(msgspec.Struct, frozen=True, kw_only=True):
    """A need or a subject that has just become strong."""

    name: str
    """The need, or the arc's id."""
    level: float
    text: str
    """What the soul notices about it later, by itself."""


class Folded(msgspec.Struct, frozen=True, kw_only=True):
    """The psyche after one turn, computed from the state current at the time of writing."""

    numbers: Numbers
    edges: tuple[Edge, ...]
    kernel: str
    """The hash of the traits that it was computed with."""
    traits: tuple[float, ...]
    inputs: Mapping[str, Any]
    """What changed the numbers, without anybody's words; a trace can be recomputed from it."""
    arcs: tuple[Arc, ...] | None = None
    """All current arcs; None = unchanged."""
    drift: Drift | None = None
    """None = unchanged."""
    milestones: tuple[Milestone, ...] = ()


class PsycheChange(Protocol):
    """A turn's change to the psyche, as data: the event and the look-ups, never absolute values."""

    @property
    def persons(self) -> tuple[str, ...]:
        """The persons whose edges are needed to fold it."""

    @property
    def mood(self) -> str:
        """The word for the soul's numbers in this turn."""

    @property
    def hurts(self) -> bool:
        """Whether what was said in this conversation alone would make the soul frustrated by now."""

    @property
    def importance(self) -> float:
        """How much the event matters, in [0, 1]."""

    @property
    def hint(self) -> str:
        """The model's own word for the soul's mood; empty = none."""

    def about(self, named: str) -> Self:
        """Return this change with the birth of a subject that was named. Pure."""

    def looks_back(self, psyche: Psyche) -> float | None:
        """Return the time from which kinds of appraisals are needed to fold it; None if they are not. Pure."""

    def fold(self, psyche: Psyche) -> Folded:
        """Compute the psyche after the turn from its current state. Pure."""


class Felt(msgspec.Struct, frozen=True, kw_only=True):
    """What the psyche puts into a prompt: words as flat strings, no numbers."""

    record: dict[str, str] = {}
    """The parts of the `## Psyche` line, in order; empty = nothing is shown, because all is at rest."""
    emotional_state: str = ""
    """The new word for the soul's state, if the bands have changed; empty = the current word stays."""
    asks: tuple[str, ...] = ()
    """The psyche's own steps that this turn asks for."""
