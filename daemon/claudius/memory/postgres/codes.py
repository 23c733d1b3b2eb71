"""`store.codes` in PostgreSQL: codes as rows, so that what one process offers any other takes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import asdict

from claudius.memory.codes import LIFE, WRONG_TRIES, CodeStore, OpenCode, admitted, find
from claudius.memory.sql.connection import Core, Database, Row
from claudius.memory.sql.rows import instant, stamp


class PostgresCodes(CodeStore):
    """The codes that any process of the soul has opened."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def open(self, asked: OpenCode, most: int) -> OpenCode | None:
        def write(db: Database) -> OpenCode | None:
            db.run("codes_past", before=stamp(asked.asked_at - LIFE))
            made = admitted(asked, _valid(db.all("codes", kind=asked.kind), asked.asked_at), most)
            if made:
                db.run("code_opened", **asdict(made) | {"asked_at": stamp(made.asked_at)})
            return made

        return await self._core.write(write)

    async def valid(self, kind: str, now: datetime) -> Sequence[OpenCode]:
        return _valid(self._core.look("codes", kind=kind), now)

    async def redeem(self, kind: str, code: str, now: datetime) -> OpenCode | None:
        def write(db: Database) -> OpenCode | None:
            found = find(code, _valid(db.all("codes", kind=kind), now))
            if found:
                db.run("code_closed", kind=kind, person=found.person)
                db.run("codes_right", kind=kind)
            else:
                db.run("codes_wrong", kind=kind)
                db.run("codes_void", kind=kind, most=WRONG_TRIES)
            return found

        return await self._core.write(write)

    async def drop(self, kind: str, person: str) -> bool:
        return await self._core.write(lambda db: db.change("code_closed", kind=kind, person=person)) > 0


def _valid(rows: Sequence[Row], now: datetime) -> list[OpenCode]:
    return [one for one in map(_code, rows) if one.is_valid(now)]


def _code(row: Row) -> OpenCode:
    values: dict[str, Any] = {name: row[name] for name in OpenCode.__struct_fields__}
    return OpenCode(**values | {"asked_at": instant(row["asked_at"])})
