"""The ledger: what a turn adds, how an assessment is recorded, and peers as an audience may see them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any

from msgspec.structs import asdict, replace

from claudius.foreign import unquoted
from claudius.ledger_types import TRAJECTORY, Assessment, Interaction, Noted, Peer, Promise, Proposal
from claudius.memory.ledger import Tally, check_proposal, clamp_trust, together
from claudius.memory.sql.connection import Database, Row
from claudius.memory.sql.rows import Decoding, dump, instant, maybe_instant, parse_strings, stamp
from claudius.memory.sql.seeing import Seeing
from claudius.prompt import valid

log = logging.getLogger(__name__)

SCORED = 10
"""An information score counts at most this many assessments."""


def note(db: Database, noted: Noted, at: datetime) -> None:
    """Add one turn: its interactions, the promises made and kept, and its assessment of the peer."""
    for peer_id in dict.fromkeys([one.peer_id for one in noted.interactions]):
        dealt = [one for one in noted.interactions if one.peer_id == peer_id]
        here = {"peer_id": peer_id, "audience": dealt[-1].audience}
        db.run("peer_put", peer_id=peer_id, **_counted(db.one("peer_counted", peer_id=peer_id), dealt))
        db.run("peer_tally_put", **here, **_counted(db.one("peer_tally", **here), dealt))
    rows = [asdict(one) | {"at": stamp(one.at), "preview": valid(one.preview)} for one in noted.interactions]
    db.each("interaction_new", rows)
    if noted.reaction:
        db.run("interaction_taken", turn=noted.reaction[0], reaction=noted.reaction[1])
    heard = [one for one in noted.interactions if one.direction == "in"]
    if heard and (noted.delivers or noted.stems):
        _keep(db, heard[0], noted)
    for promise in noted.promises:
        encoded = {"what": valid(promise.what), "stems": dump(promise.stems)}
        times = {"made_at": stamp(promise.made_at), "due_at": stamp(promise.due_at)}
        db.run("promise_new", **asdict(promise) | encoded | times | {"plan": promise.plan or None})
    if noted.proposal:
        try:
            record(db, noted.proposal, at)
        except ValueError as error:
            log.warning("an assessment was not recorded: %s", unquoted(error))


def _counted(row: Row | None, dealt: Sequence[Interaction]) -> dict[str, Any]:
    """Return the columns of a peer's row after these interactions with it, oldest first. Pure."""
    with Decoding("peer", dealt[0].peer_id):
        tally = _tally(row) if row else Tally()
    for one in dealt:
        if one.direction == "in":
            tally = tally.heard(one.at)
    times = [stamp(one.at) for one in dealt]
    return {
        "name": valid(dealt[-1].name) or (row["name"] if row else ""),
        "is_bot": dealt[-1].is_bot or bool(row and row["is_bot"]),
        "first_at": min((*times, row["first_at"]) if row else times),
        "last_at": max((*times, row["last_at"]) if row else times),
        "first_in_at": stamp(tally.first_at) if tally.first_at else None,
        "last_in_at": stamp(tally.last_at) if tally.last_at else None,
        "messages": tally.messages,
        "bursts": tally.bursts,
        "active_days": tally.active_days,
        "last_day": tally.last_day.isoformat() if tally.last_day else None,
    }


