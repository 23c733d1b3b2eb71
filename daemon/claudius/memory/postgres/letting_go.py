"""`store.leases.forgetting` in PostgreSQL: a row for each person who is being erased, which every process reads."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

from claudius.errors import TryAgain
from claudius.memory.leases import Asked
from claudius.memory.sql.connection import Core, Database, Row
from claudius.memory.sql.rows import dump, parse

WITHDRAWN = "another process withdrew this erasure while it waited; it is resumed when this home's process starts again"


class PostgresForgetting:
    """Whom this process, or another one, is erasing."""

    def __init__(self, core: Core, lease_s: float, look_s: float, home: str, keep_nothing: Callable[[], None]) -> None:
        """Ask all processes of `core`'s store; `home` is this one's, `keep_nothing` empties what it has at hand."""
        self._core, self._lease_s, self._look_s = core, lease_s, look_s
        self._home, self._keep_nothing = home, keep_nothing
        self._own: set[int] = set()
        """The requests that are under way here."""
        self._beginning = asyncio.Lock()

    @asynccontextmanager
    async def letting_go(self, ids: Sequence[str], aliases: Mapping[str, str]) -> AsyncIterator[Sequence[str]]:
        values = {"worker": self._core.boot, "ids": dump(list(ids)), "aliases": dump(dict(aliases))}
        async with self._beginning:
            number = int(await self._core.write(lambda db: db.value("letting_go_begins", **values)))
            self._own.add(number)
        async with self._waited_for(number):
            at = {"host": socket.gethostname(), "home": self._home, "lease_s": self._lease_s}
            yield [_place(row) for row in self._core.look("homes_at_rest", **at)]

    @asynccontextmanager
    async def left(self) -> AsyncIterator[Asked | None]:
        values = {"worker": self._core.boot, "lease_s": self._lease_s}
        async with self._beginning:
            number = await self._core.write(lambda db: db.value("letting_go_taken_over", **values))
            if number is not None:
                self._own.add(number)
        if number is None:
            yield None
            return
        async with self._waited_for(number):
            yield next((one for one in map(_asked, self._rows()) if one.number == number), None)

    @asynccontextmanager
    async def _waited_for(self, number: int) -> AsyncIterator[None]:
        """Wait for all others, then withdraw the request; what fails in the block leaves it to whoever finishes it."""
        asked = {"number": number, "worker": self._core.boot, "lease_s": self._lease_s}
        try:
            while True:
                row = self._core.look("letting_go_waits", **asked)[0]
                if row["is_withdrawn"]:
                    raise TryAgain(WITHDRAWN)
                if not row["waiting"]:
                    break
                await asyncio.sleep(self._look_s)
            yield
            await self._core.write(lambda db: db.run("letting_go_ends", number=number, lease_s=self._lease_s))
        finally:
            self._own.discard(number)

    def is_alone(self) -> bool:
        return not self._core.look("workers_beside", worker=self._core.boot, lease_s=self._lease_s)[0]["found"]

    async def asked(self) -> Sequence[Asked]:
        rows, worker = self._rows(), self._core.boot
        async with self._beginning:
            failed = [row["number"] for row in rows if row["worker"] == worker and row["number"] not in self._own]
        for number in failed:
            await self._core.write(partial(_give_up, number=number, worker=worker))
        return [_asked(row) for row in rows]

    async def have_let_go(self, number: int) -> None:
        self._keep_nothing()
        await self._core.write(lambda db: db.run("let_go_now", number=number, worker=self._core.boot))

    def _rows(self) -> list[Row]:
        return self._core.look("letting_go_asked", worker=self._core.boot)


def _give_up(db: Database, number: int, worker: str) -> None:
    db.run("letting_go_given_up", number=number, worker=worker)


def _asked(row: Row) -> Asked:
    return Asked(
        number=row["number"],
        ids=tuple(parse(row["ids"])),
        aliases=parse(row["aliases"]),
        conversations=tuple(parse(row["conversations"])),
        audiences=tuple(parse(row["audiences"])),
        is_done=bool(row["is_done"]),
    )


def _place(row: Row) -> str:
    return f"{row['home']} on {row['host']}" if row["home"] else str(row["host"])
