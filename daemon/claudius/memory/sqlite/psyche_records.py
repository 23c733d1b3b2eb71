"""The substrate as commands read it: as it stands, and how it moved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from claudius.memory.sqlite.psyche import recall_psyche
from claudius.memory.sqlite.queries import Database
from claudius.memory.sqlite.rows import parse
from claudius.substrate import Edge, Psyche


def psyche_now(db: Database) -> tuple[Psyche, tuple[float, ...]]:
    """Return the whole substrate, every edge and subject included, and the traits in force; nothing is filtered."""
    rows = db.all("psyche_edges_shown")
    edges = tuple(msgspec.json.decode(edge, type=Edge) for edge, _ in rows)
    found = recall_psyche(db, [edge.person for edge in edges])
    traits = db.one("psyche_traits")
    return found, tuple(parse(traits[0])) if traits else ()


def psyche_moves(db: Database, since: str) -> Iterator[dict[str, Any]]:
    """Yield how the numbers moved, oldest first: each turn's inputs, and the numbers and edges after it."""
    for turn, at, person, inputs, after, edges, traits in db.all("psyche_traces_shown", since=since):
        yield {
            "turn": turn,
            "at": at,
            "person": person,
            "inputs": parse(inputs),
            "after": parse(after),
            "edges": parse(edges),
            "traits": parse(traits),
        }
