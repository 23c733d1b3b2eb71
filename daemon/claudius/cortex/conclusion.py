"""From what the model said to everything that a cycle changes. Pure.

Source: the cortex design, sections 3 to 7.
"""

from __future__ import annotations

from collections.abc import Mapping

from claudius.cortex import beliefs
from claudius.cortex.directives import directives
from claudius.cortex.lessons import learn
from claudius.cortex.models import Cycle, Document, Output
from claudius.cortex.parsing import one_line
from claudius.memory.ledger import clamp_trust
from claudius.peers import Outcome, Proposal, Reflected, Reflection
from claudius.provider import Usage

RATIONALE_CHARS = 1000


def conclude(cycle: Cycle, output: Output, usage: Usage, duration_s: float) -> Reflected:
    """Turn an answer into everything that it changes. Pure."""
    settings, document, audience = cycle.settings, cycle.document, cycle.part.audience
    verdict, kept = beliefs.alignment(output.alignment) if settings.soul_alignment else ("", None)
    changed = beliefs.change(
        cycle.grounds.every_belief,
        [*output.beliefs, *([kept] if kept else [])],
        document,
        audience=audience,
        cycle=cycle.number,
        now=cycle.at,
        ttl_minutes=settings.belief_ttl_minutes,
        most=settings.max_beliefs,
    )
    shown = [one for one in cycle.grounds.peers if one.peer.peer_id in document.peers]
    most = settings.max_directives if settings.directives else 0
    told = directives(output.directives, shown, audience=audience, cycle=cycle.number, now=cycle.at, most=most)
    proposals = assessments(output, document, cycle.start, settings.max_trust_delta)
    lessons, lost = learn(cycle.grounds.every_lesson, changed.put, cycle.at)
    record = Reflection(
        cycle=cycle.number,
        at=cycle.at,
        trigger=cycle.trigger,
        audience=audience,
        outcome="done",
        duration_s=duration_s,
        summary=output.summary,
        sources=document.sources,
        peers_assessed=tuple(one.peer_id for one in proposals),
        beliefs_added=changed.added,
        beliefs_reaffirmed=(*changed.reaffirmed, *changed.revised),
        beliefs_expired=changed.expired,
        directives=tuple(one.perception.key for one in told),
        evidence=document.evidence,
        alignment=verdict,
        usage=usage,
    )
    moved = any(cycle.start.get(one.peer_id) != one.trust for one in proposals)
    return Reflected(
        record=record,
        proposals=proposals,
        put=changed.put,
        gone=changed.gone,
        lessons=lessons,
        lost=lost,
        directives=told,
        seen=tuple(sorted(document.peers)),
        upto=cycle.grounds.upto,
        overdue=tuple(promise.id for promise in cycle.part.overdue),
        history_size=settings.history_size,
        was_useful=moved or bool(changed.added or changed.revised or told),
    )


def failure(cycle: Cycle, outcome: Outcome, duration_s: float, usage: Usage) -> Reflection:
    """Return the record of a cycle that changes nothing. Pure."""
    return Reflection(
        cycle=cycle.number,
        at=cycle.at,
        trigger=cycle.trigger,
        audience=cycle.part.audience,
        outcome=outcome,
        duration_s=duration_s,
        evidence=cycle.document.evidence,
        usage=usage,
    )


def assessments(output: Output, document: Document, start: Mapping[str, int], limit: int) -> tuple[Proposal, ...]:
    """Return what may be recorded: known peers only, clamped, of several entries for one peer the last. Pure.

    `start`: each peer's trust as the pass began.
    """
    found: dict[str, Proposal] = {}
    for entry in output.assessments:
        peer, rationale = entry.get("peer_id"), entry.get("rationale")
        if not isinstance(peer, str) or peer not in document.peers or not isinstance(rationale, str):
            continue
        trust = clamp_trust(start.get(peer), entry.get("trust"), limit)
        why = one_line(rationale)[:RATIONALE_CHARS]
        if trust is not None and why:
            found[peer] = Proposal(peer_id=peer, trust=trust, rationale=why, sources=document.sources)
    return tuple(found.values())
