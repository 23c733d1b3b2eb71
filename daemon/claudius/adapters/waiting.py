"""Wait with an early end: run work until an event is set or a deadline passes, and batch delayed calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any


async def until(event: asyncio.Event, seconds: float) -> None:
    """Return when the event is set, or after that many seconds."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


async def unless(event: asyncio.Event, work: Coroutine[None, None, None], name: str) -> None:
    """Run work until it ends or the event is set, which cancels it. Raises what the work raises."""
    doing = asyncio.create_task(work, name=name)
    waiting = asyncio.create_task(event.wait(), name=f"{name}: over")
    try:
        await asyncio.wait((doing, waiting), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (doing, waiting):
            task.cancel()
        await asyncio.gather(doing, waiting, return_exceptions=True)
    if not doing.cancelled() and (error := doing.exception()):
        raise error


async def either(one: Coroutine[None, None, None], other: Coroutine[None, None, None], name: str) -> None:
    """Run two coroutines until one of them ends, and cancel the other. Raises what the one that ended raises."""
    doing = [asyncio.create_task(work, name=name) for work in (one, other)]
    try:
        done, _ = await asyncio.wait(doing, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in doing:
            task.cancel()
        await asyncio.gather(*doing, return_exceptions=True)
    for task in done:
        task.result()


async def surely(work: Coroutine[None, None, None], name: str) -> None:
    """Run work to its end even if the caller is cancelled meanwhile."""
    doing = asyncio.create_task(work, name=name)
    try:
        await asyncio.shield(doing)
    except asyncio.CancelledError:
        await asyncio.gather(doing, return_exceptions=True)
        raise


async def ended(tasks: set[asyncio.Task[Any]], within_s: float) -> None:
    """Wait for tasks to end, and cancel those that do not end in time."""
    if tasks:
        _, late = await asyncio.wait(tasks, timeout=within_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)


class Soon:
    """Calls a function after a delay, once for all requests made meanwhile."""

    def __init__(self, after_s: float, do: Callable[[], None]) -> None:
        self._after_s, self._do = after_s, do
        self._waiting: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether a call is requested and has not happened yet."""
        return self._waiting is not None

    def ring(self) -> None:
        """Request a call."""
        if self._waiting is None:
            self._waiting = asyncio.get_running_loop().call_later(self._after_s, self._now)

    def cancel(self) -> None:
        """Cancel the requested call."""
        if self._waiting:
            self._waiting.cancel()

    def _now(self) -> None:
        self._waiting = None
        self._do()
