"""Run one cycle: read within one audience, ask the model once, and turn its answer into changes.

The changes are directives, beliefs, lessons and assessments; they are returned, not written. A directive suggests
something for the soul to say; the cortex sends nothing itself. Source: the cortex design, sections 3 and 7.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from claudius.cortex import beliefs
from claudius.cortex import triggers as triage
from claudius.cortex.asking import Unparsable, ask, book, nonce_for, one_line, parse, request, system_text
from claudius.cortex.beliefs import build, learn, ranked
from claudius.cortex.models import Cycle, CycleDocument, Ended, ModelAnswer, Output, Part, Thresholds, Ties
from claudius.errors import ClaudiusError, TimedOut
from claudius.ledger_types import Directive, Known, Outcome, Proposal, Reflected, Reflection
from claudius.memory.ledger import clamp_trust
from claudius.perception import DirectiveExtra, Kind, Origin, Perception
from claudius.provider import Usage
from claudius.psyche.events import critical
from claudius.soul import tokens

log = logging.getLogger(__name__)

CONTEXT_TOKENS = 2500
"""The most tokens (characters / 4) of a cycle's prompt."""
MAX_DIRECTIVES = 2
TRIAGE_TOKENS = 200
ACTIONS = ("follow_up", "ask", "remind", "thank", "apologise")
TEXT_CHARS = 400
LAPSES_AFTER = timedelta(hours=6)
"""A directive that no turn has taken by then is dropped."""
A_PEER_EACH = timedelta(days=1)
"""A peer is the subject of one directive in this time at most."""
RATIONALE_CHARS = 1000


async def reflect(ties: Ties, part: Part, triggers: Sequence[str], start: Mapping[str, int], least: int) -> Ended:
    """Run one cycle over one part of a pass; `least` is the lowest number that the cycle may have.

    `start`: each peer's trust at the start of the pass.
    """
    began = time.monotonic()
    cycle, system = _prepare(ties, part, triggers, start, least)
    outcome, answer = await _answer(ties, cycle, system)
    duration_s = round(time.monotonic() - began, 3)
    usage = answer.usage if answer else Usage()
    if answer is None or outcome != "done":
        return Ended(record=failure(cycle, outcome, duration_s, usage), peers=cycle.document.peers)
    try:
        output = parse(answer.text)
    except Unparsable as error:
        log.warning("the answer of cycle %d cannot be read: %s", cycle.number, error)
        return Ended(record=failure(cycle, "parse_error", duration_s, usage), peers=cycle.document.peers)
    for line in output.dropped:
        log.warning("cycle %d: left out %s", cycle.number, line)
    reflected = conclude(cycle, output, usage, duration_s)
    base = Thresholds.of(cycle.settings).bases.get(cycle.trigger)
    if cycle.settings.adaptive and base is not None:
        before = next((one for one in cycle.grounds.tuned if one.trigger == cycle.trigger), None)
        tuned = triage.tune(before, cycle.trigger, base, was_useful=reflected.was_useful)
        reflected = replace(reflected, tuned=(tuned,))
    return Ended(record=reflected.record, reflected=reflected, peers=cycle.document.peers)


def _prepare(
    ties: Ties, part: Part, triggers: Sequence[str], start: Mapping[str, int], least: int
) -> tuple[Cycle, str]:
    settings, soul, now = ties.config().cortex, ties.soul(), ties.clock()
    peers = ranked(part, settings.max_peers)
    grounds = ties.store.ledger.grounds(part.audience, peers, settings.context_window)
    system = system_text(soul)
    document = build(
        part,
        grounds,
        trigger=triggers[0],
        soul=soul.text("soul.md"),
        now=now,
        budget_tokens=CONTEXT_TOKENS - tokens(system),
        secrets=ties.secrets,
    )
    cycle = Cycle(
        number=max(least, grounds.cycle),
        triggers=tuple(triggers),
        part=part,
        grounds=grounds,
        document=document,
        start=start,
        at=now,
        settings=settings,
    )
    return cycle, system


