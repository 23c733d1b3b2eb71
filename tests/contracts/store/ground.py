"""The building blocks of the cases: a place to store data, a rule, and helpers that all cases share."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from claudius.intent import Call, Intent, Utterance
from claudius.ledger_types import Proposal
from claudius.memory.inbox import Pending
from claudius.memory.ledger import record
from claudius.memory.recall import RecallLimits
from claudius.memory.store import Store
from claudius.perception import Perception, private, shared
from claudius.provider import Usage
from claudius.recollection import Entry, EntryType, ProcessState, Recollection

NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
LIMITS = RecallLimits(ttl_hours=72)
ANA, BEN, DEE, OZ = (f"slack:T1:{name}" for name in ("Ana", "Ben", "Dee", "Oz"))
DM = "slack:T1:D-ana:"
OPS = "slack:T1:ops:1.0"


@dataclass(frozen=True, slots=True)
class Ground:
    """A store under test. `make` returns an unopened store on one path, whose earlier stores are closed by then."""

    make: Callable[[], Store]


@dataclass(frozen=True, slots=True)
class Case:
    """One rule."""

    number: str
    rule: str
    run: Callable[[Ground], Awaitable[None]]

    def __str__(self) -> str:
        return f"{self.number} {self.rule}"


CASES: list[Case] = []


def case(number: str, rule: str) -> Callable[[Callable[[Ground], Awaitable[None]]], None]:
    """Add a rule to the contract under its number."""

    def add(run: Callable[[Ground], Awaitable[None]]) -> None:
        CASES.append(Case(number, rule, run))

    return add


@asynccontextmanager
async def awake(ground: Ground, boot: str = "boot-1", *, clean: bool = True) -> AsyncIterator[Store]:
    """Start a process's store; stop it in good order, or, if not `clean`, abruptly."""
    store = ground.make()
    await store.start(boot, NOW)
    try:
        yield store
    finally:
        await store.close(clean=clean)


def heard(text: str = "Hello", *, n: int = 1, person: str = ANA, at: str = DM, **changes: Any) -> Perception:
    """Return the n-th message of a person in a direct message (a conversation named `D-…`), or in a channel."""
    is_private = ":D-" in at or at.startswith("terminal:")
    values: dict[str, Any] = {
        "key": f"{at}#{n}",
        "conversation": at,
        "audience": private(person) if is_private else shared(at),
        "person": person,
        "name": person.rpartition(":")[2],
        "text": text,
        "at": NOW + timedelta(minutes=n),
        "position": f"{n:012d}",
    }
    return Perception(**(values | changes))


async def taken(store: Store, perception: Perception, *, nonce: str = "nonce") -> Pending:
    """Accept a perception and take it."""
    await store.inbox.accept((perception,), NOW)
    pending = await store.inbox.oldest(perception.conversation)
    assert pending is not None
    store.inbox.take(pending.seq, {"now": NOW.isoformat(), "nonce": nonce}, NOW)
    return pending


async def recalled(
    store: Store, perception: Perception, *, now: datetime | None = None, limits: RecallLimits = LIMITS
) -> Recollection:
    """Accept a perception, take it, and return what its turn would know."""
    pending = await taken(store, perception)
    return await store.turns.recall(pending, nonce="nonce", now=now or perception.at, limits=limits)


def part(turn: str, conversation: str, body: str = "Hi.", *, n: int = 0, of: int = 1, **changes: Any) -> Utterance:
    """Return one part of what a turn says, as an adapter would receive it."""
    key = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{turn}/{n}"))
    values = {"key": key, "turn": turn, "conversation": conversation, "body": body, "part": n, "parts": of}
    return msgspec.convert(values | changes, Utterance)  # only the soul engine may construct one directly


def thought(recollection: Recollection, *bodies: str, **changes: Any) -> Intent:
    """Return the intent of an ordinary turn: what was heard, a thought, and one spoken part per body."""
    perception = recollection.perception
    said = tuple(
        part(
            recollection.turn,
            recollection.conversation,
            body,
            n=n,
            of=len(bodies),
            answers=(perception.key,),
            person=perception.person,
        )
        for n, body in enumerate(bodies)
    )
    speaker = recollection.speaker
    values: dict[str, Any] = {
        "turn": recollection.turn,
        "conversation": recollection.conversation,
        "audience": recollection.audience,
        "person": speaker.person if speaker else "",
        "name": speaker.name if speaker else "",
        "at": recollection.now,
        "nonce": recollection.nonce,
        "answers": tuple(one.key for one in recollection.perceptions),
        "version": recollection.version,
        "process": "main_process",
        "next_process": ProcessState(process="main_process", entered_at=NOW),
        "rung": "complete" if bodies else "silent",
        "entries": entries(recollection, "".join(bodies)),
        "utterances": said,
    }
    return Intent(**(values | changes))


def entries(recollection: Recollection, said: str) -> tuple[Entry, ...]:
    """Return what working memory keeps of a turn."""
    perception = recollection.perception
    made = [
        Entry(
            entry_type=EntryType.USER_MESSAGE,
            content=perception.text,
            at=perception.at,
            person=perception.person,
            name=perception.name,
            position=perception.position,
        ),
        Entry(
            entry_type=EntryType.INTERNAL_MONOLOGUE, content=f"Of {perception.text}", at=recollection.now, verb="mused"
        ),
    ]
    if said:
        made.append(Entry(entry_type=EntryType.EXTERNAL_DIALOG, content=said, at=recollection.now, verb="said"))
    return tuple(made)


async def turn(store: Store, perception: Perception, *bodies: str, **changes: Any) -> Intent:
    """Run a perception's turn through the commit; say nothing if no body is given. Return the intent."""
    intent = thought(await recalled(store, perception), *bodies, **changes)
    await store.turns.commit(intent)
    return intent


async def exchange(store: Store, perception: Perception, *bodies: str, **changes: Any) -> Intent:
    """Run a perception's turn until every part is delivered and settled. Return the intent."""
    intent = await turn(store, perception, *(bodies or ("Hi.",)), **changes)
    for utterance in intent.utterances:
        await store.outbox.settle(utterance.key, f"receipt-{utterance.part}", NOW)
    return intent


def call(n: int = 0, response: str = "A reply.", *, cost_usd: float | None = None, purpose: str = "turn") -> Call:
    """Return a finished model call."""
    usage = Usage(input_tokens=10, cache_read_tokens=20, cache_write_tokens=3, output_tokens=4, cost_usd=cost_usd)
    return Call(
        n=n,
        purpose=purpose,
        request_sha256=f"{n:064d}",
        response=response,
        stop_reason="end",
        usage=usage,
        provider="scripted",
        model="m",
        ms=7,
    )


async def assess(store: Store, peer: str, trust: Any, rationale: str, now: datetime = NOW, **more: Any) -> int:
    """Record an assessment as a turn or a cycle does, and return its number. Raises: ValueError."""
    proposal = Proposal(peer_id=peer, trust=trust, rationale=rationale, **more)
    return (await store.core.write(partial(record, proposal=proposal, at=now))).id
