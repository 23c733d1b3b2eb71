"""What the processes of one soul tell each other at once: that a lane has something to do, or that a turn is void.

A notice only saves time. Whoever misses one finds the same at the next look, and a turn that is void is refused when it
is committed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
import psycopg
from psycopg.abc import PQGen

from claudius.decoding import decoder
from claudius.foreign import unquoted
from claudius.memory.database import StorePlace
from claudius.memory.postgres.connection import parameters
from claudius.memory.rows import dump

T = TypeVar("T")
log = logging.getLogger(__name__)
FIRST_S, MOST_S = 0.5, 60.0
"""How long to wait before the connection is made anew, at first and at most."""
LONGEST = 7000
"""The longest notice in bytes; the server takes less than 8,000."""
CHANNEL = "SELECT 'claudius_' || current_schema()::regnamespace::oid"
"""The name on which the processes of one soul speak: several souls may share a database."""


class _Ear(psycopg.AsyncConnection[Any]):
    """A connection that sleeps until something comes; psycopg looks ten times a second besides."""

    async def wait(self, gen: PQGen[T], interval: float = MOST_S, timeout: float | None = None) -> T:  # noqa: ASYNC109 - psycopg's own word
        """Wait for what psycopg waits for. Raises: psycopg.Error."""
        return await super().wait(gen, interval, timeout)


def notice(worker: str, about: Mapping[str, str]) -> str:
    """Return a notice of a process, which says only that there is something if it would be too long. Pure."""
    text = dump([worker, dict(about)])
    return text if len(text.encode()) <= LONGEST else dump([worker, {}])


async def listen(place: StorePlace, worker: str, told: Callable[[Mapping[str, str]], None]) -> None:
    """Call `told` with what another process than `worker` says, on a connection of its own, until cancelled.

    A connection that is lost is made anew. `told` is then called with nothing, because something may have been missed.
    """
    pause_s = FIRST_S
    while True:
        try:
            words = parameters(place, place.notices_url)
            async with await _Ear.connect(words, autocommit=True) as ear:
                (channel,) = await (await ear.execute(CHANNEL.encode())).fetchone() or ("",)
                await ear.execute(f'LISTEN "{channel}"'.encode())
                pause_s = FIRST_S
                told({})
                async for heard in ear.notifies():
                    who, about = _read(heard.payload)
                    if who != worker:
                        told(about)
        except (psycopg.Error, OSError) as error:
            log.info("no notices are heard", extra={"error": unquoted(error), "again_s": pause_s})
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, MOST_S)


def _read(payload: str) -> tuple[str, Mapping[str, str]]:
    """Return who says what; of what is no notice of ours, that something was said. Pure."""
    try:
        return decoder(tuple[str, dict[str, str]]).decode(payload)
    except msgspec.DecodeError:
        return "", {}
