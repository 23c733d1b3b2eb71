"""The building blocks of the cases: a rule, an ear that listens in place of the soul, and a part to say."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from claudius.intent import Utterance
from claudius.perception import Perception
from claudius.recollection import turn_of
from claudius.runtime.adapter import Adapter, Gap
from claudius.testing.adapter_contract.stage import PATIENCE_S, Stage

Make = Callable[[], Adapter]


@dataclass(slots=True)
class Ear:
    """Records what an adapter hears. `troubles` are raised by the next perceptions, in order."""

    heard: dict[str, Perception] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    """The key of each accepted perception, repeated if it came again."""
    troubles: list[Exception] = field(default_factory=list)
    slow: Callable[[Perception], float] = lambda _: 0.0
    """How many seconds accepting a perception takes."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def accept(self, perception: Perception) -> bool:
        """Accept one perception; return whether it is new."""
        await asyncio.sleep(self.slow(perception))
        if self.troubles:
            raise self.troubles.pop(0)
        is_new = perception.key not in self.heard
        self.heard.setdefault(perception.key, perception)
        self.told.append(perception.key)
        self._changed.set()
        return is_new

    async def until(self, count: int) -> list[Perception]:
        """Wait for this many different perceptions."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.heard) < count:
                self._changed.clear()
                await self._changed.wait()
        return list(self.heard.values())


@dataclass(frozen=True, slots=True)
class Case:
    """One rule."""

    number: str
    rule: str
    needs: frozenset[str]
    """What the network must support."""
    run: Callable[[Make, Stage], Awaitable[None]]

    def __str__(self) -> str:
        return f"{self.number} {self.rule}"


CASES: list[Case] = []
Run = Callable[[Make, Stage], Awaitable[None]]


def case(number: str, rule: str, *needs: str) -> Callable[[Run], None]:
    """Add a rule to the contract under its number."""

    def add(run: Run) -> None:
        CASES.append(Case(number, rule, frozenset(needs), run))

    return add


@dataclass(frozen=True, slots=True)
class Listening:
    """A listening adapter, and the ear behind it."""

    adapter: Adapter
    ear: Ear
    missed: asyncio.Event
    """Set if the adapter reports that something may have been missed."""

    async def sweep(self, *marks: Perception) -> None:
        """Read what may have been missed since these perceptions."""
        newest = {self.channel(one): one.position for one in marks}
        now = datetime.now(UTC)
        async for swept in self.adapter.catch_up(Gap(since=now - timedelta(hours=1), marks=newest)):
            for one in swept.perceptions:
                await self.ear.accept(one)

    @staticmethod
    def channel(perception: Perception) -> str:
        """Return the channel of a perception in the form that marks use."""
        _, workspace, channel, _ = perception.conversation.split(":", 3)
        return f"{workspace}:{channel}"


@asynccontextmanager
async def listening(make: Make) -> AsyncIterator[Listening]:
    """Listen with a new adapter; close it at the end."""
    adapter, ear, missed = make(), Ear(), asyncio.Event()
    adapter.link.on_missed(lambda _: missed.set())
    task = asyncio.create_task(adapter.listen(ear.accept), name="an adapter listens")
    async with asyncio.timeout(PATIENCE_S):
        await adapter.link.tried()
    missed.clear()
    try:
        yield Listening(adapter, ear, missed)
    finally:
        await adapter.close()
        async with asyncio.timeout(PATIENCE_S):
            await task


@asynccontextmanager
async def heard(one: Listening) -> AsyncIterator[None]:
    """Listen with an adapter that is logged in, until its listening is cancelled."""
    task = asyncio.create_task(one.adapter.listen(one.ear.accept), name="an adapter listens for a while")
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not one.adapter.link.hears:  # noqa: ASYNC110 - a test looks from outside
                await asyncio.sleep(0.005)
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def answer(perception: Perception, body: str, *, n: int = 0, of: int = 1) -> Utterance:
    """Return one part of an answer to a perception."""
    turn = turn_of(perception.key)
    said = {
        "key": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{turn}/{n}")),
        "turn": turn,
        "conversation": perception.conversation,
        "body": body,
        "part": n,
        "parts": of,
        "answers": (perception.key,),
        "person": perception.person,
    }
    return msgspec.convert(said, Utterance)  # only the soul engine may construct one directly
