"""`PostgresRecords`: what commands read, on a connection of its own that only reads."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from claudius.home import shipped
from claudius.memory.opening import StorePlace
from claudius.memory.postgres.connection import PostgresConnection, PostgresDatabase, load_texts, translate
from claudius.memory.postgres.schema import check_identity, is_empty, known
from claudius.memory.postgres.souls import newest_soul
from claudius.memory.records import Records
from claudius.memory.sql.connection import Database, load_queries
from claudius.memory.sql.rows import dump
from claudius.memory.sqlite.schema import empty_database, load_migrations
from claudius.soul.pushed import PushedSoul

NO_LANES = {"held": 0, "ready": 0, "oldest_wait_s": 0.0, "paused": False}


class PostgresRecords(Records):
    """A read-only view of one schema of PostgreSQL."""

    def __init__(self, place: StorePlace, memory_files: Path, *, memory: Path | None = None) -> None:
        """Connect; `memory_files` is the directory of the archive. Raises: StoreCorrupt, StoreTooNew, StoreError."""
        super().__init__(_open(place, memory or shipped("memory")), memory_files, partial(translate, name=place.shown))

    def served(self) -> Mapping[str, Any] | None:
        """Return `{"version", "round_trip_ms", "standby", "lanes", "roles"}`.

        Of the lanes `{"held", "ready", "oldest_wait_s", "paused"}`: whether the soul is paused for every process.
        """
        with self._snapshot() as db:
            if type(db) is Database:  # nobody has begun there yet
                return {"version": "", "round_trip_ms": None, "standby": None, "lanes": NO_LANES, "roles": []}
            began_s = time.perf_counter()
            db.run("round_trip")
            round_trip_s = time.perf_counter() - began_s
            server, lanes = db.dicts("server_shown")[0], db.dicts("lanes_shown")[0]
            roles = db.dicts("roles_shown")
        return {
            **server,
            "round_trip_ms": round(1000 * round_trip_s, 2),
            "lanes": lanes,
            "roles": roles,
        }

    def pushed_soul(self) -> PushedSoul | None:
        """Return the soul that was pushed last; None if none ever was."""
        with self._snapshot() as db:
            return None if type(db) is Database else newest_soul(db)

    def workers(self) -> Sequence[Mapping[str, Any]]:
        """Return the processes that share the store, oldest first."""
        with self._snapshot() as db:
            rows = [] if type(db) is Database else db.dicts("workers_shown")
        return [row | {"clean": bool(row["clean"]), "holds": row["holds"].split()} for row in rows]

    def marks(self, seen: int) -> tuple[int, str]:
        """Return the next number, and an opaque mark of what the console shows."""
        with self._snapshot() as db:
            return seen + 1, dump(db.dicts("what_changed")[0])

    def size(self) -> Mapping[str, Any]:
        """Return the size of the tables, the number of turns and days; free pages are the server's to return."""
        with self._snapshot() as db:
            row = db.one("turns_span")
            bytes_ = 0 if type(db) is Database else db.connection.execute(_BYTES).fetchone()["bytes"]
        turns = row["turns"] if row else 0  # in how many days does not matter: its disk is not this machine's
        return {"bytes": bytes_, "turns": turns, "days": 0.0, "gives_back": True}

    def integrity(self) -> Sequence[str]:
        """Return nothing: the server holds foreign keys, and its pages have checksums where the operator wants them."""
        return []


_BYTES = """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) AS bytes FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'"""


def _open(place: StorePlace, memory: Path) -> Database:
    try:
        with ExitStack() as undo:
            connection = PostgresConnection(place)
            undo.callback(connection.close)
            if not is_empty(connection):
                check_identity(connection, place.shown, known(memory))
                database = PostgresDatabase(connection, load_texts(memory))
                undo.pop_all()
                return database
    except psycopg.Error as error:
        raise translate(error, place.shown) from error
    return Database(empty_database(load_migrations(memory / "schema")), load_queries(memory / "queries"))
