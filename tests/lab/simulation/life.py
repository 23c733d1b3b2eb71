"""One life: a script lived through, processes that are killed in it, and the oracle's word at the end."""

import asyncio
import contextlib
import hashlib
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch
from urllib.parse import quote

from claudius.cognition.mind import Mind, lately
from claudius.cognition.steps import STEPS
from claudius.config.load import load
from claudius.config.schema import KOTHAR
from claudius.errors import Cut, Overloaded, TimedOut
from claudius.home import Home, shipped
from claudius.memory.database import Writer
from claudius.memory.sqlite import SqliteStore
from claudius.memory.store import Store
from claudius.memory.whispers import Whisper
from claudius.perception import SELF
from claudius.provider import Request
from claudius.providers.scripted import Line, Scripted
from claudius.runtime.failures import CrashRecovery
from claudius.runtime.life import HomeLock
from claudius.runtime.process_resources import Clock, Disk, ProcessResources
from claudius.runtime.server import Server
from claudius.soul import SoulSource
from claudius.testing.alive import UNHURRIED
from lab.oracle import Visible, judge
from lab.simulation.history import History, SlowArchive, archiving
from lab.simulation.loop import Killed, VirtualLoop
from lab.simulation.script import Damage, Script
from lab.simulation.town import BEFORE_ALL, NETWORK, WORKSPACE, Town, TownAdapter, instant

AFTERWARDS_S = 9000.0
"""How long a life goes on after the last word: longer than two of the hourly sweeps."""
_REMEMBERED = """
    SELECT e.content FROM inbox i JOIN entry e ON e.conversation = i.conversation AND e.position = i.position
    WHERE i.key = ? AND e.entry_type = 'userMessage'
"""
_WITHDRAWN_AND_ANSWERED = """
    SELECT 1 FROM inbox i JOIN outbox o ON o.turn = i.turn
    WHERE i.key = ? AND i.reason = 'withdrawn' AND o.state = 'sent'
"""
_BURNT = "SELECT id, used_turn FROM whisper WHERE used_turn IS NOT NULL AND used_turn NOT IN (SELECT turn FROM turn)"
_FAILED = "SELECT turn FROM outbox WHERE apology = 'unreadable'"
_MARKER = re.compile(r"<data-[0-9a-f]{32}>")
DEAD: list[Any] = []
"""What a killed process held. It is never let go of: a process that is killed runs no `finally`."""


@dataclass(frozen=True, slots=True)
class Life:
    """How it went: the broken rules of the oracle, none where all held."""

    script: Script
    broken: Sequence[str]
    steps: int
    seen: str
    """A hash of what became visible, in its order."""


def live(script: Script, *, broken: Callable[[], contextlib.AbstractContextManager[object]] | None = None) -> Life:
    """Live through a script and judge it; `broken` breaks the product for as long as it lasts."""
    with tempfile.TemporaryDirectory(prefix="claudius-life-", dir=quick_disk()) as root:
        town = Town(Random(script.seed + 1), script.moods)  # noqa: S311 - as above
        home = Home(Path(root) / "h")
        home.create()
        town.memory = home.memory
        history = History(Random(script.seed + 2))  # noqa: S311 - as above
        with broken() if broken else contextlib.nullcontext():
            steps = _processes(script, town, home, history)
        found = [*judged(town, home, history), *failed(script, home)]
    return Life(script=script, broken=found, steps=steps, seen=digest(town.posts))


def judged(town: Town, home: Home, history: History) -> Sequence[str]:
    """Return the rules that a life broke, once it is over."""
    town.show(float("inf"))
    return [*judge(town.world(history.files), home), *remembered(town, home)]


def remembered(town: Town, home: Home) -> Iterator[str]:
    """Tell where memory does not follow what was changed, and which whisper was used by no turn."""
    with closing(sqlite3.connect(f"file:{quote(str(home.database))}?mode=ro", uri=True)) as db:
        models = [text for (text,) in db.execute("SELECT markdown FROM user_model")]
        for key, change in town.in_force.items():
            for (content,) in db.execute(_REMEMBERED, (key,)):
                if content not in town.may_hold(key):
                    yield f"second thoughts: {key} became {change.text!r}, and memory holds {content!r}"
            if not change.text and db.execute(_WITHDRAWN_AND_ANSWERED, (key,)).fetchone():
                yield f"O5: {key} was withdrawn, and answered"
        for text in town.by_hand:
            if not any(later.startswith(text) for later in (*town.by_hand[town.by_hand.index(text) + 1 :], *models)):
                yield f"hands: {text!r} was written by hand, and no version holds it"
        for whisper, turn in db.execute(_BURNT):
            yield f"O9: whisper {whisper} was used by turn {turn}, which is not there"


