"""Erase what was written from words that one message no longer holds: it was deleted, or an edit took them away.

Source: the design of acts, section 8.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

from claudius.ledger_types import PREVIEW_CHARS
from claudius.memory.erasure import ERASED
from claudius.memory.inbox import Undone, Unsaid
from claudius.memory.sql.blanking import lines_of_others
from claudius.memory.sql.connection import Database
from claudius.memory.sql.core import Core
from claudius.memory.sql.derived import Derived, Source, marks
from claudius.memory.sql.erasure import Erasure


class _Unsaying(Erasure):
    """The erasure of some words of one message."""

    def __init__(self, db: Database, core: Core, unsaid: Unsaid) -> None:
        super().__init__(db, core.write, (), {}, self._keep)
        self._unsaid = unsaid
        self.voided: set[tuple[str, str]] = set()

    def _keep(self, turns: Sequence[tuple[str, str]]) -> None:
        self.voided.update(turns)

    async def undo(self) -> Undone:
        """Erase what holds them, and was written with them in sight."""
        one = self._unsaid
        source = Source(turns={one.turn}, stems=marks(one.before) - marks(one.now), whole=False)
        source.add_line(one.conversation, one.number)
        source.rows.add(("moment", str(one.moment)))
        derived = Derived(source)
        found = await asyncio.to_thread(derived.find, self._beside, (), one.at)
        await asyncio.to_thread(derived.weigh, self._beside, (one.before,))
        if not derived.holds(one.before):
            return Undone()  # nothing but words that others gave, too, or a typo
        await self._void("running_turns" if one.now else "every_running_turn")
        found = [*found, *await asyncio.to_thread(derived.find, self._beside, (), one.at)]
        await self._put_back(derived)
        await self._erase_told(derived)
        rows = [{name: getattr(turn, name) for name in ("turn", "conversation", "number", "record")} for turn in found]
        await self._erase_turns(_page(rows))
        await self._write(self._forget_words)
        return Undone(tuple(self.voided), is_in_git=bool(self._portraits or self._rows["soul_state"]))

    def _forget_words(self, db: Database) -> int:
        """Take the words out of the record and the ledger of the turn that heard them."""
        one = self._unsaid
        kept = lines_of_others(db.value("record_kept", record=one.record), (one.person,))
        db.run("blank_record", record=one.record, erased=ERASED, kept=kept)
        db.run("turn_edited", turn=one.turn)
        preview = " ".join(one.now.split())[:PREVIEW_CHARS]
        db.run("interaction_reworded", turn=one.turn, preview=preview)
        db.run("promise_unsaid", turn=one.turn)
        return 1


async def _page(rows: list[dict[str, Any]]) -> AsyncIterator[list[dict[str, Any]]]:
    if rows:
        yield rows


async def undo(core: Core, unsaid: Unsaid) -> Undone:
    """Erase what was written with these words in sight and holds them. Reads outside the event loop."""
    if not marks(unsaid.before) - marks(unsaid.now):
        return Undone()
    with core.beside() as db:
        return await _Unsaying(db, core, unsaid).undo()
