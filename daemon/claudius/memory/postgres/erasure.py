"""`store.erasure` in PostgreSQL: rows go at once; what the server's files hold of them goes when these are rewritten.

A row that was deleted or changed stays in the table's file, its indexes and the server's statistics until something
else is written there. `VACUUM (FULL)` writes a table and its indexes into new files; each is closed to turns meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg

from claudius.memory.erasure import Beyond, Probes
from claudius.memory.postgres import moving
from claudius.memory.postgres.connection import PostgresConnection, ours
from claudius.memory.search import ROWS, Needles, plain
from claudius.memory.sql.connection import Database, in_thread
from claudius.memory.sql.erasure import ErasureStore
from claudius.memory.sql.rows import dump

log = logging.getLogger(__name__)
WAITS_S = (0.0, 1.0, 2.0, 4.0, 8.0)
"""How long to wait before each attempt to rewrite what others used during the one before."""
_LSN = "SELECT pg_current_wal_lsn()::text AS lsn"
_EVERY_TABLE = """SELECT quote_ident(relname) AS name FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' ORDER BY relname"""
_MAY_REWRITE_STATISTICS = """SELECT pg_has_role(datdba, 'USAGE') AS may FROM pg_database
WHERE datname = current_database()"""
STATISTICS = "pg_catalog.pg_statistic"
"""Holds common values of every column. It is rewritten last: each table's values are counted anew with it."""
_SERVERS = "replicas, physical backups and the write-ahead log of the database server"
_OTHER_HOMES = "copies of the database in homes of mine on other machines, if there are any"
_NO_STATISTICS = "the database server's statistics of common values, which only the owner of the database can rewrite"
_LOCK = "SET lock_timeout = '2s'"
"""Whoever comes meanwhile waits behind a statement that waits for its table."""
_NONE = re.compile(r"^\D*\b0\b")
"""The first number in a detail, whatever its language."""


class PostgresErasure(ErasureStore):
    """Everything that is kept of one person, found and removed; rewritten when nobody waits for it."""

    async def rows_with(self, probes: Probes) -> Sequence[Mapping[str, Any]]:
        with self._core.beside() as db:
            return await in_thread(_rows_with, db, Needles(probes.ids, probes.folders, probes.excerpts))

    async def _beside_the_topics(self, ids: Sequence[str]) -> int:
        await self._core.alone(_drop_beside)
        return await self._core.write(lambda db: db.change("lanes_of_commands_gone", ids=dump(list(ids))))

    async def beyond(self) -> Sequence[Beyond]:
        def look(db: Database) -> tuple[str, bool]:
            lsn, may = (db.connection.execute(sql).fetchone() for sql in (_LSN, _MAY_REWRITE_STATISTICS))
            return lsn["lsn"], bool(may["may"])

        lsn, may = await self._core.alone(look)
        found = [Beyond(_SERVERS, f"{_SERVERS} before {lsn}"), Beyond(_OTHER_HOMES)]
        return found if may else [*found, Beyond(_NO_STATISTICS)]

    async def overwrite_later(self) -> None:
        mark = secrets.token_hex(8)
        await self._core.write(lambda db: db.run("overwrite_later", mark=mark))

    async def is_to_be_overwritten(self) -> bool:
        return bool(self._core.look("overwriting"))

    async def overwrite(self) -> Sequence[str]:
        mark = next((row["overwriting"] for row in self._core.look("overwriting")), "")
        left: Sequence[str] | None = None
        for wait_s in WAITS_S:
            await asyncio.sleep(wait_s)
            with self._core.beside() as db:
                left = await in_thread(_rewritten, ours(db), left)
            if not left:  # an erasure that began meanwhile has set another mark
                await self._core.write(lambda db: db.run("overwritten", mark=mark))
                return ()
        log.warning("some tables were in use all the while", extra={"tables": left})
        return left or ()


def _drop_beside(db: Database) -> None:
    """Delete what restores have set aside: it holds everybody whom the store held then."""
    for row in db.connection.execute(moving.LEFT_BESIDE).fetchall():
        db.connection.execute(f'DROP SCHEMA "{row["name"]}" CASCADE')


def _rewritten(connection: PostgresConnection, tables: Sequence[str] | None) -> list[str]:
    """Rewrite these tables (None = every one), one after the other; return those that still hold what was deleted."""
    connection.at_leisure(_LOCK)
    if tables is None:
        tables = [row["name"] for row in connection.execute(_EVERY_TABLE).fetchall()]
        if connection.execute(_MAY_REWRITE_STATISTICS).fetchone()["may"]:
            tables.append(STATISTICS)
    return [one for one in tables if not _is_rewritten(connection, one)]


def _is_rewritten(connection: PostgresConnection, table: str) -> bool:
    """Rewrite a table; False if somebody uses it, or may still read what was deleted from it."""
    try:
        remarks = connection.at_leisure(f"VACUUM (FULL, ANALYZE, VERBOSE) {table}")
    except psycopg.errors.LockNotAvailable:
        return False
    except psycopg.Error as error:
        if connection.is_closed:
            raise
        log.warning("a table was not rewritten", extra={"table": table, "error": error.sqlstate})
        return False
    # a warning: the table is not ours; a detail begins with the number of deleted rows that had to be copied, too
    details = (detail for severity, detail in remarks if severity == "INFO" and detail)
    return not any(severity == "WARNING" for severity, _ in remarks) and all(_NONE.search(one) for one in details)


def _rows_with(db: Database, needles: Needles) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for table, key, columns in db.tables():
        names = ", ".join(f'"{one}"' for one in dict.fromkeys((*key, *columns)))
        cursor = db.connection.execute(f'SELECT {names} FROM "{table}"')  # noqa: S608 - names of our own schema
        while rows := cursor.fetchmany(ROWS):
            for row in rows:
                held = [one for one in columns if needles.are_in(plain(row[one]) or b"")]
                if held:
                    found.append({"table": table, "key": {one: row[one] for one in key}, "columns": held})
    return found
