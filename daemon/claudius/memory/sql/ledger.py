"""`store.ledger`: peers, and what the cortex reads, believes and has learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from msgspec.structs import asdict

from claudius.foreign import unquoted
from claudius.ledger_types import (
    TRAJECTORY,
    Author,
    Belief,
    Grounds,
    Interaction,
    Known,
    Lesson,
    OwnersHand,
    Peer,
    Promise,
    Proposal,
    Recorded,
    Reflected,
    Reflection,
    Tuned,
)
from claudius.memory.sql import peer_rows
from claudius.memory.sql.connection import Database, Row
from claudius.memory.sql.core import Core
from claudius.memory.sql.inbox import accept
from claudius.memory.sql.rows import Decoding, dump, instant, maybe_instant, parse, parse_strings, stamp
from claudius.memory.sql.seeing import Seeing
from claudius.prompt import valid
from claudius.provider import Usage


class SqlLedger:
    """Peers, and what the soul thinks of them."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def record_assessment(
        self,
        peer_id: str,
        trust: int,
        rationale: str,
        *,
        now: datetime,
        author: Author = "cortex",
        sources: Sequence[str] | None = None,
    ) -> int:
        proposal = Proposal(
            peer_id=peer_id,
            trust=trust,
            rationale=rationale,
            author=author,
            sources=None if sources is None else tuple(sources),
        )
        made = await self._core.write(lambda db: peer_rows.record(db, proposal, now))
        return made.id

    async def list_peers(self, audience: str, since: datetime | None = None, limit: int = 1000) -> Sequence[Peer]:
        since = since or datetime.min.replace(tzinfo=UTC)
        with self._core.snapshot() as db:
            ids = db.values("peers_lately", since=stamp(since), most=limit)
            known = peer_rows.peers_known(db, ids, Seeing.towards(db, audience))
        return sorted((one for one in known if one.last_at >= since), key=lambda one: one.last_at, reverse=True)

    async def query_peer(self, peer_id: str, audience: str) -> Peer | None:
        with self._core.snapshot() as db:
            return peer_rows.peer(db, peer_id, Seeing.towards(db, audience))

    async def timeline(self, peer_id: str, limit: int, audience: str) -> Sequence[Interaction]:
        with self._core.snapshot() as db:
            return peer_rows.timeline(db, peer_id, limit, Seeing.towards(db, audience))

    async def get_peer_assessment_summary(self, peer_id: str, audience: str) -> Mapping[str, Any] | None:
        peer = await self.query_peer(peer_id, audience)
        return None if peer is None else {"peer_id": peer.peer_id, **peer_rows.summary(peer)}

    async def latest_trust(self) -> Mapping[str, int]:
        with self._core.snapshot() as db:
            return {row["peer_id"]: row["trust"] for row in db.all("latest_trust")}

    async def unreflected(self, limit: int) -> Sequence[Interaction]:
        with self._core.snapshot() as db:
            return [peer_rows.interaction_of(row) for row in reversed(db.all("interactions_waiting", most=limit))]

    async def newest_interactions(self, limit: int) -> Sequence[Interaction]:
        with self._core.snapshot() as db:
            return peer_rows.newest(db, limit)

    async def are_noted(self, turns: Sequence[str]) -> bool:
        with self._core.snapshot() as db:
            return all(db.one("turn_noted", turn=turn) for turn in turns)

    async def open_promises(self, limit: int = 500) -> Sequence[Promise]:
        with self._core.snapshot() as db:
            return [peer_rows.promise_of(row) for row in db.all("promises_open", most=limit)]

    async def promised(self, person: str, audience: str) -> str:
        with self._core.snapshot() as db:
            return db.value("promised", person=person, audience=audience) or ""

    async def inbound(self, peer_id: str, limit: int) -> tuple[Sequence[Interaction], Sequence[int]]:
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

    async def grounds(self, audience: str, peers: Sequence[str], window: int) -> Grounds:
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
        return await self._core.write(lambda db: apply(db, reflected))

    async def keep_reflection(self, record: Reflection, history_size: int) -> None:
        await self._core.write(lambda db: keep(db, record, history_size))

    async def set_belief(self, key: str, hand: OwnersHand) -> int:
        if hand == "delete":
            return await self._core.write(lambda db: db.change("belief_delete", key=key))
        return await self._core.write(lambda db: db.change("belief_state", key=key, state=STATES[hand]))


_LOOKED_AT = 50
STATES = {"pin": "pinned", "dispute": "disputed"}


def _known(db: Database, peer_id: str, audience: str, seeing: Seeing, window: int) -> Known | None:
    peer = peer_rows.peer(db, peer_id, seeing)
    if peer is None:
        return None
    here = db.one("timeline_of", peer_id=peer_id, audience=audience, most=1)
    row = db.one("peer_counted", peer_id=peer_id)
    promises = map(peer_rows.promise_of, db.all("promises_of", peer_id=peer_id))
    return Known(
        peer=peer,
        timeline=peer_rows.timeline(db, peer_id, window, seeing),
        conversation=here["conversation"] if here else "",
        directed_at=maybe_instant(row["directed_at"]) if row else None,
        promises=tuple(promise for promise in promises if seeing.may((promise.audience,))),
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
        db.run("promise_moved", id=number, state="overdue")
    for tuned in reflected.tuned:
        db.run(
            "tuning_put",
            trigger=tuned.trigger,
            base=tuned.base,
            value=tuned.value,
            useful=dump(tuned.useful),
            cycles=tuned.cycles,
        )
    keep(db, record, reflected.history_size)
    return recorded


def _assess(db: Database, proposals: Sequence[Proposal], at: datetime) -> Recorded:
    made, failed = [], {}
    for proposal in proposals:
        db.connection.execute("SAVEPOINT assessment")
        try:
            made.append(peer_rows.record(db, proposal, at))
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
        return Belief(
            key=row["key"],
            value=row["value"],
            rationale=row["rationale"],
            source_cycle=row["source_cycle"],
            created_at=instant(row["created_at"]),
            ttl_minutes=row["ttl_minutes"],
            peer_id=row["peer_id"],
            sources=_few(row["sources"]),
            audience=row["audience"],
            state=row["state"],
            evidence=_few(row["evidence"]),
        )


def every_lesson(db: Database) -> tuple[Lesson, ...]:
    """Return all lessons and candidates, of every audience."""
    found = []
    for row in db.all("lessons"):
        with Decoding("lesson", row["key"], row["audience"]):
            times = {"first_at": instant(row["first_at"]), "last_at": instant(row["last_at"])}
            found.append(Lesson(**{**row, **times, "sources": parse_strings(row["sources"])}))
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