def _tally(row: Row) -> Tally:
    return Tally(
        messages=row["messages"],
        bursts=row["bursts"],
        active_days=row["active_days"],
        first_at=maybe_instant(row["first_in_at"]),
        last_at=maybe_instant(row["last_in_at"]),
        last_day=date.fromisoformat(row["last_day"]) if row["last_day"] else None,
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
        sources = tuple(db.values("peer_audiences", peer_id=proposal.peer_id))
    trust = proposal.trust
    if proposal.limit is not None:
        rows = db.all("assessments_shown", peer_id=proposal.peer_id, most=1)
        judged = (assessment_of(one, proposal.peer_id) for one in rows)
        # the newest trust judged from these sources alone: another place's does not show in this one's
        last = max(((one.id, one.trust) for one in judged if {*one.sources} <= {*sources}), default=(0, None))[1]
        trust = clamp_trust(last, trust, proposal.limit) or 0
    made = Assessment(
        peer_id=proposal.peer_id,
        info_score=_tally(row).info_score(row["assessments"]),
        trust=trust,
        rationale=valid(proposal.rationale),
        created_at=at,
        author=proposal.author,
        sources=tuple(sorted(sources)),
    )
    values = {"trust": made.trust, "rationale": made.rationale, "created_at": stamp(at), "author": made.author}
    number: int = db.value(
        "assessment_new", peer_id=made.peer_id, info_score=made.info_score, sources=dump(made.sources), **values
    )
    db.run("peer_assessed", peer_id=made.peer_id)
    return replace(made, id=number)


def peer(db: Database, peer_id: str, seeing: Seeing | None, *, only_here: bool = False) -> Peer | None:
    """Return a peer as an audience may see them; `only_here`: from what was counted in that very audience.

    `seeing` None means the owner.
    """
    rows = counted(db, peer_id, seeing, only_here=only_here)
    if not rows:
        return None
    judged = assessments(db, peer_id, seeing, SCORED) if rows[0]["assessments"] else []
    return counted_peer(peer_id, rows, judged)


def counted(db: Database, peer_id: str, seeing: Seeing | None, *, only_here: bool = False) -> list[Row]:
    """Return the counter rows of a peer that may be shown, this audience's first.

    For a viewer who sees everything it is the single row with the total.
    """
    if seeing is None or seeing.sees_all:
        return db.all("peer_counted", peer_id=peer_id)
    rows = db.all("peer_tallies", peer_id=peer_id)
    here = seeing.audience
    shown = [row for row in rows if row["audience"] == here or (not only_here and seeing.may((row["audience"],)))]
    return sorted(shown, key=lambda row: row["audience"] != here)


def counted_peer(peer_id: str, rows: Sequence[Row], assessments: Sequence[Assessment]) -> Peer:
    """Build a peer from counter rows and assessments (newest first)."""
    audience = rows[0]["audience"]
    with Decoding("peer_tally", peer_id, audience) if audience else Decoding("peer", peer_id):
        names = [row["name"] for row in rows if row["name"]]
        firsts = [row["first_in_at"] for row in rows if row["first_in_at"]] or [row["first_at"] for row in rows]
        return Peer(
            peer_id=peer_id,
            name=names[0] if names else peer_id,
            is_bot=bool([row for row in rows if row["is_bot"]]),
            messages=sum([row["messages"] for row in rows]),
            info_score=together(map(_tally, rows)).info_score(len(assessments)),
            first_at=instant(min(firsts)),
            last_at=instant(max([row["last_at"] for row in rows])),
            assessments=tuple(assessments[:TRAJECTORY]),
        )


def assessments(db: Database, peer_id: str, seeing: Seeing | None, most: int = TRAJECTORY) -> list[Assessment]:
    """Return a peer's newest assessments that may be shown, newest first."""
    found = (assessment_of(row, peer_id) for row in db.all("assessments_shown", peer_id=peer_id, most=most))
    shown = (one for one in found if seeing is None or seeing.may(one.sources))
    return sorted(shown, key=lambda one: -one.id)[:most]


def assessment_of(row: Row, peer_id: str) -> Assessment:
    """Decode one assessment."""
    with Decoding("assessment", row["id"]):
        return Assessment(
            peer_id=peer_id,
            info_score=row["info_score"],
            trust=row["trust"],
            rationale=row["rationale"],
            created_at=instant(row["created_at"]),
            author=row["author"],
            sources=parse_strings(row["sources"]),
            id=row["id"],
        )


def timeline(db: Database, peer_id: str, most: int, seeing: Seeing | None) -> tuple[Interaction, ...]:
    """Return a peer's newest interactions that may be read, oldest first."""
    found: list[Interaction] = []
    for audience in db.values("peer_audiences", peer_id=peer_id):
        if seeing is None or seeing.may((audience,)):
            rows = db.all("timeline_of", peer_id=peer_id, audience=audience, most=most)
            found += map(interaction_of, rows)
    newest = sorted(found, key=lambda one: one.id)[-most:]
    return tuple(newest)


def interaction_of(row: Row) -> Interaction:
    """Decode one row of the ledger."""
    with Decoding("interaction", row["id"]):
        return Interaction(**{**row, "at": instant(row["at"])})


def promise_of(row: Row) -> Promise:
    """Decode one promise."""
    with Decoding("promise", row["id"]):
        decoded = {"stems": parse_strings(row["stems"]), **{name: instant(row[name]) for name in ("made_at", "due_at")}}
        return Promise(**{**row, **decoded})


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
