"""A command that runs the soul itself leaves nothing open, whatever becomes of it."""

import sqlite3
from contextlib import closing

import pytest

from claudius.errors import StoreError
from claudius.home import Home
from claudius.reports.session import session
from claudius.runtime.life import HomeLock


async def test_a_soul_that_cannot_begin_closes_its_store(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a start fails halfway, the database's log is put away, and the home is free for the next command."""
    monkeypatch.setenv("CLAUDIUS_PROVIDERS", "rehearsal")
    async with session(home):
        pass
    with closing(sqlite3.connect(home.database)) as kept:
        kept.execute("CREATE TRIGGER unlucky BEFORE INSERT ON boot BEGIN SELECT RAISE(ABORT, 'no boot'); END")

    with pytest.raises(StoreError, match="SQLITE_CONSTRAINT_TRIGGER"):
        async with session(home):
            pass

    assert sorted(path.name for path in home.state.glob("claudius.db*")) == ["claudius.db"]
    HomeLock(home).release()
