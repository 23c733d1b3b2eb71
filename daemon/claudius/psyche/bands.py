"""Put the numbers into words: ordered bands with hysteresis, seven moods, and the sentences of a prompt. Pure.

A stored band stays until the number is 0.03 past the cut, so that small movements do not change a word. Numbers never
leave the psyche: no sentence has a digit, a scale or a variable name. Source: the design of acts, section 6; the psyche
design, section 9.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Template

from msgspec.structs import replace

from claudius.psyche.events import PsycheState
from claudius.psyche.personality import phrases
from claudius.psyche.state import DAY_S, DRIVE_BASE, SPAN_S, WOUNDS, kinds
from claudius.psyche_types import DRIVES, Appraised, Arc, Edge, Numbers

SLACK = 0.03
VALENCE_CUTS = (-0.50, -0.15, 0.15, 0.50)
AROUSAL_CUTS = (0.35, 0.65)
ENERGY_CUTS = (0.25, 0.50, 0.75)
DRIVE_CUTS = (0.30, 0.55, 0.75)
ARC_CUTS = (0.20, 0.45, 0.70)
WARMTH_CUTS = (-0.40, -0.10, 0.20, 0.50)
TRUST_CUTS = (-0.40, -0.10, 0.50)
TENSION_CUTS = (0.20, 0.50)
FAMILIARITY_CUTS = (0.05,)
BIAS = 0.25
PRESSED = 2
"""The drive band from which a need is put into words."""
NAME_CHARS = 40
OUTER = 3
"""The drive band, and the band of an arc, from which it is said."""
AT_EASE = 0.5
"""The comfort with somebody at which it neither opens nor closes the soul."""
ILL_AT_EASE = 0.25
"""The comfort with somebody below which it is said."""
FAR = 0.20
"""How near to either end a tendency is said."""
STATES: Mapping[str, str] = {"glad": "engaged", "tense": "frustrated", "hurt": "sardonic"}
"""The word of the soul state for each mood; `neutral` for all others. `focused` means work, never a feeling."""
SAID_S: Mapping[str, float] = {
    "hurt": 7 * DAY_S,
    "tense": 7 * DAY_S,
    "moved": 2 * DAY_S,
    "low": DAY_S,
    "glad": DAY_S / 2,
    "even": DAY_S / 2,
}
"""For how long a prompt says how somebody's words landed, by the mood of their kind."""


def band(value: float, cuts: tuple[float, ...], before: int | None = None) -> int:
    """Return a number's band, given the band it was in before. Pure."""
    now = _place(value, cuts)
    if before is None or now == before:
        return now
    return max(before, _place(value - SLACK, cuts)) if now > before else min(before, _place(value + SLACK, cuts))


def _place(value: float, cuts: tuple[float, ...]) -> int:
    return sum([not (value < cut or (value == cut and cut <= 0.0)) for cut in cuts])


def numbers_bands(numbers: Numbers) -> tuple[int, ...]:
    """Return the bands of valence, arousal, energy and the five drives. Pure."""
    before: tuple[int | None, ...] = numbers.bands if len(numbers.bands) == 8 else (None,) * 8
    return (
        band(numbers.valence, VALENCE_CUTS, before[0]),
        band(numbers.arousal, AROUSAL_CUTS, before[1]),
        band(numbers.energy, ENERGY_CUTS, before[2]),
        *[band(level, DRIVE_CUTS, was) for level, was in zip(numbers.drives, before[3:], strict=True)],
    )


def edge_bands(edge: Edge) -> tuple[int, ...]:
    """Return the bands of warmth, trust, tension and familiarity. Pure."""
    before: tuple[int | None, ...] = edge.bands if len(edge.bands) == 4 else (None,) * 4
    return (
        band(edge.warmth, WARMTH_CUTS, before[0]),
        band(edge.trust, TRUST_CUTS, before[1]),
        band(edge.tension, TENSION_CUTS, before[2]),
        band(edge.familiarity, FAMILIARITY_CUTS, before[3]),
    )


