"""Shared by the tests of the Slack and Discord adapters: a receiver without a soul, and a provider that echoes."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from claudius.perception import Perception
from claudius.provider import Request
from claudius.runtime.control import connect
from claudius.testing.alive import Alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter


def echo(request: Request) -> str:
    """Answer with the message itself."""
    text = request.tail.rpartition('"text":"')[2].partition('"')[0]
    return f"<internal_monologue>hm</internal_monologue><external_dialogue>re {text}</external_dialogue>"


@dataclass(slots=True)
class Ear:
    """Receives what the adapter hears. Each error of `troubles` is raised by one of the next perceptions, in order."""

    heard: dict[str, Perception] = field(default_factory=dict)
    told: list[str] = field(default_factory=list)
    """The key of each perception that was taken, once for every time it arrived."""
    troubles: list[Exception] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def accept(self, perception: Perception) -> bool:
        """Take one perception; return whether it is new."""
        if self.troubles:
            raise self.troubles.pop(0)
        is_new = perception.key not in self.heard
        self.heard.setdefault(perception.key, perception)
        self.told.append(perception.key)
        self._changed.set()
        return is_new

    async def until(self, count: int, *, within_s: float = 20.0) -> list[Perception]:
        """Wait for `count` different perceptions."""
        async with asyncio.timeout(within_s):
            while len(self.heard) < count:
                self._changed.clear()
                await self._changed.wait()
        return list(self.heard.values())


class Reading(RehearsalAdapter):
    """A network that takes its time when it is asked for what preceded a call into a thread."""

    def __init__(self) -> None:
        super().__init__()
        self.is_read, self.goes_on = asyncio.Event(), asyncio.Event()

    async def context(self, perception: Perception, most: int) -> Sequence[Perception]:
        """Return the messages that precede this one, when the test says so."""
        self.is_read.set()
        await self.goes_on.wait()
        return await super().context(perception, most)


@asynccontextmanager
async def listening(soul: Alive, **asked: Any) -> AsyncIterator[Any]:
    """Listen to the stream at the control socket."""
    async with connect(soul.home.socket) as connection:
        await connection.send({"op": "stream", **asked})
        assert await connection.receive() == {"event": "streaming"}
        yield connection
