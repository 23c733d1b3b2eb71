"""The topic `store.psyche`: the traces of how turns moved the psyche, and the checkpoint that replaces old ones."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from claudius.decoding import decoder, ready
from claudius.intent import Intent
from claudius.memory.database import Core, Database, Decoding, Row, dump, dump_valid, pack, parse, stamp
from claudius.memory.packing import unpacked
from claudius.memory.plans import plan_milestone
from claudius.psyche_types import FAULTS, Appraised, Arc, Drift, Edge, Numbers, Psyche


class Trace(Struct, frozen=True, kw_only=True):
    """How one turn moved the psyche's numbers, and their values after it."""

    id: int
    turn: str
    person: str
    inputs: Mapping[str, Any]
    after: Numbers
    traits: tuple[float, ...]


class OldTraces(Struct, frozen=True, kw_only=True):
    """Expiring traces, oldest first, and the state before the first of them."""

    before: Psyche
    """The checkpoint: numbers, and the edges of the persons that the traces name."""
    traces: Sequence[Trace]


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
    traits = dump(folded.traits)
    after = dump(folded.numbers)
    db.run("psyche_moved", numbers=after, kernel=folded.kernel)
    db.run("psyche_kernel_known", kernel=folded.kernel, traits=traits, at=at)
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

    def old_traces(self, before: datetime, most: int) -> OldTraces:
        """Return at most `most` of the traces older than `before`."""
        with self._core.snapshot() as db:
            return old_traces(db, before, most)

    async def fold_traces(self, last: Trace, edges: Sequence[Edge]) -> None:
        """Delete every trace up to `last`, and move the checkpoint after it, with `edges` as they were then."""
        await self._core.write(lambda db: fold_traces(db, last, edges))


def old_traces(db: Database, before: datetime, most: int) -> OldTraces:
    """Return at most `most` of the traces older than `before`, and the state before them."""
    folded = db.one("checkpoint")
    upto, numbers = (folded["trace"], folded["numbers"]) if folded else (0, None)
    traces = [_trace(row) for row in db.all("traces_old", trace=upto, before=stamp(before), most=most)]
    persons = {one.person for one in traces} | {
        str(who) for one in traces for who, *_ in one.inputs.get("appraisals", ())
    }
    edges = db.values("checkpoint_edges", persons=dump(sorted(persons)))
    return OldTraces(
        before=Psyche(
            numbers=_NUMBERS.decode(numbers) if numbers else None,
            edges=tuple(decoder(Edge).decode(edge) for edge in edges),
        ),
        traces=traces,
    )


def fold_traces(db: Database, last: Trace, edges: Sequence[Edge]) -> None:
    """Delete every trace up to `last` and move the checkpoint after it."""
    if db.change("checkpoint_moved", trace=last.id, numbers=dump(last.after)):
        rows = ({"person": edge.person, "edge": dump(replace(edge, name=""))} for edge in edges)
        db.each("checkpoint_edge_moved", rows)
    db.run("traces_gone", trace=last.id)


def _trace(row: Row) -> Trace:
    with Decoding("psyche_trace", row["id"]):
        moved = row["moved"]
        found = parse(unpacked(moved)) if moved else {name: parse(row[name]) for name in ("inputs", "after")}
        return Trace(
            id=row["id"],
            turn=row["turn"],
            person=row["person"],
            inputs=found["inputs"],
            after=msgspec.convert(found["after"], ready(Numbers)),
            traits=tuple(parse(row["traits"])),
        )
