"""What commands read of the ledger, the cortex and the psyche. The owner sees everything."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any

from claudius.decoding import decoder
from claudius.ledger_types import Assessment, Belief, Peer, Reflection
from claudius.memory.packing import unpacked
from claudius.memory.sql import ledger, peer_rows
from claudius.memory.sql.connection import Database
from claudius.memory.sql.knowing import find, names_of
from claudius.memory.sql.psyche import recall_psyche
from claudius.memory.sql.rows import Decoding, dump, parse, stamp
from claudius.psyche_types import Edge, Numbers, Psyche

ASSESSMENTS, TIMELINE = 10_000, 200
"""How many assessments and interactions of one peer are shown at most, the newest."""


class InnerRecords:
    """The part of `SqliteRecords` for the soul's inner life."""

    @abstractmethod
    def _snapshot(self) -> AbstractContextManager[Database]: ...

    def peers(self) -> Sequence[Mapping[str, Any]]:
        """Return every peer with the newest assessment, latest first."""
        with self._snapshot() as db:
            names = names_of(db)
            return [_peer(one, names) for one in peer_rows.peers_known(db, db.values("ledger_peers"), None)]

    def peer(self, peer: str) -> Mapping[str, Any] | None:
        """Return one peer (by id or unambiguous name) with every assessment and the newest part of the timeline."""
        with self._snapshot() as db:
            found = peer_rows.peer(db, db.value("canonical", person=peer) or peer, None)
            if found is None and (named := find(db, peer)):
                found = peer_rows.peer(db, named, None)
            if found is None:
                return None
            judged = peer_rows.assessments(db, found.peer_id, None, ASSESSMENTS)
            lines = peer_rows.timeline(db, found.peer_id, TIMELINE, None)
            names = names_of(db)
        where = ("channel_type", "conversation", "audience", "turn", "scope")
        columns = ("id", "at", "direction", *where, "preview", "reaction")
        return {
            **_peer(found, names),
            "assessments": [_assessment(one) for one in reversed(judged)],
            "timeline": [{name: getattr(one, name) for name in columns} for one in lines],
        }

    def evidence(self, ids: Sequence[int]) -> Sequence[Mapping[str, Any]]:
        """Return lines of the ledger by their ids, oldest first."""
        with self._snapshot() as db:
            return db.dicts("interactions_shown", ids=dump(list(ids)))

    def whispers(self, most: int) -> Sequence[Mapping[str, Any]]:
        """Return the newest whispers, newest first."""
        with self._snapshot() as db:
            rows = db.dicts("whispers_told", most=most)
        with Decoding("whisper"):
            return [row | {"sources": parse(row["sources"])} for row in rows]

    def beliefs(self, now: datetime) -> Mapping[str, Any]:
        """Return `{"last_reflection_at", "beliefs": [...]}`: those in force, including pinned and disputed ones."""
        with self._snapshot() as db:
            newest = ledger.reflections(db, 1)
            held = sorted(ledger.every_belief(db), key=lambda one: (one.created_at, one.key), reverse=True)
        return {
            "last_reflection_at": newest[0].at if newest else None,
            "beliefs": [_belief(one) for one in held if not one.is_expired(now)],
        }

    def reflections(self, most: int) -> Sequence[Mapping[str, Any]]:
        """Return the newest cycles, newest first."""
        with self._snapshot() as db:
            return [reflection_row(one) for one in ledger.reflections(db, most)]

    def psyche(self) -> tuple[Psyche, tuple[float, ...]]:
        """Return the whole psyche with every edge and subject, and the traits in force (none at first)."""
        with self._snapshot() as db:
            edges = tuple(decoder(Edge).decode(edge) for edge in db.values("psyche_edges_shown"))
            found = recall_psyche(db, [edge.person for edge in edges])
            traits = db.value("psyche_traits")
        return found, tuple(parse(traits)) if traits else ()

    def psyche_moves(self, since: datetime) -> Sequence[Mapping[str, Any]]:
        """Return how the numbers moved since then, oldest first: each turn's inputs and the values after it.

        Earlier turns that left the values of that time come first.
        """
        with self._snapshot() as db:
            rows = db.all("psyche_traces_shown", since=stamp(since))
        found = []
        for row in rows:
            with Decoding("psyche_trace", row["turn"]):
                whose = {name: row[name] for name in ("turn", "at", "person")}
                columns = ("inputs", "after", "edges", "arcs")
                moved = parse(unpacked(row["moved"])) if row["moved"] else {one: parse(row[one]) for one in columns}
                found.append({**whose, **moved, "traits": parse(row["traits"])})
        return found

    def psyche_checkpoint(self) -> Psyche:
        """Return the numbers and edges before the oldest trace that is kept."""
        with self._snapshot() as db:
            row = db.one("checkpoint")
            edges = db.values("checkpoint_edges_shown")
        return Psyche(
            numbers=decoder(Numbers).decode(row["numbers"]) if row and row["numbers"] else None,
            edges=tuple(decoder(Edge).decode(edge) for edge in edges),
        )


def reflection_row(one: Reflection) -> dict[str, Any]:
    """Return a cycle's record in the shape of the outward interfaces."""
    return {
        "cycle": one.cycle,
        "at": one.at,
        "trigger": one.trigger,
        "duration_s": one.duration_s,
        "assessments": len(one.peers_assessed),
        "beliefs": len(one.beliefs_added) + len(one.beliefs_reaffirmed),
        "directives": len(one.directives),
        "summary": one.summary,
        "outcome": one.outcome,
        "beliefs_added": list(one.beliefs_added),
        "beliefs_reaffirmed": list(one.beliefs_reaffirmed),
        "beliefs_expired": list(one.beliefs_expired),
        "peers_assessed": list(one.peers_assessed),
        "audience": one.audience,
        "sources": list(one.sources),
        "evidence": list(one.evidence),
        "alignment": one.alignment or None,
        "input_tokens": one.usage.input_tokens,
        "output_tokens": one.usage.output_tokens,
        "cost_usd": one.usage.cost_usd,
    }


def _peer(one: Peer, names: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    known = peer_rows.summary(one) | {"name": next(iter(names.get(one.peer_id, ())), one.name)}
    return {"peer": one.peer_id, **known, "is_bot": one.is_bot}


def _assessment(one: Assessment) -> dict[str, Any]:
    return {
        "id": one.id,
        "at": one.created_at,
        "trust": one.trust,
        "info_score": one.info_score,
        "rationale": one.rationale,
        "author": one.author,
        "sources": list(one.sources),
    }


def _belief(one: Belief) -> dict[str, Any]:
    return {
        "key": one.key,
        "value": one.value,
        "rationale": one.rationale,
        "peer": one.peer_id,
        "created_at": one.created_at,
        "expires_at": one.expires_at,
        "source_cycle": one.source_cycle,
        "state": one.state,
        "audience": one.audience,
        "sources": list(one.sources),
        "evidence": list(one.evidence),
    }
