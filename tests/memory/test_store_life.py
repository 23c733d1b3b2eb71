"""The store's life beyond its contract: opening, privacy, a full disk, checks, the audit log, closing, what it deletes."""

import asyncio
import sqlite3
import stat
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from claudius.errors import StoreCorrupt, StoreError
from claudius.home import Home
from claudius.memory.audit import AuditEntry
from claudius.memory.recall import Shelf
from claudius.memory.sqlite import SqliteRecords, SqliteStore
from claudius.recollection import PastTurn
from contracts.store import CASES, Case
from contracts.store.ground import ANA, DM, NOW, Ground, awake, exchange, heard, recalled


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


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM audit",
        "UPDATE audit SET act = 'read'",
        "UPDATE audit SET at = '2020-01-01T00:00:00Z'",
        "UPDATE audit SET who = 'slack:T1:U2'",
        "UPDATE audit SET target = ''",
        "UPDATE audit SET origin = 'files'",
        "REPLACE INTO audit (id, at, who, act, target, origin) VALUES (1, '', '', '', '', '')",
    ],
)
async def test_nothing_edits_the_audit_log(change: str, home: Home) -> None:
    """A person who opens the database: no row can be changed, replaced or deleted; an erasure's alias for an id can be put."""
    home.create()
    store = SqliteStore(home.database)
    await store.open()
    await store.audit.note(AuditEntry(who=ANA, act="forget", target=ANA), NOW)
    await store.close(clean=True)

    with closing(sqlite3.connect(home.database)) as connection, connection:
        with pytest.raises(sqlite3.IntegrityError, match="audit log"):
            connection.execute(change)
        connection.execute("UPDATE audit SET who = 'erased:1', target = 'erased:1'")


def wide(root: Path) -> list[str]:
    """Return every file that others may access."""
    return [
        f"{path.name} {path.stat().st_mode:o}" for path in root.rglob("*") if stat.S_IMODE(path.stat().st_mode) & 0o077
    ]


@pytest.mark.usefixtures("careless")
async def test_a_database_that_was_opened_to_others_is_closed_again(home: Home) -> None:
    """A database file with a mode wider than 0600 is tightened when it is opened."""
    store = SqliteStore(home.database)
    await store.start("boot-1", NOW)
    await store.close(clean=True)
    home.database.chmod(0o666)

    store = SqliteStore(home.database)
    await store.start("boot-2", NOW)
    assert wide(home.root) == []
    await store.close(clean=True)


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_the_sqlite_store_keeps_the_contract(case: Case, home: Home) -> None:
    """Each numbered rule of `tests/contracts/store` holds."""
    await case.run(Ground(lambda: SqliteStore(home.database)))
