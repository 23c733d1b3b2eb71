"""Compute salience: the claims of people, topics, objects and inner concerns on the soul's attention. Pure.

Source: the psyche design, section 5.
"""

from __future__ import annotations

from typing import NamedTuple

from claudius.psyche.events import MESSAGES, OWN, claim, is_addressed
from claudius.psyche.models import Happening, Standing
from claudius.psyche_types import Edge

HIT = 0.35
"""The lowest match score at which an event is about an arc."""


class Salience(NamedTuple):
    """The four claims, each in [0, 1]."""

    person: float
    topic: float
    object: float
    inner: float


def stakes(edge: Edge) -> float:
    """Return how much a person matters to the soul, for better or worse, in [0, 1]. Pure."""
    return max(abs(edge.warmth), abs(edge.trust), edge.tension)


def arc_heat(standing: Standing) -> float:
    """Return the highest intensity of the arcs that the event is about; 0 if there are none. Pure."""
    return max((arc.intensity for arc, _ in standing.arcs), default=0.0)


def salience(happening: Happening, standing: Standing) -> Salience:
    """Compute the four claims. Pure."""
    heat = arc_heat(standing)
    return Salience(
        person=_person(happening, standing.edge),
        topic=0.4 + 0.3 * heat**1.5 if heat else 0.0,
        object=0.25 if happening.has_attachments else 0.0,
        inner=(0.5 if happening.kind in OWN else 0.3) * max(standing.numbers.drives) ** 1.5,
    )


def _person(happening: Happening, edge: Edge) -> float:
    heard = happening.heard
    base, bonus, _ = claim(happening.kind, happening.address, happening.level)
    found = min(1.0, base + bonus * stakes(edge))
    if happening.kind not in MESSAGES:
        return found
    if happening.address in ("thread", "named") and heard.is_question and not happening.mentions_other:
        found += 0.20
    if not is_addressed(happening.kind, happening.address) and heard.critical & {"destructive", "self_harm"}:
        found += 0.50
    if happening.address == "thread" and happening.mentions_other:
        found = min(0.30, found)
    return min(1.0, found)
