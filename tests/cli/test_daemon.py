"""`claudius daemon`: its output, its unit for the service manager, and what it reports to the one who started it."""

import json
import os
import plistlib
import re
import shutil
import socket
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from claudius.cli import daemon_unit
from claudius.cli.daemon import _systemctl, begin, end, is_running, log_lines, running, serve
from claudius.cli.daemon_unit import unit_of
from claudius.errors import ClaudiusError
from claudius.home import Home
from claudius.runtime.life import READY_FD, Starter
from driven import CLAUDIUS, Machine


def test_start_prints_the_pid_of_a_process_in_a_session_of_its_own(machine: Machine) -> None:
    """`start` returns the pid of a listening daemon without a terminal, and creates nothing that others can read."""
    started = machine.ok("daemon", "start")
    pid = int(started.stdout)
    try:
        status = machine.ok("daemon", "status", "--json").json
        session = os.getsid(pid)
        streams = (
            {str(Path(f"/proc/{pid}/fd/{number}").readlink()) for number in (0, 1)}
            if Path("/proc/self/fd").exists()
            else {os.devnull}
        )
        stopped = machine.ok("daemon", "stop")
    finally:
        machine.run("daemon", "stop")
    again = machine.run("daemon", "stop", "--json")

    assert (status["running"], status["pid"], session) == (True, pid, pid)
    assert streams == {os.devnull}
    assert stopped.stdout == f"process {pid} has ended\n"
    assert (again.code, again.json["stopped"]) == (1, False)
    assert [path for path in machine.files() if path.stat().st_mode & 0o077 and path.is_relative_to(machine.home)] == []


def test_restart_is_another_process_of_the_same_home(machine: Machine) -> None:
    """`restart` ends one process and starts another, or starts the first one.

    It names a network that is still connecting.
    """
    nowhere = {"DISCORD_TOKEN": "x.y.z", "CLAUDIUS_DISCORD_API_URL": "http://127.0.0.1:9/api/v10"}
    first = machine.ok("daemon", "restart")
    second = machine.ok("daemon", "restart", env=nowhere)
    machine.ok("daemon", "stop")

    assert int(first.stdout) != int(second.stdout)
    assert first.stderr == ""
    assert second.stderr.startswith("discord: Discord cannot be reached (")


@pytest.mark.parametrize(
    ("broken", "code"),
    [("[nonsense]\n", 78), ('providers = ["anthropic_api"]\n', 78), ('adapters = ["carrier_pigeon"]\n', 78)],
    ids=["setting", "voice", "network"],
)
def test_a_start_that_fails_says_the_daemon_s_own_line(tmp_path: Path, broken: str, code: int) -> None:
    """The output is the daemon's own line and its exit code; with `--json` it is also a document."""
    machine = Machine(tmp_path, env={"CLAUDIUS_PROVIDERS": ""})
    machine.home.mkdir(mode=0o700)
    (machine.home / "config.toml").write_text(broken)

    started = machine.run("daemon", "start", "--json")
    ran = machine.run("daemon", "run")

    assert (started.code, ran.code) == (code, code)
    assert len(started.stderr.splitlines()) == 1
    assert started.stderr == ran.stderr
    assert started.json == {"pid": None, "ready": False, "message": started.stderr.removeprefix("claudius: ").strip()}


def test_why_it_did_not_start_is_the_last_line_of_the_log(machine: Machine) -> None:
    """docs/daemon.md: whoever has systemd start it sees no output; the line that says what to correct is in the log."""
    machine.home.mkdir(mode=0o700)
    (machine.home / "config.toml").write_text("[nonsense]\n")

    ran = machine.run("daemon", "run")
    logged = machine.ok("daemon", "logs", "-n", "1").stdout

    assert ran.stderr.removeprefix("claudius: ").strip() in logged


