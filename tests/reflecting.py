"""Small plain values for the tests of the second mind."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import msgspec
from msgspec.structs import asdict, replace

from claudius.acts import MatterOpened
from claudius.config.schema import Config
from claudius.cortex.life import Cortex
from claudius.cortex.models import CortexEvent, CycleDocument, Ties
from claudius.home import Home
from claudius.ledger_types import Assessment, Belief, Interaction, Known, Noted, Peer, Promise
from claudius.memory.sqlite import SqliteStore
from claudius.observed import MessageHeard, Sent
from claudius.providers.scripted import Scripted
from claudius.psyche.events import scope
from claudius.recollection import turn_of
from contracts.store.ground import exchange, heard
from lab.sample import soul

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ANN, BEN = "slack:T1:Ann", "slack:T1:Ben"
ANN_DM = "slack:T1:D-ann:"
OPS = "shared:slack:T1:ops"
DM = "private:slack:T1:Ann"


def minutes(count: float) -> timedelta:
    """Return this many minutes as a timedelta."""
    return timedelta(minutes=count)


def message(n: int = 1, *, peer: str = ANN, audience: str = OPS, **more: Any) -> CortexEvent:
    """Return the n-th observed message."""
    values: dict[str, Any] = {
        "peer_id": peer,
        "direction": "in",
        "channel_type": "channel",
        "timestamp": NOW + minutes(n),
        "audience": audience,
        "turn": f"turn{n}",
        "scope": 10,
    }
    return CortexEvent(**(values | more))


def line(n: int = 1, *, peer: str = ANN, audience: str = OPS, preview: str = "", **more: Any) -> Interaction:
    """Return the n-th line of a peer's timeline."""
    values: dict[str, Any] = {
        "id": n,
        "peer_id": peer,
        "at": NOW + minutes(n),
        "direction": "in",
        "channel_type": "channel",
        "conversation": "slack:T1:ops:1",
        "audience": audience,
        "turn": f"turn{n}",
        "scope": 10,
        "preview": preview or f"line {n}",
    }
    return Interaction(**(values | more))


def assessed(trust: int, *, peer: str = ANN, sources: tuple[str, ...] = (OPS,), why: str = "Delivers.") -> Assessment:
    """Return an assessment."""
    return Assessment(peer_id=peer, info_score=4, trust=trust, rationale=why, created_at=NOW, sources=sources)


def known(peer: str = ANN, *, lines: int = 3, **more: Any) -> Known:
    """Return what a cycle may read of a peer."""
    values: dict[str, Any] = {
        "peer": Peer(
            peer_id=peer,
            name=peer.rpartition(":")[2],
            messages=lines,
            info_score=3,
            first_at=NOW,
            last_at=NOW + minutes(lines),
        ),
        "timeline": tuple(line(n, peer=peer) for n in range(1, lines + 1)),
        "conversation": "slack:T1:ops:1",
    }
    return Known(**(values | more))


def document(*peers: str, audience: str = OPS, evidence: tuple[int, ...] = (1, 2)) -> CycleDocument:
    """Return a cycle's document that shows these peers."""
    return CycleDocument(content={}, peers=frozenset(peers or (ANN,)), evidence=evidence, sources=(audience,))


def belief(key: str = "ann-is-reliable", *, age: float = 0, **more: Any) -> Belief:
    """Return a belief that is `age` minutes old."""
    values: dict[str, Any] = {
        "key": key,
        "value": "Ann delivers.",
        "rationale": "Three times now.",
        "source_cycle": 1,
        "created_at": NOW - minutes(age),
        "sources": (OPS,),
        "audience": OPS,
    }
    return Belief(**(values | more))


def promise(**more: Any) -> Promise:
    """Return what Ann was to do by a day that is over five hours after noon."""
    values: dict[str, Any] = {"id": 1, "peer_id": ANN, "what": "send it", "audience": OPS}
    return Promise(**({"overdue_at": NOW + timedelta(hours=5)} | values | more))


