"""F2: a worker is killed at one statement after another of a turn's life; another takes over."""

import asyncio
import os
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from claudius.errors import StoreError
from claudius.intent import Utterance
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from workers import Send, World, met

MOST = 60
"""More statements than the writer sends from the first word to the end of the lane."""
POINTS = range(0, MOST, 1 if os.environ.get("CLAUDIUS_TEST_PROFILE") == "nightly" else 8)


class Wire:
    """Cuts a worker off before its n-th statement, or, if `late`, right after the server has done it."""

    def __init__(self, point: int, *, late: bool) -> None:
        self.left, self.late, self.is_cut, self.is_strung = point, late, False, False
        self.cut, self._loop = asyncio.Event(), asyncio.get_running_loop()

    def meet(self, connection: Any, _: str, send: Send) -> Any:
        """Let the statement pass, or cut the wire."""
        self.left -= connection.is_writer and self.is_strung
        if not self.is_cut and self.left < 0 and connection.is_writer:
            self.is_cut = True
            self._loop.call_soon_threadsafe(self.cut.set)
            if self.late:
                send()
        if self.is_cut:
            connection._made.close()
        self.connect()
        return send()

    def connect(self) -> None:
        """Let no one connect over a wire that is cut."""
        import psycopg  # noqa: PLC0415 - an extra

        if self.is_cut:
            raise psycopg.OperationalError("cut")


class Mute(RehearsalAdapter):
    """A network that hears nothing any more from a worker that was killed."""

    wire: Wire

    async def speak(self, utterance: Utterance) -> str:
        """Say it, as long as the worker lives."""
        if self.wire.is_cut:
            await asyncio.Event().wait()
        return await super().speak(utterance)


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("point", POINTS)
async def test_scale_f2_killed_at_each_statement(point: int, late: bool, postgres_url: str, tmp_path: Path) -> None:  # noqa: FBT001 - parametrised
    """Whatever was durable goes on, whatever was not is heard again: one answer, in order, one call more at most."""
    world, wire, mute = World(postgres_url, tmp_path), Wire(point, late=late), Mute()
    mute.wire = wire
    async with AsyncExitStack() as stack:
        doomed = await world.worker(stack, clean=False, network=mute, prepare=met(wire.meet, wire.connect))
        wire.is_strung = True
        first, second = world.post(1, 0), world.post(1, 1)
        try:
            await world.offer(doomed, first)
            await world.offer(doomed, second)
            await wire.cut.wait()
        except (StoreError, ConnectionAbortedError):
            pass
        other = await world.worker(stack)
        world.past()
        for message in (first, second):  # a network delivers again what was not acknowledged
            await world.until_accepted(other, message)
        await world.answered()
        calls = world.calls()

    world.judge()
    assert calls <= len(world.said) + 1
