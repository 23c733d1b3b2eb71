"""An event loop in which time is a number: when all wait, it jumps to the next timer. It can be killed in any step."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from concurrent.futures import Executor
from typing import TypeVar, TypeVarTuple, Unpack

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
        self.now_s, self.steps, self._dies_in = now_s, 0, dies_in
        jumping = _Jumping()
        jumping.loop = self
        super().__init__(jumping)

    def time(self) -> float:
        """Return the instant, in seconds."""
        return self.now_s

    def step(self) -> None:
        """Count a step. Raises: Killed."""
        self.steps += 1
        if self._dies_in is not None and self.steps >= self._dies_in:
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
