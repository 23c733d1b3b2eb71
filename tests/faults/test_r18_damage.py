"""R18: damage found at run time: the soul stops, sets the files aside, and never starts with an empty memory."""

import asyncio
import random
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from claudius.errors import EXIT_CONFIG, StoreCorrupt, StoreReadOnly
from claudius.home import Home
from claudius.memory.sqlite import SqliteStore
from claudius.memory.sqlite.backups import quarantine
from claudius.providers.scripted import Line, Scripted
from claudius.runtime import server
from claudius.testing.alive import alive
from driven import TIMEOUT_S, Machine, reply
from lab.sample import NOW

PUSH, NIGHTLY = 60, 5_000


def spoil(database: Path) -> bytes:
    """Overwrite every page but the first. Returns the file's new bytes."""
    pages = bytearray(database.read_bytes())
    for page in range(4096, len(pages), 4096):
        pages[page : page + 4096] = b"\xa5" * 4096
    with database.open("r+b") as file:
        file.write(pages)
    return bytes(pages)


@pytest.mark.slow
def test_r18_damage_found_while_running_stops_the_daemon_and_is_set_aside(machine: Machine) -> None:
    """Mid-run: exit 78, the files are copied to `backups/quarantine-…`, and the line names a backup that restores."""
    machine.ok("chat", "--once", "My name is Ada.")
    backup = machine.ok("backup", "create", "--json").json["path"]
    database = machine.home / "state" / "claudius.db"
    with machine.foreground() as process:
        machine.until_logged("awake")
        spoiled = spoil(database)
        said, _ = process.communicate(timeout=TIMEOUT_S)
    (aside,) = (machine.home / "backups").glob("quarantine-*")
    refused = machine.run("daemon", "start")
    chat = machine.run("chat", "--once", "Who am I?")
    machine.ok("backup", "restore", backup, "--yes")
    with machine.daemon():
        answer = machine.ok("chat", "--once", "Who am I?")

    assert process.returncode == EXIT_CONFIG
    assert "is damaged" in said.decode()
    assert len(said.splitlines()) == 1
    assert (aside / "claudius.db").read_bytes() == spoiled
    assert (refused.code, chat.code) == (EXIT_CONFIG, EXIT_CONFIG)
    assert f"claudius backup restore {backup} --yes" in refused.stderr
    assert "Ada" in answer.stdout


@asynccontextmanager
async def lived(home: Home, crashed: Home) -> AsyncIterator[None]:
    """Take a few turns in a home, and copy its files as a crash would leave them."""
    async with alive(home, Scripted(default=reply("Yes."))) as soul:
        for number in range(8):
            await soul.network.hear(f"line {number} " * 40)
            await soul.network.until_visible(number + 1)
        await soul.idle()
        for file in home.state.glob("claudius.db*"):
            shutil.copy(file, crashed.state / file.name)
    yield


async def flips(tmp_path: Path, count: int) -> None:
    """Flip `count` bytes, one at a time, in database or log, and check that at most the last turn is ever missing."""
    whole, crashed, flipped = (Home(tmp_path / name) for name in ("whole", "crashed", "flipped"))
    for one in (whole, crashed, flipped):
        one.create()
    chance = random.Random(18)  # noqa: S311 - which byte is flipped is no secret
    async with lived(whole, crashed):
        pass
    for number in range(count):
        for file in flipped.state.iterdir():
            file.unlink()
        for name in ("claudius.db", "claudius.db-wal"):
            shutil.copy(crashed.state / name, flipped.state / name)
        target = flipped.state / ("claudius.db", "claudius.db-wal")[number % 2]
        content = bytearray(target.read_bytes())
        content[chance.randrange(len(content))] ^= 0xFF
        target.write_bytes(content)

        turns = await turns_found(flipped)

        assert turns is None or turns >= 7, f"flip {number}"


async def turns_found(home: Home) -> int | None:
    """Open a home as a start does. Returns how many turns it holds, or None if it is refused."""
    store = SqliteStore(home.database)
    try:
        await store.start("after", NOW)
        with store.core.snapshot() as db:
            return int(db.connection.execute("SELECT count(*) FROM turn").fetchone()[0])
    except StoreCorrupt:
        return None
    finally:
        await store.close(clean=False)


async def test_r18_sixty_flipped_bytes_never_empty_the_memory(tmp_path: Path) -> None:
    """For any byte in database or log: the home is refused, or all turns but the one being written are there."""
    await flips(tmp_path, PUSH)


@pytest.mark.nightly
async def test_r18_five_thousand_flipped_bytes_never_empty_the_memory(tmp_path: Path) -> None:
    """The same holds for 5,000 bytes."""
    await flips(tmp_path, NIGHTLY)


async def test_r18_a_damaged_store_ends_no_turn_and_is_not_called_clean(home: Home) -> None:
    """After damage is known no running turn is committed, and the next start knows that the stop was not clean."""
    asked, store = asyncio.Event(), SqliteStore(home.database)

    def slowly(_: object) -> Line:
        """Find the store damaged during the model call."""
        asked.set()
        soul.server._failed(StoreCorrupt("damaged"))
        return Line(deltas=(reply("never said"),), delay_s=60)

    async with alive(home, Scripted(default=slowly), store=store) as soul:
        await soul.network.hear("m")
        await asked.wait()
        with pytest.raises(StoreCorrupt):
            await soul.server.wait()
    reopened = SqliteStore(home.database)
    waiting = await reopened.start("after", NOW)
    await reopened.close(clean=True)

    assert not waiting.was_clean
    assert soul.network.visible == []


async def test_r18_a_check_that_cannot_run_ends_nothing(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """No free file handle, or a held lock, says nothing about the pages: it is not damage, and the soul goes on."""

    class Busy(SqliteStore):
        """A store whose pages cannot be checked just now."""

        looked = asyncio.Event()

        async def check(self) -> None:
            """Fail because no file can be opened."""
            self.looked.set()
            raise StoreReadOnly("unable to open database file")

    monkeypatch.setattr(server, "ARCHIVE_AFTER_S", 0.0)
    store = Busy(home.database)
    async with alive(home, Scripted(default=reply("Yes.")), store=store) as soul:
        await store.looked.wait()
        await soul.network.hear("still there?")
        await soul.network.until_visible(1)

        assert not soul.server._ended.done()


def test_r18_a_quarantine_holds_what_lies_there(home: Home) -> None:
    """Database, log and index are copied byte for byte, and a missing file is not created."""
    home.database.write_bytes(b"spoiled")
    home.database.with_name("claudius.db-wal").write_bytes(b"log")

    aside = quarantine(home.database, home.backups, NOW)

    assert {file.name: file.read_bytes() for file in aside.iterdir()} == {
        "claudius.db": b"spoiled",
        "claudius.db-wal": b"log",
    }
    assert aside.stat().st_mode & 0o077 == 0
