"""The topic `store.ledger`: peers and what the soul thinks of them, and the pure rules of it.

The rules: evidence scores, limits on changes of trust, and how peers and beliefs appear in a prompt.

Source: seed 004; the cortex design, sections 1 and 4.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from math import floor, isfinite
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from claudius.foreign import unquoted
from claudius.ledger_types import (
    TRAJECTORY,
    Assessment,
    Belief,
    Grounds,
    Interaction,
    Known,
    Lesson,
    Noted,
    OwnersHand,
    Peer,
    Promise,
    Proposal,
    Recorded,
    Reflected,
    Reflection,
    Tuned,
)
from claudius.memory.database import (
    Core,
    Database,
    Decoding,
    Row,
    dump,
    instant,
    maybe_instant,
    parse,
    parse_strings,
    stamp,
    struct_of,
)
from claudius.memory.facts import OPEN_DAYS
from claudius.memory.inbox import accept
from claudius.memory.seeing import Seeing
from claudius.prompt import valid
from claudius.provider import Usage

BURST_GAP_S = 120.0
"""A message within this many seconds of the previous one continues its burst."""
DAY_S = 86_400.0
TRUST = 10
MAX_TRUST_DELTA = 3
PEERS_TOKENS, BELIEFS_TOKENS = 150, 200
WHY_CHARS = 200

log = logging.getLogger(__name__)


class Tally(Struct, frozen=True, kw_only=True):
    """Counters of a peer's inbound messages, updated with each message so that a score never rereads the messages."""

    messages: int = 0
    bursts: int = 0
    active_days: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    last_day: date | None = None

    def heard(self, at: datetime) -> Tally:
        """Count one more message. One that arrives late and out of order starts no new burst."""
        day = at.astimezone(UTC).date()
        if self.first_at is None or self.last_at is None or self.last_day is None:
            return Tally(messages=1, bursts=1, active_days=1, first_at=at, last_at=at, last_day=day)
        is_apart = (at - self.last_at).total_seconds() >= BURST_GAP_S
        is_new_day = day > self.last_day or day < self.first_at.astimezone(UTC).date()
        return replace(
            self,
            messages=self.messages + 1,
            bursts=self.bursts + is_apart,
            active_days=self.active_days + is_new_day,
            first_at=min(self.first_at, at),
            last_at=max(self.last_at, at),
            last_day=max(self.last_day, day),
        )

    def info_score(self, assessments: int) -> int:
        """Return how much evidence there is, 0 to 10, given the number of assessments of this peer."""
        span_s = (self.last_at - self.first_at).total_seconds() if self.first_at and self.last_at else 0.0
        return compute_info_score(self.bursts, span_s / DAY_S, self.active_days, assessments)


def compute_info_score(bursts: int, span_days: float, active_days: int, assessments: int) -> int:
    """Score the amount of evidence on a peer from 0 to 10. Pure.

    The score says how much is known, not what it is worth.
    """
    if bursts <= 0:
        return 0
    often = _clamp(2.2 * math.log(1 + bursts) - 0.5, 0, 10)
    long = _clamp(0.4 + 1.5 * math.log(1 + min(span_days, 7 * active_days)), 0, 10)
    evidence = min((often + long) / 2, min(often, long) + 2) + min(0.5, 0.05 * assessments)
    score = int(_clamp(floor(evidence + 0.5), 1, 10))
    if span_days < 1:
        return 1 if bursts <= 2 else min(3, score)
    return score


def _clamp(value: float, low: float, high: float) -> float:
    return max(low, min(high, value))


def clamp_trust(last: int | None, proposed: Any, limit: int = MAX_TRUST_DELTA) -> int | None:
    """Limit a proposed trust to `limit` points around the last one, or around 0 if there is none. Pure.

    Returns None if the proposal is not a number.
    """
    wanted = _number(proposed)
    if wanted is None:
        return None
    around = 0 if last is None else last
    wanted = int(_clamp(wanted, -TRUST, TRUST))
    return int(_clamp(_clamp(wanted, around - limit, around + limit), -TRUST, TRUST))


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return round(number) if isfinite(number) else None


