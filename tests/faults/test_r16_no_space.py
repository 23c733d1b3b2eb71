"""R16: no space.

Nothing is acknowledged without being stored, decided replies are sent, and service resumes by itself.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from claudius.errors import StoreFull
from claudius.home import Home
from claudius.memory.inbox import InboxStore, Pending
from claudius.memory.sqlite import SqliteStore
from claudius.providers.scripted import Line, Scripted
from claudius.runtime.process_resources import RESERVE_MB, Clock, Disk, ProcessResources
from claudius.testing.alive import alive
from driven import Machine, reply
from failing import limited
from lab.sample import NOW

MB = 2**20


class Shelf:
    """A disk whose size a test sets: it reports free space, and its store fails below zero."""

    def __init__(self, free_mb: int = 1000) -> None:
        """Start with this many free megabytes."""
        self.free_mb = free_mb


def body_of(home: Home, shelf: Shelf, reserve_mb: int = 64) -> ProcessResources:
    """Return process resources whose disk is `shelf`."""
    disk = Disk(home, lambda: reserve_mb, free_mb=lambda: shelf.free_mb)
    return ProcessResources(clock=Clock(lambda: NOW), disk=disk)


class Watched(InboxStore):
    """An inbox that counts how often a lane has checked what is next."""

    looks = 0

    async def oldest(self, conversation: str) -> Pending | None:
        """Count the check."""
        self.looks += 1
        return await super().oldest(conversation)

    async def looked(self, times: int) -> None:
        """Wait for this many checks."""
        while self.looks < times:
            await asyncio.sleep(0.001)


@pytest.mark.slow
def test_r16_a_full_disk_accepts_nothing_says_so_and_resumes_by_itself(machine: Machine) -> None:
    """A write without room is refused, and exit code, status, doctor and log say so. With room the daemon goes on."""
    machine.scripted(*[reply("heard")] * 4)
    with machine.daemon() as pid:
        machine.ok("chat", "--once", "one")
        reserve = machine.home / "state" / "reserve"
        size = reserve.stat().st_size
        with limited(4096, pid):
            refused = machine.run("chat", "--once", "two")
            status = machine.ok("status", "--json").json
            shown = machine.ok("status").stdout
            doctor = {check["name"]: check for check in machine.run("doctor", "--json").json["checks"]}
            again = machine.run("chat", "--once", "three")
            had_reserve = reserve.exists()
        while not machine.ok("status", "--json").json["disk"]["accepting"]:
            os.kill(pid, 0)
        answered = machine.ok("chat", "--once", "four")
        entries = machine.ok("conversations", "show", "terminal:local:main:main", "--json").json["entries"]
        logged = [event["event"] for event in machine.events()]

    assert size == RESERVE_MB * MB
    assert (refused.code, again.code) == (1, 1)
    assert "no space left" in refused.stderr
    assert not status["disk"]["accepting"]
    assert "nothing new is accepted" in shown
    assert not doctor["store"]["ok"]
    assert not had_reserve
    assert answered.stdout == "heard\n"
    assert [entry["content"] for entry in entries if entry["entry_type"] == "userMessage"] == ["one", "four"]
    assert reserve.stat().st_size == size
    assert logged.count("there is room again") == 1


async def test_r16_what_is_decided_is_said_and_settled_with_the_reserve(home: Home) -> None:
    """The disk fills during a call: the turn is committed and settled with the reserve, and nothing new is heard."""
    shelf, given_away = Shelf(), []
    resources = body_of(home, shelf)
    resources.disk.look()

    def fill(_: object) -> str:
        """Fill the disk the first time: the database may not grow by a page."""
        if not given_away:
            shelf.free_mb = 0
            store.core.writer._database.connection.execute("PRAGMA max_page_count = 1")
        return reply("said", internal_monologue="Hm. " * 25_000)

    def relieve() -> bool:
        """Release the reserve: the database may grow again."""
        given_away.append(resources.disk.release())
        store.core.writer._database.connection.execute("PRAGMA max_page_count = 1000000")
        return given_away[-1]

    store = SqliteStore(home.database, relieve=relieve)
    async with alive(home, Scripted(default=fill), resources=resources, store=store) as soul:
        await soul.network.hear("one")
        await soul.until_said(1)
        resources.disk.look()
        with pytest.raises(StoreFull):
            await soul.network.hear("two")
        counts = soul.records().counts(NOW)
        shelf.free_mb = 1000
        resources.disk.look()
        await soul.network.hear("three")
        seen = await soul.network.until_visible(2)

    assert given_away[0]
    assert [one.text for one in seen] == ["said", "said"]
    assert (counts["inbox"]["pending"], counts["outbox"]["pending"]) == (0, 0)


async def test_r16_no_model_is_asked_while_its_reply_could_not_be_kept(home: Home) -> None:
    """Without room an accepted message waits and costs nothing. With room it is answered."""
    async with alive(home, Scripted(default=Line(hang=True)), clean=False) as soul:
        await soul.network.hear("one")
        conversation = "rehearsal:t:dm-ana:"
    shelf = Shelf(0)
    resources = body_of(home, shelf)
    resources.disk.look()
    voice, store = Scripted(default=reply("Yes.")), SqliteStore(home.database)
    store.inbox = watched = Watched(store.core)

    async with alive(home, voice, resources=resources, store=store) as soul:
        await watched.looked(1)
        soul.server.wake(conversation)
        await watched.looked(2)
        asked = len(voice.requests)
        shelf.free_mb = 1000
        resources.disk.look()
        soul.server.wake(conversation)
        seen = await soul.network.until_visible(1)

    assert asked == 0
    assert [one.text for one in seen] == ["Yes."]


def test_r16_the_reserve_is_made_anew_only_where_there_is_room(home: Home) -> None:
    """A released reserve returns when `storage.reserve_mb` is free, not before. With 0 configured there is none."""
    shelf = Shelf(64)
    disk = body_of(home, shelf).disk
    disk.look()
    has_it = (home.state / "reserve").stat().st_size
    assert disk.release()
    assert not disk.release()
    shelf.free_mb = 63
    disk.look()
    is_shut, lacks_it = disk.shut, (home.state / "reserve").exists()
    shelf.free_mb = 64
    disk.look()
    none = Home(home.root.parent / "none")
    none.create()
    body_of(none, Shelf(0), reserve_mb=0).disk.look()

    assert has_it == RESERVE_MB * MB
    assert (bool(is_shut), lacks_it) == (True, False)
    assert disk.shut is None
    assert (home.state / "reserve").exists()
    assert not (none.state / "reserve").exists()


def test_r16_a_log_without_room_costs_its_lines_and_no_turn(tmp_path: Path) -> None:
    """If the log cannot be written, the line is dropped and counted, and its writer goes on."""
    script = """
