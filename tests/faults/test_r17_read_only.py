"""R17: read-only paths. Nothing is acknowledged, and the process ends once with 78 and one line."""

import ctypes
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from claudius.errors import EXIT_CONFIG, StoreReadOnly
from claudius.home import Home
from claudius.memory.sqlite import SqliteStore
from claudius.memory.sqlite.schema import translate
from claudius.providers.scripted import Scripted
from claudius.runtime.process_resources import READ_ONLY_S, Clock, Disk, ProcessResources
from claudius.testing.alive import alive
from driven import CLAUDIUS, TIMEOUT_S, Machine, reply
from lab.sample import NOW

PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 24, 1, 2


def obey_modes() -> None:
    """Make file modes apply to this process even as root, for the child of a test."""
    if os.geteuid() == 0:
        for capability in (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH):
            ctypes.CDLL(None, use_errno=True).prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def run_daemon(machine: Machine) -> tuple[int, list[str]]:
    """Run the daemon in the foreground until it gives up. Returns its exit code and its output."""
    return run_as_others(machine, "daemon", "run")


def run_as_others(machine: Machine, *args: str) -> tuple[int, list[str]]:
    """Run a command to which file modes apply. Returns its exit code and its error output."""
    ran = subprocess.run(
        [CLAUDIUS, *args],
        env=machine.environment(),
        cwd=machine.user,
        capture_output=True,
        timeout=TIMEOUT_S,
        preexec_fn=obey_modes,
        check=False,
    )
    return ran.returncode, ran.stderr.decode().splitlines()


@contextmanager
def mode(path: Path, bits: int) -> Iterator[None]:
    """Give a path a mode for a block."""
    before = path.stat().st_mode & 0o777
    path.chmod(bits)
    try:
        yield
    finally:
        path.chmod(before)


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="root obeys modes on Linux only, where asked to")
@pytest.mark.parametrize("place", ["state", "run", "memory", "logs"])
def test_r17_a_directory_that_may_not_be_written_is_named(machine: Machine, place: str) -> None:
    """With 0500 at the start: 78 and one line with the path and the command to run. The database is unchanged."""
    machine.ok("chat", "--once", "before")
    database = machine.home / "state" / "claudius.db"
    before = database.read_bytes()

    with mode(machine.home / place, 0o500):
        (machine.log).unlink() if place == "logs" and machine.log.exists() else None
        code, said = run_daemon(machine)

    assert code == EXIT_CONFIG
    assert len(said) == 1
    assert str(machine.home / place) in said[0]
    assert "chmod" in said[0]
    assert database.read_bytes() == before


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="root obeys modes on Linux only, where asked to")
@pytest.mark.parametrize("name", ["claudius.db", "claudius.db-wal"])
def test_r17_a_file_that_may_not_be_written_is_named(tmp_path: Path, name: str) -> None:
    """If the database or its log is read-only at the start: 78, the file is named with its mode, nothing changes."""
    machine = Machine(tmp_path)
    machine.ok("chat", "--once", "before")
    state = machine.home / "state"
    with closing(sqlite3.connect(state / "claudius.db")) as living:
        living.execute("UPDATE boot SET clean = 1")
        living.commit()
        shutil.copytree(state, tmp_path / "crashed")
    shutil.rmtree(state)
    (tmp_path / "crashed").rename(state)

    with mode(state / name, 0o400):
        code, said = run_daemon(machine)

    assert code == EXIT_CONFIG
    assert len(said) == 1
    assert str(state / name) in said[0]
    assert "0400" in said[0]


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="root obeys modes on Linux only, where asked to")
@pytest.mark.parametrize(
    ("place", "bits", "args"),
    [
        ("", 0o500, ("config", "set", "log.level", "INFO")),
        ("config.toml", 0o000, ("config", "set", "log.level", "INFO")),
        ("run", 0o500, ("daemon", "start")),
        ("soul", 0o000, ("soul", "edit", "soul.md")),
    ],
)
def test_r17_a_command_that_may_not_write_names_the_path(
    machine: Machine, place: str, bits: int, args: tuple[str, ...]
) -> None:
    """Whatever a command cannot open gives one line with its path, never a traceback."""
    machine.ok("seed")

    with mode(machine.home / place, bits):
        code, said = run_as_others(machine, *args)

    assert code in (1, EXIT_CONFIG)
    assert len(said) == 1
    assert str(machine.home / place) in said[0]


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="root obeys modes on Linux only, where asked to")
def test_r17_a_soul_that_may_not_be_read_is_not_replaced_in_silence(machine: Machine) -> None:
    """If the owner's folder is closed, the shipped soul speaks, and each reply comes with a note that says why."""
    machine.ok("seed")

    with mode(machine.home / "soul", 0o000):
        code, said = run_as_others(machine, "chat", "--once", "hello")
        checked, _ = run_as_others(machine, "soul", "check")

    assert code == 0
    assert any(str(machine.home / "soul") in line and "cannot be read" in line for line in said)
    assert checked == 1


