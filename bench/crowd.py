"""Our runtime in its own process, and a crowd that talks with it: intake → lanes → turns → delivery, as shipped.

Network and model are in this process and answer at once. Everything between is the daemon's own: access, rates, lanes,
crash recovery, the store with `synchronous=FULL`, gates, the audience rule, the output gate. Git is off. The oracle
checks each reply when it is said: it has the words that belong to its message, in its conversation, once.
"""

from __future__ import annotations

import asyncio
import random
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import script
from claudius.cognition.mind import Mind, lately
from claudius.cognition.steps import STEPS
from claudius.compose import Settings
from claudius.home import Home, shipped
from claudius.intent import Intent, Utterance
from claudius.memory.database import SQLITE, StorePlace
from claudius.memory.leases import LeaseTimes
from claudius.memory.opening import open_store
from claudius.memory.turns import TurnStore
from claudius.perception import Perception, private
from claudius.provider import Delta, Done, Event, Request, estimate
from claudius.providers.chain import Chain
from claudius.runtime.life import HomeLock
from claudius.runtime.process_resources import Clock, Disk, ProcessResources
from claudius.runtime.server import Server
from claudius.soul import SoulSource
from claudius.testing.alive import UNHURRIED
from ours import SUMMARY, AtHand
from sides import cpu_s, rss_mib, serve

COMMIT = TurnStore.commit
NETWORK = "bench"
AT_ONCE = 64
"""This many conversations speak side by side when the crowd comes in waves."""
_NUMBER = re.compile(r"#(\d+)#")


def told(number: int) -> str:
    """Return the n-th message of the crowd, which contains its number. Pure."""
    return f"{script.message(number)} #{number}#"


@dataclass(slots=True)
class Knowing:
    """A model that answers each message with the reply of its number, after `call_s` seconds or when released."""

    call_s: float = 0.0
    name: str = "knowing"
    model: str = "knowing"
    waiting: int = 0
    """Calls that are waiting."""
    most: int = 0
    is_let: asyncio.Event = field(default_factory=asyncio.Event)

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Return the whole reply as one delta."""
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        await self.is_let.wait()
        if self.call_s:
            await asyncio.sleep(self.call_s)
        self.waiting -= 1
        text = SUMMARY if request.purpose == "summary" else script.plain_reply(_number(request.tail))
        yield Delta(text)
        yield Done(text=text, usage=estimate(request, text), provider=self.name, model=self.model)

    async def aclose(self) -> None:
        """Hold nothing, so do nothing."""


def _number(tail: str) -> int:
    return int(_NUMBER.findall(tail)[-1])


@dataclass(slots=True)
class Said:
    """A message that waits for its reply."""

    number: int
    conversation: str
    answered: asyncio.Future[None]


@dataclass(slots=True)
class Square(AtHand):
    """An in-memory network that judges each reply as it is said."""

    name: str = NETWORK
    open: dict[str, Said] = field(default_factory=dict)
    answered: int = 0
    wrong: list[str] = field(default_factory=list)
    called: str = ""
    """What its keys begin with, if several hear for one soul."""

    async def speak(self, utterance: Utterance) -> str:
        """Take one reply, and judge it."""
        (key,) = utterance.answers
        self.judge(key, utterance.kind, utterance.conversation, utterance.body)
        return f"said:{utterance.key}"

    def judge(self, key: str, kind: str, conversation: str, body: str) -> None:
        """The oracle: a reply answers one open message, in its conversation, in the script's words."""
        said = self.open.pop(key, None)
        if said is None or kind != "reply":
            self.wrong.append(f"{key}: not asked, or answered before: {body}")
        elif (conversation, body) != (said.conversation, script.spoken(said.number)):
            self.wrong.append(f"{key}: not its reply: {body}")
        else:
            self.answered += 1
            said.answered.set_result(None)


