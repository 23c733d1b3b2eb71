"""The ledger in SQLite: what a turn adds, how an assessment is recorded, and peers as an audience may see them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any

from msgspec.structs import replace

from claudius.ledger_types import TRAJECTORY, Assessment, Interaction, Noted, Peer, Promise, Proposal
from claudius.memory.ledger import Tally, check_proposal, clamp_trust, together
from claudius.memory.sqlite.queries import Database, Row
from claudius.memory.sqlite.rows import Decoding, dump, instant, maybe_instant, parse_strings, stamp
from claudius.memory.sqlite.seeing import Seeing
from claudius.prompt import valid

log = logging.getLogger(__name__)

SCORED = 10
"""An information score counts at most this many assessments."""


def note(db: Database, noted: Noted, at: datetime) -> None:
    """Add one turn: who was dealt with, what was promised and kept, and what the turn made of its peer."""
    for peer_id in dict.fromkeys(one.peer_id for one in noted.interactions):
        _count(db, [one for one in noted.interactions if one.peer_id == peer_id])
    for interaction in noted.interactions:
        db.run(
            "interaction_new",
            peer_id=interaction.peer_id,
            at=stamp(interaction.at),
            direction=interaction.direction,
            channel_type=interaction.channel_type,
            conversation=interaction.conversation,
            audience=interaction.audience,
            turn=interaction.turn,
            scope=interaction.scope,
            preview=valid(interaction.preview),
        )
    if noted.reaction:
        db.run("interaction_taken", turn=noted.reaction[0], reaction=noted.reaction[1])
    heard = next((one for one in noted.interactions if one.direction == "in"), None)
    if heard and (noted.delivers or noted.stems):
        _keep(db, heard, noted)
    for promise in noted.promises:
        db.run("promise_new", **_promise_row(promise))
    if noted.proposal:
        try:
            record(db, noted.proposal, at)
        except ValueError as error:
            log.warning("an assessment was not recorded: %s", error)


def _count(db: Database, dealt: Sequence[Interaction]) -> None:
    """Count one turn's interactions with a peer, in the total that the owner sees and in this turn's audience."""
    newest = dealt[-1]
    here = {"peer_id": newest.peer_id, "audience": newest.audience}
    db.run("peer_put", peer_id=newest.peer_id, **_counted(db.one("peer_counted", peer_id=newest.peer_id), dealt))
    db.run("peer_tally_put", **here, **_counted(db.one("peer_tally", **here), dealt))


def _counted(row: Row | None, dealt: Sequence[Interaction]) -> dict[str, Any]:
    """Return a row's counters after these interactions. Pure."""
    with Decoding("peer", dealt[0].peer_id):
        tally = _tally(row) if row else Tally()
    for one in dealt:
        if one.direction == "in":
            tally = tally.heard(one.at)
    times = [stamp(one.at) for one in dealt]
    return {
        "name": valid(dealt[-1].name) or (row[0] if row else ""),
        "is_bot": dealt[-1].is_bot or bool(row and row[1]),
        "first_at": min((*times, row[2]) if row else times),
        "last_at": max((*times, row[3]) if row else times),
        "first_in_at": stamp(tally.first_at) if tally.first_at else None,
        "last_in_at": stamp(tally.last_at) if tally.last_at else None,
        "messages": tally.messages,
        "bursts": tally.bursts,
        "active_days": tally.active_days,
        "last_day": tally.last_day.isoformat() if tally.last_day else None,
    }


def _tally(row: Row) -> Tally:
    return Tally(
        messages=row[6],
        bursts=row[7],
        active_days=row[8],
        first_at=maybe_instant(row[4]),
        last_at=maybe_instant(row[5]),
        last_day=date.fromisoformat(row[9]) if row[9] else None,
    )


