"""R3: power loss. Unsynced data is dropped or torn, and everything that was acknowledged is there."""

import shutil
from pathlib import Path

import pytest

from claudius.home import Home
from claudius.memory.sqlite import SqliteRecords, SqliteStore
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive
from lab.sample import NOW, perception

TURN = "<internal_monologue>hm</internal_monologue><external_dialogue>Yes.</external_dialogue>"


async def opened_after_cut(home: Home, at: int, into: Path, *, torn: bool) -> SqliteStore:
    """Copy a live database as after a power cut: its log is cut, or garbage, from byte `at` on. Opens the copy."""
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(mode=0o700)
    shutil.copyfile(home.database, into / "claudius.db")
    log = home.database.with_name("claudius.db-wal").read_bytes()
    kept = log[:at] + (b"\xa5" * min(512, len(log) - at) if torn else b"")
    (into / "claudius.db-wal").write_bytes(kept)
    store = SqliteStore(into / "claudius.db")
    await store.start("after", NOW)
    return store


@pytest.mark.parametrize("torn", [False, True], ids=["dropped", "torn"])
async def test_r03_an_acknowledged_message_survives_any_cut_after_it(home: Home, tmp_path: Path, torn: bool) -> None:  # noqa: FBT001 - pytest's parameters
    """A cut anywhere after the awaited commit of WRITE 1 leaves the message and an intact database."""
    store = SqliteStore(home.database)
    await store.start("before", NOW)
    first = perception("acknowledged", n=1)
    assert await store.inbox.accept((first,), NOW) == (True,)
    acknowledged = home.database.with_name("claudius.db-wal").stat().st_size
    for number in range(2, 5):
        await store.inbox.accept((perception(f"later {number}", n=number),), NOW)
    end = home.database.with_name("claudius.db-wal").stat().st_size

    for at in range(acknowledged, end, 509):
        copy = await opened_after_cut(home, at, tmp_path / "copy", torn=torn)
        found = await copy.inbox.oldest(first.conversation)
        records = SqliteRecords(tmp_path / "copy" / "claudius.db")
        assert found is not None, at
        assert found.perception.text == "acknowledged"
        assert not records.integrity()
        records.close()
        await copy.close(clean=False)
    await store.close(clean=False)


async def test_r03_a_settled_turn_survives_any_cut_after_it(home: Home, tmp_path: Path) -> None:
    """After WRITE 3 any cut of the log leaves the whole turn. Before it, the turn is answered again or found."""
    async with alive(home, Scripted(default=TURN)) as soul:
        await soul.network.hear("one", key="k1")
        await soul.until_said(1)
        settled = home.database.with_name("claudius.db-wal").stat().st_size
        await soul.network.hear("two", key="k2")
        await soul.until_said(2)
        end = home.database.with_name("claudius.db-wal").stat().st_size
        for at in range(settled, end, 2039):
            copy = await opened_after_cut(home, at, tmp_path / "copy", torn=False)
            records = SqliteRecords(tmp_path / "copy" / "claudius.db")
            found = records.conversation("rehearsal:t:dm-ana:") or {}
            words = [entry["content"] for entry in found["entries"] if entry["entry_type"] == "userMessage"]
            unfinished = await copy.inbox.oldest("rehearsal:t:dm-ana:")
            assert words[0] == "one"
            assert words[1:] == ["two"] or unfinished is None or unfinished.perception.text == "two"
            records.close()
            await copy.close(clean=False)
