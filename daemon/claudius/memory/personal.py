"""The part of the store's door that lets one person be erased; and what the search afterwards looks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from claudius.memory.people import People

ERASED = b"erased"
"""What stands in the place of a turn's snapshot that was erased."""


class Probes(Struct, frozen=True):
    """What must be found nowhere once a person is forgotten."""

    ids: tuple[str, ...]
    """Every id of that person, and the folders that bear one: found as whole words."""
    excerpts: tuple[str, ...]
    """Pieces of that person's words that stand in nobody else's: found anywhere."""


class Erased(Struct, frozen=True, kw_only=True):
    """What was taken out of the database."""

    rows: Mapping[str, int]
    """By table: rows deleted or blanked."""
    versions: int
    """Portraits that git held, and holds no more once it is built anew."""
    conversations: tuple[str, ...]
    """Every conversation that held something of theirs."""
    audiences: tuple[str, ...]
    """Shared places whose members are to be asked anew: one of them is not on the list any more."""


class Personal(People, Protocol):
    """One person's part of everything that is kept."""

    async def ids_of(self, person: str) -> Sequence[str]:
        """Return every id of a person, by any of them, the canonical one first; none where nobody is known so."""
        ...

    async def probes(self, ids: Sequence[str]) -> Probes:
        """Return what must be found nowhere once this person is erased."""
        ...

    async def erase(self, ids: Sequence[str]) -> Erased:
        """Take a person out of every table, in one transaction; what was thought with those words is blanked."""
        ...

    async def everyone(self) -> tuple[Sequence[str], str]:
        """Return every id that stands anywhere, and when something was last heard: UTC, as text; empty = never."""
        ...

    async def scrub(self) -> None:
        """Write the file anew without what was deleted from it, and empty its write-ahead log."""
        ...
