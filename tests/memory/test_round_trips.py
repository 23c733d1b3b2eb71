"""How often a turn asks its database, and waits for a server: counted, not timed."""

import sqlite3
from collections import defaultdict
from contextlib import AsyncExitStack
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from claudius.home import Home
from claudius.memory import moments, turns
from claudius.memory.database import StorePlace
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive
from driven import reply

MOST = {"_accept": 10, "recall": 13, "commit": 40, "find_moments": 6}
"""Answers that WRITE 1, a recollection, a commit and a search among moments wait for."""
A_TURN = 98
"""Of a whole turn in one conversation, from the message to the release of its lane, and of the look whether all is idle."""

STATEMENTS = 48
"""What such a turn asks of a file, without the words that begin and end a transaction."""


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """Return how often each transaction waited for an answer, by the function that read or wrote in it; "" = all."""
    from claudius.memory.postgres import store as postgres_store  # noqa: PLC0415 - an extra
    from claudius.memory.postgres.connection import PostgresConnection, TimedConnection  # noqa: PLC0415 - likewise

    found: dict[str, list[int]] = defaultdict(list)
    waited: dict[TimedConnection, int] = defaultdict(int)
    began: dict[TimedConnection, int] = {}
    doing: dict[TimedConnection, str] = {}
    begin, end, wait = PostgresConnection._begin, PostgresConnection._end, TimedConnection.wait

    def waits(self: TimedConnection, *words: Any, **more: Any) -> Any:
        """Count an answer."""
        waited[self] += 1
        found[""] = [sum(waited.values())]
        return wait(self, *words, **more)

    def begins(self: PostgresConnection, sql: str) -> Any:
        """Note the count at the beginning."""
        began[self._made] = waited[self._made]
        return begin(self, sql)

    def ends(self: PostgresConnection, sql: str) -> Any:
        """Count a transaction that is of interest."""
        ended = end(self, sql)
        if name := doing.pop(self._made, ""):
            found[name].append(waited[self._made] - began[self._made])
        return ended

    monkeypatch.setattr(TimedConnection, "wait", waits)
    monkeypatch.setattr(PostgresConnection, "_begin", begins)
    monkeypatch.setattr(PostgresConnection, "_end", ends)
    for module, name in ((postgres_store, "_accept"), (turns, "recall"), (turns, "commit"), (moments, "find_moments")):
        original = getattr(module, name)

        def noted(db: Any, *words: Any, _name: str = name, _original: Any = original, **more: Any) -> Any:
            """Note what this transaction is for."""
            doing[db.connection._made] = _name
            return _original(db, *words, **more)

        monkeypatch.setattr(module, name, noted)
    return found


async def test_a_turn_waits_for_few_answers(postgres_url: str, home: Home, trips: dict[str, list[int]]) -> None:
    """Each statement is waited for, and a turn does not need more of them the longer it has been talked."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    counts = []
    async with AsyncExitStack() as stack:
        store, voice = PostgresStore(StorePlace(postgres_url)), Scripted(default=reply("I hear you."))
        soul = await stack.enter_async_context(alive(home, voice, store=store))
        for n in range(5):
            await soul.network.hear(f"The bridge has {n} arches.")
            await soul.network.until_visible(n + 1)
            await soul.idle()
            counts.extend(trips[""])

    del trips[""]
    assert trips.keys() == MOST.keys()
    assert min(after - before for before, after in pairwise(counts)) <= A_TURN  # what the clock asks comes on top
    assert not {name: counts[-1] for name, counts in trips.items() if counts[-1] > MOST[name]}


async def test_a_turn_asks_few_statements(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of one table are one statement, and a turn does not need more of them the longer it has been talked."""
    asked: list[str] = []

    class Counted(sqlite3.Connection):
        """A connection that notes what it is asked."""

        def execute(self, sql: str, *values: Any) -> Any:
            """Note a statement."""
            asked.append(sql)
            return super().execute(sql, *values)

        def executemany(self, sql: str, rows: Any) -> Any:
            """Note a statement, if there are rows."""
            many = list(rows)
            asked.extend([sql] * bool(many))
            return super().executemany(sql, many)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Counted))
    async with alive(home, Scripted(default=reply("I hear you."))) as soul:
        for n in range(5):
            asked.clear()
            await soul.network.hear(f"The bridge has {n} arches.")
            await soul.network.until_visible(n + 1)
            await soul.idle()

    assert len([sql for sql in asked if not sql.startswith(("BEGIN", "COMMIT"))]) == STATEMENTS, "\n".join(asked)
