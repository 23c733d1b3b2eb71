"""`store.audit`: one row an act, and the digests of settings and soul files at the last comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from claudius.memory.audit import FILES, AuditEntry
from claudius.memory.sql.connection import Database
from claudius.memory.sql.core import Core
from claudius.memory.sql.rows import Decoding, dump, parse, stamp


class SqlAudit:
    """The audit log."""

    def __init__(self, core: Core) -> None:
        self._core = core

    async def note(self, entry: AuditEntry, now: datetime) -> None:
        await self._core.write(lambda db: _note(db, entry, now))

    async def compare(self, digests: Mapping[str, str], now: datetime) -> Sequence[str]:
        return await self._core.write(lambda db: _compare(db, digests, now))


def _note(db: Database, entry: AuditEntry, now: datetime) -> None:
    db.run("audit_note", at=stamp(now), who=entry.who, act=entry.act, target=entry.target, origin=entry.origin)


def _compare(db: Database, digests: Mapping[str, str], now: datetime) -> list[str]:
    row = db.one("audited")
    changed: list[str] = []
    if row is not None:
        with Decoding("audited", 1):
            before = parse(row["digests"])
        told = {f"{one['act']} {one['target']}" for one in db.all("audit_after", seen=row["seen"])}
        names = sorted(name for name in {*before, *digests} if before.get(name) != digests.get(name))
        changed = [name for name in names if name not in told]
    for name in changed:
        act, _, target = name.partition(" ")
        db.run("audit_note", at=stamp(now), who=FILES, act=act, target=target, origin=FILES)
    db.run("audited_now", digests=dump(dict(sorted(digests.items()))), seen=db.value("audit_newest"))
    return changed
