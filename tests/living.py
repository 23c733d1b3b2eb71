"""Days of a soul's life in a few seconds: the real daemon in virtual time, people who talk to it, and a diary."""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from claudius.home import Home
from claudius.intent import Utterance
from claudius.perception import Kind, Perception, private, shared
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.runtime.failures import CrashRecovery
from claudius.runtime.process_resources import Clock, Disk, ProcessResources
from claudius.testing.alive import Alive, alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from lab.simulation.life import _InlineWriter, _Store, _virtual
from lab.simulation.loop import VirtualLoop
from minds import wanted

ROME = ZoneInfo("Europe/Rome")
MONDAY = datetime(2026, 1, 5, 8, 0, tzinfo=ROME)
STEP = timedelta(minutes=5)
"""The step by which time advances while nobody speaks: whatever falls due within a step runs at its end."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What one message led to."""

    at: datetime
    person: str
    text: str
    said: tuple[str, ...]
    """The soul's replies to it."""
    process: str
    """The mental process that ran; empty if no turn was thought or kept."""
    mood: str
    """What the model was told of the soul's feeling; empty at rest, and if no model was asked."""
    tail: str
    asked: tuple[str, ...]
    """The tags that the model was asked for."""


@dataclass(slots=True)
class Watched(RehearsalAdapter):
    """A network that records when each message was posted."""

    now: Callable[[], datetime] = lambda: MONDAY
    posts: list[tuple[datetime, str, str]] = field(default_factory=list)
    """The time, channel and text of each post."""

    async def speak(self, utterance: Utterance) -> str:
        """Make a part visible and record the time."""
        self.posts.append((self.now(), utterance.conversation.split(":")[2], utterance.body))
        return await RehearsalAdapter.speak(self, utterance)

    async def bring(self, person: str, text: str, room: str = "", *, mentions: bool = False) -> None:
        """Have a person post a message, in a direct message or in a room."""
        assert self._accept
        self._said += 1
        place, who = f"rehearsal:t:{room or f'dm-{person}'}:", f"rehearsal:t:{person}"
        await self._accept(
            Perception(
                key=f"rehearsal:{self._said}",
                conversation=place,
                audience=shared(place) if room else private(who),
                person=who,
                name=person.capitalize(),
                text=text,
                at=self.now(),
                position=f"{self._said:020d}",
                kind=Kind.MENTION if mentions else Kind.MESSAGE,
                extra={"zone": str(ROME)},
            )
        )


@dataclass(slots=True)
class Days:
    """The days of one soul."""

    soul: Alive
    loop: VirtualLoop
    network: Watched
    voice: Scripted
    diary: list[Moment] = field(default_factory=list)

    @property
    def now(self) -> datetime:
        """Return the local time of the people."""
        return self.network.now()

    async def until(self, day: int, clock: str, step: timedelta = STEP) -> None:
        """Advance time to an hour (`09:30`) of the n-th day; Monday is the first."""
        hour, minute = map(int, clock.split(":"))
        await self.until_instant(MONDAY.replace(hour=hour, minute=minute) + timedelta(days=day - 1), step)

    async def until_instant(self, then: datetime, step: timedelta = STEP) -> None:
        """Advance time to an instant."""
        assert then > self.now, f"{then} is in the past"
        while self.now < then:
            begun = self.loop.now_s // step.total_seconds() + 1
            self.loop.now_s = min(begun * step.total_seconds(), (then - MONDAY).total_seconds())
            self.soul.server.tick()  # the scheduler's own timer is APScheduler's, which counts real time
            await asyncio.sleep(0.05)
            await self.soul.idle()

    async def says(self, person: str, text: str, room: str = "", *, mentions: bool = False) -> Moment:
        """Have a person say something, and wait until the soul has finished with it."""
        posts, asked, turns = len(self.network.posts), len(self.voice.requests), len(self.turns())
        await self.network.bring(person, text, room, mentions=mentions)
        await asyncio.sleep(0.1)
        await self.soul.idle()
        shown = [one for one in self.voice.requests[asked:] if one.purpose == "turn"]
        feeling = felt(shown[-1]) if shown else {}
        ran = self.turns()[turns:]
        moment = Moment(
            at=self.now,
            person=person,
            text=text,
            said=tuple(post for _, _, post in self.network.posts[posts:]),
            process=ran[-1] if ran else "",
            mood=feeling.get("text", ""),
            tail=shown[-1].tail if shown else "",
            asked=tuple(wanted(shown[-1])) if shown else (),
        )
        self.diary.append(moment)
        return moment

    def turns(self) -> list[str]:
        """Return the process of each turn, oldest first."""
        return [process for (process,) in self.kept("SELECT process FROM turn ORDER BY record")]

    def kept(self, sql: str) -> list[tuple[Any, ...]]:
        """Query the soul's database."""
        with closing(sqlite3.connect(f"file:{self.soul.home.database}?mode=ro", uri=True)) as database:
            return list(database.execute(sql))

    def said_between(self, begin: datetime, end: datetime) -> list[tuple[datetime, str, str]]:
        """Return when, where and what it said between two instants."""
        return [(at.replace(microsecond=0), *post) for at, *post in self.network.posts if begin <= at < end]


class _Unsynced(_InlineWriter):
    """Does not wait for the disk: the machine of a life in virtual time does not lose its power."""

    def _hand_over(self) -> None:
        self._database.connection.execute("PRAGMA synchronous = OFF")
        super()._hand_over()


class _Kept(_Store):
    writer = _Unsynced


def felt(request: Request) -> Mapping[str, str]:
    """Return what a request told the model of the soul's feeling."""
    lines = [line for line in request.tail.splitlines() if line.startswith('{"kind":"psyche"')]
    found: Mapping[str, str] = json.loads(lines[0]) if lines else {}
    return found


def lived(home: Home, voice: Scripted, story: Callable[[Days], Awaitable[None]], settings: Mapping[str, str]) -> Days:
    """Run a story in virtual time, and return the days."""
    loop = VirtualLoop(0.0)

    def now() -> datetime:
        return MONDAY + timedelta(seconds=loop.now_s)

    def wall() -> datetime:
        return now().astimezone(UTC)

    async def life() -> Days:
        """Start the soul, run the story, and stop the soul cleanly."""
        network = Watched(now=now)
        disk = Disk(home, lambda: 0, running=loop.time, free_mb=lambda: 1_000_000)
        resources = ProcessResources(clock=Clock(wall, loop.time), disk=disk, recovery=CrashRecovery(loop.time))
        begun = alive(
            home, voice, settings=settings, network=network, resources=resources, store=_Kept(home.database), reflects=True,
            keeps_clock=True,
        )  # fmt: skip
        async with begun as soul:
            days = Days(soul, loop, network, voice)
            await asyncio.sleep(1.0)
            await story(days)
        return days

    with _virtual(loop):
        try:
            return loop.run_until_complete(life())
        finally:
            loop.close()


def kept(home: Home, *words: str) -> list[str]:
    """Return the tables of the database whose rows hold one of these words, but the index, which is merged later."""
    found = []
    with closing(sqlite3.connect(f"file:{home.database}?mode=ro", uri=True)) as made:
        tables = made.execute(
            r"SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'moment\_%' ESCAPE '\'"
        )
        for (table,) in tables.fetchall():
            rows = made.execute(f'SELECT * FROM "{table}"').fetchall()  # noqa: S608 - our own names
            if any(word in str(row).casefold() for row in rows for word in words):
                found.append(table)
    return sorted(found)
