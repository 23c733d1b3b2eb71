"""Put the numbers into words: ordered bands with hysteresis, and the packet of words for the prompt. Pure.

A stored band stays until the number is 0.03 past the cut, so that small movements do not change a word. Numbers never
leave the psyche: the packet has no digit from a number, no scale and no variable name. Source: the psyche design,
sections 8 and 9.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from claudius.psyche.events import PsycheState
from claudius.psyche.gate import tendencies
from claudius.psyche.mapping import MOST_SHOWN, SHOWN_FROM
from claudius.psyche.personality import Kernel
from claudius.psyche_types import DRIVES, Arc, Edge, Intention, Numbers

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
MOST_WANTS = 2
WRY = 0.35
"""From this humour upwards, a calm bad mood is sardonic."""
MOST_TOWARD, MOST_ARCS = 3, 3
NAME_CHARS, OWN_WORDS_CHARS = 40, 80


@cache
def phrases() -> Mapping[str, Any]:
    """Read the words of the bands from phrases.toml; cached for the life of the process."""
    return tomllib.loads(Path(__file__).with_name("phrases.toml").read_text("utf-8"))


def band(value: float, cuts: tuple[float, ...], before: int | None = None) -> int:
    """Return a number's band, given the band it was in before. Pure."""
    now = _place(value, cuts)
    if before is None or now == before:
        return now
    if now > before:
        return max(before, _place(value - SLACK, cuts))
    return min(before, _place(value + SLACK, cuts))


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


def mood_words(bands: tuple[int, ...]) -> str:
    """Return the words for a mood. Pure."""
    return str(phrases()["mood"]["words"][bands[0]][bands[1]])


def moved_words() -> str:
    """Return the words for the mood of a soul that heard of grief. Pure."""
    return str(phrases()["mood"]["moved"])


def energy_words(bands: tuple[int, ...]) -> str:
    """Return the word for energy. Pure."""
    return str(phrases()["energy"]["words"][bands[2]])


def drive_words(drive: str, found: int) -> str:
    """Return the words for a need, or empty if it is not pressing. Pure."""
    return str(phrases()["drives"][drive][min(found, 3) - PRESSED]) if found >= PRESSED else ""


def wants_words(numbers: Numbers, bands: tuple[int, ...]) -> str:
    """Return the words for the two most pressing needs, or the words for none. Pure."""
    pressing = sorted(
        [(-numbers.drives[n], drive, bands[3 + n]) for n, drive in enumerate(DRIVES) if bands[3 + n] >= PRESSED]
    )
    said = [drive_words(drive, found) for _, drive, found in pressing[:MOST_WANTS]]
    return ", ".join(said) if said else str(phrases()["drives"]["none"])


def edge_words(bands: tuple[int, ...]) -> str:
    """Return a phrase for the soul's relation to a person: the first in the table that fits. Pure."""
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
    fitting = [name for name, fits in table if fits]
    return str(phrases()["toward"][fitting[0] if fitting else "ordinary"])


def arc_words(arc: Arc, found: int) -> str:
    """Return words for how much a subject is on the soul's mind, or empty if it is not. Pure."""
    told = phrases()["arc"]
    said = str(told["words"][found])
    if not said or abs(arc.bias) < BIAS:
        return said
    return f"{said}, {told['glad' if arc.bias > 0 else 'uneasy']}"


def emotional_state(bands: tuple[int, ...], kernel: Kernel) -> str:
    """Return the mood word for the numbers. It is never `focused`: high arousal does not mean work. Pure."""
    valence, arousal, *_ = bands
    if valence <= 1:
        if arousal:
            return "frustrated"
        return "sardonic" if kernel.humour_activation >= WRY else "neutral"
    return "engaged" if valence > 2 and arousal else "neutral"


def tilt_words(leanings: Mapping[str, float]) -> str:
    """Return the tendencies far from neutral in words, or the words for none. Pure."""
    told = phrases()["tilt"]
    said = [
        str(told[name][0 if value < 0.35 else 1]) for name, value in leanings.items() if value < 0.35 or value > 0.65
    ]
    return ", ".join(said) if said else str(told["none"])


def packet(
    state: PsycheState,
    salience: float,
    people: Sequence[tuple[str, Edge]],
    arcs: Sequence[Arc],
    intentions: Sequence[Intention],
    names: Mapping[str, str],
) -> dict[str, str]:
    """Return the record of the `## Psyche` block, in order; neutral values are left out. Pure.

    `people` are the names of those present with their edges, the speaker first. `arcs` and `intentions` are those
    that are relevant and may be shown here; `names` are display names by person.
    """
    bands = state.numbers.bands or numbers_bands(state.numbers)
    record = {"mood": mood_words(bands), "energy": energy_words(bands)}
    wants = wants_words(state.numbers, bands)
    if wants != phrases()["drives"]["none"]:
        record["wants"] = wants
    if people:
        told = [f"{_name(name)}: {edge_words(edge_bands(edge))}" for name, edge in people[:MOST_TOWARD]]
        record["toward"] = "; ".join(told)
    on_mind = []
    for arc in sorted(arcs, key=lambda arc: -arc.intensity)[:MOST_ARCS]:
        found = arc_words(arc, arc_band(arc))
        label = " ".join([word for word in arc.label.split() if word.isalpha()])
        if found and label:
            on_mind.append(f"{label}: {found}")
    if on_mind:
        record["on_mind"] = "; ".join(on_mind)
    if means_to := _means_to(intentions, names):
        record["means_to"] = means_to
    tilt = tilt_words(tendencies(state, salience))
    if tilt != phrases()["tilt"]["none"]:
        record["tilt"] = tilt
    return record


def manner_words(intentions: Sequence[Intention]) -> str:
    """Return how to speak this time: by the strongest intention that affects the wording; empty if none does. Pure."""
    told = phrases()["manner"]
    colouring = sorted([one for one in intentions if one.type in told], key=lambda one: -one.priority)
    return str(told[colouring[0].type]) if colouring else ""


def _means_to(intentions: Sequence[Intention], names: Mapping[str, str]) -> str:
    said: list[str] = []
    for one in sorted(intentions, key=lambda one: -one.priority):
        if one.priority < SHOWN_FROM or len(said) == MOST_SHOWN:
            break
        if one.target:
            line = f"{phrases()['means_to'][one.type]} {_name(names.get(one.target, one.target))}"
        else:
            line = str(phrases()["means_to_alone"][one.type])
        if one.description and not any(char.isdigit() for char in one.description):
            line += f" ({one.description[:OWN_WORDS_CHARS]})"
        said.append(line)
    return "; ".join(said)


def _name(name: str) -> str:
    return " ".join(name.split())[:NAME_CHARS] or "someone"
