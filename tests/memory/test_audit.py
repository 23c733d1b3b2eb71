"""The audit log: kept by the database itself against any edit, and by an erasure, which takes only the ids."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from claudius.home import Home
from claudius.memory.audit import AuditEntry
from claudius.memory.sqlite import SqliteStore
from contracts.store.ground import ANA, NOW


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM audit",
        "UPDATE audit SET act = 'read'",
        "UPDATE audit SET at = '2020-01-01T00:00:00Z'",
        "UPDATE audit SET who = 'slack:T1:U2'",
        "UPDATE audit SET target = ''",
        "UPDATE audit SET origin = 'files'",
        "REPLACE INTO audit (id, at, who, act, target, origin) VALUES (1, '', '', '', '', '')",
    ],
)
async def test_nothing_edits_the_audit_log(change: str, home: Home) -> None:
    """A person who opens the database: no row can be changed, replaced or deleted; an erasure's alias for an id can be put."""
    home.create()
    store = SqliteStore(home.database)
    await store.open()
    await store.audit.note(AuditEntry(who=ANA, act="forget", target=ANA), NOW)
    await store.close(clean=True)

    with closing(sqlite3.connect(home.database)) as connection, connection:
        with pytest.raises(sqlite3.IntegrityError, match="audit log"):
            connection.execute(change)
        connection.execute("UPDATE audit SET who = 'erased:1', target = 'erased:1'")
