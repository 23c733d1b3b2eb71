"""`store.codes` beside SQLite: in the memory of the one process that has the store."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec.structs import replace

from claudius.memory.codes import WRONG_TRIES, OpenCode, admitted, find


class CodesInMemory:
    """The codes of the one process that has the store. A restart forgets them."""

    def __init__(self) -> None:
        """Nothing is open yet."""
        self._open: list[OpenCode] = []

    async def open(self, asked: OpenCode, most: int) -> OpenCode | None:
        made = admitted(asked, await self.valid(asked.kind, asked.asked_at), most)
        if made:
            self._open.append(made)
        return made

    async def valid(self, kind: str, now: datetime) -> Sequence[OpenCode]:
        self._open = [one for one in self._open if one.kind != kind or one.is_valid(now)]
        return [one for one in self._open if one.kind == kind]

    async def redeem(self, kind: str, code: str, now: datetime) -> OpenCode | None:
        current = await self.valid(kind, now)
        found, others = find(code, current), [one for one in self._open if one.kind != kind]
        wrong = [replace(one, wrong=0 if found else one.wrong + 1) for one in current if one is not found]
        self._open = [*others, *(one for one in wrong if one.wrong < WRONG_TRIES)]
        return found

    async def drop(self, kind: str, person: str) -> bool:
        before, self._open = self._open, [one for one in self._open if (one.kind, one.person) != (kind, person)]
        return len(self._open) < len(before)
