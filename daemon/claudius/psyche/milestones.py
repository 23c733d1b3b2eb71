"""A need or a subject that has grown strong: an event of the soul's own, once each time that it rises. Pure.

Source: the psyche design, section 2.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

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
    high: Collection[str], were: Collection[str], about: Collection[str], levels: Mapping[str, float], words: str
) -> tuple[Milestone, ...]:
    """Return what is `high` with an event and was not before, told in `words`. Pure.

    `about`: the arcs of the event. No other is told of; none by its name, which is of what people said: the packet
    says what is on the soul's mind when the time comes, as far as it may be shown then.
    """
    return tuple(
        Milestone(name=name, level=levels[name], text=words)
        for name in high
        if name not in were and (name in DRIVES or name in about)
    )
