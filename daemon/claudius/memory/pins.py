"""The topic `store.pins`: the definitions of servers' tools that the owner agreed to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from claudius.memory.database import Core, Database
from claudius.memory.rows import dump, instant, parse_object, stamp
from claudius.tool import JSON, ToolClass


class Pin(Struct, frozen=True, kw_only=True):
    """One definition, as the owner saw it."""

    server: str
    tool: str
    """Its name at the server."""
    sha256: str
    description: str
    schema: JSON
    cls: ToolClass
    """What the owner said that it may do."""
    pinned_by: str
    pinned_at: datetime


class PinStore:
    """Keep what was agreed to, a server at a time."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def all(self) -> Sequence[Pin]:
        """Return every pin, by server and tool."""
        with self._core.snapshot() as db:
            return pins_in(db)

    async def replace(self, server: str, pins: Iterable[Pin]) -> None:
        """Put these in the place of a server's pins; none = it has none any more."""

        def write(db: Database) -> None:
            db.run("unpin", server=server)
            db.each("pin", map(_row, pins))

        await self._core.write(write)


def pins_in(db: Database) -> list[Pin]:
    """Return every pin, by server and tool."""
    return [
        Pin(
            server=row["server"],
            tool=row["tool"],
            sha256=row["sha256"],
            description=row["description"],
            schema=parse_object(row["schema"]),
            cls=ToolClass(row["class"]),
            pinned_by=row["pinned_by"],
            pinned_at=instant(row["pinned_at"]),
        )
        for row in db.all("pins")
    ]


def _row(pin: Pin) -> dict[str, Any]:
    return {
        "server": pin.server,
        "tool": pin.tool,
        "sha256": pin.sha256,
        "description": pin.description,
        "schema": dump(pin.schema),
        "class": pin.cls.value,
        "by": pin.pinned_by,
        "now": stamp(pin.pinned_at),
    }
