"""Represent a conversation's working memory as an immutable value: entries ordered in named regions.

Source: the process design, section 1.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from types import MappingProxyType
from typing import Any, Literal, overload

from claudius.cognition.reply.parser import clean_text
from claudius.recollection import Entry, EntryType

Role = Literal["system", "user", "assistant"]

DEFAULT = "default"
"""The region of entries that name no other; it comes after every named region."""
CORE, SUMMARY = "core", "summary"
ORDER = (CORE, SUMMARY)
"""The initial region order; other regions follow in order of appearance, and `default` is last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEntry:
    """One line of working memory. Frozen, including its metadata; equal `id`s mean the same line."""

    id: str
    role: Role
    content: str
    entry_type: EntryType | None = None
    """Its kind in the store; None = it lasts for this turn only."""
    verb: str | None = None
    region: str = DEFAULT
    name: str | None = None
    """The display name of the author."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    at: datetime | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))

    @classmethod
    def of(cls, entry: Entry, key: str, role: Role = "assistant") -> MemoryEntry:
        """Return a stored entry as a line whose id is `key`. Pure."""
        return cls(
            id=key,
            role=role,
            content=entry.content,
            entry_type=entry.entry_type,
            verb=entry.verb,
            name=entry.name,
            metadata=entry.metadata,
            at=entry.at,
        )

    def stored(self, now: datetime) -> Entry:
        """Return the entry in which the store keeps the line; `now`: its time if it has none. Pure."""
        return Entry(
            entry_type=self.entry_type or EntryType.MENTAL_QUERY,
            content=clean_text(self.content),
            at=self.at or now,
            verb=self.verb,
            metadata=dict(self.metadata),
        )


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """An immutable memory, oldest first within each region. Every method returns a new value."""

    soul: str = ""
    """The name of the soul that owns the memory."""
    entries: tuple[MemoryEntry, ...] = ()
    order: tuple[str, ...] = ORDER
    _regions: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __post_init__(self) -> None:
        """Sort the entries by region; an entry that is already present keeps its place."""
        lines = {entry.id: entry for entry in self.entries}
        seen = tuple(dict.fromkeys(entry.region for entry in lines.values()))
        known = (*(name for name in self._regions if name in seen), *seen)
        places = {name: place for place, name in enumerate(dict.fromkeys((*self.order, *known)))}
        places[DEFAULT] = len(places) + 1 if DEFAULT not in self.order else places[DEFAULT]
        ordered = sorted(lines.values(), key=lambda entry: places[entry.region])
        object.__setattr__(self, "entries", tuple(ordered))
        object.__setattr__(self, "_regions", tuple(dict.fromkeys(known)))

    def __add__(self, other: MemoryEntry | Iterable[MemoryEntry]) -> WorkingMemory:
        """Append an entry, or all entries of another memory, each within its own region."""
        more = (other,) if isinstance(other, MemoryEntry) else tuple(other)
        lines = {entry.id: entry for entry in self.entries}
        for entry in more:
            if lines.get(entry.id) != entry:
                fresh = _free(entry.id, lines)
                lines[fresh] = replace(entry, id=fresh)
        return replace(self, entries=tuple(lines.values()))

    def with_region(self, name: str, *entries: MemoryEntry) -> WorkingMemory:
        """Replace a whole region in place; a new region is placed by the order."""
        new = tuple(replace(entry, region=name) for entry in entries)
        rest = tuple(entry for entry in self.entries if entry.region != name)
        return replace(self, entries=(*rest, *new))

    def with_order(self, *names: str) -> WorkingMemory:
        """Return the memory with another region order, which later values keep."""
        return replace(self, order=_names(names), entries=self.entries)

    def without(self, *names: str) -> WorkingMemory:
        """Leave regions out; `default` means entries without a region. Raises: TypeError for a list."""
        gone = set(_names(names))
        return replace(self, entries=tuple(entry for entry in self.entries if entry.region not in gone))

    def only(self, *names: str) -> WorkingMemory:
        """Keep only these regions. Raises: TypeError for a list."""
        kept = set(_names(names))
        return replace(self, entries=tuple(entry for entry in self.entries if entry.region in kept))

    def region(self, name: str) -> tuple[MemoryEntry, ...]:
        """Return the entries of one region, oldest first."""
        return tuple(entry for entry in self.entries if entry.region == name)

    def note(self, content: str, *, region: str = DEFAULT, role: Role = "assistant", **changes: Any) -> WorkingMemory:
        """Append a line written by the process; it lasts for this turn only, unless it has an `entry_type`."""
        free = _free("note", {entry.id for entry in self.entries})
        return self + MemoryEntry(id=free, role=role, content=content, region=region, **changes)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[MemoryEntry]:
        return iter(self.entries)

    @overload
    def __getitem__(self, place: int) -> MemoryEntry: ...
    @overload
    def __getitem__(self, place: slice) -> WorkingMemory: ...
    def __getitem__(self, place: int | slice) -> MemoryEntry | WorkingMemory:
        """Return one entry, or a memory for a slice; negative indices count from the end."""
        if isinstance(place, slice):
            return replace(self, entries=self.entries[place])
        return self.entries[place]


def _free(name: str, taken: Container[str]) -> str:
    ids = (name if number == 0 else f"{name}~{number}" for number in count())
    return next(one for one in ids if one not in taken)


def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"name regions one by one, not as a {type(name).__name__}")
    return names
