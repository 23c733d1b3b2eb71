"""Build what a cycle shows the model: one JSON document of structured summaries, within a token budget. Pure.

Source: the cortex design, section 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from claudius.config import blot
from claudius.cortex.asking import SOUL_TOKENS, one_line, shortened
from claudius.cortex.models import CortexEvent, CycleDocument, Part
from claudius.cortex.observe import messages
from claudius.ledger_types import Grounds, Interaction, Known
from claudius.prompt import nested_line

SHORT_TIMELINE = 5
WHY_CHARS = 240


def ranked(part: Part, most: int) -> tuple[str, ...]:
    """Return the peers that a cycle shows: flagged peers first, then those with the most events. Pure."""
    counts: dict[str, int] = {}
    for event in part.events:
        if event.peer_id:
            counts[event.peer_id] = counts.get(event.peer_id, 0) + 1
    busiest = sorted(counts, key=lambda peer: (-counts[peer], peer))
    return tuple(dict.fromkeys((*sorted(part.flags), *busiest)))[:most]


def build(
    part: Part,
    grounds: Grounds,
    *,
    trigger: str,
    soul: str,
    now: datetime,
    budget_tokens: int,
    secrets: Sequence[str] = (),
) -> CycleDocument:
    """Assemble the document of one cycle, cut until it fits its budget. Pure.

    `budget_tokens` (characters / 4) is what remains after the system text. Whatever was cut does not count as read.
    """
    window, has_previews, lessons, known = None, True, grounds.lessons, list(grounds.peers)
    cuts = iter((SHORT_TIMELINE, "previews", "lessons"))
    while True:
        content = {
            "trigger": trigger,
            "soul": shortened(soul, SOUL_TOKENS),
            "previous_summary": grounds.summary,
            "beliefs": _beliefs(grounds, now),
            "lessons": [{"key": one.key, "value": one.value, "peer_id": one.peer_id} for one in lessons],
            "peers": [_peer(one, part, window, has_previews=has_previews, secrets=secrets) for one in known],
            "activity": activity(part.events),
        }
        if len(nested_line(content)) <= 4 * budget_tokens:
            break
        cut = next(cuts, None)
        if cut == "previews":
            has_previews = False
        elif cut == "lessons":
            lessons = ()
        elif cut is not None:
            window = SHORT_TIMELINE
        elif known:
            known.pop()
        else:
            break
    shown = [line for one in known for line in _newest(one.timeline, window)]
    read = {part.audience, *grounds.summary_sources, *(line.audience for line in shown)}
    for one in known:
        read |= {source for assessment in one.peer.assessments for source in assessment.sources}
        read |= {promise.audience for promise in one.promises}
    read |= {source for belief in grounds.beliefs for source in belief.sources}
    read |= {source for lesson in lessons for source in lesson.sources}
    return CycleDocument(
        content=content,
        peers=frozenset(one.peer.peer_id for one in known),
        evidence=tuple(sorted({line.id for line in shown if line.id})),
        sources=tuple(sorted(read)),
    )


def _beliefs(grounds: Grounds, now: datetime) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for belief in grounds.beliefs:
        if belief.state == "disputed":
            found.append({"key": belief.key, "refused": True})
            continue
        minutes = round((now - belief.created_at).total_seconds() / 60)
        found.append({"key": belief.key, "value": belief.value, "peer_id": belief.peer_id, "age_minutes": minutes})
    return found


def _newest(timeline: Sequence[Interaction], window: int | None) -> Sequence[Interaction]:
    return timeline if window is None else timeline[-window:]


def _peer(one: Known, part: Part, window: int | None, *, has_previews: bool, secrets: Sequence[str]) -> dict[str, Any]:
    peer = one.peer
    newest = peer.newest
    return {
        "peer_id": peer.peer_id,
        "name": peer.name,
        "info_score": peer.info_score,
        "trust": newest.trust if newest else None,
        "trajectory": list(peer.trajectory),
        "rationale": newest.rationale[:WHY_CHARS] if newest else None,
        "flags": list(part.flags.get(peer.peer_id, ())),
        "timeline": [
            {"at": line.at.isoformat(timespec="minutes"), "dir": line.direction, "scope": line.scope}
            | ({"preview": blot(one_line(line.preview), secrets)} if has_previews else {})
            for line in _newest(one.timeline, window)
        ],
    }


def activity(events: Sequence[CortexEvent]) -> Mapping[str, int]:
    """Count what the soul did since the last cycle. Pure."""
    return {
        "events": len(messages(events)),
        "llm_calls": sum(not event.direction for event in events),
        "tokens": sum(event.tokens for event in events),
    }
