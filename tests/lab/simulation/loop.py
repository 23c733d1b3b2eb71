"""An event loop in which time is a number: when all wait, it jumps to the next timer. It can be killed in any step."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple, Unpack

_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


class Killed(BaseException):
    """The process ended between two callbacks, as by `kill -9`."""


class _Jumping(selectors.DefaultSelector):
    """Looks at its files, never waits for them, and lets time pass instead."""

    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready now. Raises: Killed; RuntimeError where nothing will ever happen again."""
        self.loop.step()
        if self.loop.rests and (timeout != 0 or self.loop.steps >= self.loop.pauses_in):
            self.loop.stop()  # after this pass
            return super().select(0)
        ready = super().select(0)
        if not ready:
            if timeout is None:
                raise RuntimeError("everybody waits for somebody else: nothing will ever happen again")
            self.loop.now_s += max(0.0, timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop that begins at `now_s` and is killed in its `dies_in`-th step; None = never.

    What others would do in a thread is done at once, in the step that asks for it.
    """

    def __init__(self, now_s: float, dies_in: int | None = None) -> None:
        """Begin at an instant."""
        self.now_s, self.steps, self.dies_in = now_s, 0, dies_in
        self.rests = False
        """Whether it stops when it has nothing to do now, in place of letting time pass."""
        self.pauses_in = float("inf")
        """It stops after this step, too, if it `rests`."""
        jumping = _Jumping()
        jumping.loop = self
        super().__init__(jumping)

    _ready: Any
    _scheduled: Any

    def time(self) -> float:
        """Return the instant, in seconds."""
        return self.now_s

    @property
    def next_s(self) -> float:
        """The instant at which it has something to do; infinity if never."""
        if self._ready:
            return self.now_s
        return float(self._scheduled[0].when()) if self._scheduled else float("inf")

    def step(self) -> None:
        """Count a step. Raises: Killed."""
        self.steps += 1
        if self.dies_in is not None and self.steps >= self.dies_in:
            raise Killed

    def run_in_executor(
        self,
        executor: Executor | None,  # noqa: ARG002 - the library's signature
        func: Callable[[Unpack[_Ts]], _T],
        *args: *_Ts,
    ) -> asyncio.Future[_T]:
        """Do it now."""
        done: asyncio.Future[_T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - it belongs to the one who waits for it
            done.set_exception(error)
        return done
