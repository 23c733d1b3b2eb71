"""Build the document that a cycle shows the model, and apply its answer to the beliefs. Pure.

A belief affirmed in several cycles over a day or more becomes a lesson: it is kept for good, and only the cortex
reads it. Source: the cortex design, sections 3 and 7.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from claudius.config.load import blot
from claudius.cortex.asking import SOUL_TOKENS, one_line, shortened
from claudius.cortex.models import Changed, CortexEvent, CycleDocument, Part
from claudius.cortex.observe import messages
from claudius.ledger_types import Belief, Grounds, Interaction, Known, Lesson
from claudius.prompt import nested_line

MOST_LESSONS = 30
CANDIDATE_FOR = timedelta(days=30)
"""A key that is not affirmed again within this time stops being a candidate."""


def learn(
    every: Sequence[Lesson], affirmed: Sequence[Belief], now: datetime
) -> tuple[tuple[Lesson, ...], tuple[tuple[str, str], ...]]:
    """Return the lessons and candidates that change, and the (key, audience) of those that are dropped. Pure.

    `affirmed`: the beliefs that this cycle formed or affirmed.
    """
    known = {(lesson.key, lesson.audience): lesson for lesson in every}
    changed: dict[tuple[str, str], Lesson] = {}
    for belief in affirmed:
        place = (belief.key, belief.audience)
        if before := known.get(place):
            sources, count = tuple(sorted({*before.sources, *belief.sources})), before.affirmed + 1
            changed[place] = replace(before, value=belief.value, last_at=now, affirmed=count, sources=sources)
            continue
        changed[place] = Lesson(
            key=belief.key,
            value=belief.value,
            audience=belief.audience,
            first_at=now,
            last_at=now,
            affirmed=0,
            sources=belief.sources,
            peer_id=belief.peer_id,
        )
    after = known | changed
    stale = [at for at, one in after.items() if not one.is_learned and now - one.last_at > CANDIDATE_FOR]
    learned = sorted((one for one in after.values() if one.is_learned), key=lambda one: (one.affirmed, one.last_at))
    over = [(one.key, one.audience) for one in learned[: max(0, len(learned) - MOST_LESSONS)]]
    lost = tuple(dict.fromkeys((*stale, *over)))
    return tuple(one for place, one in changed.items() if place not in lost), lost


KEY_CHARS, VALUE_CHARS, RATIONALE_CHARS = 64, 200, 600
NEW_A_CYCLE = 8
ALIGNMENT = "self-alignment"
_ESCAPES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "`": "&#96;"}
_WORD = re.compile(r"\w{4,}")


def slug(key: str) -> str:
    """Return a key in lower-case kebab case, at most 64 characters; empty if no usable character remains. Pure."""
    plain = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", key).casefold())
    return re.sub(r"[\W_]+", "-", plain).strip("-")[:KEY_CHARS].rstrip("-")


def clean_value(text: str) -> str:
    """Normalise a belief's value: one line, no invisible characters, no markup, at most 200 characters. Pure."""
    kept = ""
    for character in one_line(html.unescape(text)):
        piece = _ESCAPES.get(character, character)
        if len(kept) + len(piece) > VALUE_CHARS:
            break
        kept += piece
    return kept.rstrip()


def change(
    every: Sequence[Belief],
    proposed: Sequence[Mapping[str, Any]],
    document: CycleDocument,
    *,
    audience: str,
    cycle: int,
    now: datetime,
    ttl_minutes: float = 120.0,
    most: int = 20,
) -> Changed:
    """Return how a cycle changes the beliefs. `every` is the whole set, of all audiences. Pure.

    Entries that name an unknown peer or a disputed key, or that are empty, are dropped. Above `most`, the oldest active
    beliefs make room, whatever their expiry; disputed ones do not count.
    """
    expired = {(belief.key, belief.audience): belief for belief in every if belief.is_expired(now)}
    standing = {(belief.key, belief.audience): belief for belief in every if not belief.is_expired(now)}
    refused = {belief.key for belief in every if belief.state == "disputed"}
    put: dict[str, Belief] = {}
    added: list[str] = []
    reaffirmed: list[str] = []
    revised: list[str] = []
    for entry in proposed:
        made = _made(entry, document, audience=audience, cycle=cycle, now=now, ttl_minutes=ttl_minutes)
        if made is None or made.key in refused or made.key in put:
            continue
        before = standing.get((made.key, audience))
        if before and before.state == "pinned" and before.value != made.value:
            continue  # a cycle never changes a belief that the owner pinned
        if before is None and len(added) == NEW_A_CYCLE:
            continue
        if before is None:
            added.append(made.key)
        elif before.value == made.value:
            reaffirmed.append(made.key)
        else:
            revised.append(made.key)
        put[made.key] = _follow(before, made) if before else made
    whole = standing | {(key, audience): belief for key, belief in put.items()}
    held = [belief for belief in whole.values() if belief.state != "disputed"]
    movable = sorted((belief for belief in held if belief.state == "active"), key=lambda one: (one.created_at, one.key))
    room = [(belief.key, belief.audience) for belief in movable[: max(0, len(held) - most)]]
    gone = tuple(dict.fromkeys((*expired, *room)))
    return Changed(
        put=tuple(belief for belief in put.values() if (belief.key, audience) not in room),
        gone=tuple(place for place in gone if place not in whole or place in room),
        added=tuple(added),
        reaffirmed=tuple(reaffirmed),
        expired=tuple(dict.fromkeys(key for key, _ in expired)),
        revised=tuple(revised),
    )


def _made(
    entry: Mapping[str, Any], document: CycleDocument, *, audience: str, cycle: int, now: datetime, ttl_minutes: float
) -> Belief | None:
    key, value, rationale, peer = (entry.get(name) for name in ("key", "value", "rationale", "peer_id"))
    if not isinstance(key, str) or not isinstance(value, str) or not slug(key) or not clean_value(value):
        return None
    if peer is not None and peer not in document.peers:
        return None
    return Belief(
        key=slug(key),
        value=clean_value(value),
        rationale=one_line(rationale)[:RATIONALE_CHARS] if isinstance(rationale, str) else "",
        source_cycle=cycle,
        created_at=now,
        ttl_minutes=ttl_minutes,
        peer_id=peer,
        sources=document.sources,
        audience=audience,
        evidence=document.evidence,
    )


def _follow(before: Belief, made: Belief) -> Belief:
    """Renew the old belief's expiry if the value is the same; otherwise revise it and record the old value."""
    sources = tuple(sorted({*before.sources, *made.sources}))
    if before.value == made.value:
        evidence = tuple(sorted({*before.evidence, *made.evidence}))
        return replace(
            before, created_at=made.created_at, source_cycle=made.source_cycle, sources=sources, evidence=evidence
        )
    rationale = made.rationale
    if not _words(html.unescape(before.value)) & _words(rationale):
        rationale = f'was: "{before.value}"; {rationale}'[:RATIONALE_CHARS].rstrip()
    return replace(made, rationale=rationale, sources=sources, state=before.state)


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def alignment(found: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None]:
    """Return the verdict on the soul's own conduct and the belief that records it; empty if there is none. Pure."""
    verdict, evidence = found.get("verdict"), found.get("evidence")
    if verdict not in ("aligned", "drift"):
        return "", None
    said = one_line(evidence) if isinstance(evidence, str) else ""
    value = f"{verdict}: {said}" if said else str(verdict)
    return str(verdict), {
        "key": ALIGNMENT,
        "value": value,
        "rationale": f"the verdict is {verdict}; {said}".strip("; "),
    }


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
