"""A soul in its own process, filled with real turns of many people; then one of them is erased while others talk.

Network and model are in this process and answer at once. Everything between them is the daemon's own.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import script
from claudius.cognition.prompt.snapshot import rebuild
from claudius.home import Home
from claudius.intent import Utterance
from claudius.perception import Perception
from claudius.provider import Delta, Done, Event, Request, estimate
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from sides import serve

PEOPLE = 60
LEARNS_EVERY = 8
TALKERS = 3
PAUSE_S = 0.02
LOOK_S = 0.05
OWN = {"notes.txt": "mine", "old/soul.db": "mine too"}
"""Files that the owner keeps beside our backups."""


@dataclass(slots=True)
class Voice:
    """A model that answers at once, and now and then writes a portrait of whoever speaks."""

    name: str = "at_once"
    model: str = "at-once"
    asked: int = 0

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Return the whole reply as one delta."""
        self.asked += 1
        text = script.plain_reply(self.asked)
        if request.purpose == "turn" and self.asked % LEARNS_EVERY == 0:
            line = f"Said once that {script.message(self.asked)} ({self.asked})."
            text = script.reply(self.asked, update=f"## Persona\n{line}", note="something new")
        yield Delta(text)
        yield Done(text=text, usage=estimate(request, text), provider=self.name, model=self.model)

    async def aclose(self) -> None:
        """Hold nothing, so do nothing."""


@dataclass(slots=True)
class Timed(RehearsalAdapter):
    """The in-memory network, which reports when each reply became visible."""

    waiting: dict[str, asyncio.Future[None]] = field(default_factory=dict)

    async def speak(self, utterance: Utterance) -> str:
        """Make one part visible, and tell whoever waits for it."""
        receipt = await RehearsalAdapter.speak(self, utterance)
        self.visible.clear()
        for key in utterance.answers:
            if (waits := self.waiting.pop(key, None)) and not waits.done():
                waits.set_result(None)
        return receipt


