"""`store.erasure` in SQLite: the whole file is written anew, and its write-ahead log emptied.

`secure_delete` zeroes what is deleted, but not the copy of a row that SQLite once moved to another page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from claudius.memory.sql.connection import Core, Database
from claudius.memory.sql.erasure import ErasureStore
from claudius.memory.sqlite.file import vacuum

QUICK_BYTES = 64 * 2**20
"""A smaller file is written anew at once: nobody waits long (`VACUUM` took a second on two cores)."""
WAITS_S = (0.0, 0.5, 1.0, 2.0, 4.0)
"""How long to wait before each attempt to empty the log, which somebody who reads prevents."""


class SqliteErasure(ErasureStore):
    """Everything that is kept of one person, found, removed, and overwritten in one file."""

    def __init__(self, core: Core, path: Path) -> None:
        super().__init__(core)
        self._path = path

    @property
    def is_quick(self) -> bool:
        return self._path.stat().st_size < QUICK_BYTES

    async def overwrite(self) -> Sequence[str]:
        await self._core.flush()
        await self._core.alone(lambda db: vacuum(db.connection))
        for wait_s in WAITS_S:
            await asyncio.sleep(wait_s)
            if not await self._core.alone(_is_busy):
                return ()
        return ("the write-ahead log, which somebody reads",)


def _is_busy(db: Database) -> bool:
    return bool(db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()["busy"])
