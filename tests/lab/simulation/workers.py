"""Lives of one soul with several workers: each a process with a loop of its own, all in one virtual time, on one server.

Each may have any role; files are written by the first alone. Each may be killed or paused after any step of its loop, or
drained; its wall clock may be wrong; what it is told of news may be lost, late or doubled. Source: the scale design,
section 11.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from unittest.mock import patch

from claudius.home import Home, shipped
from claudius.memory.leases import LeaseTimes
from claudius.memory.opening import StorePlace
from claudius.memory.postgres import leases
from claudius.runtime import networks, scheduler, server
from claudius.runtime.life import HomeLock
from claudius.runtime.process_resources import Clock
from claudius.runtime.server import Server
from lab.simulation.history import History, SlowArchive, archiving
from lab.simulation.life import DEAD, Life, damage, digest, judged, mind_of, quick_disk, resources_of, whispered
from lab.simulation.loop import Killed, VirtualLoop
from lab.simulation.script import Damage, Event, LastWord, Said, Script, script_of
from lab.simulation.server import VirtualServer, WorkerStore
from lab.simulation.town import BEFORE_ALL, NETWORK, WORKSPACE, Town, TownAdapter, instant

log = logging.getLogger(__name__)

LEASE_S, RENEW_S, LOOK_S = 60.0, 20.0, 15.0
SWEEP_EVERY_S, AFTERWARDS_S = 600.0, 2000.0
"""Histories are read so often, and a life goes on so long after the last word: longer than two of these sweeps."""
AT_REST_S = 20_000.0
"""A life that is not at rest so long after its end never will be."""
NEVER = float("inf")
LOOKS_BACK_S = 10.0
"""A process that was paused may have spoken late. It is not killed before it could take that down: nobody else can."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to one process: from `at_s` on it goes on for some steps, and then it is killed, paused or drained."""

    at_s: float
    process: int
    kind: str
    """`kill`, `pause`, `drain`, or `step`: its wall clock is set."""
    steps: int
    for_s: float
    """How long it is paused, or nobody stands in for it; or by how much its clock is wrong from now on."""


@dataclass(frozen=True, slots=True)
class SharedScript(Script):
    """What a seed decides of a life with several workers."""

    workers: int = 2
    faults: tuple[Fault, ...] = ()


def shared_script_of(seed: int, messages: int = 20) -> SharedScript:
    """Draw a life, and what happens to its workers. Pure."""
    script = script_of(seed, messages)
    chance = Random(f"workers {seed}")  # noqa: S311 - a life's course, no secret
    workers = chance.randrange(2, 5)
    instants = [one.at_s for one in script.events]
    faults = [
        Fault(0.0, process, "step", 0, chance.uniform(-600.0, 600.0))
        for process in range(workers)
        if chance.randrange(2)
    ]
    for _ in range(chance.randrange(8)):
        kind = chance.choice(("kill", "kill", "pause", "pause", "pause", "drain", "step"))
        for_s = {
            "kill": chance.choice((0.1, 2.0, 60.0, 300.0)),
            "pause": chance.uniform(0.8, 2.5) * LEASE_S,
            "drain": chance.choice((2.0, 60.0)),
            "step": chance.uniform(-600.0, 600.0),
        }[kind]
        at_s = chance.choice(instants) + chance.choice((0.0, 0.3, 3.0, 30.0)) * chance.uniform(0.0, 2.0)
        faults.append(Fault(at_s, chance.randrange(workers), kind, chance.randrange(60), for_s))
    last_words = [
        LastWord(one.at_s, one.person, one.thread)
        for one in script.events
        if isinstance(one, Said) and chance.randrange(2)
    ]
    return SharedScript(
        seed=seed,
        events=tuple(sorted((*script.events, *last_words), key=lambda one: one.at_s)),
        kills=(),
        whispers=script.whispers,
        damages=script.damages,
        moods=script.moods,
        workers=workers,
        faults=tuple(sorted(faults, key=lambda one: one.at_s)),
    )


