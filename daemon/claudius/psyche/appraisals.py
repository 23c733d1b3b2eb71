"""Appraisals: read in which closed words a model took what was said, and map them to numbers by one fixed table. Pure.

A model names a kind and a strength; it never writes a number. Source: the design of acts, sections 2 and 10.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from claudius.psyche.personality import Kernel
from claudius.psyche.state import Axes, Stimulus, apply, apply_edge, comfort_target, push, trust_base
from claudius.psyche_types import Appraisal, Edge, Numbers

NOTHING = "nothing"
SCALE: Mapping[str, float] = {"slight": 0.5, "clear": 1.0, "strong": 1.5}
"""What a strength makes of a row of the table."""
STRENGTHS = tuple(SCALE)
PLAIN = "clear"
"""The strength of a kind that is named without one."""
_PARTS = (1, 2, 3)


class Weight(NamedTuple):
    """What one kind of one strength does."""

    stimulus: Stimulus
    edge: tuple[float, float, float]
    """What it does to warmth, trust and tension, on top of what the laws make of its axes."""


class Landing(NamedTuple):
    """One row of the table."""

    about: str
    """`me`, `life` (theirs) or `deed` (the soul's)."""
    mood: str
    """How it colours the soul for a while; `even` ends an earlier colour, empty = it colours nothing."""
    said: str
    """What a later prompt says of the person; empty = nothing."""
    by: Mapping[str, Weight]


@cache
def tables() -> Mapping[str, Any]:
    """Read appraisals.toml; cached for the life of the process."""
    return tomllib.loads(Path(__file__).with_name("appraisals.toml").read_text("utf-8"))


@cache
def kinds() -> Mapping[str, Landing]:
    """Return the table of kinds; cached for the life of the process."""
    found = {}
    for name, row in tables()["kinds"].items():
        by = {}
        for strength, scale in SCALE.items():
            (*axes, tone), (warmth, trust, tension) = [
                [max(-1.0, min(1.0, scale * x)) for x in part] for part in row["does"]
            ]
            by[strength] = Weight(Stimulus(axes=Axes(*axes), tone=tone, novelty=None), (warmth, trust, tension))
        found[name] = Landing(row["about"], row["mood"], row.get("said", ""), by)
    return found


def read_appraisal(answers: Sequence[str], people: Mapping[str, str], speaker: str) -> Appraisal | None:
    """Return what a reply's appraisal means; None if it is not one line of closed words, or two that differ. Pure.

    `people` maps what a prompt calls a person to their id; `speaker` is who is meant where nobody is named.
    """
    lines = [line for answer in answers for line in answer.splitlines() if line.strip()]
    found = {_line(line, people, speaker) for line in lines}
    return found.pop() if len(found) == 1 else None


def _line(line: str, people: Mapping[str, str], speaker: str) -> Appraisal | None:
    parts = [" ".join(part.split()) for part in line.strip().removesuffix(".").casefold().split(",")]
    kind, strength, whom = (*parts, PLAIN, "")[:3] if len(parts) == 1 else (*parts, "")[:3]
    if len(parts) not in _PARTS or kind not in kinds() or strength not in STRENGTHS:
        return None
    person = speaker
    if len(parts) == max(_PARTS):
        person = people.get(whom.removeprefix("of "), "") if whom.startswith("of ") else ""
    return Appraisal(person=person, kind=kind, strength=strength) if person else None


def weight(one: Appraisal) -> Weight:
    """Return what an appraisal does. Pure."""
    return kinds()[one.kind].by[one.strength]


def moves_only_view(one: Appraisal, speaker: str) -> bool:
    """Return whether an appraisal moves only the soul's view of a person: somebody else was so to others. Pure."""
    return one.person != speaker and kinds()[one.kind].about == "me"


def apply_appraisal(numbers: Numbers, one: Appraisal, kernel: Kernel) -> Numbers:
    """Apply an appraisal to the soul's own numbers, already advanced to its instant. Pure."""
    return numbers if one.kind == NOTHING else apply(numbers, weight(one).stimulus, kernel)


def appraised_edge(edge: Edge, one: Appraisal, kernel: Kernel) -> Edge:
    """Apply an appraisal to the edge of the person whom it is of; familiarity is not its matter. Pure."""
    if one.kind == NOTHING:
        return edge
    stimulus, (warmth, trust, tension) = weight(one)
    felt = apply_edge(edge, stimulus, kernel)
    moved = replace(
        felt,
        familiarity=edge.familiarity,
        warmth=push(felt.warmth, warmth, 0.0, -1.0, 1.0, 1.0),
        trust=push(felt.trust, trust, trust_base(kernel), -1.0, 1.0, 1.0),
        tension=push(felt.tension, tension, 0.0, 0.0, 1.0, 1.0),
    )
    return replace(moved, comfort_target=comfort_target(moved.warmth, moved.trust, moved.tension))


WOUNDS = frozenset(("hurt", "tense"))
"""The moods of what was done to the soul and is not made up for."""
SPAN_S: Mapping[str, float] = {"slight": 1800.0, "clear": 3 * 3600.0, "strong": 8 * 3600.0}
"""How long an appraisal of each strength colours the mood."""
LOW = -0.15
"""Below this valence nothing makes the soul glad at once."""
HURT_S = 2 * 3600.0
"""How long what was said in a conversation can make the soul frustrated there."""
FRUSTRATES = 7
"""How much that hurts makes it so: slight counts one, clear two, strong three. An apology ends the count."""


def coloured(numbers: Numbers, one: Appraisal) -> Numbers:
    """Return the numbers with the colour that an appraisal gives to the mood. Pure."""
    mood = kinds()[one.kind].mood
    is_held = numbers.colour in WOUNDS and numbers.at_s < numbers.colour_until_s and one.strength == STRENGTHS[0]
    if not mood or (mood == "glad" and (numbers.valence < LOW or is_held)):
        return numbers
    until_s = 0.0 if mood == "even" else numbers.at_s + SPAN_S[one.strength]
    return replace(numbers, colour="" if mood == "even" else mood, colour_until_s=until_s)


def frustrates(lately: Sequence[Appraisal]) -> bool:
    """Return whether what was said in one conversation lately, oldest first, frustrates the soul there. Pure."""
    count = 0
    for one in lately:
        mood = kinds()[one.kind].mood
        count = 0 if mood == "even" else count + (mood in WOUNDS) * (1 + STRENGTHS.index(one.strength))
    return count >= FRUSTRATES and kinds()[lately[-1].kind].mood in WOUNDS


def importance_of(appraisals: Sequence[Appraisal]) -> float:
    """Return what appraisals add to the importance of an event. Pure."""
    found = [0.0]
    for one in appraisals:
        stimulus = weight(one).stimulus
        found.append(0.30 * max(map(abs, (*stimulus.axes, stimulus.tone))) + 0.20 * (kinds()[one.kind].about == "life"))
    return max(found)
