"""The audit log: kept by the database itself against any edit, and by an erasure, which takes only the ids."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from claudius.home import Home
from claudius.memory.audit import AuditEntry
from claudius.memory.sqlite import SqliteStore
from claudius.memory.sqlite.rewriting import steps
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
    """Whoever opens the database: no row can be changed, replaced or deleted; an erasure's alias for an id can be put."""
    home.create()
    store = SqliteStore(home.database)
    await store.open()
    await store.audit.note(AuditEntry(who=ANA, act="forget", target=ANA), NOW)
    await store.close(clean=True)

    with closing(sqlite3.connect(home.database)) as connection, connection:
        with pytest.raises(sqlite3.IntegrityError, match="audit log"):
            connection.execute(change)
        connection.execute("UPDATE audit SET who = 'erased:1', target = 'erased:1'")


async def test_a_rewrite_after_an_erasure_leaves_the_log_guarded(home: Home) -> None:
    """An erasure may rewrite the log's pages to overwrite stale bytes: the same rows are there after it, and guarded."""
    home.create()
    store = SqliteStore(home.database)
    await store.open()
    await store.audit.note(AuditEntry(who=ANA, act="forget"), NOW)
    for step in await store.core.write(lambda db: steps(db, "audit", (1, 1))):
        await store.core.alone(step)
    await store.close(clean=True)

    with closing(sqlite3.connect(home.database)) as connection:
        assert connection.execute("SELECT count(*) FROM audit").fetchone() == (1,)
        with pytest.raises(sqlite3.IntegrityError, match="audit log"):
            connection.execute("DELETE FROM audit")