import logging, resource, sys
from pathlib import Path
from claudius.runtime.logs import start_log
handler = start_log(Path(sys.argv[1]), "INFO", ())
logging.getLogger("claudius.x").info("one")
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
logging.getLogger("claudius.x").info("two")
print(handler.dropped)
"""
    ran = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)

    assert ran.stdout == "1\n"
    assert ran.stderr == ""


def test_r16_a_backup_without_room_leaves_nothing_half_made(machine: Machine) -> None:
    """If the copy does not fit, `backup create` gives a one-line error, and no file that looks like a backup."""
    machine.ok("chat", "--once", "one")
    limits = "ulimit -f 8; export PYTHONDONTWRITEBYTECODE=1; exec claudius backup create"

    ran = machine.run("-c", limits, command="bash")

    assert ran.code not in (0, None)
    assert len(ran.stderr.splitlines()) == 1
    assert list((machine.home / "backups").iterdir()) == []


def test_r16_a_start_without_room_is_refused(machine: Machine) -> None:
    """With less than `storage.reserve_mb` free the start exits 78 and says what to do."""
    ran = machine.run("daemon", "start", env={"CLAUDIUS_STORAGE_RESERVE_MB": "1000000000"})

    assert ran.code == 78
    assert "free some space" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.nightly
def test_r16_a_file_system_of_three_megabytes_fills_and_empties(tmp_path: Path) -> None:
    """A real, tiny file system (needs root): talk fills it, no accepted message is lost, and emptied, it goes on."""
    machine = Machine(tmp_path, env={"CLAUDIUS_STORAGE_RESERVE_MB": "0"})
    machine.home.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=0700", "none", str(machine.home)], check=True)
    try:
        ballast = machine.home / "ballast"
        with machine.daemon():
            machine.ok("chat", "--once", "before")
            with contextlib.suppress(OSError), ballast.open("wb") as file:
                while True:
                    file.write(bytes(4096))
                    file.flush()
            answers = [machine.run("chat", "--once", f"line {n} " * 200, "--timeout", "30") for n in range(20)]
            ballast.unlink()
            while not machine.ok("status", "--json").json["disk"]["accepting"]:
                pass
            after = machine.ok("chat", "--once", "after")
        entries = machine.ok("conversations", "show", "terminal:local:main:main", "--json").json["entries"]
    finally:
        subprocess.run(["umount", "-l", str(machine.home)], check=True)

    assert any(ran.code for ran in answers)
    assert after.stdout
    heard = [entry["content"] for entry in entries if entry["entry_type"] == "userMessage"]
    assert [ran.code for ran in answers].count(0) <= len(heard) - 2
    assert len([entry for entry in entries if entry["entry_type"] == "externalDialog"]) == len(heard)
