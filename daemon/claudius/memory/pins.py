"""The topic `store.pins`: the definitions of servers' tools that the owner agreed to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from claudius.memory.database import Core, Database, Readers, dump, instant, parse_object, stamp, struct_of
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
    return [struct_of(Pin, row, _READ) for row in db.all("pins")]


_READ: Readers = {"schema": parse_object, "cls": ToolClass, "pinned_at": instant}


def _row(pin: Pin) -> dict[str, Any]:
    same = {name: getattr(pin, name) for name in ("server", "tool", "sha256", "description")}
    return same | {"schema": dump(pin.schema), "class": pin.cls, "by": pin.pinned_by, "now": stamp(pin.pinned_at)}
