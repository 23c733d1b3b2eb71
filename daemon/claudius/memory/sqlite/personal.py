"""The part of `SqliteStore` for the owner's hand, and for one person's: setting right, finding, erasing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, TypeVar

from claudius.errors import StoreError
from claudius.memory.personal import Erased, Probes
from claudius.memory.sqlite import erasing, owner, unlinking
from claudius.memory.sqlite.people import SqlitePeople
from claudius.memory.sqlite.queries import Database
from claudius.memory.sqlite.rows import stamp

T = TypeVar("T")


class SqlitePersonal(SqlitePeople):
    """What is changed by hand, and one person's part of everything that is kept."""

    @abstractmethod
    async def _alone(self, run: Callable[[Database], T]) -> T: ...

    async def set_state(self, key: str, value: str, audience: str, now: datetime) -> None:
        """Set one soul-state value by hand."""
        await self._write(lambda db: owner.set_state(db, key, value, audience, now))

    async def set_model(
        self, person: str, audience: str, markdown: str, note: str, author: Literal["owner", "revert"], now: datetime
    ) -> int:
        """Write a new version of one user model by hand; return its number."""
        return await self._write(lambda db: owner.set_model(db, person, audience, markdown, note, author, now))

    async def link(self, person: str, other: str) -> None:
        """Make two ids one person. Raises: StoreError where either is unknown or they are one already."""
        await self._write(lambda db: owner.link(db, person, other))

    async def unlink(self, person: str, now: datetime, author: Literal["owner", "person"] = "owner") -> Sequence[str]:
        """Let every id of a person stand alone again; return them. Raises: StoreError where there is only one."""
        return await self._write(lambda db: unlinking.unlink(db, person, stamp(now), author))

    async def ids_of(self, person: str) -> Sequence[str]:
        """Return every id of a person, by any of them, the canonical one first; none where nobody is known so."""
        await self.flush()
        with self._snapshot() as db:
            row = db.one("canonical", person=person)
            canonical = str(row[0]) if row else person
            linked = [one for (one,) in db.all("linked", canonical=canonical)]
            return [canonical, *linked] if linked or canonical in erasing.everyone(db) else []

    async def probes(self, ids: Sequence[str]) -> Probes:
        """Return what must be found nowhere once this person is erased."""
        await self.flush()
        with self._snapshot() as db:
            return erasing.probes_of(db, ids)

    async def erase(self, ids: Sequence[str]) -> Erased:
        """Take a person out of every table, in one transaction."""
        return await self._write(lambda db: erasing.erase(db, ids))

    async def everyone(self) -> tuple[Sequence[str], str]:
        """Return every id that stands anywhere, and when something was last heard."""
        await self.flush()
        with self._snapshot() as db:
            last = db.one("last_heard")
            return erasing.everyone(db), str(last[0] or "") if last else ""

    async def scrub(self) -> None:
        """Write the file anew without what was deleted from it, and empty its write-ahead log. Raises: StoreError."""
        busy = await self._alone(_scrub)
        if busy:
            raise StoreError("somebody reads the database all the time: its write-ahead log could not be emptied")


def _scrub(db: Database) -> bool:
    db.connection.execute("VACUUM")
    return bool(db.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