class Crowd:
    """One awake soul, and everyone who speaks with it."""

    def __init__(
        self,
        root: Path,
        call_s: float,
        url: str = "",
        *,
        roles: str = "all",
        lease_s: float = 60.0,
        square: Square | None = None,
    ) -> None:
        """Use `root` as the home, or the server at `url`. Each model call takes `call_s` seconds."""
        self.home = Home(root)
        self.home.create()
        settings = Settings(self.home, UNHURRIED)
        clock = Clock(lambda: datetime.now(UTC))
        disk = Disk(self.home, lambda: 0)
        place = StorePlace(url or SQLITE)
        times = LeaseTimes(most=1000, lease_s=lease_s, renew_s=lease_s / 3)
        self.store = open_store(self.home, place, disk.release, roles=roles, times=times)
        self.commits_ms: list[float] = []
        """How long each turn's commit took, WRITE 2, its wait for others included."""
        TurnStore.commit = self._timed  # type: ignore[method-assign]  # to time it, on either store
        self.voice, self.square = Knowing(call_s), square or Square()
        self.voice.is_let.set()
        soul = SoulSource(self.home.soul, shipped("soul"), steps=STEPS)
        self._resources = ProcessResources(clock=clock, disk=disk)
        self._mind = Mind(
            store=self.store,
            provider=Chain([self.voice], settings.loaded.config.model),
            soul=lately(soul.current),
            config=lately(settings.current),
            clock=clock.now,
            nonce=lambda: secrets.token_hex(16),
            aged_at=clock.expiry,
        )
        self.server: Server
        self._number = 0

    @property
    def _timed(self) -> Callable[[TurnStore, Intent], Awaitable[None]]:
        async def commit(turns: TurnStore, intent: Intent) -> None:
            began = time.perf_counter()
            await COMMIT(turns, intent)
            self.commits_ms.append(1000 * (time.perf_counter() - began))

        return commit

    async def open(self) -> None:
        """Wake the soul."""
        self.server = Server(
            self.home,
            HomeLock(self.home),
            self._mind,
            {NETWORK: self.square},
            {},
            chance=random.Random(1).random,
            resources=self._resources,
        )
        await self.server.start()

    async def close(self) -> None:
        """Put it to sleep."""
        await self.server.stop()

    async def hear(self, place: int) -> Said:
        """Have someone say the next thing in a conversation. Returns once it is durable."""
        self._number += 1
        person, conversation = f"{NETWORK}:t:u{place}", f"{NETWORK}:t:d{place}:"
        said = Said(self._number, conversation, asyncio.get_running_loop().create_future())
        now = self._mind.clock()
        perception = Perception(
            key=f"{NETWORK}:{self.square.called}{secrets.token_hex(8)}",
            conversation=conversation,
            audience=private(person),
            person=person,
            name=f"u{place}",
            text=told(said.number),
            at=now,
            position=f"{int(now.timestamp() * 1e6):020d}.{self._number:09d}",
        )
        self.square.open[perception.key] = said
        accept = self.square.accept
        assert accept is not None
        assert await accept(perception)
        return said

    async def talk(self, places: Iterable[int], turns: int) -> list[float]:
        """Take `turns` turns in each conversation, one after the other. Returns the milliseconds of each."""
        times: list[float] = []

        async def one(place: int) -> None:
            for _ in range(turns):
                started = time.perf_counter()
                await (await self.hear(place)).answered
                times.append(1000 * (time.perf_counter() - started))

        async with asyncio.TaskGroup() as group:
            for place in places:
                group.create_task(one(place))
        await self.store.flush()
        return times

    async def visit(self, first: int, count: int) -> None:
        """Take one turn in each of these conversations, `AT_ONCE` side by side."""
        for begin in range(first, first + count, AT_ONCE):
            await self.talk(range(begin, min(begin + AT_ONCE, first + count)), 1)

    async def idle(self) -> None:
        """Wait until every lane is idle."""
        while self.server.busy:  # noqa: ASYNC110 - polled from outside
            await asyncio.sleep(0.005)
        await self.store.flush()


