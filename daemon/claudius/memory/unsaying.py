"""Erase what was written from words that messages no longer hold: they were deleted, or an edit took them away.

A row notes each change in the transaction that applies it, and goes once nothing is left of the old words. Source: the
design of acts, section 8.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from claudius.decoding import decoder
from claudius.ledger_types import PREVIEW_CHARS
from claudius.memory.database import Core, Database, Row, in_thread
from claudius.memory.derived import Derived, ErasedSource, SeenTurn, marks
from claudius.memory.erasing import lines_of_others
from claudius.memory.erasure import Erasure, changing, paged
from claudius.memory.rows import dump
from claudius.memory.seen import ERASED
from claudius.perception import Place

log = logging.getLogger(__name__)


class Unsaid(Struct, frozen=True, kw_only=True):
    """A message whose words have changed."""

    turn: str
    """The turn that heard it."""
    conversation: str
    number: int
    record: int
    at: str
    person: str
    moment: int
    """Where it is found again; 0 = nowhere."""
    before: str
    now: str
    """Empty if it was deleted."""


class Undone(Struct, frozen=True):
    """What follows for what runs."""

    voided: tuple[tuple[str, str], ...] = ()
    """Turns that are to be thought again, each with its conversation."""
    is_new: bool = False
    """Whether something may have been erased."""
    is_left: bool = False
    """Whether it is to be done again, because turns run that may have begun with words that are gone."""


def note_unsaid(db: Database, change: Unsaid) -> None:
    """Note a change, so that what follows from it is done whatever happens."""
    db.run("unsaid_put", person=change.person, change=msgspec.json.encode(change).decode())


class Unsaying:
    """Undoes all changes that wait, together: a hundred edits of one message cost hardly more than one."""

    def __init__(self, core: Core) -> None:
        """Find the changes in this database."""
        self._core = core
        self._done: frozenset[int] = frozenset()
        """Changes that are undone, but for what turns wrote that ran then."""
        self._ran: frozenset[str] = frozenset()
        """Those turns."""

    async def undo(self) -> Undone:
        """Undo what waits; a change that turns may still have in sight is looked at again once they have ended."""
        rows = self._core.look("unsaid_now")
        if not rows:
            return Undone()
        await self._core.flush()
        numbers = frozenset(row["n"] for row in rows)
        ran, is_new = self._running(), bool(numbers - self._done)
        if not is_new and self._ran & ran:
            return Undone(is_left=True)
        with self._core.beside() as db:
            work = _Erasure(db, self._core, [change for row in rows if (change := _read(row))])
            await work.undo()
        self._ran = ran & self._running() if is_new else frozenset()
        self._done = numbers if self._ran else frozenset()
        if not self._ran:
            await self._core.write(changing("unsaid_done", [{"n": n} for n in numbers]))
        return Undone(tuple(sorted(work.voided)), is_new=True, is_left=bool(self._ran))

    def _running(self) -> frozenset[str]:
        return frozenset(row["turn"] for row in self._core.look("turns_under_way"))


class _Erasure(Erasure):
    """The erasure of some words of some messages."""

    def __init__(self, db: Database, core: Core, changes: Sequence[Unsaid]) -> None:
        super().__init__(db, core.write, (), {}, self._keep)
        self._changes = changes
        self.voided: set[tuple[str, str]] = set()

    def _keep(self, turns: Sequence[tuple[str, str]]) -> None:
        self.voided.update(turns)

    async def undo(self) -> None:
        """Erase what holds them, and was written with them in sight."""
        changes = [one for one in self._changes if not one.now or marks(one.before) - marks(one.now)]
        if not changes:
            return
        source, since = ErasedSource(whole=False), min(one.at for one in changes)
        for one in changes:
            source.turns.add(one.turn)
            source.stems |= marks(one.before) - marks(one.now)
            source.add_line(one.conversation, one.number)
            source.rows.add(("moment", str(one.moment)))
        derived = Derived(source)
        found = [*await in_thread(derived.find, self._beside, (), since)]
        await self._void(
            "running_turns",
            is_everywhere=bool(found) or not all(one.now for one in changes),
            channels=dump(sorted({Place.of(one.conversation).of_channel for one in changes})),
        )
        found += await in_thread(derived.find, self._beside, (), since)
        await self._put_back(derived)
        await self._erase_told(derived)
        await self._erase_turns(paged(_rows(found)))
        await self._write(lambda db: sum(_forget_words(db, one) for one in changes))


def _read(row: Row) -> Unsaid | None:
    try:
        change: Unsaid = decoder(Unsaid).decode(row["change"])
    except msgspec.DecodeError:
        log.error("what an edit took away cannot be followed: its row is damaged", extra={"row": row["n"]})  # noqa: TRY400 - no trace
        return None
    return change


def _rows(turns: Iterable[SeenTurn]) -> list[dict[str, Any]]:
    return [{name: getattr(turn, name) for name in ("turn", "conversation", "number", "record")} for turn in turns]


def _forget_words(db: Database, one: Unsaid) -> int:
    """Take the words out of the record and the ledger of the turn that heard them."""
    kept = lines_of_others(db.value("record_kept", record=one.record), (one.person,))
    db.run("blank_record", record=one.record, erased=ERASED, kept=kept)
    db.run("turn_edited", turn=one.turn)
    preview = " ".join(one.now.split())[:PREVIEW_CHARS]
    db.run("interaction_reworded", turn=one.turn, preview=preview)
    return db.change("promise_unsaid", turn=one.turn)