def live_together(
    script: SharedScript, *, broken: Callable[[], contextlib.AbstractContextManager[object]] | None = None
) -> Life:
    """Live through a script with several workers, and judge it; `broken` breaks the product for as long as it lasts."""
    with tempfile.TemporaryDirectory(prefix="claudius-life-", dir=quick_disk()) as root, ExitStack() as open_:
        if broken:
            open_.enter_context(broken())
        life = _TogetherLife(script, Path(root))
        found = life.run()
    return Life(script=script, broken=found, steps=life.steps, seen=digest(life.town.posts))


class _Bell:
    """Rings in virtual time; the scheduler's own would count real time."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring, self._handle = ring, asyncio.get_running_loop().call_soon(lambda: None)

    def ring_in(self, wait_s: float) -> None:
        self._handle.cancel()
        self._handle = asyncio.get_running_loop().call_later(wait_s, self._ring)

    def close(self) -> None:
        self._handle.cancel()


async def _open_bell(ring: Callable[[], None]) -> _Bell:
    return _Bell(ring)


class _Worker:
    """One process: from its start to its end."""

    def __init__(self, life: _TogetherLife, number: int, wrong_s: float) -> None:
        self.number, self.wrong_s, self._life = number, wrong_s, life
        self.loop = VirtualLoop(life.now_s)
        self.loop.rests = True
        self.paused_until_s, self.pauses_for_s, self.woke_s = -NEVER, 0.0, -NEVER
        self.is_over = False
        """Whether it ended in good order."""
        self.is_leaving = asyncio.Event()
        self.told: Callable[[Mapping[str, str]], None] = lambda _: None
        self.rests_for_s = 0.0
        """How long nobody stands in for it once it ended."""
        self.store = WorkerStore(life.server, life.times, self.loop.time)
        self.store.wall_s = lambda: self._life.now_s + self.wrong_s
        self._adapter = TownAdapter(life.town, self.loop.time)
        self._server: Server | None = None
        self._lock: HomeLock | None = None

    @property
    def next_s(self) -> float:
        """When it has something to do next."""
        return max(self.loop.next_s, self.paused_until_s)

    def begin(self) -> None:
        """Start."""
        self._task = self.loop.create_task(self.live())

    async def live(self) -> None:
        """Wake, think and speak until it is to leave, and go to sleep in good order."""
        life, town = self._life, self._life.town
        home, is_first = life.home_of(self.number), self.number == 0
        self._lock = HomeLock(home)
        clock = Clock(lambda: instant(self.store.wall_s()), self.loop.time)
        mind, resources = mind_of(home, town, self.store, clock), resources_of(home, clock, self.loop.time)
        archive = SlowArchive(self.store, home.memory, self.loop, life.history) if is_first else None
        self._server = Server(
            home,
            self._lock,
            mind,
            {self._adapter.name: self._adapter},
            {},
            chance=town.chance.random,
            resources=resources,
            archive=archive,
        )
        await self._server.start()
        if is_first:
            await self.store.inbox.swept(
                NETWORK, WORKSPACE, BEFORE_ALL, instant(0.0)
            )  # it was here before anybody spoke
        await self.is_leaving.wait()
        while self._life.is_ending and self._server.busy and not self._life.is_late:
            await asyncio.sleep(1.0)
        await self._server.stop()
        self.is_over = True

    def leave(self) -> None:
        """Have it end in good order."""
        self.loop.call_soon(self.is_leaving.set)

    def hear(self, about: Mapping[str, str]) -> None:
        """Hear what another process says."""
        self.store.is_told = True
        self.told(about)

    def go_on(self, now_s: float) -> None:
        """Do what is to be done now. Raises: Killed."""
        self.loop.now_s = now_s
        if self.woke_s < self.paused_until_s:
            self.woke_s = now_s
            if self.loop.dies_in is not None:
                raise Killed  # while it was paused
        self.loop.run_forever()
        if self.loop.steps >= self.loop.pauses_in:
            self.paused_until_s, self.loop.pauses_in = now_s + self.pauses_for_s, NEVER
        if self._task.done():
            self._task.result()

    def die(self) -> None:
        """Let go of what only one process may hold, as the system does for one that was killed."""
        self.store.drop()
        if self._lock:
            self._lock.release()
        if self._life.town.ears is self._adapter:
            self._life.town.ears = None
        DEAD.append(self)


class _TogetherLife:
    """The virtual time of all processes, and what happens to them in it."""

    def __init__(self, script: SharedScript, root: Path) -> None:
        self._script, self._root = script, root
        self.now_s, self._past_steps = 0.0, 0
        self.chance = Random(script.seed + 3)  # noqa: S311 - a life's course, no secret
        self.town = Town(Random(script.seed + 1), script.moods)  # noqa: S311 - as above
        self.history = History(Random(script.seed + 2))  # noqa: S311 - as above
        self.times = LeaseTimes(lease_s=LEASE_S, renew_s=RENEW_S, look_s=LOOK_S)
        home = self.home_of(0)
        self.town.memory = home.memory
        self.server = VirtualServer(home.database, shipped("memory"), self.chance, lambda: self.now_s, LEASE_S)
        self.server.notify = self._notify
        self.is_ending = self.is_late = False
        self._workers: dict[int, _Worker] = {}
        self._current: _Worker | None = None
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []

    @property
    def steps(self) -> int:
        """How many steps all processes took."""
        return self._past_steps + sum(one.loop.steps for one in self._workers.values())

    def step(self) -> None:
        """Count a step of the process that runs. Raises: Killed."""
        if self._current:
            self._current.loop.step()

    def home_of(self, number: int) -> Home:
        """Return the home of one process."""
        home = Home(self._root / f"h{number}")
        if not home.state.is_dir():
            home.create()
        return home

    def run(self) -> Sequence[str]:
        """Live to the end; return the broken rules."""
        self._plan()
        with ExitStack() as patched:
            patched.enter_context(archiving(self))
            patched.enter_context(self.server.watching())
            patched.enter_context(patch.object(leases, "listen", self._listen))
            patched.enter_context(patch("time.monotonic", lambda: self.now_s))
            patched.enter_context(patch("os.kill", self._signal))
            patched.enter_context(patch.object(networks, "SWEEP_EVERY_S", SWEEP_EVERY_S))
            patched.enter_context(patch.object(scheduler, "open_bell", _open_bell))
            patched.enter_context(patch.object(server, "LOOK_S", LEASE_S))
            found = [*self._run()]
        self.server.settle()
        home = self.home_of(0)
        return [*found, *self.server.broken, *judged(self.town, home, self.history), *counted(home)]

    def _signal(self, pid: int, signal: int) -> None:
        """Have the process that sends a signal to itself end, as a drained worker does."""
        del pid, signal
        if self._current:
            self._current.leave()

    def _run(self) -> Iterator[str]:
        while self._agenda or self._workers:
            soonest_s = min((one.next_s for one in self._workers.values()), default=NEVER)
            if self._agenda and self._agenda[0][0] <= soonest_s:
                at_s, _, happen = self._agenda.pop(0)
                self.now_s = max(self.now_s, at_s)
                happen()
                continue
            self.now_s = max(self.now_s, soonest_s)
            ready = [one for one in self._workers.values() if one.next_s <= self.now_s]
            self._pass(ready[0] if len(ready) == 1 else self.chance.choice(ready))
            if self.is_late and self.now_s > self._ends_s + 2 * AT_REST_S:
                yield "O10: the life never comes to rest"
                return

    def _pass(self, worker: _Worker) -> None:
        self._current = worker
        try:
            worker.go_on(self.now_s)
        except Killed:
            worker.die()
            self._stand_in(worker)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the product's
            self.server.broken.append(f"O11: a process ended with {error!r}")
            worker.die()
            self._stand_in(worker)
        else:
            if worker.is_over:
                worker.loop.close()
                self._stand_in(worker)
        finally:
            self._current = None

    def _stand_in(self, worker: _Worker) -> None:
        self._past_steps += worker.loop.steps
        del self._workers[worker.number]
        if not (self.is_ending and worker.is_over):
            self._at(self.now_s + worker.rests_for_s, partial(self._start, worker.number, worker.wrong_s))
        elif set(self._workers) == {0}:
            self._workers[0].leave()  # the last one archives what the others committed

    def _start(self, number: int, wrong_s: float) -> None:
        self._workers[number] = worker = _Worker(self, number, wrong_s)
        worker.begin()
        if self.is_ending and number:
            worker.leave()

    def _at(self, at_s: float, happen: Callable[[], None]) -> None:
        self._agenda.append((at_s, len(self._agenda), happen))
        self._agenda.sort(key=lambda one: one[0])

    def _plan(self) -> None:
        script = self._script
        for number in range(script.workers):
            self._at(0.3 * number, partial(self._start, number, 0.0))
        for event in script.events:
            self._at(event.at_s, partial(self._happen, event))
        for number, at_s in enumerate(script.whispers):
            self._at(at_s, partial(self._whisper, number))
        for one in script.damages:
            self._at(one.at_s, partial(self._damage, one))
        for fault in script.faults:
            self._at(fault.at_s, partial(self._befall, fault))
        last_s = max(at_s for at_s, *_ in self._agenda)
        self._at(last_s + LEASE_S, self.town.last_words.clear)
        self._ends_s = last_s + AFTERWARDS_S
        self._at(self._ends_s, self._end)
        self._at(self._ends_s + AT_REST_S, self._be_late)

    def _end(self) -> None:
        self.is_ending = True
        for number, worker in self._workers.items():
            if number or len(self._workers) == 1:
                worker.leave()

    def _be_late(self) -> None:
        self.is_late = True

    def _befall(self, fault: Fault) -> None:
        worker = self._workers.get(fault.process)
        if worker is None or worker.is_leaving.is_set():
            return
        match fault.kind:
            case "kill" if self.now_s < worker.woke_s + LOOKS_BACK_S:
                self._at(worker.woke_s + LOOKS_BACK_S, partial(self._befall, fault))
            case "kill":
                worker.rests_for_s = fault.for_s
                goes_on = 0 if self.now_s < worker.paused_until_s else fault.steps
                worker.loop.dies_in = worker.loop.steps + goes_on + 1
                worker.paused_until_s = -NEVER  # who is paused is killed as well
            case "pause":
                worker.loop.pauses_in, worker.pauses_for_s = worker.loop.steps + fault.steps + 1, fault.for_s
            case "drain":
                worker.rests_for_s = fault.for_s
                worker.leave()
            case "step":
                worker.wrong_s = fault.for_s

    def _happen(self, event: Event) -> None:
        event.happen(self.town, self.now_s)

    def _whisper(self, number: int) -> None:
        for worker in self._workers.values():
            if worker.store.core.is_open:
                worker.loop.create_task(worker.store.whispers.keep_whisper(whispered(number, instant(self.now_s))))
                return

    def _damage(self, one: Damage) -> None:
        with closing(sqlite3.connect(self.server.path, isolation_level=None)) as db:
            damage(db, one)

    def _notify(self, payload: str) -> None:
        """Tell the others what one process says: mostly soon, sometimes twice, late, or not at all."""
        who, about = json.loads(payload)
        for worker in self._workers.values():
            for _ in range(self.chance.choice((0, 1, 1, 1, 2)) if worker.store.core.boot != who else 0):
                worker.loop.call_at(self.now_s + self.chance.choice((0.001, 0.02, 0.02, 5.0)), worker.hear, about)

    async def _listen(self, place: StorePlace, boot: str, told: Callable[[Mapping[str, str]], None]) -> None:
        """Have the process that runs be told, in the place of a connection of its own."""
        del place, boot
        if self._current:
            self._current.told = told
        told({})
        await asyncio.Event().wait()


_COUNTS = """
    SELECT p.peer_id, p.messages, (SELECT count(*) FROM interaction i WHERE i.peer_id = p.peer_id AND i.direction = 'in')
    FROM peer p
"""
_MOVED = "SELECT coalesce((SELECT version FROM psyche_state), 0), (SELECT count(*) FROM psyche_trace)"


def counted(home: Home) -> Iterator[str]:
    """Tell what was counted zero times or twice (W3)."""
    with closing(sqlite3.connect(home.database)) as db:
        for peer, messages, interactions in db.execute(_COUNTS):
            if messages != interactions:
                yield f"W3: {peer} has {messages} messages in the ledger, and {interactions} interactions"
        for version, traces in db.execute(_MOVED):
            if version != traces:
                yield f"W3: the psyche was moved {traces} times, and is of version {version}"