def format_peers(peers: Sequence[Peer], called: Callable[[str], str] = str) -> str:
    """Render peers from the ledger, one line each: the first always, the others while the budget lasts. Pure.

    `called`: how a person's id is written.
    """
    return _within(PEERS_TOKENS, [_line(one, called(one.peer_id)) for one in peers], least=1)


def format_beliefs(beliefs: Sequence[Belief], called: Callable[[str], str] = str) -> str:
    """Render beliefs for a prompt, one line each, while the budget lasts. Pure."""
    named = [(f"{one.key} ({called(one.peer_id)})" if one.peer_id else one.key, one.value) for one in beliefs]
    return _within(BELIEFS_TOKENS, [f"- {name}: {value}" for name, value in named], least=0)


def _within(budget_tokens: int, lines: Iterable[str], *, least: int) -> str:
    kept: list[str] = []
    left = 4 * budget_tokens
    for line in lines:
        if len(kept) >= least and len(line) > left:
            break
        kept.append(line)
        left -= len(line) + 1
    return "\n".join(kept)


def _line(peer: Peer, called: str) -> str:
    many = "1 message" if peer.messages == 1 else f"{peer.messages} messages"
    known = f"{many} since {peer.first_at.date()}; information {peer.info_score}/10"
    return f"- {_one_line(peer.name)} ({called}): {known}; {_assessed(peer)}"


def _assessed(peer: Peer) -> str:
    if not peer.assessments:
        return "not yet assessed"
    newest = peer.assessments[0]
    before = ", ".join(map(signed, peer.trajectory[:-1]))
    moved = f" (before {before})" if before else ""
    why = _one_line(newest.rationale)[:WHY_CHARS]
    return f"assessed trust {signed(newest.trust)}{moved} on {newest.created_at.date()}. Why: {why}"


def signed(trust: int) -> str:
    """Render a trust with its sign: `+3`, `0`, `-2`. Pure."""
    return f"{trust:+d}" if trust else "0"


def _one_line(text: str) -> str:
    return " ".join(text.split())


SCORED = 10
"""An information score counts at most this many assessments."""


def note(db: Database, noted: Noted, at: datetime) -> None:
    """Add one turn: its interactions, and its assessment of the peer."""
    for peer_id in dict.fromkeys([one.peer_id for one in noted.interactions]):
        dealt = [one for one in noted.interactions if one.peer_id == peer_id]
        here = {"peer_id": peer_id, "audience": dealt[-1].audience}
        before = {row["audience"]: row for row in db.all("peer_counted_here", **here)}
        db.run("peer_put", peer_id=peer_id, **_counted(before.get(None), dealt))
        db.run("peer_tally_put", **here, **_counted(before.get(here["audience"]), dealt))
    rows = [asdict(one) | {"at": stamp(one.at), "preview": valid(one.preview)} for one in noted.interactions]
    db.each("interaction_new", rows)
    if noted.reaction:
        db.run("interaction_taken", turn=noted.reaction[0], reaction=noted.reaction[1])
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


def record(db: Database, proposal: Proposal, at: datetime) -> Assessment:
    """Record one assessment; this is the only way to add one. Raises: ValueError, and then nothing is written."""
    trust: object = proposal.trust
    if isinstance(trust, bool) or not isinstance(trust, int) or not -TRUST <= trust <= TRUST:
        raise ValueError(f"trust is a whole number from -{TRUST} to {TRUST}, not {trust!r}")
    if not proposal.rationale.strip():
        raise ValueError("an assessment needs a rationale")
    row = db.one("peer_counted", peer_id=proposal.peer_id)
    if row is None:
        raise ValueError(f"no peer {proposal.peer_id!r} is known")
    sources = proposal.sources
    if sources is None:
        sources = tuple(db.values("peer_audiences", peer_id=proposal.peer_id))
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


