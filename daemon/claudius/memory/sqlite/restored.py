"""What a restored copy takes over from the database that it replaces: what was answered since, so that none is twice.

A network's history shows messages that the copy does not know. Those whose keys the old database has settled are
settled in the copy, too, without their words; the others are answered. Without an old database that can be read whole,
nobody knows which were answered, and everything up to the restore counts as answered.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from claudius.errors import StoreError
from claudius.home import shipped
from claudius.memory.inbox import EVERY_NETWORK
from claudius.memory.sql.connection import Database, load_queries
from claudius.memory.sql.core import Core
from claudius.memory.sql.rows import stamp
from claudius.memory.sqlite.file import open_reader, open_writer, siblings
from claudius.memory.sqlite.schema import check_log, check_pages, look

REASON = "answered before this copy was restored"


def answered_in(path: Path) -> Sequence[str] | None:
    """Return the keys of everything that a database has answered; None if it is not there, or damaged.

    Checks all of it, so that no lost page or log hides an answer. Nothing else may have it open. Blocks.
    """
    if not path.exists():
        return None
    try:
        log = look(siblings(path)[0])
        with closing(open_writer(path)) as connection:
            check_log(connection, path, log)
            check_pages(connection, path)
            return [row["key"] for row in _database(connection).all("answered_here")]
    except (OSError, sqlite3.Error, UnicodeDecodeError, StoreError):
        return None


def acts_in(path: Path) -> Sequence[Mapping[str, Any]]:
    """Return the acts that a database's audit log holds, of any release, oldest first; none if it cannot be read."""
    try:
        with closing(open_reader(path)) as connection:
            rows = _database(connection).all("audit_shown", since="", most=-1)
    except (OSError, sqlite3.Error, UnicodeDecodeError):
        return []
    return [
        {name: row[name] for name in ("at", "who", "act", "target")} | {"from": row["origin"]} for row in rows[::-1]
    ]


async def take_over(core: Core, answered: Sequence[str] | None, now: datetime) -> None:
    """Settle in a copy what was `answered`; if nobody knows that (None), everything up to `now`. Raises: StoreError."""

    def write(db: Database) -> None:
        for key in [row["key"] for row in db.all("unanswered_here")] if answered is None else answered:
            db.run("said_elsewhere", key=key, reason=REASON, now=stamp(now))
            db.run("answered_elsewhere", key=key, reason=REASON, now=stamp(now))
        if answered is None:
            db.run("mark_swept", adapter=EVERY_NETWORK, channel="", position=stamp(now), now=stamp(now))

    await core.write(write)


def _database(connection: sqlite3.Connection) -> Database:
    return Database(connection, load_queries(shipped("memory") / "queries"))