def test_r17_what_cannot_start_is_no_crash_loop(tmp_path: Path) -> None:
    """Failing starts in a row are never held back: each ended before any login, and says what is wrong."""
    machine = Machine(tmp_path, env={"CLAUDIUS_STORAGE_RESERVE_MB": "1000000000"})

    said = [machine.run("daemon", "run") for _ in range(5)]

    assert {ran.code for ran in said} == {EXIT_CONFIG}
    assert all("free some space" in ran.stderr for ran in said)
    assert (machine.home / "run" / "starts").read_text() == ""


async def test_r17_a_home_that_turns_read_only_accepts_nothing_and_gives_up_in_time(home: Home) -> None:
    """Mid-run there is no ack. After 300 s on the monotonic clock the process is told to end with 78."""
    running_s = [0.0]
    resources = ProcessResources(clock=Clock(lambda: NOW), disk=Disk(home, lambda: 0, running=lambda: running_s[0]))
    store = SqliteStore(home.database)

    async with alive(home, Scripted(default=reply("Yes.")), resources=resources, store=store) as soul:
        await soul.network.hear("one")
        await soul.until_said(1)
        store.core.writer._database.connection.execute("PRAGMA query_only = 1")
        for running_s[0] in range(0, int(READ_ONLY_S) + 1, 50):
            with pytest.raises(StoreReadOnly):
                await soul.network.hear("two")
        with pytest.raises(StoreReadOnly) as ended:
            await soul.server.wait()
        store.core.writer._database.connection.execute("PRAGMA query_only = 0")
        counts = soul.records().counts(NOW)

    assert ended.value.exit_code == EXIT_CONFIG
    assert (counts["turns"]["total"], counts["inbox"]["pending"]) == (1, 0)


async def test_r17_a_home_that_can_be_written_again_goes_on(home: Home) -> None:
    """After a read-only time it accepts messages again by itself."""
    disk = Disk(home, lambda: 0)
    disk.strike(StoreReadOnly("state: Read-only file system"))
    is_shut = disk.shut

    disk.look()

    assert is_shut
    assert disk.shut is None


def test_r17_a_failed_write_on_a_read_only_path_is_not_damage(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite reports a write to a read-only file system as an I/O error. The directory's permissions decide."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorname = "SQLITE_IOERR_WRITE"
    home.database.touch()
    monkeypatch.setattr(os, "access", lambda *_: False)

    assert isinstance(translate(error, home.database), StoreReadOnly)


@pytest.mark.nightly
def test_r17_a_file_system_mounted_read_only(tmp_path: Path) -> None:
    """A real one (needs root): no start, 78 and the reason. Mounted writable again, it wakes with all its data."""
    machine = Machine(tmp_path, env={"CLAUDIUS_STORAGE_RESERVE_MB": "0"})
    machine.home.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m,mode=0700", "none", str(machine.home)], check=True)
    try:
        machine.ok("chat", "--once", "before")
        subprocess.run(["mount", "-o", "remount,ro", str(machine.home)], check=True)
        code, said = run_daemon(machine)
        subprocess.run(["mount", "-o", "remount,rw", str(machine.home)], check=True)
        with machine.daemon():
            machine.ok("chat", "--once", "after")
    finally:
        subprocess.run(["umount", "-l", str(machine.home)], check=True)

    assert code == EXIT_CONFIG
    assert len(said) == 1
    assert "Read-only file system" in said[0]
