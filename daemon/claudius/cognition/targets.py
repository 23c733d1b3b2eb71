"""Whom a model may mean: everyone present, by the short name of the data lines or by a name that is theirs alone."""

from __future__ import annotations

from collections import Counter

from claudius.cognition.soul_engine.names import who
from claudius.recollection import Recollection


def people(recollection: Recollection) -> dict[str, str]:
    """Return the ids of those present by what a model may call them. Pure."""
    present = {one.person: one.name for one in recollection.perceptions if one.person}
    canonical = recollection.speaker.person if recollection.speaker else ""
    ids = {person: canonical or person for person in present}
    present |= {other.person: other.name for other in recollection.others}
    ids |= {other.person: other.person for other in recollection.others}
    counts = Counter(name.casefold() for name in present.values() if name)
    named = {name.casefold(): ids[person] for person, name in present.items() if counts[name.casefold()] == 1}
    return named | {who(person): ids[person] for person in present}
