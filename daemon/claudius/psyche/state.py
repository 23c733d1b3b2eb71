"""The laws: how numbers drift with time, in closed form, how an event pushes them, and how traits drift. Pure.

One step of ten years equals ten years of small steps, so idle time costs nothing. Traits move only by what was
appraised over weeks, never by a single phrase; that slow drift affects the laws and the tilt, never the system text.
Source: the psyche design, sections 4 and 9.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache
from math import exp2
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from claudius.psyche.personality import HIGHEST, LOWEST, Kernel, kernel_hash
from claudius.psyche_types import Appraisal, Drift, Edge, Numbers

HOUR_S = 3600.0
DAY_S = 86_400.0

VALENCE_BASE, VALENCE_HALF_S = 0.10, 4 * HOUR_S
AROUSAL_BASE, AROUSAL_HALF_S = 0.30, 45 * 60.0
ENERGY_BASE, ENERGY_HALF_S = 0.85, 3 * HOUR_S
DRIVE_BASE = 0.35
DRIVE_HALF_S = (24 * HOUR_S, 12 * HOUR_S, 24 * HOUR_S, 8 * HOUR_S, 12 * HOUR_S)
LACK = 0.55
"""How far above its base a need comes to rest when what it needs stays away for long."""
COMPANY_HALF_S, FRESH_HALF_S = 72 * HOUR_S, 96 * HOUR_S
"""After this long without company, or without anything new, the resting value of the need is half of `LACK` higher."""
RELIEF = 0.15
"""The share of a risen need for company that one friendly message satisfies."""
NOTHING_NEW, ALL_NEW = 0.3, 0.6
"""The novelty of a message up to which it brings nothing new, and from which it is new throughout."""
SENSITIVITY = ("sociability", "dominance", "conscientiousness", "openness", "emotional_volatility")
"""The trait that each drive's sensitivity comes from, in the order of `DRIVES`."""

WARMTH_HALF_S = 60 * DAY_S
TRUST_HALF_S = 90 * DAY_S
TENSION_HALF_S = 72 * HOUR_S
COMFORT_HALF_S = 7 * DAY_S
FAMILIARITY_HALF_S = 120 * DAY_S
FAMILIARITY_STEP = 0.02


class Axes(NamedTuple):
    """The five psychological dimensions of an event, each in [-1, 1]."""

    supportive: float = 0.0
    safe: float = 0.0
    affectionate: float = 0.0
    cooperative: float = 0.0
    bounds: float = 0.0
    """Respect for the soul's boundaries; negative = they are pushed."""


class Stimulus(Struct, frozen=True, kw_only=True):
    """An event as the laws see it: numbers only."""

    axes: Axes = field(default_factory=Axes)
    tone: float = 0.0
    """How it feels, in [-1, 1]."""
    novelty: float | None = 0.3
    """How new it is, in [0, 1]; None = novelty does not apply."""
    load: float = 0.0
    """How much it demands, in [0, 1]."""
    company: float = 0.0
    """How much company somebody is, in [0, 1]: 1 = they speak to the soul, in a friendly or neutral way."""
    drive_effects: tuple[float, ...] = ()
    """Effects that replace those derived from the axes."""


def drifted(value: float, base: float, half_s: float, elapsed_s: float) -> float:
    """Decay a value towards its base: half of the distance in each half-life. Pure."""
    if elapsed_s <= 0.0 or value == base:
        return value
    return base + (value - base) * exp2(-elapsed_s / half_s)


def lacking(value: float, half_s: float, rest_half_s: float, age_s: float, elapsed_s: float) -> float:
    """Decay a need towards a rest that itself rises while what it needs stays away. Pure.

    `age_s`: for how long it had stayed away when the time began. In closed form, as `drifted` is.
    """
    rate = rest_half_s / (rest_half_s - half_s)
    short = LACK * exp2(-age_s / rest_half_s)  # how far the rest still is below its highest value
    highest = DRIVE_BASE + LACK
    return (
        highest
        - short * rate * exp2(-elapsed_s / rest_half_s)
        + (value - highest + short * rate) * exp2(-elapsed_s / half_s)
    )


def push(value: float, delta: float, base: float, low: float, high: float, strength: float) -> float:
    """Move a value by `delta`, within a range that grows with `strength`. Pure."""
    reach = 0.3 + 0.7 * min(1.0, strength)
    if delta > 0.0:
        return value + min(1.0, delta) * max(0.0, base + (high - base) * reach - value)
    if delta < 0.0:
        return value + max(-1.0, delta) * max(0.0, value - (base - (base - low) * reach))
    return value