class Rounds:
    """Answers the bench's requests to our side."""

    def __init__(self) -> None:
        """Create one event loop for all requests."""
        self._loop = asyncio.new_event_loop()
        self._crowd: Crowd | None = None

    def begin(self, root: str, call_s: float = 0.0, url: str = "") -> None:
        """Wake the soul at `root`, or at the server of `url`, whose model takes `call_s` seconds a call."""
        script.ready()
        self._crowd = Crowd(Path(root), call_s, url)
        self._loop.run_until_complete(self._crowd.open())

    def talk(self, conversations: int, turns: int) -> dict[str, Any]:
        """Take turns in many conversations at once. Returns the milliseconds of each and its commit, turns/s, CPU."""
        crowd = self._awake()
        crowd.commits_ms.clear()
        cpu, began = cpu_s(), time.perf_counter()
        times = self._loop.run_until_complete(crowd.talk(range(conversations), turns))
        wall_s = time.perf_counter() - began
        count = conversations * turns
        return {
            "ms": times,
            "commits_ms": list(crowd.commits_ms),
            "per_s": count / wall_s,
            "wall_s": wall_s,
            "cpu_ms": 1000 * (cpu_s() - cpu) / count,
        }

    def rest(self, seconds: float) -> float:
        """Do nothing for a while. Returns the share of a core that the process took, in percent."""
        cpu = cpu_s()
        self._loop.run_until_complete(asyncio.sleep(seconds))
        return 100 * (cpu_s() - cpu) / seconds

    def visit(self, first: int, count: int) -> float:
        """Let further conversations have a turn and become idle. Returns the MiB that the process then holds."""
        self._loop.run_until_complete(self._visited(first, count))
        return rss_mib()

    def park(self, first: int, count: int) -> float:
        """Have many conversations wait for the model at once. Returns the MiB that the process then holds."""
        return self._loop.run_until_complete(self._parked(first, count))

    def soak(self, conversations: int, turns: int) -> list[float]:
        """Take turns spread over many conversations. Returns the MiB held after each tenth of them."""
        held = []
        for _ in range(10):
            self._loop.run_until_complete(self._soaked(conversations, turns // 10))
            held.append(rss_mib())
        return held

    def end(self) -> int:
        """Put the soul to sleep. Returns its number of turns. The oracle: each message answered once, none left."""
        crowd = self._awake()
        self._loop.run_until_complete(crowd.idle())
        records = crowd.store.records()
        self._loop.run_until_complete(crowd.close())
        self._loop.close()
        assert not crowd.square.wrong, crowd.square.wrong[:3]
        assert not crowd.square.open, f"{len(crowd.square.open)} never answered"
        left = records.counts(datetime.now(UTC))
        records.close()
        assert left["inbox"] == {"pending": 0, "dead": 0}, left
        assert left["outbox"] == {"pending": 0, "failed": 0}, left
        return crowd.square.answered

    async def _visited(self, first: int, count: int) -> None:
        await self._awake().visit(first, count)
        await self._awake().idle()

    async def _soaked(self, conversations: int, turns: int) -> None:
        for _ in range(max(1, turns // conversations)):
            await self._awake().visit(0, conversations)
        await self._awake().idle()

    async def _parked(self, first: int, count: int) -> float:
        crowd = self._awake()
        crowd.voice.is_let.clear()
        crowd.voice.most = 0
        waiting = [(await crowd.hear(place)).answered for place in range(first, first + count)]
        while crowd.voice.waiting < count:  # noqa: ASYNC110 - polled from outside
            await asyncio.sleep(0.01)
        held = rss_mib()
        crowd.voice.is_let.set()
        await asyncio.gather(*waiting)
        await crowd.idle()
        return held

    def _awake(self) -> Crowd:
        assert self._crowd is not None
        return self._crowd


if __name__ == "__main__":
    asked = Rounds()
    serve(
        {name: getattr(asked, name) for name in ("begin", "talk", "visit", "park", "soak", "rest", "end")},
    )