def failed(script: Script, home: Home) -> Iterator[str]:
    """Tell which turn failed by itself: whatever a model says, every reply comes to words.

    Not so in a life with kills, or where the row of a conversation is damaged.
    """
    is_excused = bool(script.kills) or any(one.table == "conversation" for one in script.damages)
    with closing(sqlite3.connect(f"file:{quote(str(home.database))}?mode=ro", uri=True)) as db:
        for (turn,) in () if is_excused else db.execute(_FAILED):
            yield f"O1: turn {turn} was given up, and nothing was killed"


def damage(db: sqlite3.Connection, one: Damage) -> None:
    """Cut a value short where it stands, as a bad disk or a careless hand does; nothing where the table is empty."""
    (rows,) = db.execute(f"SELECT count(*) FROM {one.table}").fetchone()  # noqa: S608 - a table of the script
    if rows:
        (key,) = db.execute(
            f"SELECT conversation FROM {one.table} ORDER BY 1 LIMIT 1 OFFSET ?",  # noqa: S608 - as above
            (one.nth % rows,),
        ).fetchone()
        db.execute(f"UPDATE {one.table} SET {one.column} = '{{\"cut' WHERE conversation = ?", (key,))  # noqa: S608 - as above


def digest(posts: Sequence[Visible]) -> str:
    """Return a hash of what became visible, in its order."""
    told = "\0".join(f"{one.conversation}\0{one.text}" for one in posts)
    return hashlib.sha256(told.encode()).hexdigest()[:16]


def _processes(script: Script, town: Town, home: Home, history: History) -> int:
    now_s, steps, past = 0.0, 0, 0
    for dies_in in (*script.kills, None):
        while past < len(script.events) and script.events[past].at_s < now_s:  # it happened while nobody lived
            script.events[past].happen(town, script.events[past].at_s)
            past += 1
        loop = VirtualLoop(now_s, dies_in)
        process = _Process(script, town, home, history, loop, past)
        with _virtual(loop):
            try:
                loop.run_until_complete(process.life())
            except Killed:
                DEAD.append((process, loop, asyncio.all_tasks(loop)))
                process.die()
        loop.close()
        steps, past = steps + loop.steps, process.past
        now_s = loop.now_s + town.chance.choice((0.1, 2.0, 60.0, 2000.0))
        town.ears = None
        town.show(now_s)
    return steps


@contextmanager
def _virtual(loop: VirtualLoop) -> Iterator[None]:
    asyncio.set_event_loop(loop)
    try:
        with patch("time.monotonic", loop.time), archiving(loop):
            yield
    finally:
        asyncio.set_event_loop(None)


def mind_of(home: Home, town: Town, store: Store, clock: Clock) -> Mind:
    """Return the mind of one process, with a model that is mostly well."""
    config = load(home, UNHURRIED | {"CLAUDIUS_KOTHAR_ENABLED": "1"}).config
    return Mind(
        store=store,
        provider=Scripted(default=partial(thought, town.chance)),
        soul=lately(SoulSource(home.soul, shipped("soul"), steps=STEPS).current),
        config=lambda: config,
        clock=clock.now,
        nonce=lambda: f"{town.chance.getrandbits(128):032x}",
        aged_at=clock.expiry,
    )


def resources_of(home: Home, clock: Clock, running: Callable[[], float]) -> ProcessResources:
    """Return the resources of one process; its disk has room."""
    disk = Disk(home, lambda: 0, running=running, free_mb=lambda: 1_000_000)
    return ProcessResources(clock=clock, disk=disk, recovery=CrashRecovery(running))


def thought(chance: Random, request: Request) -> Line:
    """Answer as a model does that is mostly well."""
    delay_s = chance.choice((0.0, 0.2, 2.0, 9.0))
    match chance.randrange(20):
        case 0:
            return Line(fault=Overloaded(), delay_s=delay_s)
        case 1:
            return Line(fault=TimedOut("first_byte"), delay_s=delay_s)
        case 2:
            return Line(deltas=("<internal_monologue>half a thou",), fault=Cut(), after=1, delay_s=delay_s)
        case 3:
            return Line(deltas=("no tag at all </internal_monologue>",), delay_s=delay_s)
        case 4:
            return Line(deltas=(f"<external_dialogue>{_MARKER.findall(request.tail)[-1]}",), delay_s=delay_s)
    words = f"I heard {len(request.history)}."
    learned = (
        f'true</user_model_check>\n<user_model_update section="Persona">- Has {chance.getrandbits(32)} books.'
        "</user_model_update>\n<model_change_note>books</model_change_note>"
    )
    text = (
        f"<internal_monologue>Someone speaks.</internal_monologue>\n<external_dialogue>{words}"
        "</external_dialogue>\n<user_model_check>"
        f"{learned if chance.randrange(2) else 'false</user_model_check>'}"
        "\n<soul_state_check>true</soul_state_check>"
        f"\n<soul_state_update>\ncurrentTopic: {chance.choice(('', 'rust', 'bridges'))}\n</soul_state_update>"
    )
    return Line(deltas=(text,), delay_s=delay_s)


