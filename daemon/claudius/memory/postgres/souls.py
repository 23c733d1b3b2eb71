"""The soul that was pushed into the store, for every process that shares it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from datetime import datetime

from claudius.memory.sql.connection import Core, Database
from claudius.soul.pushed import PushedSoul

NEWS = "soul"
"""Under this name every process hears of a push."""


class PostgresSouls:
    """What was pushed last."""

    def __init__(self, core: Core) -> None:
        """Read and write in the store of `core`."""
        self._core, self.in_force, self._known = core, "", 0
        self.pushed: Callable[[], bool] = lambda: True
        self.newest_number: int | None = None
        """Of the newest push, as of the last renewal."""

    async def push(self, files: Mapping[str, str], sha256: str) -> int:
        def write(db: Database) -> int:
            number = int(db.value("soul_pushed", sha256=sha256, host=socket.gethostname()))
            db.each("soul_push_file", ({"push": number, "name": name, "content": text} for name, text in files.items()))
            db.run("soul_push_only", number=number)
            db.run("changed", name=NEWS)
            return number

        return await self._core.write(write)

    def newest(self) -> PushedSoul | None:
        with self._core.snapshot() as db:
            return newest_soul(db)

    def look(self) -> None:
        """Have this process look, if what was pushed last is not what it knows."""
        if self.newest_number and self.newest_number != self._known and self.pushed():
            self._known = self.newest_number


def newest_soul(db: Database) -> PushedSoul | None:
    """Return what was pushed last; None if nothing ever was."""
    row = db.one("soul_in_force")
    if row is None:
        return None
    files = {one["name"]: one["content"] for one in db.all("soul_files", push=row["number"])}
    at = datetime.fromisoformat(row["at"])
    return PushedSoul(number=row["number"], sha256=row["sha256"], host=row["host"], at=at, files=files)
