"""A connection to PostgreSQL that waits for nothing for ever: neither for an answer, nor to be made anew."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

import psycopg

T = TypeVar("T")
Row = TypeVar("Row")
ON_THE_WAY_S = 1.0
"""How much longer than by the server itself an answer is waited for."""
MOMENT_S = 0.5
"""How long the event loop waits for a connection that is made anew."""


class TimedConnection(psycopg.Connection[Row]):
    """A connection that is given up if an answer does not come, whatever swallows it on the way.

    The system's own limits (messages that keep alive, `tcp_user_timeout`) see only a peer whose packets are lost, not
    a proxy that takes them and passes nothing on.
    """

    answer_s = 0.0
    """How long an answer is waited for; 0 = however long it takes."""

    def limit(self, answer_s: float) -> None:
        """Have the server, and this side a moment later, give a statement up after `answer_s` seconds; 0 = never."""
        self.execute(f"SET statement_timeout = '{answer_s}s'".encode())
        self.answer_s = answer_s and answer_s + ON_THE_WAY_S

    def wait(self, gen: Generator[Any, Any, T], *words: Any, **more: Any) -> T:
        """Wait for what a statement of psycopg waits for. Raises: psycopg.OperationalError if it did not come."""
        return super().wait(self._timed(gen) if self.answer_s else gen, *words, **more)

    def _timed(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        until_s = time.monotonic() + self.answer_s
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > until_s:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"no answer within {self.answer_s:.0f} s")
                wanted = gen.send(ready)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]  # a generator's own


class MadeBeside(Generic[Row]):
    """A connection that a thread makes anew, because the event loop must not wait for a server that is away."""

    def __init__(self, connect: Callable[[], TimedConnection[Row]]) -> None:
        """Make it with `connect`."""
        self._connect = connect
        self._coming: Future[TimedConnection[Row]] | None = None

    def take(self) -> TimedConnection[Row]:
        """Return a new connection. Raises: psycopg.OperationalError if it is not there yet."""
        wait_s = 0.0
        if self._coming is None:
            self._coming, wait_s = Future(), MOMENT_S
            threading.Thread(target=self._make, args=(self._coming,), name="claudius-connects", daemon=True).start()
        try:
            made = self._coming.result(wait_s)
        except TimeoutError:
            raise psycopg.OperationalError("the server does not answer") from None
        except psycopg.Error:
            self._coming = None
            raise
        self._coming = None
        return made

    def close(self) -> None:
        """Close what is still to come."""
        if self._coming:
            self._coming.add_done_callback(_close)

    def _make(self, coming: Future[TimedConnection[Row]]) -> None:
        try:
            coming.set_result(self._connect())
        except psycopg.Error as error:
            coming.set_exception(error)


def _close(coming: Future[TimedConnection[Any]]) -> None:
    if not coming.exception():
        coming.result().close()
