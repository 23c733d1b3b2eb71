"""Open this home's store from a command, beside the process that runs turns: for reading, or for one edit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeVar

from claudius.home import Home
from claudius.memory.records import Records

if TYPE_CHECKING:
    from claudius.memory.audit import Act
    from claudius.memory.store import Store

T = TypeVar("T")


@contextmanager
def records() -> Iterator[Records]:
    """Open the home's records, read-only; empty if nothing was ever stored. Raises: StoreError."""
    from claudius.memory.sqlite import SqliteRecords

    kept = SqliteRecords(Home.of(os.environ).database)
    try:
        yield kept
    finally:
        kept.close()


def noted(act: Act, target: str = "") -> None:
    """Record what this machine's user is about to do in the audit log. Raises: StoreError; then it must not be done."""
    from claudius.adapters.terminal import own_person
    from claudius.memory.audit import AuditEntry

    entry = AuditEntry(who=own_person(), act=act, target=target)
    Home.of(os.environ).create()
    edit(lambda store: store.audit.note(entry, datetime.now(UTC)))


def edit(change: Callable[[Store], Awaitable[T]]) -> T:
    """Open the home's store, run one change by the owner's hand, and return its result. Raises: StoreError."""
    from claudius.memory.sqlite import SqliteStore

    async def opened() -> T:
        store = SqliteStore(Home.of(os.environ).database)
        await store.open()
        try:
            return await change(store)
        finally:
            await store.close(clean=False)

    return asyncio.run(opened())
