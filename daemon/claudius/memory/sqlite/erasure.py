"""`store.erasure` in SQLite: what was erased is overwritten in the file and in its write-ahead log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from claudius.errors import StoreError
from claudius.memory.database import Database
from claudius.memory.sql.erasure import SqlErasure
from claudius.memory.sqlite.file import vacuum
from claudius.memory.sqlite.rewriting import steps


class SqliteErasure(SqlErasure):
    """Everything that is kept of one person, found, removed, and overwritten."""

    async def rewrite(self, pages: Mapping[str, Sequence[int]]) -> None:
        for name, rowids in pages.items():
            for step in await self._core.write(partial(steps, name=name, rowids=rowids)):
                await self._core.alone(step)

    async def empty_log(self) -> bool:
        await self._core.alone(lambda db: db.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone())
        return not await self._core.alone(_empty_log)

    async def scrub(self) -> None:
        await self._core.alone(lambda db: vacuum(db.connection))
        if await self._core.alone(_empty_log):
            raise StoreError("somebody reads the database all the time: its write-ahead log could not be emptied")


def _empty_log(db: Database) -> bool:
    return bool(db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()["busy"])