async def _answer(ties: Ties, cycle: Cycle, system: str) -> tuple[Outcome, ModelAnswer | None]:
    settings = cycle.settings
    if not cycle.document.peers:
        log.info("cycle %d is skipped: nobody in it is known to the ledger yet", cycle.number)
        return "skipped", None
    if not ties.may_spend():
        log.warning("cycle %d is skipped: the day's budget has no room for it", cycle.number)
        return "skipped", None
    asked = request(system, cycle.document.content, nonce_for(ties, cycle.document.content), model=settings.model)
    try:
        voice = ties.voice(settings.provider)
        if not await _is_worth_it(ties, cycle):
            return "triaged", None
        log.debug("cycle %d asks: %s\n%s", cycle.number, asked.system, asked.tail)
        answer = await ask(voice, asked, settings.reflection_timeout_seconds)
    except (TimeoutError, TimedOut):
        log.warning("cycle %d is given up after %g s", cycle.number, settings.reflection_timeout_seconds)
        return "timeout", None
    except ClaudiusError as error:
        log.warning("cycle %d has no answer: %s", cycle.number, error.message)
        return "provider_error", None
    log.debug("cycle %d is answered: %s", cycle.number, answer.text)
    book(ties, f"cortex:{cycle.number}:{cycle.at.isoformat()}", answer, cycle.at)
    return "done", answer


async def _is_worth_it(ties: Ties, cycle: Cycle) -> bool:
    settings = cycle.settings
    if settings.depth == "deep" or "manual" in cycle.triggers:
        return True
    if not settings.triage_model:
        found = triage.score(cycle.triggers, cycle.part.events, cycle.grounds.beliefs, cycle.at)
        return found >= triage.WORTH_IT
    small = request(
        system_text(ties.soul(), "triage.md"),
        cycle.document.content,
        nonce_for(ties, cycle.document.content),
        model=settings.triage_model,
        max_tokens=TRIAGE_TOKENS,
    )
    answer = await ask(ties.voice(settings.provider), small, settings.reflection_timeout_seconds)
    book(ties, f"cortex:{cycle.number}:triage:{cycle.at.isoformat()}", answer, cycle.at)
    return not answer.text.strip().casefold().startswith("no")


def directives(
    proposed: Sequence[Mapping[str, Any]],
    peers: Sequence[Known],
    *,
    audience: str,
    cycle: int,
    now: datetime,
    most: int,
) -> tuple[Directive, ...]:
    """Return the directives that may be delivered: within limits, about a known peer, nothing critical in it. Pure."""
    known = {one.peer.peer_id: one for one in peers}
    found: list[Directive] = []
    for entry in proposed:
        if len(found) == most:
            break
        peer, action, text = (entry.get(name) for name in ("peer_id", "action", "text"))
        said = one_line(text)[:TEXT_CHARS] if isinstance(text, str) else ""
        one = known.get(peer) if isinstance(peer, str) else None
        if one is None or not said or action not in ACTIONS or critical(said) or not one.conversation:
            continue
        was_directed = one.directed_at is not None and now - one.directed_at < A_PEER_EACH
        if was_directed or any(other.peer_id == peer for other in found):
            continue
        perception = Perception(
            key=f"cortex:{cycle}:{len(found)}",
            conversation=one.conversation,
            audience=audience,
            person=one.peer.peer_id,
            name=one.peer.name,
            text=f"{action} {one.peer.name}: {said}",
            at=now,
            position=f"{int(now.timestamp()):020d}",
            kind=Kind.DIRECTIVE,
            origin=Origin.INTERNAL,
            owes=False,
            is_bot=one.peer.is_bot,
            extra=DirectiveExtra(action=str(action), lapses_at=now + LAPSES_AFTER, what=said),
        )
        found.append(Directive(peer_id=one.peer.peer_id, action=str(action), text=said, perception=perception))
    return tuple(found)


def conclude(cycle: Cycle, output: Output, usage: Usage, duration_s: float) -> Reflected:
    """Convert a parsed answer into every change that the cycle makes. Pure."""
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
    most = MAX_DIRECTIVES if settings.directives else 0
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


def assessments(output: Output, document: CycleDocument, start: Mapping[str, int], limit: int) -> tuple[Proposal, ...]:
    """Return the assessments to record: known peers only, clamped, the last entry for each peer. Pure.

    `start`: each peer's trust at the start of the pass.
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
