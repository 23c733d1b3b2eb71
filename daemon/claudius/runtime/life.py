"""The life of the daemon's process: takes the lock, applies the crash backoff, wakes the soul, and handles signals.

Source: the reliability design, sections 4 and 11.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from claudius.errors import ClaudiusError
from claudius.home import Home
from claudius.runtime.control import Connection, ControlSocket, allow_files
from claudius.runtime.crash_backoff import Brake
from claudius.runtime.lock import HomeLock
from claudius.runtime.notify import Starter

log = logging.getLogger("claudius.life")

Pause = Callable[[], Awaitable[None]]
"""Awaited before the first network login."""


class Awake(Protocol):
    """A composed soul: what this process starts, waits for and stops."""

    async def start(self) -> object:
        """Recover, then open every listener."""
        ...

    async def ready(self) -> None:
        """Return when every network is connected, or is being retried."""
        ...

    async def wait(self) -> None:
        """Wait until something ends the soul from inside."""
        ...

    async def stop(self) -> None:
        """Finish what was begun, and release everything."""
        ...

    def reread(self) -> None:
        """Read the settings again."""
        ...


Waking = Callable[[HomeLock, Pause], Awaitable[Awake]]


class _Asked(Exception):
    """The process was asked to end while it was still waiting."""


class Signals:
    """The signals that the process handles. A second request to end takes effect at once."""

    def __init__(self) -> None:
        """Handle no signals until `heard` is entered."""
        self.ending = asyncio.Event()
        self.reread: Callable[[], None] = lambda: None
        """Called on SIGHUP."""

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Handle signals while the block runs, then restore the previous handlers."""
        loop = asyncio.get_running_loop()
        kinds = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        before = {kind: signal.getsignal(kind) for kind in kinds}
        for kind in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(kind, self._end)
        loop.add_signal_handler(signal.SIGHUP, lambda: self.reread())  # noqa: PLW0108 - whatever it is by then
        try:
            yield
        finally:
            for kind in kinds:
                loop.remove_signal_handler(kind)
                signal.signal(kind, before[kind])

    def _end(self) -> None:
        log.info("asked to end")
        self.ending.set()
        for kind in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().remove_signal_handler(kind)
            signal.signal(kind, _leave)


def _leave(number: int, _: object) -> None:
    """End immediately, and kill the process groups led by our children. What is not durable counts as never said."""
    for pid in _children():
        with contextlib.suppress(OSError):
            if os.getpgid(pid) == pid:
                os.killpg(pid, signal.SIGKILL)
    os._exit(128 + number)


def _children() -> list[int]:
    listed = Path(f"/proc/self/task/{os.getpid()}/children")
    try:
        return [int(pid) for pid in listed.read_text("ascii").split()]
    except (OSError, ValueError):
        return []


async def live(home: Home, waking: Waking, *, starter: Starter, brake: Brake | None = None) -> None:
    """Hold `home`, wake the soul that `waking` composes, and keep it awake until a signal or its own end.

    Raises: ClaudiusError if it cannot be woken, or cannot go on.
    """
    home.create()
    allow_files()
    signals, brake = Signals(), brake or Brake(home.starts)
    with HomeLock(home, "daemon", unit=starter.unit) as lock, signals.heard():
        held_s = brake.start()

        async def pause() -> None:
            if held_s:
                await _hold(home, held_s, brake.message, starter, signals)

        try:
            soul = await waking(lock, pause)
        except (_Asked, ClaudiusError) as error:
            brake.forgive()  # no network was logged in to
            if isinstance(error, _Asked):
                return
            raise
        signals.reread = lambda: _reread(soul, starter)
        try:
            await _awake(soul, starter, signals)
        except BaseException:
            log.critical("ended by an error", exc_info=True)
            raise
        brake.forgive()


def _reread(soul: Awake, starter: Starter) -> None:
    soul.reread()
    starter.reloading()


async def _hold(home: Home, seconds: float, why: str, starter: Starter, signals: Signals) -> None:
    """Wait, and report the wait to whoever asks meanwhile. Raises: _Asked."""
    log.error(why)
    starter.waits(why, seconds)
    until = asyncio.get_running_loop().time() + seconds

    async def status(connection: Connection, _: Mapping[str, Any]) -> None:
        left_s = until - asyncio.get_running_loop().time()
        await connection.send({"brake": {"message": why, "wait_s": round(max(0.0, left_s), 1)}})

    async def later(connection: Connection, _: Mapping[str, Any]) -> None:
        left_s = until - asyncio.get_running_loop().time()
        await connection.send({"event": "later", "message": why, "wait_s": left_s})

    control = ControlSocket(home.socket, {"status": status, "chat": later})
    await control.open()
    try:
        async with asyncio.timeout(seconds):
            await signals.ending.wait()
            raise _Asked
    except TimeoutError:
        log.info("the brake is off")
    finally:
        await control.close()


async def _wake(soul: Awake) -> None:
    await soul.start()
    await soul.ready()


async def _awake(soul: Awake, starter: Starter, signals: Signals) -> None:
    """Start the soul, wait, stop it. Raises: ClaudiusError if something ended it from inside."""
    ending = asyncio.create_task(signals.ending.wait(), name="signals")
    failing = asyncio.create_task(soul.wait(), name="soul's end")
    getting_ready = asyncio.create_task(_wake(soul), name="getting ready")
    try:
        await asyncio.wait((getting_ready, ending, failing), return_when=asyncio.FIRST_COMPLETED)
        if getting_ready.done():
            getting_ready.result()
            starter.ready()
        await asyncio.wait((ending, failing), return_when=asyncio.FIRST_COMPLETED)
    finally:
        starter.stopping()
        await soul.stop()
        for task in (ending, getting_ready):
            task.cancel()
        await asyncio.gather(ending, getting_ready, return_exceptions=True)
        failing.cancel()
    if failing.done() and not failing.cancelled():
        failing.result()
