"""The part of the store's door that lets one person be erased; and what the search afterwards looks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from claudius.memory.people import People

ERASED = b"erased"
"""What stands in the place of a turn's snapshot that was erased."""


BLANK = "[erased]"
"""What stands in the place of a line that was erased."""


class Probes(Struct, frozen=True, kw_only=True):
    """What must be found nowhere once a person is forgotten."""

    ids: tuple[str, ...]
    """Every id of that person: found as whole words."""
    folders: tuple[str, ...]
    """The parts of folder names that stand for one of the ids."""
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
        """Return what must be found nowhere once this person is erased. Reads beside the loop."""
        ...

    async def narrowed(self, probes: Probes) -> Probes:
        """Leave out of some probes what others have said meanwhile in the same words. Reads beside the loop."""
        ...

    async def erase(self, ids: Sequence[str]) -> Erased:
        """Take a person out of every table, in many small transactions.

        Where it is cut off, it is to be called again with the same ids.
        """
        ...

    async def blank(self, rows: Sequence[Mapping[str, Any]], probes: Probes) -> int:
        """Blank the lines in which a search found something (`rows` of its answer); return how many rows changed."""
        ...

    async def rewrite(self, pages: Mapping[str, Sequence[int]]) -> None:
        """Write the rows anew beside which a search found old bytes (`pages` of its answer), to overwrite those."""
        ...

    async def empty_log(self) -> bool:
        """Move all of the write-ahead log into the database and empty it; False where a reader is in the way."""
        ...

    async def everyone(self) -> tuple[Sequence[str], str]:
        """Return every id that stands anywhere, and when something was last heard: UTC, as text; empty = never."""
        ...

    async def scrub(self) -> None:
        """Write a file that nobody uses anew, without what was deleted from it, and empty its write-ahead log."""
        ...