def _keep(db: Database, heard: Interaction, noted: Noted) -> None:
    """Mark promises as kept when the peer brings something, or speaks of what was promised."""
    about = set(noted.stems)
    for promise in map(promise_of, db.all("promises_of", peer_id=heard.peer_id)):
        if promise.turn != heard.turn and (noted.delivers or about & set(promise.stems)):
            db.run("promise_moved", id=promise.id, state="kept")


def record(db: Database, proposal: Proposal, at: datetime) -> Assessment:
    """Record one assessment; this is the only way to add one. Raises: ValueError, and then nothing is written."""
    check_proposal(proposal.trust, proposal.rationale)
    row = db.one("peer_counted", peer_id=proposal.peer_id)
    if row is None:
        raise ValueError(f"no peer {proposal.peer_id!r} is known")
    sources = proposal.sources
    if sources is None:
        sources = tuple(audience for (audience,) in db.all("peer_audiences", peer_id=proposal.peer_id))
    trust = proposal.trust
    if proposal.limit is not None:
        trust = clamp_trust(_last_trust(db, proposal.peer_id, sources), trust, proposal.limit) or 0
    made = Assessment(
        peer_id=proposal.peer_id,
        info_score=_tally(row).info_score(row[10]),
        trust=trust,
        rationale=valid(proposal.rationale),
        created_at=at,
        author=proposal.author,
        sources=tuple(sorted(sources)),
    )
    values = {"trust": made.trust, "rationale": made.rationale, "created_at": stamp(at), "author": made.author}
    found = db.run(
        "assessment_new", peer_id=made.peer_id, info_score=made.info_score, sources=dump(made.sources), **values
    ).fetchone()
    db.run("peer_assessed", peer_id=made.peer_id)
    return replace(made, id=found[0])


def _last_trust(db: Database, peer_id: str, sources: Sequence[str]) -> int | None:
    """Return the newest trust judged from these sources alone, so that another place's does not show in this one's."""
    judged = (assessment_of(row, peer_id) for row in db.all("assessments_shown", peer_id=peer_id, most=1))
    return max(((one.id, one.trust) for one in judged if {*one.sources} <= {*sources}), default=(0, None))[1]


def peer(db: Database, peer_id: str, seeing: Seeing | None, *, only_here: bool = False) -> Peer | None:
    """Return a peer as an audience may see them; `only_here`: from what was counted in that very audience.

    `seeing` None means the owner.
    """
    rows = counted(db, peer_id, seeing, only_here=only_here)
    if not rows:
        return None
    judged = assessments(db, peer_id, seeing, SCORED) if rows[0][10] else []
    return counted_peer(peer_id, rows, judged)


def counted(db: Database, peer_id: str, seeing: Seeing | None, *, only_here: bool = False) -> list[Row]:
    """Return the counter rows of a peer that may be shown, this audience's first.

    For a viewer who sees everything it is the single row with the total.
    """
    if seeing is None or seeing.sees_all:
        return db.all("peer_counted", peer_id=peer_id)
    rows = db.all("peer_tallies", peer_id=peer_id)
    shown = [row for row in rows if row[11] == seeing.audience or (not only_here and seeing.may((row[11],)))]
    return sorted(shown, key=lambda row: row[11] != seeing.audience)


def counted_peer(peer_id: str, rows: Sequence[Row], assessments: Sequence[Assessment]) -> Peer:
    """Build a peer from counter rows and assessments (newest first)."""
    table, *row = ("peer_tally", peer_id, rows[0][11]) if len(rows[0]) > 11 else ("peer", peer_id)
    with Decoding(table, *row):
        return Peer(
            peer_id=peer_id,
            name=next((row[0] for row in rows if row[0]), peer_id),
            is_bot=any(row[1] for row in rows),
            messages=sum(row[6] for row in rows),
            info_score=together(map(_tally, rows)).info_score(len(assessments)),
            first_at=instant(min((row[4] for row in rows if row[4]), default=min(row[2] for row in rows))),
            last_at=instant(max(row[3] for row in rows)),
            assessments=tuple(assessments[:TRAJECTORY]),
        )


