"""Track arcs: subjects that somebody named, strengthened by what is said of them, weakened by silence. Pure.

An arc begins with an open matter of somebody's life, or with a topic that the soul wrote into its state.
Source: the psyche design, section 4; the design of acts, section 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from claudius.psyche.bands import arc_band
from claudius.psyche.events import HIT
from claudius.psyche.state import HOUR_S, drifted
from claudius.psyche.words import content, overlap
from claudius.psyche_types import Arc

HALF_S = 48 * HOUR_S
BORN, DEAD = 0.30, 0.05
MOST, MOST_STEMS, LABEL_WORDS = 12, 12, 3
ALIKE = 0.50


def advance_arcs(arcs: Sequence[Arc], at_s: float) -> tuple[Arc, ...]:
    """Decay arcs to an instant and drop those that have faded out. Pure."""
    faded = [
        replace(arc, at_s=at_s, intensity=drifted(arc.intensity, 0.0, HALF_S, at_s - arc.at_s))
        if at_s > arc.at_s
        else arc
        for arc in arcs
    ]
    return tuple([arc for arc in faded if arc.intensity >= DEAD])


def matches(arcs: Sequence[Arc], found: frozenset[str]) -> tuple[tuple[str, float], ...]:
    """Return the arcs that a text is about, each with its match score. Pure."""
    matched = [(arc.arc, overlap(found, arc.stems)) for arc in arcs] if found else []
    return tuple([(name, match) for name, match in matched if match >= HIT])


def strengthened(
    arcs: Sequence[Arc], found: Mapping[str, float], importance: float, feeling: float, keeps: float = 1.0
) -> tuple[Arc, ...]:
    """Strengthen the arcs that an event is about by how much it matters, and color them by a share of its feeling.

    `keeps`: what share of how they felt before remains. Pure.
    """
    felt = [replace(arc, bias=keeps * arc.bias + 0.2 * feeling) if arc.arc in found else arc for arc in arcs]
    warmed = [
        replace(arc, intensity=arc.intensity + (1.0 - arc.intensity) * 0.7 * importance * min(1.0, found[arc.arc]))
        if arc.arc in found
        else arc
        for arc in felt
    ]
    return tuple([replace(arc, band=arc_band(arc)) if arc.arc in found else arc for arc in warmed])


def subject(turn: str, text: str, at_s: float, audience: str, person: str) -> Arc | None:
    """Return a new arc for a subject that was named; None if its words say nothing. Pure."""
    words = {one: word for word, one in reversed(content(text))}
    if not words:
        return None
    return Arc(
        arc=turn,
        label=" ".join([word for word in reversed(words.values()) if word.isalpha()][:LABEL_WORDS]),
        stems=tuple(sorted([*reversed(words)][:MOST_STEMS])),
        at_s=at_s,
        intensity=BORN,
        sources=(audience,),
        persons=(person,) if person else (),
        band=1,
    )


def with_birth(arcs: Sequence[Arc], born: Arc | None, most: int = MOST) -> tuple[Arc, ...]:
    """Add a new arc unless one of its place is about the same; past `most` the weakest is dropped. Pure."""
    if born is None or any(
        arc.arc == born.arc
        or (
            arc.sources == born.sources
            and (
                arc.label == born.label or min(overlap(born.stems, arc.stems), overlap(arc.stems, born.stems)) >= ALIKE
            )
        )
        for arc in arcs
    ):
        return tuple(arcs)
    strongest = sorted((*arcs, born), key=lambda arc: -arc.intensity)[:most]
    return tuple(arc for arc in (*arcs, born) if arc in strongest)