def test_only_root_stops_a_service_of_the_machine(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the account may not, the line says the command that may."""
    machine.shim("systemctl", "echo Access denied >&2; exit 4")
    monkeypatch.setenv("PATH", f"{machine.bin}:/usr/bin:/bin")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(ClaudiusError, match=r"Access denied; as root: systemctl stop claudius\.service"):
        _systemctl("stop", "system:claudius.service")


def test_a_service_that_is_installed_is_started_by_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stopped service is started through systemd again, never beside it; a daemon started by hand makes room."""
    machine, home = Machine(tmp_path), Home(tmp_path / "user" / ".claudius")
    calls, pid = tmp_path / "calls", tmp_path / "pid"
    waits = f"while ! [ -S {home.socket} ]; do kill -0 $! || exit 1; done"
    machine.shim(
        "systemctl",
        f"""echo "$@" >> {calls}
case "$2" in
start) CLAUDIUS_UNIT=claudius.service {CLAUDIUS} daemon run >{tmp_path}/out 2>&1 & echo $! > {pid}; {waits} ;;
stop) kill $(cat {pid}) ;;
esac
exit 0""",
    )
    for name, value in machine.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(daemon_unit, "BOOTED", tmp_path)
    by_hand = machine.run("daemon", "start", "--json").json["pid"]
    unit = daemon_unit.unit_of(home, os.environ, "linux")

    serve(home, unit)
    was_running = is_running(home)
    begun = begin(home)
    found = running(home)
    ended = end(home)
    machine.shim("systemctl", "echo Job failed >&2; exit 1")
    failed = begin(home)
    (home.root / "config.toml").write_text("[nonsense]\na = 1\n")
    with pytest.raises(ClaudiusError, match=r"nonsense\.a: is not a setting") as refused:
        begin(home)

    assert by_hand
    assert not was_running
    assert (begun.pid, begun.code, found.unit, ended) == (found.pid, 0, "claudius.service", found.pid)
    assert found.pid != by_hand
    assert (failed.code, "`claudius daemon logs -n 1` says why" in failed.message) == (1, True)
    assert refused.value.exit_code == 78
    assert calls.read_text().splitlines()[-2:] == ["--user start claudius.service", "--user stop claudius.service"]


def test_the_unit_does_not_restart_a_daemon_that_cannot_start(machine: Machine) -> None:
    """`install --dry-run` prints the systemd unit and writes nothing, not even a home."""
    ran = machine.ok("daemon", "install", "--dry-run")

    unit = dict(line.split("=", 1) for line in ran.stdout.splitlines() if "=" in line and not line.startswith("#"))
    assert unit["Restart"] == "always"
    assert unit["RestartPreventExitStatus"] == "78"
    assert unit["Type"] == "notify"
    assert unit["EnvironmentFile"] == f"-{machine.home}/.env"
    assert unit["UMask"] == "0077"
    assert unit["ExecStart"].endswith('"claudius" "daemon" "run"')
    assert "claudius.service" in ran.stderr
    assert not machine.home.exists()
    assert machine.run("daemon", "uninstall").code == 1


def test_a_unit_takes_any_path_as_it_is(tmp_path: Path) -> None:
    """Spaces, quotes, `%` and `$` in a home are quoted for systemd. Another home has another unit name."""
    home = Home(tmp_path / 'a "b" 50% $HOME')

    unit = unit_of(home, {"HOME": str(tmp_path), "PATH": "/bin"}, "linux")

    assert '"CLAUDIUS_HOME=' + str(home.root).replace('"', '\\"').replace("%", "%%") + '"' in unit.text
    assert re.fullmatch(r"claudius-[0-9a-f]{8}\.service", unit.name)
    assert unit_of(Home(tmp_path / ".claudius"), {"HOME": str(tmp_path)}, "linux").name == "claudius.service"


def test_a_unit_does_not_freeze_the_path_of_a_shell(tmp_path: Path) -> None:
    """Programs are looked for in the usual places and beside this very command, not where some shell found them."""
    for platform in ("linux", "darwin"):
        unit = unit_of(Home(tmp_path / ".claudius"), {"HOME": str(tmp_path), "PATH": "/some/shell/bin"}, platform)
        assert "/some/shell/bin" not in unit.text
        assert str(tmp_path / ".local" / "bin") in unit.text
        assert "/usr/local/bin" in unit.text


def test_the_unit_of_the_machine_is_printed(machine: Machine) -> None:
    """`install --system --dry-run`: its own user, which is made if missing, and its own home, whoever runs the command."""
    unit = machine.ok("daemon", "install", "--system", "--dry-run").stdout
    other = machine.ok("--home", "/srv/soul", "daemon", "install", "--system", "--account", "ada", "--dry-run")

    assert "User=claudius" in unit
    assert 'ReadWritePaths="/var/lib/claudius"' in unit
    assert "WantedBy=multi-user.target" in unit
    assert "User=ada" in other.stdout
    assert 'ReadWritePaths="/srv/soul"' in other.stdout
    assert "/etc/systemd/system/claudius-" in other.stderr
    assert not machine.home.exists()


MOST_EXPOSED = 2.0
"""How exposed systemd may call the service: 0 is sealed, 10 is open. It needs a network, which costs most of this."""


def analysed(unit: daemon_unit.Unit, directory: Path, *words: str) -> str:
    """Run `systemd-analyze` on a unit; return what it says."""
    path = directory / unit.name
    path.write_text(unit.text)
    ran = subprocess.run(["systemd-analyze", *words, str(path)], capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_calls_the_unit_of_the_machine_safe(tmp_path: Path) -> None:
    """`systemd-analyze` understands every line of it, and its exposure stays below the figure kept here."""
    unit = unit_of(Home(Path("/var/lib/claudius")), {}, "linux", account="claudius")

    figure = re.search(r"exposure level for \S+: ([\d.]+)", analysed(unit, tmp_path, "security", "--offline=true"))
    assert figure
    assert float(figure[1]) <= MOST_EXPOSED
    assert unit.name not in analysed(unit, tmp_path, "verify", "--man=no")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    """Systemd's own verifier reports nothing about it."""
    home = Home(tmp_path / "home with 50%")
    home.create()
    unit = unit_of(home, {"HOME": str(tmp_path)}, "linux")

    assert unit.name not in analysed(unit, tmp_path, "verify", "--man=no")


def test_launchd_gets_an_agent(tmp_path: Path) -> None:
    """On macOS it is an equivalent property list. On other systems it says that no service manager is known."""
    home = Home(tmp_path / ".claudius")

    unit = unit_of(home, {"HOME": str(tmp_path), "PATH": "/bin"}, "darwin")
    agent = plistlib.loads(unit.text.encode())

    assert unit.path == tmp_path / "Library" / "LaunchAgents" / "local.claudius.plist"
    assert agent["ProgramArguments"][-2:] == ["daemon", "run"]
    assert agent["EnvironmentVariables"]["CLAUDIUS_HOME"] == str(home.root)
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    with pytest.raises(ClaudiusError, match="daemon run"):
        unit_of(home, {}, "win32")


def test_the_service_manager_is_told(tmp_path: Path) -> None:
    """READY=1 and STOPPING=1 are sent as in sd_notify(3), and no child inherits the address."""
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        environ = {"NOTIFY_SOCKET": str(path), "CLAUDIUS_UNIT": "claudius.service", "PATH": "/bin"}
        starter = Starter(environ)
        starter.waits("crash-loop brake", 2.0)
        starter.ready()
        starter.stopping()
        heard = [manager.recv(4096).decode() for _ in range(3)]

    assert environ == {"PATH": "/bin"}
    assert starter.unit == "claudius.service"
    assert heard[0] == "STATUS=crash-loop brake"
    assert "READY=1" in heard[1].splitlines()
    assert "STOPPING=1" in heard[2].splitlines()


def test_the_waiting_parent_gets_one_frame() -> None:
    """The pipe gets one frame and is closed. It is not an error if no one reads it."""
    ours, theirs = os.pipe()
    starter = Starter({READY_FD: str(theirs)})
    starter.ready()
    starter.ready()
    with os.fdopen(ours, "rb") as pipe:
        told = pipe.read()

    assert json.loads(told) == {"event": "ready"}
    Starter({}).ready()


def test_the_log_is_followed_across_its_rotation(tmp_path: Path) -> None:
    """The last lines are printed, then each new one, even after a rotation. Half a line waits for its end."""
    log = tmp_path / "claudius.log"
    log.write_text("one\ntwo\nthree\nhal")
    with closing(log_lines(log, 2, follows=True)) as lines:
        first = next(lines)
        with log.open("a") as file:
            file.write("f\nfive\n")
        before = [next(lines), next(lines)]
        log.rename(tmp_path / "claudius.log.1")
        log.write_text("six\n")
        after = next(lines)

    assert (first, before, after) == ("three", ["half", "five"], "six")
    assert list(log_lines(tmp_path / "claudius.log.1", 2, follows=False)) == ["half", "five"]
    with pytest.raises(IsADirectoryError):  # what cannot be read is said, and is no empty log
        next(log_lines(tmp_path, 2, follows=False))


def test_the_log_holds_no_words_of_anybody(tmp_path: Path) -> None:
    """`daemon logs` prints text for people, and JSON lines on request; neither holds words that a person said."""
    machine = Machine(tmp_path)
    with machine.daemon():
        said = machine.ok("chat", "--once", "the word is xylophone", "--json").json
    printed, read = machine.ok("daemon", "logs", "--json").stdout, machine.ok("daemon", "logs").stdout

    events = [json.loads(line) for line in printed.splitlines()]
    turns = [one for one in events if one["event"] == "turn"]
    assert all(one["at"] for one in events)
    assert [(one["turn"], one["posted"], one["rung"]) for one in turns] == [(said["turn"], True, "complete")]
    assert turns[0]["total_ms"] >= turns[0]["model_ms"]
    assert f"INFO    turn {said['turn']}: reply, in " in read
    assert "{" not in read
    assert "xylophone" not in printed + read
    assert len(machine.ok("daemon", "logs", "-n", "1", "--json").stdout.splitlines()) == 1
    assert machine.run("daemon", "logs", env={"CLAUDIUS_HOME": str(tmp_path / "other")}).code == 1