def effects(stimulus: Stimulus) -> tuple[float, ...]:
    """Return the effect of an event on each drive, in [-1, 1]; positive = the need grows. Pure."""
    if stimulus.drive_effects:
        return stimulus.drive_effects
    supportive, safe, affectionate, cooperative, bounds = stimulus.axes
    return (
        -0.12 * affectionate - 0.10 * supportive,
        -0.15 * bounds + 0.05 * max(0.0, -cooperative),
        -0.12 * supportive - 0.08 * cooperative,
        0.0 if stimulus.novelty is None else 0.04 - 0.30 * stimulus.novelty,
        -0.20 * safe - 0.05 * bounds,
    )


_NEVER = (0.0, DAY_S)


def advance(numbers: Numbers, at_s: float) -> Numbers:
    """Advance the soul's own numbers to an instant; an earlier one changes nothing. Pure."""
    elapsed_s = at_s - numbers.at_s
    if elapsed_s <= 0.0:
        return numbers
    one, two, three, four, five = [
        lacking(level, half_s, rest_half_s, numbers.at_s - since_s, elapsed_s)
        if since_s
        else drifted(level, DRIVE_BASE, half_s, elapsed_s)
        for level, half_s, (since_s, rest_half_s) in zip(
            numbers.drives,
            DRIVE_HALF_S,
            ((numbers.company_s, COMPANY_HALF_S), _NEVER, _NEVER, (numbers.fresh_s, FRESH_HALF_S), _NEVER),
            strict=True,
        )
    ]
    return replace(
        numbers,
        at_s=at_s,
        energy=drifted(numbers.energy, ENERGY_BASE, ENERGY_HALF_S, elapsed_s),
        valence=drifted(numbers.valence, VALENCE_BASE, VALENCE_HALF_S, elapsed_s),
        arousal=drifted(numbers.arousal, AROUSAL_BASE, AROUSAL_HALF_S, elapsed_s),
        drives=(one, two, three, four, five),
    )


def apply(numbers: Numbers, stimulus: Stimulus, kernel: Kernel) -> Numbers:
    """Apply an event to drives, mood and energy; the numbers are already advanced to its instant. Pure."""
    levels = [
        push(level, 1.5 * effect * (0.5 + getattr(kernel, trait)), DRIVE_BASE, 0.0, 1.0, abs(effect) / 0.20)
        for level, effect, trait in zip(numbers.drives, effects(stimulus), SENSITIVITY, strict=True)
    ]
    levels[0] -= RELIEF * stimulus.company * max(0.0, levels[0] - DRIVE_BASE)
    satisfied = sum(numbers.drives) - sum(levels)
    volatility = kernel.emotional_volatility
    valence = push(
        numbers.valence,
        (0.5 + volatility) * (0.45 * satisfied + 0.25 * stimulus.tone),
        VALENCE_BASE,
        -1.0,
        1.0,
        abs(stimulus.tone) + abs(satisfied),
    )
    _, safe, affectionate, cooperative, _ = stimulus.axes
    stir = min(
        1.0,
        0.5 * (stimulus.novelty or 0.0)
        + 0.4 * max(0.0, -safe)
        + 0.3 * max(0.0, -cooperative)
        + 0.25 * abs(affectionate)
        + 0.2 * stimulus.load,
    )
    demand = 0.002 + 0.01 * stimulus.load + 0.03 * max(0.0, -cooperative, -safe)
    one, two, three, four, five = levels
    company_s = _later(numbers.company_s, numbers.at_s, stimulus.company)
    fresh = min(1.0, max(0.0, ((stimulus.novelty or 0.0) - NOTHING_NEW) / (ALL_NEW - NOTHING_NEW)))
    return replace(
        numbers,
        drives=(one, two, three, four, five),
        company_s=company_s,
        fresh_s=_later(numbers.fresh_s or company_s, numbers.at_s, stimulus.company * fresh),
        valence=valence,
        arousal=push(numbers.arousal, 0.5 * stir * (0.6 + volatility), AROUSAL_BASE, 0.0, 1.0, stir),
        energy=numbers.energy * (1.0 - demand),
    )


def _later(since_s: float, at_s: float, share: float) -> float:
    """Return since when something has stayed away, after a share of it has come; 0 = it never came and did not now."""
    return since_s + share * (at_s - since_s) if since_s else at_s if share else 0.0