class Side:
    """One soul, and the people who talk with it."""

    def __init__(self) -> None:
        """Create the side without a soul."""
        self.loop = asyncio.new_event_loop()
        self.network = Timed()
        self.soul: Alive | None = None
        self._life: AbstractAsyncContextManager[Alive] | None = None
        self._said = 0
        self.chance = random.Random(15)

    def begin(self, root: str, turns: int, conversations: int) -> int:
        """Wake a soul and fill it. Returns the bytes of its database."""
        return self.loop.run_until_complete(self._begin(Home(Path(root)), turns, conversations))

    async def _begin(self, home: Home, turns: int, conversations: int) -> int:
        home.create()
        (home.backups / "old").mkdir()
        for name, text in OWN.items():
            (home.backups / name).write_text(text)
        self._life = alive(home, Voice(), network=self.network, archives=True)
        self.soul = await self._life.__aenter__()
        self._places = conversations
        async with asyncio.TaskGroup() as group:
            for part in range(TALKERS * 4):
                group.create_task(self._fill(range(part, turns, TALKERS * 4)))
        await self.soul.server._archive.round()  # noqa: SLF001 - the bench waits for git
        return home.database.stat().st_size

    async def _fill(self, turns: range) -> None:
        for turn in turns:
            await self._say(turn % self._places, self.chance.randrange(PEOPLE))

    async def _say(self, place: int, person: int) -> tuple[float, float]:
        """Say something somewhere. Returns the seconds until it was acknowledged, and until it was answered."""
        self._said += 1
        key = f"rehearsal:said{self._said}"
        waits = self.network.waiting[key] = self.loop.create_future()
        who, is_shared = f"p{person}", place % 3 > 0
        began = time.perf_counter()
        while True:
            with suppress(Exception):
                await self._hear(key, who, place if is_shared else -1, self._said)
                break
            await asyncio.sleep(PAUSE_S)
        acknowledged = time.perf_counter() - began
        await waits
        return acknowledged, time.perf_counter() - began

    async def _hear(self, key: str, who: str, place: int, number: int) -> Perception:
        words = f"{script.message(number)} It is {who} who says so, number {number}."
        if place < 0:
            return await self.network.hear(words, person=who, key=key)
        return await self.network.hear(
            words, person=who, key=key, conversation=f"rehearsal:t:c{place}:", is_shared=True
        )

    def talk(self, seconds: float) -> dict[str, float]:
        """Have others talk for this long. Returns the worst acknowledgement and reply, in milliseconds."""
        return self.loop.run_until_complete(self._beside(asyncio.sleep(seconds)))[0]

    def erase(self) -> dict[str, Any]:
        """Have one member erased while others talk. Returns the effect on them, and what remains."""
        return self.loop.run_until_complete(self._erase())

    async def _erase(self) -> dict[str, Any]:
        soul = self.soul
        assert soul is not None
        rest = memory_mib()
        began = time.perf_counter()
        times, receipt = await self._beside(
            soul.server._forgetting.forget("rehearsal:t:p0", soul.mind.clock(), "owner")  # noqa: SLF001 - as a command does
        )
        took = time.perf_counter() - began
        await soul.idle()
        home = soul.home
        with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as kept:
            owner = kept.execute("SELECT count(*) FROM revision WHERE author = 'owner'").fetchone()[0]
            turns = [turn for (turn,) in kept.execute("SELECT turn FROM turn")]
        records = soul.records()
        broken = 0
        for turn in turns:
            found = records.turn(turn) or {}
            try:
                rebuild(found["snapshot"], records) if found["snapshot"] != b"erased" else None
            except (LookupError, ValueError):
                broken += 1
            broken += not found.get("thoughts") and found["snapshot"] != b"erased"
        own = all((home.backups / name).read_text() == text for name, text in OWN.items())
        return {
            **times, "took_s": took, "rest_mib": rest, "owner_versions": owner, "verified": receipt["verified"],
            "left": receipt["left"], "kept": receipt["kept"], "own_files": own,
            "whole": len(turns) - broken, "broken": broken,
        }  # fmt: skip

    async def _beside(self, work: Any) -> tuple[dict[str, float], Any]:
        """Let others talk during some work."""
        acks: list[float] = []
        replies: list[float] = []
        done = asyncio.Event()
        peak, alone = [memory_mib()], [0.0]

        async def talker(number: int) -> None:
            while not done.is_set():
                person = 1 + (number * 17 + len(replies)) % (PEOPLE - 1)
                acknowledged, answered = await self._say(self.chance.randrange(self._places), person)
                acks.append(acknowledged)
                replies.append(answered)
                await asyncio.sleep(PAUSE_S)

        async def watch() -> None:
            while not done.is_set():
                await asyncio.sleep(LOOK_S)
                peak.append(await asyncio.to_thread(memory_mib))
                alone.append(await asyncio.to_thread(memory_mib, children=False))

        talking = [asyncio.create_task(talker(number)) for number in range(TALKERS)]
        watching = asyncio.create_task(watch())
        result = await work
        done.set()
        await asyncio.gather(*talking, watching)
        ordered = sorted(replies)
        return {
            "worst_ack_ms": 1000 * max(acks), "worst_reply_ms": 1000 * ordered[-1],
            "p50_ms": 1000 * ordered[len(ordered) // 2], "p99_ms": 1000 * ordered[int(0.99 * len(ordered))],
            "replies": len(replies), "peak_mib": max(peak), "alone_mib": max(alone),
        }, result  # fmt: skip

    def end(self) -> int:
        """Put the soul to sleep."""
        if self._life:
            self.loop.run_until_complete(self._life.__aexit__(None, None, None))
        return self._said


def memory_mib(*, children: bool = True) -> float:
    """Return the memory of this process (and its `children`) in MiB, each shared page counted in parts (PSS)."""
    total, waiting = 0, ["self"]
    own = Path("/proc/self/cmdline").read_bytes()
    while waiting:
        one = waiting.pop()
        with suppress(OSError, StopIteration):
            if one != "self" and Path(f"/proc/{one}/cmdline").read_bytes() == own:
                continue  # it has not started its own program yet, and shares all our memory
            text = Path(f"/proc/{one}/smaps_rollup").read_text("ascii")
            total += next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
            for task in () if not children else Path(f"/proc/{one}/task").iterdir():
                waiting += (task / "children").read_text("ascii").split()
    return total / 1024


if __name__ == "__main__":
    it = Side()
    serve({"begin": it.begin, "talk": it.talk, "erase": it.erase, "end": it.end})
