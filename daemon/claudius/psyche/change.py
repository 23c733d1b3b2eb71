"""Compute the change that one turn makes to the psyche, with its milestones. Pure.

A milestone is a drive or arc that has grown strong; each rise becomes one event of the soul's own. The store folds a
`Change` at commit; its inputs stand in the trace. Source: the psyche design, section 2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, Self

import msgspec
from msgspec.structs import asdict, astuple, replace

from claudius.psyche.bands import arc_band, edge_bands, numbers_bands
from claudius.psyche.events import HIT, MILESTONE, MILESTONE_REARMED, NOTICED
from claudius.psyche.personality import Kernel, kernel_hash
from claudius.psyche.state import (
    HOUR_S,
    Stimulus,
    advance,
    advance_edge,
    apply,
    apply_appraisal,
    apply_edge,
    appraised_edge,
    coloured,
    drift_on,
    drifted,
    importance_of,
    kinds,
    looks_back,
    moves_only_view,
    stranger,
    tinted,
    weight,
)
from claudius.psyche.words import content, overlap
from claudius.psyche_types import DRIVES, Appraisal, Arc, Edge, Folded, Milestone, Numbers, Psyche

HALF_S = 48 * HOUR_S
BORN, DEAD = 0.30, 0.05
MOST_ARCS, MOST_STEMS, LABEL_WORDS = 12, 12, 3
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


def matching_arcs(arcs: Sequence[Arc], found: frozenset[str]) -> tuple[tuple[str, float], ...]:
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


def with_birth(arcs: Sequence[Arc], born: Arc | None) -> tuple[Arc, ...]:
    """Add a new arc unless one of its place is about the same; past `MOST_ARCS` the weakest is dropped. Pure."""
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
    strongest = sorted((*arcs, born), key=lambda arc: -arc.intensity)[:MOST_ARCS]
    return tuple(arc for arc in (*arcs, born) if arc in strongest)


def risen(levels: Mapping[str, float], were: Collection[str]) -> tuple[str, ...]:
    """Return the names that are high now. Those in `were` stay until they fall below the lower cut. Pure."""
    return tuple(
        [name for name, level in levels.items() if level > MILESTONE or (name in were and level >= MILESTONE_REARMED)]
    )


def milestones(
    high: Collection[str], were: Collection[str], about: Collection[str], levels: Mapping[str, float], words: str
) -> tuple[Milestone, ...]:
    """Return a milestone with the text `words` for each name that is `high` and was not before. Pure.

    `about`: the arcs of the event; other arcs are left out. No arc is named, because its name comes from what people
    said: the packet later shows what is on the soul's mind, as far as it may be shown then.
    """
    return tuple(
        Milestone(name=name, level=levels[name], text=words)
        for name in high
        if name not in were and (name in DRIVES or name in about)
    )


HINT_MOST, HINT_REST_S = 0.04, 600.0

_HINTS = {
    "neutral": (0.10, 0.30),
    "engaged": (0.35, 0.50),
    "focused": (0.10, 0.70),
    "frustrated": (-0.30, 0.50),
    "sardonic": (-0.30, 0.25),
}
"""The valence and arousal that each mood word of the model points to."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """An event as the numbers see it."""

    at_s: float
    kind: str
    address: str
    person: str
    """Canonical id; empty = nobody spoke."""
    name: str
    stimulus: Stimulus | None
    """None = the event moves nothing."""
    importance: float
    matches: tuple[tuple[str, float], ...] = ()
    """Arcs that the event is about, each with its match score."""
    birth: Arc | None = None
    """A new arc that was named in the turn, if none is about the same."""


class Moved(NamedTuple):
    """The psyche's numbers, edge and arcs after an event."""

    numbers: Numbers
    edge: Edge | None
    arcs: tuple[Arc, ...]


def feel(psyche: Psyche, event: Event, kernel: Kernel) -> Moved:
    """Advance the numbers to an event's instant and apply the event to them. Pure."""
    numbers = advance(psyche.numbers or Numbers(at_s=event.at_s), event.at_s)
    edge = edge_of(psyche, event.person, event.at_s, kernel) if event.person else None
    if event.stimulus is None:
        return Moved(numbers, edge, advance_arcs(psyche.arcs, event.at_s))
    axes = event.stimulus.axes
    feeling = (axes.affectionate + axes.supportive) / 2
    return Moved(
        apply(numbers, event.stimulus, kernel),
        apply_edge(edge, event.stimulus, kernel) if edge else None,
        strengthened(advance_arcs(psyche.arcs, event.at_s), dict(event.matches), event.importance, feeling, keeps=0.8),
    )