def stranger(person: str, at_s: float, kernel: Kernel) -> Edge:
    """Return the edge of a person who was never heard before. Pure."""
    return Edge(person=person, at_s=at_s, trust=trust_base(kernel), volatility=kernel.emotional_volatility)


def trust_base(kernel: Kernel) -> float:
    """Return the trust that everybody drifts towards. Pure."""
    return 0.4 * (kernel.trust_baseline - 0.5)


def advance_edge(edge: Edge, at_s: float, kernel: Kernel) -> Edge:
    """Advance an edge to an instant; an earlier one changes nothing. Pure."""
    elapsed_s = at_s - edge.at_s
    if elapsed_s <= 0.0:
        return edge
    tension_half_s = TENSION_HALF_S * (1.5 - kernel.forgiveness_baseline)
    return replace(
        edge,
        at_s=at_s,
        warmth=drifted(edge.warmth, 0.0, WARMTH_HALF_S, elapsed_s),
        trust=drifted(edge.trust, trust_base(kernel), TRUST_HALF_S, elapsed_s),
        tension=drifted(edge.tension, 0.0, tension_half_s, elapsed_s),
        comfort=drifted(edge.comfort, edge.comfort_target, COMFORT_HALF_S, elapsed_s),
        familiarity=drifted(edge.familiarity, 0.0, FAMILIARITY_HALF_S, elapsed_s),
    )


def apply_edge(edge: Edge, stimulus: Stimulus, kernel: Kernel) -> Edge:
    """Apply a person's event to their edge. Pure."""
    supportive, safe, affectionate, cooperative, bounds = stimulus.axes
    swing = 0.5 + edge.volatility
    warm = 0.08 * affectionate + 0.05 * supportive + 0.02 * cooperative
    warmth = push(edge.warmth, swing * warm, 0.0, -1.0, 1.0, abs(warm) / 0.15)
    rely = 0.05 * cooperative + 0.05 * bounds + 0.04 * safe
    trust = push(edge.trust, swing * (rely if rely > 0 else 2 * rely), trust_base(kernel), -1.0, 1.0, abs(rely) / 0.14)
    strain = (
        -0.06 * max(0.0, supportive)
        - 0.05 * max(0.0, cooperative)
        + 0.10 * max(0.0, -supportive)
        + 0.10 * max(0.0, -bounds)
        + 0.12 * max(0.0, -safe)
        + 0.08 * max(0.0, -cooperative)
        + 0.06 * max(0.0, -affectionate)
    )
    tension = push(edge.tension, swing * strain, 0.0, 0.0, 1.0, strain / 0.46 if strain > 0 else 1.0)
    moved = abs(warmth - edge.warmth) + abs(trust - edge.trust) + abs(tension - edge.tension)
    return replace(
        edge,
        warmth=warmth,
        trust=trust,
        tension=tension,
        comfort_target=comfort_target(warmth, trust, tension),
        familiarity=edge.familiarity + FAMILIARITY_STEP * (1.0 - edge.familiarity),
        volatility=0.9 * edge.volatility + 0.1 * min(1.0, 5.0 * moved),
    )


def comfort_target(warmth: float, trust: float, tension: float) -> float:
    """Return the value that comfort drifts towards. Pure."""
    return min(1.0, max(0.0, 0.5 + 0.25 * warmth + 0.25 * trust - 0.4 * tension))


DRIFT_EACH_S = 7 * DAY_S
"""How often drift is recomputed."""
DRIFT_STEP, MOST_DRIFT = 0.01, 0.10
DRIFT_EVENTS, DRIFT_SPAN_S = 20, 14 * DAY_S
"""A trait moves only after at least this many appraisals of one side that span at least this long."""
PULLS: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "trust_baseline": (frozenset(("confides", "kindness")), frozenset(("threat", "sarcasm"))),
    "forgiveness_baseline": (frozenset(("apology",)), frozenset(("hurtful",))),
    "conflict_avoidance": (frozenset(("cold", "criticism")), frozenset(("tease", "my_success"))),
    "dominance": (frozenset(("pressure", "crude")), frozenset(("thanks", "praise"))),
}
"""Trait → the kinds of appraisals that raise it, and those that lower it."""


def tinted(compiled: Kernel, drift: Drift) -> Kernel:
    """Return the kernel with drift applied, or unchanged if soul.md has changed since. Pure."""
    if not drift.by or drift.compiled != kernel_hash(compiled):
        return compiled
    moved = asdict(compiled)
    for trait, by in drift.by:
        if trait in moved:
            moved[trait] = max(LOWEST, min(HIGHEST, moved[trait] + max(-MOST_DRIFT, min(MOST_DRIFT, by))))
    return Kernel(**moved)


