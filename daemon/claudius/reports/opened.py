"""Open a home's store while another process runs turns: for reading, or for one edit by the owner."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from claudius.errors import BadHome, ClaudiusError, StoreError
from claudius.foreign import plain_message
from claudius.home import Home
from claudius.memory.audit import CLI
from claudius.memory.records import Records

if TYPE_CHECKING:
    from claudius.memory.audit import Act
    from claudius.memory.database import StorePlace
    from claudius.memory.store import Store

T = TypeVar("T")


@contextmanager
def records(home: Home, *, is_lasting: bool = False) -> Iterator[Records]:
    """Open the home's records, read-only; empty if nothing was ever stored. Raises: StoreError.

    `is_lasting`: they stay open while others write.
    """
    from claudius.memory.opening import open_records

    kept = open_records(home, is_lasting=is_lasting)
    try:
        yield kept
    finally:
        kept.close()


def read(home: Home, what: Callable[[Records], T]) -> T:
    """Return what is read in the home's records. Raises: StoreError."""
    with records(home) as kept:
        return what(kept)


def noted(home: Home, act: Act, target: str = "", origin: str = CLI) -> None:
    """Record what this machine's user is about to do in the audit log. Raises: StoreError; then it must not be done.

    `origin`: from where, `cli` or `console`.
    """
    from claudius.memory.opening import place_of

    home.create()
    _note(home, place_of(home), act, target, origin)


def _note(home: Home, place: StorePlace, act: Act, target: str, origin: str) -> None:
    from claudius.adapters.terminal import own_person
    from claudius.memory.audit import AuditEntry

    entry = AuditEntry(who=own_person(), act=act, target=target, origin=origin)
    _edit_at(home, place, lambda store: store.audit.note(entry, datetime.now(UTC)))


def noted_after(home: Home, before: StorePlace | None, act: Act, target: str = "", origin: str = CLI) -> None:
    """Record what is done already, where `before` says, else where the store is now. stderr says if neither takes it.

    So what is wrong with the store can be mended by a command.
    """
    from claudius.memory.opening import place_of

    failed: str | None = None
    for place in (before, None):
        try:
            found = place or place_of(home)
            if failed is None or found != before:
                return _note(home, found, act, target, origin)
        except (ClaudiusError, OSError) as error:
            failed = plain_message(error)
    sys.stderr.write(f"claudius: this is done, but could not be noted in the audit log: {failed}\n")
    return None


def looked(home: Home, act: Act, target: str = "", origin: str = CLI) -> None:
    """Record what this machine's user looks at, as `noted` does. Where that fails, the look is free: stderr says so."""
    try:
        noted(home, act, target, origin)
    except (StoreError, BadHome, OSError) as error:
        sys.stderr.write(f"claudius: this look could not be noted in the audit log: {plain_message(error)}\n")


def edit(home: Home, change: Callable[[Store], Awaitable[T]]) -> T:
    """Open the home's store, run one change by the owner's hand, and return its result. Raises: StoreError."""
    from claudius.memory.opening import place_of

    return _edit_at(home, place_of(home), change)


def _edit_at(home: Home, place: StorePlace, change: Callable[[Store], Awaitable[T]]) -> T:
    from claudius.memory.opening import open_store

    async def opened() -> T:
        store = open_store(home, place)
        await store.open()
        try:
            return await change(store)
        finally:
            await store.close(clean=False)

    return asyncio.run(opened())