def edge_of(psyche: Psyche, person: str, at_s: float, kernel: Kernel) -> Edge:
    """Return the soul's relation to a person at `at_s`. Pure."""
    found = [edge for edge in psyche.edges if edge.person == person]
    return advance_edge(found[0], at_s, kernel) if found else stranger(person, at_s, kernel)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One turn's change. Implements `claudius.psyche_types.PsycheChange`."""

    turn: str
    audience: str
    event: Event
    compiled: Kernel
    outcome: str
    m: float = 0.0
    theta: float = 0.0
    appraisals: tuple[Appraisal, ...] = ()
    """How the soul took what it heard; applied after the reply."""
    mood: str = ""
    """The mood word for the soul's numbers in this turn."""
    hurts: bool = False
    """Whether what was said in this conversation alone would make the soul frustrated by now."""
    hint: str = ""
    """The model's own word for the soul's mood."""
    milestone: str = ""
    """The text with which the soul tells itself that a level has grown strong; empty = no milestones."""

    @property
    def persons(self) -> tuple[str, ...]:
        """The persons whose edges are needed to fold this change."""
        speaker = [self.event.person] if self.event.person else []
        return tuple(dict.fromkeys(speaker + [one.person for one in self.appraisals]))

    @property
    def importance(self) -> float:
        """How much the event, and how it landed, matters, in [0, 1]."""
        return min(1.0, self.event.importance + importance_of(self.appraisals))

    def about(self, named: str) -> Self:
        """Return this change with the birth of a subject that was named. Pure."""
        born = subject(self.turn, named, self.event.at_s, self.audience, self.event.person)
        return replace(self, event=replace(self.event, birth=born))

    def looks_back(self, psyche: Psyche) -> float | None:
        """Return the instant since which appraisals are needed to fold this change; None if none are. Pure."""
        return looks_back(self.compiled, psyche.drift, self.event.at_s)

    def fold(self, psyche: Psyche) -> Folded:
        """Apply this change to the psyche as it stands now. Pure."""
        kernel = tinted(self.compiled, psyche.drift)
        moved = feel(psyche, self.event, kernel)
        numbers, edges = _after_thought(self, psyche, moved, kernel)
        grown = with_birth(_felt(moved.arcs, self), self.event.birth)
        is_born = self.event.birth is not None and self.event.birth.arc in [arc.arc for arc in grown]
        levels = dict(zip(DRIVES, numbers.drives, strict=True)) | {arc.arc: arc.intensity for arc in grown}
        were = numbers.high
        high = risen(levels, were)
        if self.event.kind in NOTICED:  # a milestone is told where somebody is, so it rises with what they say next
            high = tuple([name for name in high if name in were])
        numbers = replace(numbers, bands=numbers_bands(numbers), mood=self.mood or numbers.mood, high=high)
        return Folded(
            numbers=numbers,
            edges=tuple([replace(edge, bands=edge_bands(edge)) for edge in edges]),
            kernel=kernel_hash(kernel),
            traits=astuple(kernel),
            inputs=self.inputs(is_born=is_born),
            arcs=grown if self.event.matches or is_born else None,
            milestones=milestones(numbers.high, were, dict(self.event.matches), levels, self.milestone)
            if self.milestone and numbers.high != were
            else (),
            drift=None
            if psyche.since is None
            else drift_on(self.compiled, psyche.drift, psyche.since, self.event.at_s),
        )

    def inputs(self, *, is_born: bool = False) -> dict[str, Any]:
        """Return the inputs that move the numbers, without anybody's text, as the trace keeps them. Pure.

        `is_born`: the event created an arc.
        """
        event = self.event
        return {
            "at_s": event.at_s,
            "kind": event.kind,
            "address": event.address,
            "stimulus": asdict(event.stimulus) if event.stimulus else None,
            "importance": event.importance,
            "matches": list(event.matches),
            "born": MOST_ARCS if is_born else 0,
            "outcome": self.outcome,
            "m": self.m,
            "theta": self.theta,
            "appraisals": [[one.person, one.kind, one.strength] for one in self.appraisals],
            "hint": self.hint,
            "mood": self.mood,
        }


def _after_thought(change: Change, psyche: Psyche, moved: Moved, kernel: Kernel) -> tuple[Numbers, tuple[Edge, ...]]:
    """Apply how the soul took what it heard, and the mood hint of its thought, each by its table."""
    at_s, speaker = change.event.at_s, change.event.person
    edges: dict[str, Edge] = {}
    if moved.edge:
        edges[speaker] = replace(moved.edge, name=change.event.name or moved.edge.name)
    numbers = moved.numbers
    for one in change.appraisals:
        edges[one.person] = appraised_edge(
            edges.get(one.person) or edge_of(psyche, one.person, at_s, kernel), one, kernel
        )
        if not moves_only_view(one, speaker):
            numbers = coloured(apply_appraisal(numbers, one, kernel), one)
    if change.hint in _HINTS and not 0.0 <= at_s - numbers.hinted_s < HINT_REST_S:
        valence, arousal = _HINTS[change.hint]
        numbers = replace(
            numbers,
            hinted_s=at_s,
            valence=numbers.valence + max(-HINT_MOST, min(HINT_MOST, valence - numbers.valence)),
            arousal=numbers.arousal + max(-HINT_MOST, min(HINT_MOST, arousal - numbers.arousal)),
        )
    return numbers, tuple(edges.values())


def _felt(arcs: tuple[Arc, ...], change: Change) -> tuple[Arc, ...]:
    """Return the arcs with what the appraisals of an event do to its subjects. Pure."""
    axes = [weight(one).stimulus.axes for one in change.appraisals if kinds()[one.kind].about != "deed"]
    feeling = sum([(one.affectionate + one.supportive) / 2 for one in axes])
    matters, about = importance_of(change.appraisals), dict(change.event.matches)
    return strengthened(arcs, about, matters, feeling) if matters else arcs