def find_peer(db: Database, peer_id: str, seeing: Seeing | None, *, only_here: bool = False) -> Peer | None:
    """Return a peer as an audience may see them; `only_here`: from what was counted in that very audience.

    `seeing` None means the owner.
    """
    row = counted(db, peer_id, seeing, only_here=only_here)
    if row is None:
        return None
    judged = assessments(db, peer_id, seeing, SCORED) if row["assessments"] else []
    return counted_peer(peer_id, row, judged)


def counted(db: Database, peer_id: str, seeing: Seeing | None, *, only_here: bool = False) -> Row | None:
    """Return the counters of a peer, of all audiences that may be shown together."""
    if seeing is None or seeing.sees_all:
        return db.one("peer_counted", peer_id=peer_id)
    audiences = dump([seeing.audience]) if only_here else seeing.audiences()
    return db.one("peer_tallied", peer_id=peer_id, here=seeing.audience, audiences=audiences)


def counted_peer(peer_id: str, row: Row, assessments: Sequence[Assessment]) -> Peer:
    """Build a peer from their counters and assessments (newest first)."""
    with Decoding("peer_tally", peer_id, row["audience"]) if row["audience"] else Decoding("peer", peer_id):
        return Peer(
            peer_id=peer_id,
            name=row["name"] or peer_id,
            is_bot=bool(row["is_bot"]),
            messages=row["messages"],
            info_score=_tally(row).info_score(len(assessments)),
            first_at=instant(row["first_in_at"] or row["first_at"]),
            last_at=instant(row["last_at"]),
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
        of = {**row, "peer_id": peer_id}
        return struct_of(Assessment, of, {"created_at": instant, "sources": parse_strings})


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
    """Decode one open matter that has a day."""
    with Decoding("matter", row["id"]):
        over = datetime.fromisoformat(row["due"]).replace(hour=12, tzinfo=UTC) + timedelta(days=1)
        return Promise(id=row["id"], peer_id=row["person"], what=row["text"], audience=row["audience"], overdue_at=over)


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


class LedgerStore:
    """Peers, and what the soul thinks of them. Reads are filtered for an audience."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def query_peer(self, peer_id: str, audience: str) -> Peer | None:
        """Return one peer as an audience may see them."""
        with self._core.snapshot() as db:
            return find_peer(db, peer_id, Seeing.towards(db, audience))

    def timeline(self, peer_id: str, limit: int, audience: str) -> Sequence[Interaction]:
        """Return a peer's newest interactions that an audience may read, oldest first."""
        with self._core.snapshot() as db:
            return timeline(db, peer_id, limit, Seeing.towards(db, audience))

    def latest_trust(self) -> Mapping[str, int]:
        """Return each assessed peer's newest trust. Unfiltered: it must not appear in a prompt."""
        return {row["peer_id"]: row["trust"] for row in self._core.look("latest_trust")}

    def unreflected(self, limit: int) -> Sequence[Interaction]:
        """Return the newest interactions that no cycle has processed, oldest first."""
        return [interaction_of(row) for row in reversed(self._core.look("interactions_waiting", most=limit))]

    def newest_interactions(self, limit: int) -> Sequence[Interaction]:
        """Return the newest interactions of all peers, newest first."""
        return [interaction_of(row) for row in self._core.look("interactions_newest", most=limit)]

    def are_noted(self, turns: Sequence[str]) -> bool:
        """Return whether every one of these turns is committed to the ledger."""
        with self._core.snapshot() as db:
            return all(db.one("turn_noted", turn=turn) for turn in turns)

    def open_promises(self, now: datetime) -> Sequence[Promise]:
        """Return what peers were to do by a day and was neither raised nor handled as overdue, soonest first."""
        since = (now.date() - timedelta(days=OPEN_DAYS)).isoformat()
        return [promise_of(row) for row in self._core.look("promises_open", since=since, most=500)]

    def inbound(self, peer_id: str, limit: int) -> tuple[Sequence[Interaction], Sequence[int]]:
        """Return a peer's newest messages and newest trusts, each oldest first. For code only, never for a prompt."""
        with self._core.snapshot() as db:
            rows = db.all("inbound_of", peer_id=peer_id, most=limit)
            trusts = [row["trust"] for row in db.all("assessments_of", peer_id=peer_id, most=TRAJECTORY)]
        heard = [
            Interaction(
                peer_id=peer_id,
                at=instant(row["at"]),
                direction="in",
                channel_type="",
                conversation="",
                audience=row["audience"],
                turn="",
                scope=row["scope"],
            )
            for row in reversed(rows)
        ]
        return heard, trusts[::-1]

    def grounds(self, audience: str, peers: Sequence[str], window: int) -> Grounds:
        """Read, in one snapshot, everything that a cycle in this audience may know of these peers."""
        with self._core.snapshot() as db:
            seeing = Seeing.towards(db, audience)
            beliefs, lessons = every_belief(db), every_lesson(db)
            summary = next(
                (one for one in reflections(db, _LOOKED_AT) if one.summary and seeing.may(one.sources)), None
            )
            known = (_known(db, peer, audience, seeing, window) for peer in peers)
            return Grounds(
                audience=audience,
                peers=tuple(one for one in known if one),
                beliefs=tuple(one for one in beliefs if seeing.may(one.sources)),
                every_belief=beliefs,
                lessons=tuple(one for one in lessons if one.is_learned and seeing.may(one.sources)),
                every_lesson=lessons,
                summary=summary.summary if summary else "",
                summary_sources=summary.sources if summary else (),
                tuned=tuple(Tuned(**{**row, "useful": tuple(parse(row["useful"]))}) for row in db.all("tunings")),
                cycle=(db.value("reflection_last") or 0) + 1,
                upto=db.value("interaction_last"),
            )

    async def reflect(self, reflected: Reflected) -> Recorded:
        """Apply a cycle in one transaction; repeating it changes nothing.

        An invalid assessment is skipped; the rest is applied.
        """
        return await self._core.write(lambda db: apply(db, reflected))

    async def keep_reflection(self, record: Reflection, history_size: int) -> None:
        """Keep the record of a cycle that changed nothing."""
        await self._core.write(lambda db: keep(db, record, history_size))

    async def set_belief(self, key: str, hand: OwnersHand) -> int:
        """Pin, dispute or delete a belief for the owner; return how many rows had that key."""
        if hand == "delete":
            return await self._core.write(lambda db: db.change("belief_delete", key=key))
        return await self._core.write(lambda db: db.change("belief_state", key=key, state=STATES[hand]))


_LOOKED_AT = 50
STATES = {"pin": "pinned", "dispute": "disputed"}


def _known(db: Database, peer_id: str, audience: str, seeing: Seeing, window: int) -> Known | None:
    peer = find_peer(db, peer_id, seeing)
    if peer is None:
        return None
    here = db.one("timeline_of", peer_id=peer_id, audience=audience, most=1)
    row = db.one("peer_counted", peer_id=peer_id)
    return Known(
        peer=peer,
        timeline=timeline(db, peer_id, window, seeing),
        conversation=here["conversation"] if here else "",
        directed_at=maybe_instant(row["directed_at"]) if row else None,
    )


def apply(db: Database, reflected: Reflected) -> Recorded:
    """Apply a cycle as a whole; a known one changes nothing, nor does one that read what was erased since.

    An assessment that cannot be written is skipped; the rest is applied.
    """
    record = reflected.record
    is_erased = record.evidence and db.one("evidence_gone", evidence=dump(record.evidence))
    if is_erased or db.one("reflection_known", cycle=record.cycle):
        return Recorded()
    recorded = _assess(db, reflected.proposals, record.at)
    for belief in reflected.put:
        texts = {name: valid(getattr(belief, name)) for name in ("key", "value", "rationale")}
        lists = {"sources": dump(belief.sources), "evidence": dump(belief.evidence)}
        db.run("belief_put", **asdict(belief) | texts | lists | {"created_at": stamp(belief.created_at)})
    for key, audience in reflected.gone:
        db.run("belief_gone", key=key, audience=audience)
    for lesson in reflected.lessons:
        texts = {"key": valid(lesson.key), "value": valid(lesson.value), "sources": dump(lesson.sources)}
        times = {"first_at": stamp(lesson.first_at), "last_at": stamp(lesson.last_at)}
        db.run("lesson_put", **asdict(lesson) | texts | times)
    for key, audience in reflected.lost:
        db.run("lesson_gone", key=key, audience=audience)
    for directive in reflected.directives:
        accept(db, (directive.perception,), record.at)
        db.run("peer_directed", peer_id=directive.peer_id, at=stamp(record.at))
    for peer in reflected.seen:
        db.run("interactions_seen", cycle=record.cycle, audience=record.audience, peer_id=peer, upto=reflected.upto)
    for number in reflected.overdue:
        db.run("promise_broken", id=number)
    for tuned in reflected.tuned:
        db.run("tuning_put", **asdict(tuned) | {"useful": dump(tuned.useful)})
    keep(db, record, reflected.history_size)
    return recorded


def _assess(db: Database, proposals: Sequence[Proposal], at: datetime) -> Recorded:
    made, failed = [], {}
    for proposal in proposals:
        db.connection.execute("SAVEPOINT assessment")
        try:
            made.append(record(db, proposal, at))
        except (ValueError, db.connection.IntegrityError) as error:
            db.connection.execute("ROLLBACK TO assessment")
            failed[proposal.peer_id] = str(error) if isinstance(error, ValueError) else unquoted(error)
        db.connection.execute("RELEASE assessment")
    return Recorded(assessments=tuple(made), failed=failed)


_LISTS = {
    **{name: name for name in ("sources", "directives", "evidence")},
    **{f"beliefs_{name}": name for name in ("added", "reaffirmed", "expired")},
    "peers_assessed": "assessed",
}
"""The lists of a cycle's record, each with its column."""


def keep(db: Database, record: Reflection, history_size: int) -> None:
    """Add a cycle to the history, and delete the oldest beyond `history_size`."""
    lists = {column: dump(getattr(record, name)) for name, column in _LISTS.items()}
    db.run(
        "reflection_new",
        **asdict(record) | lists | {"at": stamp(record.at), "summary": valid(record.summary)},
        input_tokens=record.usage.input_tokens + record.usage.cache_read_tokens + record.usage.cache_write_tokens,
        output_tokens=record.usage.output_tokens,
        cost_usd=record.usage.cost_usd,
    )
    db.run("reflections_let_go", most=history_size)


def every_belief(db: Database) -> tuple[Belief, ...]:
    """Return all beliefs, of every audience, expired or not."""
    return tuple(belief_of(row) for row in db.all("beliefs"))


@lru_cache(maxsize=256)
def _few(text: str) -> tuple[Any, ...]:
    """Decode a JSON list; cached, because beliefs share the same few audiences."""
    return tuple(parse(text))


def belief_of(row: Row) -> Belief:
    """Decode one belief."""
    with Decoding("belief", row["key"], row["audience"]):
        return struct_of(Belief, row, {"created_at": instant, "sources": _few, "evidence": _few})


def every_lesson(db: Database) -> tuple[Lesson, ...]:
    """Return all lessons and candidates, of every audience."""
    found = []
    for row in db.all("lessons"):
        with Decoding("lesson", row["key"], row["audience"]):
            readers = {"first_at": instant, "last_at": instant, "sources": parse_strings}
            found.append(struct_of(Lesson, row, readers))
    return tuple(found)


def reflections(db: Database, most: int) -> tuple[Reflection, ...]:
    """Return the newest cycles, newest first."""
    return tuple(map(_reflection, db.all("reflections_newest", most=most)))


def _reflection(row: Row) -> Reflection:
    with Decoding("reflection", row["cycle"]):
        return Reflection(
            cycle=row["cycle"],
            at=instant(row["at"]),
            trigger=row["trigger"],
            audience=row["audience"],
            outcome=row["outcome"],
            duration_s=row["duration_s"],
            summary=row["summary"],
            **{name: tuple(parse(row[column])) for name, column in _LISTS.items()},
            alignment=row["alignment"],
            usage=Usage(**{name: row[name] for name in ("input_tokens", "output_tokens", "cost_usd")}),
        )
