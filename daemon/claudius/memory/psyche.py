"""The topic `store.psyche`: what the soul feels, and the traces of how turns moved it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from msgspec.structs import asdict, replace

from claudius.decoding import decoder
from claudius.intent import Intent
from claudius.memory.database import Core, Database, Decoding, dump, dump_valid, pack, stamp
from claudius.memory.plans import plan_milestone
from claudius.psyche_types import FAULTS, Appraised, Arc, Drift, Edge, Numbers, Psyche

log = logging.getLogger(__name__)
EDGE_TRACED = ("person", "warmth", "trust", "tension", "comfort", "familiarity")
ARC_TRACED = ("arc", "at_s", "intensity", "bias")
"""What a trace keeps of an edge and of an arc: numbers, no names and no words."""

_NUMBERS = decoder(Numbers)
_EDGES = decoder(tuple[Edge, ...])
_ARCS = decoder(tuple[Arc, ...])
_APPRAISALS = decoder(tuple[Appraised, ...])
_DRIFT = decoder(Drift)
May = Callable[[Iterable[str]], bool]


def recall_psyche(db: Database, persons: Sequence[str], may: May | None = None) -> Psyche:
    """Read the psyche as far as it concerns these persons; `may` filters out what may not be shown here."""
    row = db.one("psyche_recalled", persons=dump(persons))
    if row is None or row["version"] is None:
        return Psyche()
    appraisals = _APPRAISALS.decode(row["appraisals"] or "[]")
    return Psyche(
        version=row["version"],
        numbers=_NUMBERS.decode(row["numbers"]),
        kernel=row["kernel"],
        edges=_EDGES.decode(row["edges"] or "[]"),
        arcs=tuple([one for one in _ARCS.decode(row["arcs"] or "[]") if may is None or may(one.sources)]),
        appraisals=tuple([one for one in appraisals if may is None or may((one.audience,))]),
        drift=_DRIFT.decode(row["drift"]),
    )


def psyche_if_whole(db: Database, persons: Sequence[str], may: May) -> Psyche | None:
    """Read the psyche for a turn; None if a row cannot be read, in which case the turn goes on without it."""
    try:
        return recall_psyche(db, persons, may)
    except FAULTS:
        log.exception("the psyche cannot be read")
        return None


def move_psyche(db: Database, intent: Intent, at: str) -> None:
    """Keep how a turn took what was said, fold its changes into the current numbers, and record a trace.

    If folding fails, the numbers stay as they are and the turn is still stored.
    """
    if intent.appraisals:
        place = {"at_s": intent.at.timestamp(), "turn": intent.turn, "audience": intent.audience}
        db.each("appraisal_kept", [{**asdict(one), **place} for one in intent.appraisals])
    change = intent.psyche
    if change is None:
        return
    try:
        psyche = recall_psyche(db, change.persons)
        since_s = change.looks_back(psyche)
        if since_s is not None:
            rows = db.all("appraised_since", since_s=since_s)
            psyche = replace(psyche, since=tuple((row["at_s"], row["kind"]) for row in rows))
        folded = change.fold(psyche)
    except FAULTS:
        log.exception("the psyche is at fault", extra={"turn": intent.turn})
        return
    after = dump(folded.numbers)
    db.run("psyche_moved", numbers=after, kernel=folded.kernel)
    if folded.kernel != psyche.kernel:
        db.run("psyche_kernel_known", kernel=folded.kernel, traits=dump(folded.traits), at=at)
    for edge in folded.edges:
        db.run("psyche_edge_moved", person=edge.person, edge=dump_valid(edge), at=at)
    db.run(
        "psyche_traced",
        turn=intent.turn,
        at=at,
        person=change.persons[0] if change.persons else "",
        kernel=folded.kernel,
        arcs=None if folded.arcs is None else "",
        moved=pack(
            {
                "inputs": folded.inputs,
                "after": folded.numbers,
                "edges": [{name: getattr(edge, name) for name in EDGE_TRACED} for edge in folded.edges],
                "arcs": None
                if folded.arcs is None
                else [{name: getattr(arc, name) for name in ARC_TRACED} for arc in folded.arcs],
            }
        ),
    )
    if folded.drift is not None:
        db.run("psyche_drifted", drift=dump(folded.drift))
    if folded.arcs is not None:
        db.run("psyche_arcs_gone", arcs=dump([arc.arc for arc in folded.arcs]))
        db.each("psyche_arc_kept", [{"arc": arc.arc, "body": dump_valid(arc)} for arc in folded.arcs])
    for milestone in folded.milestones:
        plan_milestone(db, intent, milestone)


class PsycheStore:
    """The psyche outside a turn; in one it is read by `store.turns.recall` and moved by the commit."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def standing(self) -> Psyche:
        """Return the numbers and subjects as they stand, without edges and facts, whoever they concern."""
        with self._core.snapshot() as db, Decoding("psyche_state", 1):
            return recall_psyche(db, ())

    def absent(self, since: datetime, until: datetime, most: int) -> Sequence[Edge]:
        """Return the edges to people who last moved one between two instants, latest first."""
        rows = self._core.values("psyche_absent", since=stamp(since), until=stamp(until), most=most)
        with Decoding("psyche_edge", "absent"):
            return [decoder(Edge).decode(edge) for edge in rows]

    async def expire_traces(self, before: datetime, most: int) -> int:
        """Delete at most `most` of the traces older than `before`, the oldest first; return how many."""
        return await self._core.write(lambda db: db.change("traces_gone", before=stamp(before), most=most))
