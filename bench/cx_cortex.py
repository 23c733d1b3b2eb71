"""CX: what the second mind costs the first: an observer, the triggers, beliefs in a prompt; and the tokens of a cycle.

The bounds are those of the cortex design: a hook under 1 ms, a trigger under 5 ms, twenty beliefs under 1 ms, each at
the 99th percentile. Each anchor is the bound itself, so the ratio reads as a share of what is allowed.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import script
from claudius.cognition.hooks import Hooks
from claudius.cortex.beliefs import build, ranked
from claudius.cortex.models import TRIGGERS, CortexEvent, Part, State, Thresholds
from claudius.cortex.observe import MOST_EVENTS, OBSERVED, Buffer
from claudius.cortex.triggers import evaluate
from claudius.home import Home
from claudius.ledger_types import Belief, Grounds, Interaction, Known, Noted, Peer, Reflected, Reflection
from claudius.memory.ledger import format_beliefs, format_peers
from claudius.memory.recall import RecallLimits
from claudius.memory.sqlite import SqliteStore
from claudius.observed import MessageHeard
from claudius.prompt import data_line, fence, nested_line
from command import Bench, alone
from contracts.store.ground import exchange, heard, taken
from figures import Figure, percentile, within

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
ANA, CHANNEL = "slack:T1:Ana", "shared:slack:T1:ops"
NONCE = "0123456789abcdef0123456789abcdef"
TIMES, QUICK_TIMES = 5000, 1000


def measure(bench: Bench) -> Iterator[Figure]:
    """Time each part, and then count the tokens of a cycle."""
    times = QUICK_TIMES if bench.is_quick else TIMES
    yield _figure("hook, one observer", "CX.hook", bench.rounds, times, _hook())
    yield _figure(f"triggers, {MOST_EVENTS:,} events", "CX.triggers", bench.rounds, times // 5, _triggers())
    yield _figure("twenty beliefs, formatted and fenced", "CX.formatting", bench.rounds, times, _formatting())
    yield asyncio.run(_recalling(bench, times // 5))
    for peers in (5, 50):
        yield _tokens(peers)


def _figure(name: str, key: str, rounds: int, times: int, work: Callable[[], object]) -> Figure:
    work()
    samples, singles = [], []
    for _ in range(rounds):
        took = [_took_ms(work) for _ in range(times)]
        samples.append(percentile(took, 0.99))
        singles += took
    beside = (within(key, rounds),)
    return Figure(id="CX", name=f"{name}, p99", unit="ms", samples=samples, beside=beside, singles=singles)


def _took_ms(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - started)


def _seen() -> MessageHeard:
    return MessageHeard(
        turn="t",
        conversation="slack:T1:ops:1",
        audience=CHANNEL,
        timestamp=NOW,
        peer_id=ANA,
        direction="in",
        channel_type="channel",
        event_id="e",
        scope=30,
        preview=script.prose(120, 1),
    )


def _event(peer: str = ANA) -> CortexEvent:
    return CortexEvent(timestamp=NOW, audience=CHANNEL, turn="t", direction="in", peer_id=peer, scope=30)


def _hook() -> Callable[[], object]:
    hooks, buffer, seen = Hooks(), Buffer(), _seen()
    for kind in OBSERVED:
        hooks.listen(kind, buffer.observe)
    return lambda: hooks.emit(seen)


def _triggers() -> Callable[[], object]:
    event = _event()
    state = State(since=NOW, events=[event] * MOST_EVENTS)
    config = Thresholds(enabled=frozenset(TRIGGERS), interaction_threshold=10**6)
    return lambda: evaluate(state, NOW + timedelta(minutes=1), config)


def _beliefs() -> tuple[Belief, ...]:
    return tuple(
        Belief(
            key=f"belief-number-{n}",
            value=script.prose(150, n),
            rationale="r",
            source_cycle=1,
            created_at=NOW,
            peer_id=ANA,
            sources=(CHANNEL,),
            audience=CHANNEL,
        )
        for n in range(20)
    )


def _formatting() -> Callable[[], object]:
    beliefs = _beliefs()
    return lambda: fence(data_line({"kind": "beliefs", "text": format_beliefs(beliefs)}), NONCE)


async def _recalling(bench: Bench, times: int) -> Figure:
    """Time a whole recall with the second mind on over the same recall with it off."""
    home = Home(bench.home("cx"))
    home.create()
    store = SqliteStore(home.database)
    await store.start("boot", NOW)
    for n in range(1, 21):
        said = heard(script.prose(80, n), n=n, person=ANA, at="slack:T1:ops:1")
        await exchange(store, said, noted=Noted(interactions=(_line(said.key, n),)))
    record = Reflection(cycle=1, at=NOW, trigger="timer", audience=CHANNEL, outcome="done", duration_s=0)
    await store.ledger.reflect(Reflected(record=record, put=_beliefs()))
    pending = await taken(store, heard("?", n=99, person=ANA, at="slack:T1:ops:1"))
    sides: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(bench.rounds):
        took: dict[bool, list[float]] = {True: [], False: []}
        for _ in range(times):
            for is_on, found in took.items():
                limits = RecallLimits(ttl_hours=72, beliefs=is_on)
                started = time.perf_counter()
                known = await store.turns.recall(pending, nonce=NONCE, now=NOW, limits=limits)
                format_peers(known.peers)
                format_beliefs(known.beliefs)
                found.append(1000 * (time.perf_counter() - started))
        for is_on, found in took.items():
            sides[is_on].append(percentile(found, 0.5))
    await store.close(clean=True)
    added = [on - off for on, off in zip(sides[True], sides[False], strict=True)]
    return Figure(
        id="CX",
        name="twenty beliefs, read and chosen in a turn's recall, added to its median",
        unit="ms",
        samples=[max(one, 1e-6) for one in added],
        beside=(within("CX.recall", bench.rounds),),
        note=f"the recall without them: {sorted(sides[False])[len(added) // 2]:.2f} ms",
    )


def _line(turn: str, n: int, peer: str = ANA) -> Interaction:
    return Interaction(
        id=n,
        peer_id=peer,
        name=peer.rpartition(":")[2],
        at=NOW + timedelta(minutes=n),
        direction="in",
        channel_type="channel",
        conversation="slack:T1:ops:1",
        audience=CHANNEL,
        turn=turn,
        scope=30,
        preview=script.prose(120, n),
    )


def _tokens(count: int) -> Figure:
    """Count the tokens of a cycle with this many peers of ten lines each, including the system text."""
    system = (Path(__file__).parents[1] / "soul" / "cortex.md").read_text("utf-8")
    soul = (Path(__file__).parents[1] / "soul" / "soul.md").read_text("utf-8")
    ids = [f"slack:T1:P{n}" for n in range(count)]
    part = Part(
        audience=CHANNEL,
        events=tuple(_event(peer) for peer in ids for _ in range(3)),
    )
    known = [
        Known(
            peer=Peer(peer_id=peer, name=peer, messages=10, info_score=4, first_at=NOW, last_at=NOW),
            timeline=tuple(_line("t", n, peer) for n in range(10)),
        )
        for peer in ranked(part, 8)
    ]
    grounds = Grounds(audience=CHANNEL, peers=tuple(known), beliefs=_beliefs()[:5], summary=script.prose(300, 1))
    found = build(part, grounds, trigger="timer", soul=soul, now=NOW, budget_tokens=2500 - len(system) // 4)
    line = nested_line(found.content)
    tokens = (len(system) + len(fence(line, NONCE))) // 4
    shown = json.loads(line)["peers"]
    return Figure(
        id="CX",
        name=f"tokens of a cycle, {count} people of ten lines each",
        unit="tokens",
        samples=[float(tokens)],
        beside=(within("CX.tokens", 1),),
        note=f"{len(shown)} people shown, {len(shown[0]['timeline'])} lines each",
    )


if __name__ == "__main__":
    alone(__file__)