def whispered(number: int, now: datetime) -> Whisper:
    """Return what a daimon whispers."""
    return Whisper(
        daimon=KOTHAR,
        text=f"Look at the {number}. door.",
        transport="manual",
        sources=(SELF,),
        at=now,
        expires_at=now + timedelta(hours=1),
    )


class _InlineWriter(Writer):
    """Writes in the step of the loop that hands it over, in place of a thread."""

    def _hand_over(self) -> None:
        for handle in (self._alone, self._soon):
            if handle is not None:
                handle.cancel()
        self._alone = self._soon = None
        batch, self._riding = self._riding, []
        self._commit(batch)
        if any(job.is_last for job in batch):
            self._database.connection.close()
        asyncio.get_running_loop().call_soon(self._deliver, batch)


class _Store(SqliteStore):
    writer = _InlineWriter

    def drop(self) -> None:
        """Let go of the file without another word."""
        if self.core.is_open:
            self.core.close()._database.connection.close()


class _Process:
    """One process between its start and its end."""

    def __init__(self, script: Script, town: Town, home: Home, history: History, loop: VirtualLoop, past: int) -> None:
        self._script, self._town, self._home, self._loop, self.past = script, town, home, loop, past
        self._history = history
        self._store = _Store(home.database)
        self._lock: HomeLock | None = None
        self._adapter = TownAdapter(town, loop.time)

    async def life(self) -> None:
        """Wake, hear to the end of the script and long enough after it, and go to sleep in good order."""
        home, town, loop = self._home, self._town, self._loop
        self._lock = lock = HomeLock(home)
        clock = Clock(lambda: instant(loop.now_s), loop.time)
        mind, resources = mind_of(home, town, self._store, clock), resources_of(home, clock, loop.time)
        adapters = {self._adapter.name: self._adapter}
        archive = SlowArchive(self._store, home.memory, loop, self._history)
        server = Server(home, lock, mind, adapters, {}, chance=town.chance.random, resources=resources, archive=archive)
        await server.start()
        await self._store.inbox.swept(NETWORK, WORKSPACE, BEFORE_ALL, clock.now())  # it was here before anybody spoke
        beside = asyncio.gather(self._whisper_on(), self._damage_on())
        await self._hear_on()
        await beside
        await asyncio.sleep(AFTERWARDS_S)
        while server.busy:
            await asyncio.sleep(1.0)
        await server.stop()

    def die(self) -> None:
        """Let go of what only one process may hold, as the system does for one that was killed."""
        self._store.drop()
        if self._lock:
            self._lock.release()

    async def _hear_on(self) -> None:
        for one in self._script.events[self.past :]:
            await asyncio.sleep(max(0.0, one.at_s - self._loop.now_s))
            self.past += 1
            one.happen(self._town, self._loop.now_s)

    async def _whisper_on(self) -> None:
        for number, at_s in enumerate(self._script.whispers):
            if at_s < self._loop.now_s:
                continue
            await asyncio.sleep(at_s - self._loop.now_s)
            await self._store.whispers.keep_whisper(whispered(number, instant(self._loop.now_s)))

    async def _damage_on(self) -> None:
        for one in sorted(self._script.damages, key=lambda one: one.at_s):
            if one.at_s < self._loop.now_s:
                continue
            await asyncio.sleep(one.at_s - self._loop.now_s)
            with closing(sqlite3.connect(self._home.database, isolation_level=None)) as db:
                damage(db, one)


def quick_disk() -> str | None:
    """Return where files cost no disk; None = where temporary files stand."""
    shared = Path("/dev/shm")  # noqa: S108 - each life makes a directory of its own there
    if not shared.is_dir() or shutil.disk_usage(shared).free < 2**30 or sqlite3.sqlite_version_info < (3, 35):
        return None
    return str(shared)
