"""The numbers below language, as they are kept: mood, drives, energy, edges, arcs, intentions, what was lived.

Nothing here computes; `claudius.psyche` does. They are made and written in every turn, so they are structs. Instants
are seconds since 1970 (UTC), so that time is a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

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
"""What a bug of the psyche or a row that cannot be read looks like: the soul goes on without it."""
DRIVES = ("relatedness", "autonomy", "competence", "novelty", "safety")
"""The five needs, in the order in which `Numbers.drives` holds them. A level is unmet need, in [0, 1]."""


class Numbers(msgspec.Struct, frozen=True, kw_only=True):
    """The soul's own numbers at one instant."""

    at_s: float
    energy: float = 0.85
    """In (0, 1]."""
    valence: float = 0.10
    """In [-1, 1]."""
    arousal: float = 0.30
    """In [0, 1]."""
    drives: tuple[float, float, float, float, float] = (0.35, 0.35, 0.35, 0.35, 0.35)
    bands: tuple[int, ...] = ()
    """The words' own memory: which band each number was last in; empty = none yet."""
    mood: str = ""
    """The word that the bands last came to in a turn's attention."""
    hinted_s: float = 0.0
    """When the model's own mood word last moved a number."""
    high: tuple[str, ...] = ()
    """Needs by name, and arcs by id, that rose past a milestone and have not fallen well below it since."""


class Edge(msgspec.Struct, frozen=True, kw_only=True):
    """What one person is to the soul: the soul's own feeling, never theirs."""

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
    stances: tuple[tuple[str, float, int], ...] = ()
    """Stances taken towards them in the last day: name, instant, how often."""
    thoughts: int = 0
    """Turns of theirs that were thought about."""
    name: str = ""
    """The display name last heard."""


class Arc(msgspec.Struct, frozen=True, kw_only=True):
    """A subject that keeps coming back."""

    arc: str
    """Its id: the turn that it was born in."""
    label: str
    stems: tuple[str, ...]
    at_s: float
    intensity: float = 0.30
    bias: float = 0.0
    """How it feels, in [-1, 1]."""
    sources: tuple[str, ...] = ()
    """The audiences whose words it is made of."""
    persons: tuple[str, ...] = ()
    """Whose words it is made of."""
    band: int = 0


class Intention(msgspec.Struct, frozen=True, kw_only=True):
    """What the soul means to do."""

    intention: str
    type: str
    target: str
    """A person's id, a word of a topic, or empty."""
    horizon: str
    description: str
    at_s: float
    born_s: float
    priority: float
    """As it stood at `at_s`."""
    sources: tuple[str, ...] = ()
    person: str = ""
    """In whose conversation it was formed."""


class Episode(msgspec.Struct, frozen=True, kw_only=True):
    """One moment worth keeping, with what it answered."""

    turn: str
    at_s: float
    person: str
    conversation: str
    text: str
    previous: str = ""
    """The entry before it, which it answers."""
    stems: tuple[str, ...] = ()
    """Its content stems, as often as they occur."""
    previous_stems: tuple[str, ...] = ()
    importance: float = 0.35
    sources: tuple[str, ...] = ()
    name: str = ""
    is_own: bool = False
    """The soul's own words; `person` is then whom they answered."""
    id: int = 0
    """Of its row; 0 = it is not kept yet."""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said of themself in plain words."""

    person: str
    key: str
    value: str
    sources: tuple[str, ...]
    turn: str
    stated_s: float
    is_single: bool = True
    """A newer value takes its place."""
    id: int = 0
    """Of its row; 0 = it is not kept yet."""


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """How far slow drift has moved traits from the compiled kernel."""

    compiled: str = ""
    """The hash of the kernel that it moves; it ends where soul.md is another."""
    began_s: float = 0.0
    looked_s: float = 0.0
    """When it was last looked at."""
    by: tuple[tuple[str, float], ...] = ()
    since_s: tuple[tuple[str, float], ...] = ()
    """When each trait last moved."""


class Psyche(msgspec.Struct, frozen=True, kw_only=True):
    """The substrate as one turn sees it. What others' words went into is left out where it may not be shown."""

    version: int = 0
    numbers: Numbers | None = None
    """None = nothing was ever felt."""
    edges: tuple[Edge, ...] = ()
    """Towards the speaker and the others present, those that there are."""
    arcs: tuple[Arc, ...] = ()
    intentions: tuple[Intention, ...] = ()
    facts: tuple[Fact, ...] = ()
    """Of the people present."""
    drift: Drift = Drift()
    stances: tuple[tuple[float, str], ...] | None = None
    """The soul's stances since the drift began, oldest first, each with its instant; None = they were not asked for."""
    has_episodes: bool = False


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Episodes that may bear on a message, and what their words weigh."""

    episodes: tuple[Episode, ...] = ()
    frequencies: tuple[tuple[str, int], ...] = ()
    """In how many episodes each stem asked for occurs; a stem that was dropped as too common is missing."""
    total: int = 0
    """How many episodes there are."""


class Milestone(msgspec.Struct, frozen=True, kw_only=True):
    """A need or a subject that has just grown strong."""

    name: str
    """The need, or the arc's id."""
    level: float
    text: str
    """What the soul notices of it, later and by itself."""


class Folded(msgspec.Struct, frozen=True, kw_only=True):
    """What one turn leaves behind, worked out on the substrate as it stands when it is written."""

    numbers: Numbers
    edges: tuple[Edge, ...]
    kernel: str
    """The hash of the traits that it was worked out with."""
    traits: tuple[float, ...]
    inputs: Mapping[str, Any]
    """What moved the numbers, without a word of anybody: the trace folds again from it."""
    arcs: tuple[Arc, ...] | None = None
    """Every arc there is now; None = as they were."""
    intentions: tuple[Intention, ...] | None = None
    """Every intention there is now; None = as they were."""
    episodes: tuple[Episode, ...] = ()
    facts: tuple[Fact, ...] = ()
    drift: Drift | None = None
    """None = as it was."""
    recalled: tuple[str, ...] = ()
    """Turns whose episodes were recalled and so grow a little in importance."""
    milestones: tuple[Milestone, ...] = ()


class PsycheChange(Protocol):
    """What a turn does to the substrate, as data: the event and the look-ups, never absolute values."""

    @property
    def persons(self) -> tuple[str, ...]:
        """Whose edges are needed to fold it."""
        ...

    @property
    def mood(self) -> str:
        """The word for the soul's numbers in this turn."""
        ...

    @property
    def hint(self) -> str:
        """The model's own word for the soul's mood; empty = it had none."""
        ...

    def looks_back(self, psyche: Psyche) -> float | None:
        """Return from when on the soul's stances are needed to fold it; None where they are not. Pure."""
        ...

    def fold(self, psyche: Psyche) -> Folded:
        """Work it out on the substrate as it stands now. Pure."""
        ...


class Felt(msgspec.Struct, frozen=True, kw_only=True):
    """What the psyche puts into a prompt: words, flat strings, no number."""

    record: dict[str, str] = {}
    """The parts of the `## Psyche` line, in order; empty = nothing is shown."""
    remembered: tuple[dict[str, str], ...] = ()
    recalled: tuple[str, ...] = ()
    """For each remembered line the row that holds its text: `episode:7`, `fact:3`."""
    emotional_state: str = ""
    """The word for the soul's state, where the bands have moved to another; empty = the one that stands."""
    asks: tuple[str, ...] = ()
    """The psyche's own steps that this turn asks."""
