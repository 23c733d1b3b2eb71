"""The store's life beyond its contract: opening, a full disk, checks, closing, and what it deletes by itself."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import timedelta

import pytest

from claudius.errors import StoreCorrupt, StoreError
from claudius.home import Home
from claudius.memory.recall import Shelf
from claudius.memory.sqlite import SqliteRecords, SqliteStore
from claudius.recollection import PastTurn
from contracts.store.ground import DM, NOW, Ground, awake, exchange, heard, recalled


async def test_a_closed_store_says_so(home: Home) -> None:
    """Reading from or writing to a closed store raises one clear error."""
    store = SqliteStore(home.database)

    for ask in (store.inbox.oldest(DM), store.inbox.accept((heard(),), NOW)):
        with pytest.raises(StoreError, match="not open"):
            await ask
    with pytest.raises(StoreError, match="not open"):
        store.outbox.deliveries(DM)


async def test_an_owners_edit_begins_no_boot(home: Home) -> None:
    """An edit by the owner beside a running process releases none of its leases and does not count as a start."""
    async with awake(Ground(lambda: SqliteStore(home.database)), clean=False) as store:
        pending = await _taken(store)
        edit = SqliteStore(home.database)
        await edit.open()
        await edit.open()
        await edit.documents.set_state("currentTopic", "by hand", "self", NOW)
        await edit.close(clean=True)

        found = await store.inbox.oldest(DM)
        assert found is not None
        assert (found.seq, found.state) == (pending, "taken")
        assert [one.value for one in (await recalled(store, heard())).state] == ["by hand"]


async def _taken(store: object) -> int:
    assert isinstance(store, SqliteStore)
    await store.inbox.accept((heard(),), NOW)
    pending = await store.inbox.oldest(DM)
    assert pending is not None
    store.inbox.take(pending.seq, {}, NOW)
    await store.core.writer.flush()
    return pending.seq


async def test_a_key_is_forgotten_thirty_days_after_it_was_settled(home: Home) -> None:
    """A redelivery within thirty days is a duplicate; a later start deletes the key, but not the turn and what was heard."""
    async with awake(Ground(lambda: SqliteStore(home.database))) as store:
        intent = await exchange(store, heard("What?"))
    for days, known in ((29, True), (31, False)):
        store = SqliteStore(home.database)
        await store.start(f"boot {days}", NOW + timedelta(days=days))
        with closing(SqliteRecords(home.database)) as records:
            assert (records.turn(intent.turn) or {})["perception"]["text"] == "What?"
        new = await store.inbox.accept((heard(),), NOW)
        assert new == (not known,)
        await store.close(clean=True)

    with closing(SqliteRecords(home.database)) as records:
        found = records.turn(intent.turn)
    assert found is not None
    assert found["utterance"] == "Hi."


async def test_a_running_store_can_be_checked(home: Home) -> None:
    """The check of every page runs beside other work: it passes on a sound file, StoreCorrupt on a damaged one."""
    async with awake(Ground(lambda: SqliteStore(home.database))) as store:
        assert isinstance(store, SqliteStore)
        for n in range(20):
            await exchange(store, heard("x" * 2000, n=n))
        await asyncio.gather(store.check(), exchange(store, heard(n=99)))
    pages = bytearray(home.database.read_bytes())
    pages[40 * 1024 : 41 * 1024] = bytes(1024)
    home.database.write_bytes(pages)

    store = SqliteStore(home.database)
    with pytest.raises(StoreCorrupt):
        await store.check()


def test_the_shelf_keeps_the_turns_that_are_still_shown() -> None:
    """A turn that a conversation shows no more is dropped, and first the conversation that was read longest ago."""
    shelf = Shelf(most=2)
    one, two, three = (PastTurn(turn=name, nonce="n", number=1, entries=()) for name in "abc")
    shelf.keep("here", {("a", 0): one})
    shelf.keep("here", {("b", 0): two})
    assert shelf.of("here") == {("b", 0): two}
    shelf.keep("there", {("c", 0): three})
    shelf.keep("here", {("a", 0): one, ("b", 0): two})

    assert (shelf.of("there"), len(shelf.of("here"))) == ({}, 2)
    shelf.clear()
    shelf.keep("new", {})

    assert not shelf._held  # no entry for each thread that begins
