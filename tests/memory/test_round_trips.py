"""How often a turn waits for a database server: counted, not timed."""

from __future__ import annotations

from collections import defaultdict
from contextlib import AsyncExitStack
from typing import Any

import pytest

from claudius.home import Home
from claudius.memory import moments, turns
from claudius.memory.database import StorePlace
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive
from driven import reply

MOST = {"_accept": 10, "recall": 18, "commit": 50, "find_moments": 8}
"""Answers that WRITE 1, a recollection, a commit and a search among moments wait for."""
A_TURN = 110
"""Of a whole turn in one conversation, from the message to the release of its lane, and of the look whether all is idle."""


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
    assert counts[-1] - counts[-2] <= A_TURN
    assert not {name: counts[-1] for name, counts in trips.items() if counts[-1] > MOST[name]}
