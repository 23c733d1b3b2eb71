"""What a restored copy takes over from the database that it replaces: nothing is answered twice, and nothing is lost.

A network's history shows messages that the copy does not know. Those whose keys the old database has settled are
settled in the copy, too, without their words. Those that it accepted and did not answer wait in the copy as they waited
there, with what was decided and not delivered. Without an old database that can be read whole, nobody knows which were
answered, and everything up to the restore counts as answered.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from claudius.errors import RowInvalid, StoreError
from claudius.home import shipped
from claudius.memory.inbox import EVERY_NETWORK, accept_one, perception_of
from claudius.memory.sql.connection import Core, Database, load_queries
from claudius.memory.sql.rows import Decoding, stamp
from claudius.memory.sqlite.file import open_reader, open_writer, siblings
from claudius.memory.sqlite.schema import check_log, check_pages, look

REASON = "answered before this copy was restored"


class Heard(Struct, frozen=True):
    """What a database has heard."""

    answered: Sequence[str]
    """The keys of everything that it has answered."""
    waiting: Sequence[Mapping[str, Any]]
    """What it has accepted and not answered, oldest first."""
    said: Sequence[Mapping[str, Any]]
    """What it has decided to say to that, delivered or not."""


def heard(db: Database) -> Heard:
    """Return what a store has heard."""
    return Heard(db.values("answered_here"), db.dicts("unanswered_here"), db.dicts("said_of_unanswered_here"))


def heard_in(path: Path) -> Heard | None:
    """Return what a database file has heard; None if it is not there, or damaged.

    Checks all of it, so that no lost page or log hides an answer. Nothing else may have it open. Blocks.
    """
    if not path.exists():
        return None
    try:
        log = look(siblings(path)[0])
        with closing(open_writer(path)) as connection:
            check_log(connection, path, log)
            check_pages(connection, path)
            return heard(_database(connection))
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


async def take_over(core: Core, before: Heard | None, now: datetime) -> None:
    """Settle in a copy what was answered `before`, and have wait there what waited; nobody knows (None): settle all.

    Raises: StoreError.
    """

    def write(db: Database) -> None:
        for key in [row["key"] for row in db.all("unanswered_here")] if before is None else before.answered:
            db.run("said_elsewhere", key=key, reason=REASON, now=stamp(now))
            db.run("answered_elsewhere", key=key, reason=REASON, now=stamp(now))
        if before is None:
            db.run("mark_swept", adapter=EVERY_NETWORK, channel="", position=stamp(now), now=stamp(now))
            return
        for row in before.waiting:
            with suppress(RowInvalid):  # damaged there, and no less here
                _wait(db, row)
        for row in before.said:
            db.run("said_as_elsewhere", **row)

    await core.write(write)


def _wait(db: Database, row: Mapping[str, Any]) -> None:
    with Decoding("inbox", row["key"]):
        perception = perception_of(row["payload"])
    db.run("unsaid_here", key=row["key"], turn=row["turn"])
    db.run("unheard_here", key=row["key"])
    accept_one(db, perception, row["heard_at"])
    db.run("waits_as_elsewhere", **{name: row[name] for name in ("key", "owes", "turn", "stopped", "state")})


def _database(connection: sqlite3.Connection) -> Database:
    return Database(connection, load_queries(shipped("memory") / "queries"))
