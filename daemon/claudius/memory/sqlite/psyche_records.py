"""What commands read of the psyche: as it stands, and how it moved; the owner sees everything."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import msgspec

from claudius.memory.sqlite.psyche import recall_psyche
from claudius.memory.sqlite.queries import Database
from claudius.memory.sqlite.rows import parse, stamp
from claudius.substrate import Edge, Psyche


class PsycheRecordsRoom:
    """What `SqliteRecords` reads of the psyche."""

    @abstractmethod
    def _snapshot(self) -> AbstractContextManager[Database]: ...

    def psyche(self) -> tuple[Psyche, tuple[float, ...]]:
        """Return the whole substrate, every edge and subject included, and the traits in force (none at first)."""
        with self._snapshot() as db:
            rows = db.all("psyche_edges_shown")
            edges = tuple(msgspec.json.decode(edge, type=Edge) for edge, _ in rows)
            found = recall_psyche(db, [edge.person for edge in edges])
            traits = db.one("psyche_traits")
        return found, tuple(parse(traits[0])) if traits else ()

    def psyche_moves(self, since: datetime) -> Sequence[Mapping[str, Any]]:
        """Return how the numbers moved since then, oldest first, each turn's inputs and what stood after it.

        First come the turns before that which left what stood then.
        """
        with self._snapshot() as db:
            rows = db.all("psyche_traces_shown", since=stamp(since))
        plain, packed = ("turn", "at", "person"), ("inputs", "after", "edges", "arcs", "traits")
        return [
            dict(zip(plain, row[:3], strict=True)) | dict(zip(packed, map(parse, row[3:]), strict=True)) for row in rows
        ]