@dataclass(slots=True)
class Second:
    """A second mind over a real store, with a scripted provider and a clock that a test sets."""

    store: SqliteStore
    voice: Scripted
    now: datetime
    settings: dict[str, Any]
    cortex: Cortex = field(init=False)
    told: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    woken: list[str] = field(default_factory=list)
    may_spend: bool = True
    heard: int = 0

    def begin(self, home: Home) -> None:
        """Start the second mind; what an earlier one held in memory is gone."""
        texts = soul(home)

        def may_spend() -> bool:
            return self.may_spend

        self.cortex = Cortex(
            Ties(
                store=self.store,
                voice=lambda _: self.voice,
                soul=lambda: texts,
                config=self.config,
                clock=lambda: self.now,
                nonce=iter(f"{n:032x}" for n in range(10**6)).__next__,
                emit=lambda event: self.told.append((event.point, asdict(event))),
                may_spend=may_spend,
                wake=self.woken.append,
            )
        )

    def config(self) -> Config:
        """Return the settings in force."""
        return msgspec.convert({"cortex": {"enabled": True, **self.settings}}, Config)

    async def hear_often(self, times: int, text: str = "Hello") -> None:
        """Run a turn of Ann's as often as that."""
        for _ in range(times):
            await self.hear(text)

    async def hear(
        self,
        text: str = "Hello",
        *,
        person: str = ANN,
        at: str = "slack:T1:ops:1",
        by: date | None = None,
        more: Any = None,
    ) -> Interaction:
        """Run one turn: the hooks fire, the ledger records it, the soul answers. `by`: it is to be done by that day."""
        self.heard += 1
        perception = heard(text, n=self.heard, person=person, at=at, key=f"{at}#{self.heard}")
        perception = replace(perception, at=self.now)
        turn = turn_of(perception.key)
        kept = line(
            self.heard,
            peer=person,
            audience=perception.audience,
            preview=text,
            at=self.now,
            turn=turn,
            conversation=at,
            name=person.rpartition(":")[2],
            scope=scope(text),
        )
        seen: dict[str, Any] = {
            "turn": turn, "conversation": at, "audience": perception.audience, "timestamp": self.now,
            "peer_id": person, "channel_type": "channel",
        }  # fmt: skip
        shown = MessageHeard(**seen, direction="in", scope=kept.scope, preview=text, event_id=perception.key)
        self.cortex.observe(shown)
        noted = Noted(interactions=(kept,))
        acts = (MatterOpened(person=person, text=text, when=by),) if by else ()
        await exchange(self.store, perception, noted=noted, at=self.now, acts=acts, **(more or {}))
        self.cortex.observe(Sent(**seen, direction="out", recipient=at, chars=1, receipt="r"))
        return kept

    def asked(self, n: int = -1) -> dict[str, Any]:
        """Return the document of the n-th call."""
        found: dict[str, Any] = json.loads(self.voice.requests[n].tail.splitlines()[1])
        return found

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the payload of each event with this name."""
        return [said for told, said in self.told if told == name]


@asynccontextmanager
async def second(home: Home, *replies: Any, **settings: Any) -> AsyncIterator[Second]:
    """Yield a second mind over a new store; `settings` are those of [cortex]."""
    store = SqliteStore(home.database)
    await store.start(uuid4().hex, NOW)
    made = Second(store=store, voice=Scripted(list(replies), default=answer()), now=NOW, settings=settings)
    made.begin(home)
    try:
        yield made
    finally:
        await store.close(clean=True)


def answer(*assessments: tuple[str, Any], summary: str = "A quiet hour.", **more: Any) -> str:
    """Return a model's answer: assessments from (peer, trust) pairs, and any other field by name."""
    judged = [{"peer_id": peer, "trust": trust, "rationale": f"{peer} was seen."} for peer, trust in assessments]
    return json.dumps({"assessments": judged, "beliefs": [], "summary": summary} | more)


def believing(key: str = "ann-is-reliable", value: str = "Ann delivers.", **more: Any) -> str:
    """Return an answer that holds one belief."""
    return answer(beliefs=[{"key": key, "value": value, "rationale": "Seen."} | more])
