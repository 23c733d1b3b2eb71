"""How often a turn waits for a database server: counted, not timed."""

from __future__ import annotations

from collections import defaultdict
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from claudius.home import Home
from claudius.memory import moments, turns
from claudius.memory.opening import StorePlace
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive
from driven import reply

if TYPE_CHECKING:
    from claudius.memory.postgres.store import PostgresStore

MOST = {"_accept": 2, "recall": 2, "commit": 3, "find_moments": 4}
"""Round trips of WRITE 1, of a recollection, of a commit, of a search among moments (each step names the next)."""
A_TURN = 17
"""Of a whole turn in one conversation, from the message to the release of its lane, and of the look whether all is idle."""


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """Return how often each transaction waited for an answer, by the function that read or wrote in it."""
    from claudius.memory.postgres import inbox  # noqa: PLC0415 - an extra
    from claudius.memory.postgres.connection import PostgresConnection  # noqa: PLC0415 - likewise

    found: dict[str, list[int]] = defaultdict(list)
    began: dict[PostgresConnection, int] = {}
    doing: dict[PostgresConnection, str] = {}
    begin, end = PostgresConnection._begin, PostgresConnection._end

    def begins(self: PostgresConnection, sql: str) -> Any:
        """Note the count at the beginning."""
        began[self] = self.trips
        return begin(self, sql)

    def ends(self: PostgresConnection, sql: str) -> None:
        """Count a transaction that is of interest."""
        end(self, sql)
        if name := doing.pop(self, ""):
            found[name].append(self.trips - began[self])

    monkeypatch.setattr(PostgresConnection, "_begin", begins)
    monkeypatch.setattr(PostgresConnection, "_end", ends)
    for module, name in ((inbox, "_accept"), (turns, "recall"), (turns, "commit"), (moments, "find_moments")):
        original = getattr(module, name)

        def noted(db: Any, *words: Any, _name: str = name, _original: Any = original, **more: Any) -> Any:
            """Note what this transaction is for."""
            doing[db.connection] = _name
            return _original(db, *words, **more)

        monkeypatch.setattr(module, name, noted)
    return found


def _trips_of(store: PostgresStore) -> int:
    """Return how often the store's two connections have waited for an answer."""
    writer, reader = store.core._now()
    return sum(one.connection.trips for one in (writer._database, reader))  # type: ignore[attr-defined] - only these count


async def test_a_turn_waits_for_few_answers(postgres_url: str, home: Home, trips: dict[str, list[int]]) -> None:
    """What needs no answer is sent without waiting; what was asked twice is asked at once from the third turn on."""
    from claudius.memory.postgres.store import PostgresStore  # noqa: PLC0415 - an extra

    counts = []
    async with AsyncExitStack() as stack:
        store, voice = PostgresStore(StorePlace(postgres_url)), Scripted(default=reply("I hear you."))
        soul = await stack.enter_async_context(alive(home, voice, store=store))
        for n in range(5):
            await soul.network.hear(f"The bridge has {n} arches.")
            await soul.network.until_visible(n + 1)
            await soul.idle()
            counts.append(_trips_of(store))

    assert trips.keys() == MOST.keys()
    assert counts[-1] - counts[-2] <= A_TURN
    assert not {name: counts[-1] for name, counts in trips.items() if counts[-1] > MOST[name]}