def arc_band(arc: Arc) -> int:
    """Return the band of an arc's intensity. Pure."""
    return band(arc.intensity, ARC_CUTS, arc.band)


def mood_of(numbers: Numbers) -> str:
    """Return the mood in one of seven words: the colour of the newest appraisal while it holds, else the bands. Pure.

    `numbers`: with their bands, at their own instant.
    """
    valence, arousal, energy, *_ = numbers.bands or numbers_bands(numbers)
    if numbers.colour and numbers.at_s < numbers.colour_until_s and not (numbers.colour == "glad" and valence <= 1):
        return numbers.colour
    if valence <= 1:
        return "tense" if arousal == 2 else "low"
    if energy <= 1:
        return "tired"
    return "glad" if valence == 4 else "even"


def edge_words(bands: tuple[int, ...]) -> str:
    """Return a phrase for the soul's relation to a person. Pure."""
    return str(phrases()["toward"][edge_kind(bands)])


def edge_kind(bands: tuple[int, ...]) -> str:
    """Return what the soul's relation to a person is: the first in the table that fits. Pure."""
    warmth, trust, tension, familiarity = bands
    table = (
        ("broken", tension == 2 and trust <= 1),
        ("strained", tension == 2),
        ("distrustful", trust == 0),
        ("cold", warmth == 0),
        ("unresolved", tension == 1 and warmth >= 3),
        ("tense", tension == 1),
        ("close", warmth == 4 and trust == 3),
        ("fond", warmth == 4),
        ("trusting", trust == 3),
        ("friendly", warmth == 3),
        ("reserved", warmth <= 1 or trust <= 1),
        ("new", familiarity == 0),
    )
    return next((name for name, fits in table if fits), "ordinary")


def arc_words(arc: Arc, found: int) -> str:
    """Return words for how much a subject is on the soul's mind, or empty if it is not. Pure."""
    told = phrases()["arc"]
    said = str(told["words"][found])
    if not said or abs(arc.bias) < BIAS:
        return said
    return f"{said}, {told['glad' if arc.bias > 0 else 'uneasy']}"


def tilt_words(leanings: Mapping[str, float]) -> list[str]:
    """Return the tendencies that are far from neutral, as sentences. Pure."""
    told = phrases()["tilt"]
    return [str(told[name][value > 1 - FAR]) for name, value in leanings.items() if not FAR <= value <= 1 - FAR]


def emotional_state(mood: str) -> str:
    """Return the word of the soul state for a mood. Pure."""
    return STATES.get(mood, "neutral")


TENDENCIES = ("approach", "speak", "escalate", "engage", "disclose")


def engagement(state: PsycheState, salience: float) -> float:
    """Return how much the soul wants to take part in an event, in about [-0.3, 1]. Pure."""
    return (
        0.30 * state.kernel.sociability
        + 0.25 * max(0.0, state.edge.warmth)
        + 0.15 * state.numbers.drives[DRIVES.index("relatedness")]
        + 0.15 * state.numbers.energy
        + 0.15 * salience
        - 0.25 * state.edge.tension
    )


def tendencies(state: PsycheState, salience: float) -> dict[str, float]:
    """Return the five tendencies, each in [0, 1]; 0.5 = neutral. Pure."""
    numbers, edge, kernel = state.numbers, state.edge, state.kernel
    needs = dict(zip(DRIVES, numbers.drives, strict=True))
    unsafe, lonely = needs["safety"] - DRIVE_BASE, needs["relatedness"] - DRIVE_BASE
    leaning = {
        "approach": 0.25 * edge.warmth
        + 0.15 * numbers.valence
        + 0.2 * (kernel.sociability - 0.5)
        - 0.3 * edge.tension
        - 0.3 * unsafe,
        "speak": 0.2 * (numbers.arousal - 0.3)
        + 0.2 * (numbers.energy - 0.5)
        + 0.2 * (kernel.sociability - 0.5)
        + 0.2 * lonely,
        "escalate": 0.3 * edge.tension
        - 0.2 * edge.warmth
        - 0.2 * numbers.valence
        + 0.2 * (kernel.dominance - 0.5)
        - 0.3 * (kernel.conflict_avoidance - 0.5)
        - 0.2,
        "engage": engagement(state, salience) - 0.5,
        "disclose": 0.25 * edge.trust
        + 0.2 * edge.warmth
        + 0.3 * (edge.comfort - AT_EASE)
        - 0.3 * unsafe
        - 0.2 * edge.tension
        + 0.2 * lonely
        - 0.2,
    }
    return {name: min(1.0, max(0.0, 0.5 + leaning[name])) for name in TENDENCIES}


