"""A need or a subject that has grown strong: an event of the soul's own, once each time that it rises. Pure.

Source: the psyche design, section 2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from string import Template

from claudius.psyche.bands import drive_words
from claudius.psyche.events import MILESTONE, MILESTONE_REARMED
from claudius.substrate import DRIVES, Arc, Milestone, Numbers


def levels_of(numbers: Numbers, arcs: Collection[Arc]) -> dict[str, float]:
    """Return every level that may rise, by the need's name or the arc's id. Pure."""
    return dict(zip(DRIVES, numbers.drives, strict=True)) | {arc.arc: arc.intensity for arc in arcs}


def risen(levels: Mapping[str, float], were: Collection[str]) -> tuple[str, ...]:
    """Return what is high now, of what was before too: one falls out again only well below where it came in. Pure."""
    return tuple(
        name for name, level in levels.items() if level > MILESTONE or (name in were and level >= MILESTONE_REARMED)
    )


def milestones(
    numbers: Numbers, arcs: Collection[Arc], levels: Mapping[str, float], were: Collection[str], words: str
) -> tuple[Milestone, ...]:
    """Return what rose with an event, in words: `numbers.high` beside what `were` so before it. Pure.

    `arcs`: those that the event is about, so that they may be named where it happened.
    """
    said = {arc.arc: arc.label for arc in arcs}
    for place, drive in enumerate(DRIVES):
        said[drive] = drive_words(drive, numbers.bands[3 + place])
    return tuple(
        Milestone(name=name, level=levels[name], text=Template(words).safe_substitute(what=said[name]))
        for name in numbers.high
        if name not in were and name in said
    )
