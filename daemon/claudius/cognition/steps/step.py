"""What a cognitive step is: when it is asked, how its answer is kept, what else it changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from claudius.intent import ModelVersion, StateChange, Thought
from claudius.ledger_types import Proposal
from claudius.psyche.intentions import IntentionUpdate
from claudius.psyche.mapping import Shift
from claudius.recollection import Entry, Person, Recollection


class Situation(Struct, frozen=True, kw_only=True):
    """What a step's gate looks at."""

    recollection: Recollection
    person: Person | None
    """The speaker, if a human was heard from outside; else None."""
    speaks: bool
    """An utterance is wanted this turn."""
    seen: bool
    """The newest version of the one writable user model stands in this prompt, tail or history."""
    number: int
    """This turn's place in its conversation, from 1."""
    intervals: Mapping[str, int]
    """How often a periodic step is asked, in turns; 0 = never in a turn."""
    assesses: bool = False
    """No second mind judges peers now, so that a turn does."""
    asks: tuple[str, ...] = ()
    """The psyche's own steps that are asked, whatever the process lists."""


class Limits(Struct, frozen=True, kw_only=True):
    """Bounds that effects keep to."""

    model_bytes: int
    shrink_floor: float


class Reading(Struct, frozen=True, kw_only=True):
    """What a step's effect looks at: every section of the reply by step, and what was asked."""

    thoughts: Mapping[str, tuple[Thought, ...]]
    recollection: Recollection
    person: Person | None
    asked: frozenset[str]
    """Steps that were asked, the conditional ones included."""
    seen: bool
    limits: Limits


class Effect(Struct, frozen=True, kw_only=True):
    """What one step's answer comes to."""

    entries: tuple[Entry, ...] = ()
    model: ModelVersion | None = None
    state: tuple[StateChange, ...] = ()
    changes: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    proposal: Proposal | None = None
    """An assessment of the speaker, for the ledger."""
    shifts: tuple[Shift, ...] = ()
    """Changes of stance, mapped."""
    intentions: tuple[IntentionUpdate, ...] = ()
    mood: str = ""
    """The model's own word for the soul's mood, whether it is new or not."""
    action: str = ""
    """What the soul chooses instead of speaking: `react`, `stay_silent`; empty = it speaks."""
    sign: str = ""
    """The sign that it puts on the message, where it chooses to react."""


NOTHING = Effect()


def _never(_: Situation) -> bool:
    return False


def _nothing(_: Reading) -> Effect:
    return NOTHING


class Step(Struct, frozen=True, kw_only=True):
    """One named act of thought. Its wording stands in `soul/steps/NAME.md`."""

    name: str
    gate: Callable[[Situation], bool] = _never
    """Whether it is asked now, given that the process lists it."""
    after: str | None = None
    """The check whose true answer this step waits for; it is asked exactly where its check is, and `gate` holds."""
    effect: Callable[[Reading], Effect] = _nothing
