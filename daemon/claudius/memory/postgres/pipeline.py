"""Statements that are sent without waiting for each answer, and the rows of an answer by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any

import psycopg

from claudius.memory.postgres.timed import TimedConnection


class NamedRow(Sequence[Any]):
    """One row: its values by the names of its columns; iterated, the values in order, as a `sqlite3.Row`."""

    __slots__ = ("_places", "_values")

    def __init__(self, places: Mapping[str, int], values: Sequence[Any]) -> None:
        self._places, self._values = places, values

    def __getitem__(self, column: Any, /) -> Any:
        return self._values[self._places[column]]

    def keys(self) -> Iterable[str]:
        """Return the names of the columns."""
        return self._places.keys()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def named(cursor: psycopg.Cursor[Any]) -> Callable[[Sequence[Any]], NamedRow]:
    """Return what makes rows of a cursor's values: its row factory."""
    result = cursor.pgresult
    places = _places(tuple([result.fname(n) for n in range(result.nfields)]) if result else ())
    return lambda values: NamedRow(places, values)


@cache
def _places(names: tuple[bytes, ...]) -> Mapping[str, int]:
    return {name.decode(): place for place, name in enumerate(names)}


class Answer:
    """The rows of a statement that was sent; they are waited for when they are asked for."""

    __slots__ = ("_cursor", "_number", "_pipeline")

    def __init__(self, pipeline: Pipeline, cursor: psycopg.Cursor[NamedRow]) -> None:
        pipeline.sent += 1
        self._pipeline, self._cursor, self._number = pipeline, cursor, pipeline.sent

    def _waited(self) -> psycopg.Cursor[NamedRow]:
        if self._number > self._pipeline.answered:
            self._pipeline.wait()
        return self._cursor

    @property
    def description(self) -> Sequence[Any] | None:
        """The columns of the rows, as PEP 249 has them."""
        return self._waited().description

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""
        return self._waited().rowcount

    def fetchone(self) -> NamedRow | None:
        """Return the next row; None if there is none."""
        return self._waited().fetchone()

    def fetchall(self) -> list[NamedRow]:
        """Return the rows that are left."""
        return self._waited().fetchall()

    def fetchmany(self, size: int, /) -> list[NamedRow]:
        """Return up to `size` of the rows that are left."""
        return self._waited().fetchmany(size)

    def __iter__(self) -> Iterator[NamedRow]:
        return iter(self._waited())


class Pipeline:
    """Sends statements without waiting for the answers that nobody asked for yet."""

    def __init__(self, made: TimedConnection[NamedRow], failed: Callable[[], None]) -> None:
        """Begin on a connection that is in no transaction. `failed` is called before an error is raised."""
        self.sent = self.answered = self.trips = 0
        """Statements sent; of these, those whose answer is here; and how often one was waited for."""
        self._made, self._failed, self._open = made, failed, ExitStack()
        self._pipeline = self._open.enter_context(made.pipeline())

    def wait(self) -> None:
        """Wait for the answers to everything that was sent so far. Raises: psycopg.Error, of the first that failed."""
        self.answered = self.sent
        self.trips += 1
        try:
            self._pipeline.sync()
        except psycopg.Error:
            self._failed()
            raise

    def go_on(self) -> None:
        """Have the server carry out what was sent so far. Its answers are read with the next ones.

        psycopg has no public word for a Sync that nobody waits for.
        """
        self._pipeline._enqueue_sync()  # noqa: SLF001 - see above
        self._made.wait(self._pipeline._communicate_gen())  # noqa: SLF001 - likewise

    def execute(self, text: bytes, values: Any = None) -> Answer:
        """Send a statement. Raises: psycopg.Error, also of an earlier one whose answer has come meanwhile."""
        try:
            return Answer(self, self._made.execute(text, values))
        except psycopg.Error:
            self._failed()
            raise

    def end(self) -> None:
        """Wait for whatever is not answered. Raises: psycopg.Error, likewise."""
        self.answered = self.sent
        self.trips += 1
        self._open.close()