def looks_back(compiled: Kernel, drift: Drift, at_s: float) -> float | None:
    """Return the instant since which appraisals are to be counted; None if no recomputation is due. Pure."""
    if drift.compiled != kernel_hash(compiled):
        return at_s
    return drift.began_s if at_s - drift.looked_s >= DRIFT_EACH_S else None


def drift_on(compiled: Kernel, drift: Drift, appraised: Sequence[tuple[float, str]], at_s: float) -> Drift:
    """Return the recomputed drift; `appraised` since it began, oldest first: pairs of instant and kind. Pure."""
    name = kernel_hash(compiled)
    if drift.compiled != name:
        return Drift(compiled=name, began_s=at_s, looked_s=at_s)
    by, since_s = dict(drift.by), dict(drift.since_s)
    for trait, (up, down) in PULLS.items():
        mine = [(when_s, kind) for when_s, kind in appraised if when_s > since_s.get(trait, drift.began_s)]
        rises = [when_s for when_s, kind in mine if kind in up]
        falls = [when_s for when_s, kind in mine if kind in down]
        side, way = (rises, 1) if len(rises) > len(falls) else (falls, -1)
        if len(rises) != len(falls) and len(side) >= DRIFT_EVENTS and side[-1] - side[0] >= DRIFT_SPAN_S:
            by[trait] = max(-MOST_DRIFT, min(MOST_DRIFT, by.get(trait, 0.0) + DRIFT_STEP * way))
            since_s[trait] = at_s
    return Drift(
        compiled=name, began_s=drift.began_s, looked_s=at_s, by=tuple(by.items()), since_s=tuple(since_s.items())
    )


NOTHING = "nothing"
SCALE: Mapping[str, float] = {"slight": 0.5, "clear": 1.0, "strong": 1.5}
"""What a strength makes of a row of the table."""
STRENGTHS = tuple(SCALE)
PLAIN = "clear"
"""The strength of a kind that is named without one."""
_WORD = re.compile(r"\w+")


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
    does: Sequence[Sequence[float]]
    """What it does where it is clear: the axes and the tone; then warmth, trust and tension."""


@cache
def kinds() -> Mapping[str, Landing]:
    """Read appraisals.toml; cached for the life of the process."""
    table = tomllib.loads(Path(__file__).with_name("appraisals.toml").read_text("utf-8"))
    return {
        name: Landing(row["about"], row["mood"], row.get("said", ""), row["does"])
        for name, row in table["kinds"].items()
    }


def read_appraisal(
    answers: Sequence[str], called_so: Callable[[str], Collection[str]], speaker: str
) -> Appraisal | None:
    """Return what a reply's appraisal means; None if it is not one line of closed words, or two that differ. Pure.

    `called_so` returns the ids of those whom a name may mean; `speaker` is who is meant where nobody is named.
    """
    lines = [line for answer in answers for line in answer.splitlines() if line.strip()]
    found = {_line(line, called_so, speaker) for line in lines}
    return found.pop() if len(found) == 1 else None


def _line(line: str, called_so: Callable[[str], Collection[str]], speaker: str) -> Appraisal | None:
    said, of, named = line.casefold().partition(" of ")
    words = _WORD.findall(said)
    if len(words) not in (1, 2) or words[0] not in kinds() or (strength := (*words, PLAIN)[1]) not in STRENGTHS:
        return None
    found = called_so(named.strip(" .,;`*\"')]")) if of else (speaker,)
    person = next(iter(found)) if len(found) == 1 else ""
    return Appraisal(person=person, kind=words[0], strength=strength) if person else None


def weight(one: Appraisal) -> Weight:
    """Return what an appraisal does. Pure."""
    (*axes, tone), (warmth, trust, tension) = [
        [max(-1.0, min(1.0, SCALE[one.strength] * x)) for x in part] for part in kinds()[one.kind].does
    ]
    return Weight(Stimulus(axes=Axes(*axes), tone=tone, novelty=None), (warmth, trust, tension))


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
    if mood == "even":
        return replace(numbers, colour="", colour_until_s=0.0)
    goes_on = mood == numbers.colour or {mood, numbers.colour} <= WOUNDS  # a slight blow does not shorten a heavy one
    until_s = max(numbers.at_s + SPAN_S[one.strength], goes_on * numbers.colour_until_s)
    return replace(numbers, colour=mood, colour_until_s=until_s)


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