def assessments(db: Database, peer_id: str, seeing: Seeing | None, most: int = TRAJECTORY) -> list[Assessment]:
    """Return a peer's newest assessments that may be shown, newest first."""
    found = (assessment_of(row, peer_id) for row in db.all("assessments_shown", peer_id=peer_id, most=most))
    shown = (one for one in found if seeing is None or seeing.may(one.sources))
    return sorted(shown, key=lambda one: -one.id)[:most]


def assessment_of(row: Row, peer_id: str) -> Assessment:
    """Decode one assessment."""
    number, info, trust, rationale, at, author, sources = row
    with Decoding("assessment", number):
        return Assessment(
            peer_id=peer_id,
            info_score=info,
            trust=trust,
            rationale=rationale,
            created_at=instant(at),
            author=author,
            sources=parse_strings(sources),
            id=number,
        )


def timeline(db: Database, peer_id: str, most: int, seeing: Seeing | None) -> tuple[Interaction, ...]:
    """Return a peer's newest interactions that may be read, oldest first."""
    found: list[Interaction] = []
    for (audience,) in db.all("peer_audiences", peer_id=peer_id):
        if seeing is None or seeing.may((audience,)):
            rows = db.all("timeline_of", peer_id=peer_id, audience=audience, most=most)
            found += map(interaction_of, rows)
    newest = sorted(found, key=lambda one: one.id)[-most:]
    return tuple(newest)


def interaction_of(row: Row) -> Interaction:
    """Decode one row of the ledger."""
    number, peer_id, at, direction, channel_type, conversation, audience, turn, scope, preview, reaction = row
    with Decoding("interaction", number):
        return Interaction(
            id=number,
            peer_id=peer_id,
            at=instant(at),
            direction=direction,
            channel_type=channel_type,
            conversation=conversation,
            audience=audience,
            turn=turn,
            scope=scope,
            preview=preview,
            reaction=reaction,
        )


def promise_of(row: Row) -> Promise:
    """Decode one promise."""
    number, peer_id, side, what, stems, made_at, due_at, grace_s, state, turn, conversation, audience = row
    with Decoding("promise", number):
        return Promise(
            id=number,
            peer_id=peer_id,
            side=side,
            what=what,
            stems=parse_strings(stems),
            made_at=instant(made_at),
            due_at=instant(due_at),
            grace_s=grace_s,
            state=state,
            turn=turn,
            conversation=conversation,
            audience=audience,
        )


def _promise_row(promise: Promise) -> dict[str, object]:
    return {
        "peer_id": promise.peer_id,
        "side": promise.side,
        "what": valid(promise.what),
        "stems": dump(promise.stems),
        "made_at": stamp(promise.made_at),
        "due_at": stamp(promise.due_at),
        "grace_s": promise.grace_s,
        "turn": promise.turn,
        "conversation": promise.conversation,
        "audience": promise.audience,
        "plan": promise.plan or None,
    }


def peers_known(db: Database, ids: Iterable[str], seeing: Seeing | None) -> tuple[Peer, ...]:
    """Return the known ones among these peers, in the order given."""
    found = (peer(db, one, seeing) for one in dict.fromkeys(ids))
    return tuple(one for one in found if one)


def newest(db: Database, most: int) -> Sequence[Interaction]:
    """Return the newest interactions of all peers, newest first."""
    return [interaction_of(row) for row in db.all("interactions_newest", most=most)]


def summary(peer: Peer) -> dict[str, Any]:
    """Return everything about a peer except their identity, as a plain mapping. Pure."""
    newest = peer.newest
    return {
        "name": peer.name,
        "interactions": peer.messages,
        "first_at": peer.first_at,
        "last_at": peer.last_at,
        "info_score": peer.info_score,
        "trust": newest.trust if newest else None,
        "rationale": newest.rationale if newest else None,
        "assessed_at": newest.created_at if newest else None,
        "trajectory": list(peer.trajectory),
    }
