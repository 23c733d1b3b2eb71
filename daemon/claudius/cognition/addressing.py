"""Map the names that a model may use for people (short names of data lines, display names) to their ids."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from hashlib import sha256

from claudius.recollection import Recollection


def people(recollection: Recollection) -> dict[str, str]:
    """Return the ids of those present, keyed by what a model may call them. Pure."""
    present = {one.person: one.name for one in recollection.perceptions if one.person}
    canonical = recollection.speaker.person if recollection.speaker else ""
    ids = {person: canonical or person for person in present}
    present |= {other.person: other.name for other in recollection.others}
    ids |= {other.person: other.person for other in recollection.others}
    counts = Counter(name.casefold() for name in present.values() if name)
    named = {name.casefold(): ids[person] for person, name in present.items() if counts[name.casefold()] == 1}
    return named | {who(person): ids[person] for person in present}


WHO_DIGITS = 6


@lru_cache(maxsize=4096)
def who(person: str) -> str:
    """Return the short name of a person in prompts: `p` and six hex digits. Pure."""
    return "p" + sha256(person.encode()).hexdigest()[:WHO_DIGITS]
