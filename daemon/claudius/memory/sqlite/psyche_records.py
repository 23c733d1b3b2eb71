"""What commands read of the psyche: its current state and its changes. The owner sees everything."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

import msgspec

from claudius.memory.packing import unpacked
from claudius.memory.sqlite.psyche import recall_psyche
from claudius.memory.sqlite.queries import Database
from claudius.memory.sqlite.rows import Decoding, parse, stamp
from claudius.psyche_types import Edge, Numbers, Psyche


class PsycheRecordsRoom:
    """The part of `SqliteRecords` for the psyche."""

    @abstractmethod
    def _snapshot(self) -> AbstractContextManager[Database]: ...

    def psyche(self) -> tuple[Psyche, tuple[float, ...]]:
        """Return the whole psyche with every edge and subject, and the traits in force (none at first)."""
        with self._snapshot() as db:
            rows = db.all("psyche_edges_shown")
            edges = tuple(msgspec.json.decode(edge, type=Edge) for edge, _ in rows)
            found = recall_psyche(db, [edge.person for edge in edges])
            traits = db.one("psyche_traits")
        return found, tuple(parse(traits[0])) if traits else ()

    def psyche_moves(self, since: datetime) -> Sequence[Mapping[str, Any]]:
        """Return how the numbers moved since then, oldest first: each turn's inputs and the values after it.

        Earlier turns that left the values of that time come first.
        """
        with self._snapshot() as db:
            rows = db.all("psyche_traces_shown", since=stamp(since))
        return [_move(*row) for row in rows]

    def psyche_checkpoint(self) -> Psyche:
        """Return the numbers and edges before the oldest trace that is kept."""
        with self._snapshot() as db:
            row = db.one("checkpoint")
            edges = db.all("checkpoint_edges_shown")
        return Psyche(
            numbers=msgspec.json.decode(row[2], type=Numbers) if row and row[2] else None,
            edges=tuple(msgspec.json.decode(edge, type=Edge) for (edge,) in edges),
        )


def _move(turn: str, at: str, person: str, *moved: Any) -> Mapping[str, Any]:
    *columns, packed, traits = moved
    names = ("inputs", "after", "edges", "arcs")
    with Decoding("psyche_trace", turn):
        found = parse(unpacked(packed)) if packed else dict(zip(names, map(parse, columns), strict=True))
        return {"turn": turn, "at": at, "person": person, **found, "traits": parse(traits)}
