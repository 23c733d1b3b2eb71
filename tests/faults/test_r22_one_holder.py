"""R22: of all processes that want a home exactly one holds it, whatever its lock file contains."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from claudius.config.load import Secret
from claudius.errors import AlreadyRunning, BadHome
from claudius.home import Home
from claudius.runtime.life import HomeLock, fingerprints, holder, is_held
from driven import CLAUDIUS, Machine
from lab.sample import NOW

PUSH, NIGHTLY = 20, 100
RACER = """
import os, sys
from pathlib import Path
from claudius.errors import AlreadyRunning
from claudius.home import Home
from claudius.runtime.life import HomeLock

home = Home(Path(sys.argv[1]))
sys.stdout.write("there\\n"); sys.stdout.flush()
sys.stdin.readline()
try:
    lock = HomeLock(home, "daemon")
except AlreadyRunning as error:
    print("75", error.pid, flush=True)
else:
    print("held", os.getpid(), flush=True)
sys.stdin.read()
"""


def race(home: Home, starters: int, rounds: int) -> None:
    """Have `starters` processes start on the home at once, again and again, and check that one holds it."""
    for _ in range(rounds):
        racers = [
            subprocess.Popen(
                [CLAUDIUS.with_name("python"), "-c", RACER, str(home.root)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(starters)
        ]
        for one in racers:
            assert one.stdout
            assert one.stdout.readline() == "there\n"
        for one in racers:
            assert one.stdin
            one.stdin.write("go\n")
            one.stdin.flush()
        said = [one.stdout.readline().split() for one in racers if one.stdout]
        holders = [pid for word, pid in said if word == "held"]
        assert len(holders) == 1, said
        assert is_held(home)
        for one in racers:
            one.communicate()


def test_r22_of_twenty_starts_at_once_one_holds_the_home(home: Home) -> None:
    """Of twenty at once there is one holder, and all others are told so."""
    race(home, PUSH, 1)


@pytest.mark.nightly
def test_r22_of_a_hundred_races_each_has_one_winner(home: Home) -> None:
    """In a hundred races of five there is one holder each time, with the lock file of the last one in place."""
    race(home, 5, NIGHTLY)


def test_r22_a_second_daemon_exits_75_and_names_the_first(machine: Machine) -> None:
    """`start` and `run` beside a running daemon exit 75 and name its pid, and it keeps running."""
    with machine.daemon() as pid:
        second = machine.run("daemon", "start")
        third = machine.run("daemon", "run")
        as_json = machine.run("daemon", "start", "--json")
        status = machine.ok("status", "--json").json

    assert (second.code, third.code, as_json.code) == (75, 75, 75)
    assert f"process {pid}" in second.stderr
    assert f"process {pid}" in third.stderr
    assert str(pid) in as_json.json["message"]
    assert len(second.stderr.splitlines()) == 1
    assert (status["pid"], status["running"]) == (pid, True)


def test_r22_a_chat_that_holds_the_home_is_named_and_no_daemon_to_be_stopped(machine: Machine) -> None:
    """While a `chat` holds the home, `start` exits 75 and names it, and `stop` does not end it."""
    with machine.terminal("chat") as terminal:
        terminal.until("you › ")
        started = machine.run("daemon", "start")
        stopped = machine.run("daemon", "stop")
        terminal.type("still there?")
        terminal.until("you › ")

    assert started.code == 75
    assert f"process {terminal.process.pid}" in started.stderr
    assert stopped.code == 1
    assert "no daemon runs" in stopped.stdout


def test_r22_a_stale_lock_file_with_a_living_pid_is_no_obstacle(machine: Machine) -> None:
    """The flock decides: a file that names a living but different process keeps no one out."""
    machine.ok("seed")
    run = machine.home / "run"
    (run / "claudius.lock").write_text(json.dumps({"pid": os.getpid(), "role": "daemon", "boot": "gone"}))

    stopped = machine.run("daemon", "stop")
    with machine.daemon() as pid:
        assert pid != os.getpid()

    assert stopped.code == 1


def test_r22_the_home_of_a_killed_daemon_is_free_at_once(machine: Machine) -> None:
    """Kill -9 of the holder leaves file and socket. The next start takes both over, and reports the unclean stop."""
    with machine.daemon(is_stopped=False) as first:
        os.kill(first, signal.SIGKILL)
    with machine.daemon() as second:
        assert machine.ok("chat", "--once", "hello").stdout

    assert first != second
    assert machine.until_logged("the last process did not stop in good order")


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")
def test_r22_a_disk_that_cannot_lock_is_reported_and_nothing_runs(tmp_path: Path) -> None:
    """A file system without locks gives exit 78 and one line."""
    machine = Machine(tmp_path)
    tracer = ["-f", "-qq", "-o", str(tmp_path / "trace"), "-e", "trace=flock", "-e", "inject=flock:error=ENOLCK"]

    ran = machine.run(*tracer, str(CLAUDIUS), "daemon", "run", command=str(shutil.which("strace")))

    assert ran.code == 78
    assert "lock files" in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_r22_the_lock_says_who_holds_it_and_no_secret(home: Home) -> None:
    """It holds pid, role, boot, version, start time, eight digits of the hash of each token, and which the environment gave."""
    with HomeLock(home, "daemon") as lock:
        lock.sign("boot-1", NOW, fingerprints({"DISCORD_TOKEN": Secret("canary-token")}))
        record = json.loads(home.lock.read_text())
        found = holder(home)
        with pytest.raises(AlreadyRunning, match=str(os.getpid())):
            HomeLock(home)

    assert record["tokens"] == {"DISCORD_TOKEN": "4b598de5"}
    assert set(record) == {"pid", "role", "unit", "version", "boot", "started_at", "tokens", "of_environment"}
    assert "canary" not in json.dumps(record)
    assert found
    assert (found.pid, found.role) == (os.getpid(), "daemon")
    assert not is_held(home)


def test_r22_a_lock_that_is_a_link_is_refused(home: Home) -> None:
    """A symbolic link in the lock's place could make us write anywhere, so the exit code is 78."""
    home.lock.symlink_to(home.root / "elsewhere")

    with pytest.raises(BadHome):
        HomeLock(home)
