"""P14: bytes that a turn leaves behind, over a scripted year, in a workspace of 20 and of 2,000; and how a year starts.

Twelve people come back now and then. Half of the visits are private talks. The others are talks of several people in a
channel that everyone of the workspace can see: the soul is called now and then, and overhears the rest. What expires
is summarised and dropped, and the second mind reflects on what was said. Portraits are reported separately. What a
database holds before its first turn (empty tables, the workspace's members) is not counted.
"""

from __future__ import annotations

import asyncio
import random
import secrets
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import script
from claudius.cognition.turn import take_turn
from claudius.perception import Kind, Perception, shared
from claudius.runtime.jobs import Tools
from claudius.runtime.jobs.upkeep import expire_memory
from command import Bench, alone
from figures import Beside, Figure, bound, within
from ours import AtOnce, Soul, learning
from process import daemon
from sides import alternate

PEOPLE, VISITS, QUICK_VISITS = 12, 240, 40
TALK = 5, 30
"""Messages of one talk, at least and at most."""
SEED = 11
TRIVIAL, CALLED, LEARNS_EVERY = 0.08, 0.2, 10
"""Shares: private messages that need no thought, channel messages that call the soul. Each tenth reply teaches it."""
FEW, MANY = 20, 2000
KEYS_KEPT = timedelta(days=30)
FLAT = bound("P14.members")
START = bound("P14.start")
CHANNEL = "slack:T1:C1:"


@dataclass(frozen=True, slots=True)
class Size:
    """What a year left behind."""

    turns: int
    asked: int
    """The turns among them for which a model was asked."""
    bytes: int
    """Bytes of database and indexes, without free pages, portraits and the contents of an empty one."""
    portraits: int

    @property
    def kb_a_turn(self) -> float:
        """Return kilobytes a turn."""
        return self.bytes / self.turns / 1000


def measure(bench: Bench) -> Iterator[Figure]:
    """Run through the year in both workspaces, once, because nothing there depends on time. Then time its start."""
    visits = QUICK_VISITS if bench.is_quick else VISITS
    root = bench.home("many")
    few = asyncio.run(year(bench.home("few"), visits, FEW))
    many = asyncio.run(year(root, visits, MANY))
    told = f"{many.turns} turns, {many.asked} asked a model; portraits {many.portraits / many.turns:.0f} B a turn more"
    yield Figure(
        id="P14",
        name=f"bytes a turn, {MANY:,} members over {FEW}",
        unit="B",
        is_counted=True,
        samples=[many.bytes / many.turns],
        beside=(Beside(name=f"{FEW} members", bound=FLAT, samples=[few.bytes / few.turns]),),
        note=told,
    )
    yield Figure(
        id="P14",
        name="kB a turn",
        unit="kB",
        is_counted=True,
        samples=[many.kb_a_turn],
        beside=(within("P14.turn", 1),),
        note=told,
    )
    yield _starts(bench, root / "soul")


def _starts(bench: Bench, old: Path) -> Figure:
    homes = {"year": bench.home("year"), "empty": bench.home("empty")}
    shutil.copytree(old / "state", homes["year"] / "state")
    sides: dict[str, Callable[[], Any]] = {name: lambda home=home: _ready_ms(home) for name, home in homes.items()}
    found = alternate(bench.rounds, sides)
    size = (homes["year"] / "state" / "claudius.db").stat().st_size
    return Figure(
        id="P14",
        name="start → ready, a year's database",
        unit="ms",
        samples=found["year"],
        beside=(Beside(name="an empty one", bound=START, samples=found["empty"]),),
        note=f"{size / 1e6:.1f} MB",
    )


def _ready_ms(home: Path) -> float:
    with daemon(home) as awake:
        return awake.ready_ms


