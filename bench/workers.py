"""One of several workers of one soul on one PostgreSQL, and the people who talk to it.

Each has a network of its own. What another worker thought and spoke for one of our people reaches them by a datagram,
so that the oracle of whoever said something judges its answer, whichever process gave it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import script
from claudius.intent import Utterance
from claudius.memory.postgres import connection
from crowd import Crowd, Rounds, Square
from sides import cpu_s, serve

T = TypeVar("T")
UNLOCKED = "BEGIN; SELECT 0.0::float8 AS waited_s; SET LOCAL statement_timeout = '5min'"
"""How a transaction that writes would begin without the soul's lock."""
MOST_BYTES = 60_000


class Counting(connection.TimedConnection):
    """Counts how often this process waits for an answer of the server."""

    trips = 0

    def wait(self, *words: Any, **more: Any) -> Any:
        """Wait once more."""
        Counting.trips += 1
        return super().wait(*words, **more)


@dataclass(slots=True)
class Common(Square):
    """A network that several workers share. `ways` is the directory of their sockets."""

    ways: Path = Path()
    spoken: int = 0
    """Replies to people who talk to other workers."""
    spoken_s: float = 0.0
    """When the last of these was said, on the machine's monotonic clock."""
    way: socket.socket | None = None

    def open_way(self) -> None:
        """Hear what others answer our people."""
        self.way = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.way.setblocking(False)
        self.way.bind(str(self.ways / self.called.rstrip(":")))
        asyncio.get_running_loop().add_reader(self.way, self._heard)

    def _heard(self) -> None:
        assert self.way is not None
        with suppress(BlockingIOError):
            while True:
                self.judge(*json.loads(self.way.recv(MOST_BYTES)))

    async def speak(self, utterance: Utterance) -> str:
        """Take one reply; if another worker's people are answered, pass it on."""
        (key,) = utterance.answers
        asker = key.split(":")[1]
        if asker == self.called.rstrip(":"):
            return await super(Common, self).speak(utterance)
        self.spoken, self.spoken_s = self.spoken + 1, time.monotonic()
        answer = json.dumps([key, utterance.kind, utterance.conversation, utterance.body]).encode()
        assert self.way is not None
        with suppress(ConnectionRefusedError, FileNotFoundError):  # whoever asked was killed
            while True:
                try:
                    self.way.sendto(answer, str(self.ways / asker))
                    break
                except BlockingIOError:
                    await asyncio.sleep(0.001)
        return f"said:{utterance.key}"


class Running:
    """An event loop in a thread of its own: a worker goes on between two requests, because others wait for it."""

    def __init__(self) -> None:
        """Start it."""
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run_until_complete(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` returns."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """End it."""
        self._loop.call_soon_threadsafe(self._loop.stop)


class Workers(Rounds):
    """Answers the bench's requests to one worker."""

    def __init__(self) -> None:
        """Start the worker's event loop."""
        super().__init__()
        self._loop.close()
        self._loop = Running()  # type: ignore[assignment]  # as much of one as is asked for

    def start(
        self,
        root: str,
        url: str,
        called: str,
        ways: str,
        *,
        call_s: float = 0.0,
        lease_s: float = 60.0,
        is_locked: bool = True,
    ) -> None:
        """Wake a worker that is `called` so. Without `is_locked` it writes without the lock of the soul."""
        script.ready()
        connection.TimedConnection = Counting  # type: ignore[misc]  # it counts, besides
        if not is_locked:
            connection.TRANSACTIONS["BEGIN IMMEDIATE"] = UNLOCKED
        square = Common(called=f"{called}:", ways=Path(ways))
        self._crowd = Crowd(Path(root), call_s, url, roles="lanes", lease_s=lease_s, square=square)
        self._loop.run_until_complete(self._started(self._crowd, square))

    async def _started(self, crowd: Crowd, square: Common) -> None:
        square.open_way()
        await crowd.open()

    def talk_from(self, first: int, conversations: int, turns: int) -> dict[str, Any]:
        """Take turns in conversations from number `first` on. Returns turns, seconds, CPU, and round trips a turn."""
        crowd = self._awake()
        cpu, began, trips = cpu_s(), time.perf_counter(), Counting.trips
        times = self._loop.run_until_complete(crowd.talk(range(first, first + conversations), turns))
        count = conversations * turns
        return {
            "ms": times,
            "turns": count,
            "wall_s": time.perf_counter() - began,
            "cpu_ms": 1000 * (cpu_s() - cpu) / count,
            "trips": (Counting.trips - trips) / count,
        }

    def hang(self, count: int) -> int:
        """Have people say something until so many conversations wait for our model, which is silent.

        Returns how many others another worker has taken and answered meanwhile.
        """
        return self._loop.run_until_complete(self._hung(count))

    async def _hung(self, count: int) -> int:
        crowd, heard = self._awake(), 0
        crowd.voice.is_let.clear()
        while (before := crowd.voice.waiting) < count:
            said = await crowd.hear(heard)
            heard += 1
            while crowd.voice.waiting == before and not said.answered.done():  # noqa: ASYNC110 - polled from outside
                await asyncio.sleep(0.01)
        return heard - count

    def leave(self) -> float:
        """End in good order without waiting for the model. Returns when that was done."""
        self._loop.run_until_complete(self._awake().server.stop(grace_s=0.0))
        return time.monotonic()

    def spoken(self, count: int) -> float:
        """Wait until so many replies were given to other workers' people. Returns when the last one was."""
        square = self._awake().square
        assert isinstance(square, Common)
        self._loop.run_until_complete(self._until_spoken(square, count))
        return square.spoken_s

    async def _until_spoken(self, square: Common, count: int) -> None:
        while square.spoken < count:  # noqa: ASYNC110 - polled from outside
            await asyncio.sleep(0.002)


if __name__ == "__main__":
    asked = Workers()
    names = ("start", "talk_from", "hang", "leave", "spoken", "end")
    serve({name: getattr(asked, name) for name in names})