def sentences(
    state: PsycheState,
    salience: float,
    people: Sequence[tuple[str, Edge]],
    appraised: Sequence[Appraised],
    now_s: float,
    *,
    is_alone: bool,
) -> list[str]:
    """Return what a prompt says of feeling: only what differs from rest, in whole sentences. Pure.

    `people`: the names of those present with their edges, the speaker first. `appraised`: how their words landed, the
    newest first, as far as it may be shown here. `is_alone`: only the speaker hears the soul, who knows what moved it.
    """
    words, numbers = phrases(), state.numbers
    mood = mood_of(numbers)
    is_moved = mood == "moved"  # then nearly everything else waits
    told = [one for one in appraised if not (is_moved and kinds()[one.kind].mood == "glad")]
    persons = [one for name, edge in people if (one := _of_person(name, edge, told, now_s, is_alone=is_alone))][:1]
    is_faint = mood == numbers.colour and numbers.colour_until_s - numbers.at_s <= SPAN_S["slight"]
    said = [str((words["mood"] | (words["faint"] if is_faint else {})).get(mood, "")), *persons]
    for arc in sorted([arc for arc, _ in state.arcs], key=lambda arc: -arc.intensity)[:1]:
        label = " ".join([word for word in arc.label.split() if word.isalpha()])
        if label and arc_band(arc) >= OUTER:
            said.append(Template(words["on_mind"]).substitute(label=label))
    level, at = max([(level, n) for n, level in enumerate(numbers.drives)])
    if band(level, DRIVE_CUTS) >= OUTER and not is_moved:
        said.append(str(words["needs"][DRIVES[at]]))
    if not persons and not is_moved:  # which says as much; others are not told how it stands with whoever speaks
        seen = (state, salience) if is_alone else (replace(state, edge=Edge(person="", at_s=now_s)), 0.5)
        said += tilt_words(tendencies(*seen))
    return [one for one in said if one]


def _of_person(name: str, edge: Edge, appraised: Sequence[Appraised], now_s: float, *, is_alone: bool) -> str:
    """Return a sentence on a person: how their words landed, else what they are to the soul; empty at rest. Pure."""
    words, who = phrases(), " ".join(name.split())[:NAME_CHARS] or str(phrases()["somebody"])
    one = _telling([one for one in appraised if one.person == edge.person], now_s)
    if one is not None:
        when = next(str(said) for upto_s, said in words["when"] if now_s - one.at_s < upto_s)
        return Template(kinds()[one.kind].said).substitute(who=who, when=when)
    if not is_alone or not edge.person:
        return ""
    kind = edge_kind(edge_bands(edge))
    is_uneasy = kind == "ordinary" and edge.comfort < ILL_AT_EASE
    return Template(words["near"].get(kind, words["ill_at_ease"] if is_uneasy else "")).substitute(who=who)


def _telling(appraised: Sequence[Appraised], now_s: float) -> Appraised | None:
    """Return the appraisal that a prompt tells of: the newest, but small thanks do not cover a wound. Pure."""
    fresh = [
        one for one in appraised if (kind := kinds()[one.kind]).said and now_s - one.at_s < SAID_S.get(kind.mood, DAY_S)
    ]
    for n, one in enumerate(fresh):
        is_small = kinds()[one.kind].mood == "glad" and one.strength == "slight"
        if not (is_small and any(kinds()[other.kind].mood in WOUNDS for other in fresh[n:])):
            return one
    return None