async def year(root: Path, visits: int, members: int) -> Size:
    """Run through a year of visits, in a workspace of this many members."""
    life = _Life(root, members)
    await life.soul.open()
    await life.soul.store.people.know_members(shared(CHANNEL), life.members, life.now)
    empty = _weigh(life.soul.home.database)[0]
    for _ in range(visits):
        await life.visit(365 / visits)
    life.now += timedelta(days=4)
    await life.expire()
    await life.soul.close()
    weight, portraits = _weigh(life.soul.home.database)
    return Size(life.turns, life.voice.asked, weight - empty, portraits)


class _Life:
    """One soul, the people who come back to it, and the calendar."""

    def __init__(self, root: Path, members: int) -> None:
        """Start on a Monday morning."""
        self.now, self.turns, self.chance = datetime(2026, 1, 5, 9, 0, tzinfo=UTC), 0, random.Random(SEED)
        self.voice = AtOnce(lambda number: learning(number, LEARNS_EVERY))
        self.soul = Soul(root / "soul", self.voice, clock=lambda: self.now)
        self.members = [f"slack:T1:U{n}" for n in range(members)]

    async def visit(self, days: float) -> None:
        """Let some days pass, and have somebody visit for a talk."""
        self.now += timedelta(days=days * self.chance.uniform(0.5, 1.5))
        await self.expire()
        person = f"slack:T1:U{self.chance.randrange(PEOPLE)}"
        is_private = self.chance.random() < 1 / 2
        if not is_private:
            await self.soul.store.people.know_members(shared(CHANNEL), self.members, self.now)
        for _ in range(self.chance.randint(*TALK)):
            self.now += timedelta(seconds=self.chance.choice((30, 60, 180)))
            self.turns += 1
            if is_private:
                text = "Thanks!" if self.chance.random() < TRIVIAL else script.message(self.turns)
                await self.soul.turn(f"slack:T1:D{person[-2:]}:", person, text=text)
            elif self.chance.random() < CALLED:
                called = {"audience": shared(CHANNEL), "kind": Kind.MENTION}
                await self.soul.turn(CHANNEL, person, text=script.message(self.turns), **called)
            else:
                await self._overhear(f"slack:T1:U{self.chance.randrange(PEOPLE)}")
        await self.soul.store.core.write(lambda db: db.connection.execute("UPDATE interaction SET cycle = 1"))

    async def _overhear(self, person: str) -> None:
        heard = Perception(
            key=f"slack:T1:C1:{secrets.token_hex(8)}",
            conversation=CHANNEL,
            audience=shared(CHANNEL),
            person=person,
            name=person[-2:],
            text=script.message(self.turns),
            at=self.now,
            position=f"{self.now.timestamp():.6f}",
            owes=False,
        )
        await self.soul.store.inbox.accept((heard,), self.now)
        pending = await self.soul.store.inbox.oldest(CHANNEL)
        assert pending is not None
        await take_turn(pending, self.soul.mind)
        assert not self.soul.network.said

    async def expire(self) -> None:
        """Drop what has expired, as the clock's jobs and a start do."""
        mind, home = self.soul.mind, self.soul.home
        tools = Tools(mind=mind, home=home, now=self.now, zone=UTC, wake=_nobody, daimons=_no_daimons, is_quiet=True)
        while await expire_memory(tools) != "nothing is expired":
            pass
        before = (self.now - KEYS_KEPT).isoformat()
        await self.soul.store.core.write(lambda db: db.run("inbox_prune", before=before))


def _nobody(_: str) -> None:
    """Wake no conversation."""


def _no_daimons() -> Any:
    """Load no daimons."""
    raise AssertionError


def _weigh(database: Path) -> tuple[int, int]:
    """Return the bytes of a database without free pages and portraits, and those of the portraits."""
    with closing(sqlite3.connect(database)) as db:
        page, pages, free = (
            db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_size", "page_count", "freelist_count")
        )
        (portraits,) = db.execute("SELECT coalesce(sum(length(CAST(markdown AS BLOB))), 0) FROM user_model").fetchone()
    return page * (pages - free) - portraits, portraits


if __name__ == "__main__":
    alone(__file__)
