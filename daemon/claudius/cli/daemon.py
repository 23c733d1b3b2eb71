"""`claudius daemon`: run, start, stop and install the soul as a background process, and read its log."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from claudius.cli.output import Group, json_option, print_json, print_result, safe
from claudius.errors import EXIT_FAILED, EXIT_TRY_AGAIN, ClaudiusError, TryAgain
from claudius.home import Home
from claudius.provider import dollars
from claudius.runtime.life import Holder, HomeLock, holder, is_held

if TYPE_CHECKING:
    from claudius.cli.daemon_unit import Unit

READY_S = 120.0
"""How long `start` waits for the daemon to be ready."""
ENDED_S = 15.0
"""How long a stop may take: 10 s for running work, and a margin for a slow disk."""
LOOK_AGAIN_S = 0.02


@click.group(cls=Group)
def daemon() -> None:
    """The soul as a process of its own, awake from start to stop."""


@daemon.command()
@json_option
@click.pass_context
def status(ctx: click.Context, *, as_json: bool) -> int:
    """Show what is running, who speaks, and what waits."""
    from claudius.cli.status import status as told  # its imports take a tenth of a second

    code: int = ctx.invoke(told, as_json=as_json)
    return code


@daemon.command()
def run() -> None:
    """Run the daemon here, in the foreground, until SIGTERM or Ctrl-C; SIGHUP reads the settings again."""
    import asyncio
    import gc

    gc.disable()  # until everything is imported, since imports make no garbage: saves a tenth of the start time

    from claudius.runtime.life import Awake, Pause, Starter, live

    home = Home.of(os.environ)

    async def waking(lock: HomeLock, pause: Pause) -> Awake:
        from claudius.compose import compose  # loaded after the lock, so that a second start fails fast

        try:
            return await compose(home, networks=True, lock=lock, pause=pause)
        finally:
            gc.freeze()
            gc.enable()

    asyncio.run(live(home, waking, starter=Starter(os.environ)))


@daemon.command()
@json_option
def start(*, as_json: bool) -> int:
    """Start the daemon in the background; return when it is ready, and print its process id.

    If it is installed as a service, systemd starts it.
    """
    home = Home.of(os.environ)
    return _launched(begin(home), home, as_json=as_json)


@daemon.command()
@json_option
def stop(*, as_json: bool) -> int:
    """Stop the daemon: it finishes running work, for 10 s at most; wait until it has ended."""
    try:
        pid = end(Home.of(os.environ))
    except NotRunning as error:
        document: dict[str, Any] = {"stopped": False, "pid": None, "message": error.message}
    else:
        document = {"stopped": True, "pid": pid, "message": f"process {pid} has ended"}
    print_result(document, [document["message"]], as_json=as_json)
    return 0 if document["stopped"] else EXIT_FAILED


@daemon.command()
@json_option
def restart(*, as_json: bool) -> int:
    """Stop the daemon if it is running, and start it."""
    home = Home.of(os.environ)
    if is_running(home):
        found = running(home)
        if found.unit:
            _systemctl("restart", found.unit)
            click.echo("restarted by the service manager", err=True)
            return 0
        end(home)
    return _launched(begin(home), home, as_json=as_json)


@daemon.command()
@click.option("-n", "--lines", "count", type=click.IntRange(0, 2**31 - 1), help="Only this many of the last lines.")
@click.option("-f", "--follow", is_flag=True, help="Keep printing new lines as they come.")
@click.option("--json", "as_json", is_flag=True, help="Print the lines as they are: one JSON object each.")
def logs(count: int | None, *, follow: bool, as_json: bool) -> int:
    """Print the log, without anybody's words."""
    from claudius.runtime.logs import LOG

    path = Home.of(os.environ).logs / LOG
    if not path.exists() and not follow:
        click.echo(f"{path} does not exist yet: no daemon ever ran here", err=True)
        return EXIT_FAILED
    for line in log_lines(path, count, follows=follow):
        click.echo(line if as_json else readable(line))
    return 0


_system_option = click.option("--system", is_flag=True, help="A service of the machine (systemd), not of this user.")
_account_option = click.option(
    "--account",
    default="claudius",
    show_default=True,
    help="With --system: the user that runs it; it is made if missing.",
)


def _service_home(*, system: bool) -> Home:
    """Return the home that a service is for: of the machine's, another one by default."""
    from claudius.cli.daemon_unit import SYSTEM_HOME

    is_named = bool(os.environ.get("CLAUDIUS_HOME"))
    return Home.of(os.environ) if is_named or not system else Home(SYSTEM_HOME)


@daemon.command()
@click.option("--dry-run", is_flag=True, help="Print the file that would be written, and do nothing.")
@_system_option
@_account_option
def install(*, dry_run: bool, system: bool, account: str) -> None:
    """Have the system start the daemon at login and after a crash: systemd's user units, or launchd.

    With --system, at every start of the machine, as a user of its own that may write nothing but its home.
    """
    from claudius.cli.daemon_unit import check_system, unit_of

    home = _service_home(system=system)
    unit = unit_of(home, os.environ, account=account if system else "")
    if dry_run:
        click.echo(f"{unit.path} would hold:", err=True)
        click.echo(unit.text, nl=False)
        return
    if system:
        check_system(home)
    else:
        home.create()
    serve(home, unit)
    logs = f"sudo -u {account} claudius --home {home.root} daemon logs" if system else "claudius daemon logs"
    click.echo(f"{unit.path} is written and {unit.name} is started; its log: {logs}")


@daemon.command()
@_system_option
@_account_option
def uninstall(*, system: bool, account: str) -> int:
    """Remove what makes the system start the daemon, and stop the daemon; nothing that it keeps is touched."""
    from claudius.cli.daemon_unit import remove_unit, unit_of

    unit = unit_of(_service_home(system=system), os.environ, account=account if system else "")
    if not remove_unit(unit):
        click.echo(f"{unit.path} does not exist: nothing is installed")
        return EXIT_FAILED
    click.echo(f"{unit.path} is removed")
    return 0


def _launched(launched: Launched, home: Home, *, as_json: bool) -> int:
    if as_json:
        print_json({"pid": launched.pid, "ready": launched.is_ready, "message": launched.message})
    elif launched.is_ready:
        click.echo(f"awake: process {launched.pid}" if sys.stdout.isatty() else launched.pid)
    if not launched.is_ready:
        click.echo(f"claudius: {launched.message}", err=True)
        return launched.code
    import asyncio

    from claudius.reports.session import ask

    live = asyncio.run(ask(home, "status")) or {}
    if wrong := (live.get("provider") or {}).get("last_error"):
        click.echo(f"voice: {wrong['detail']}: {wrong['fix']}", err=True)
    for one in live.get("adapters", ()):
        if one["detail"]:  # not heard yet, or hears nobody
            click.echo(f"{one['name']}: {one['detail']}", err=True)
    return launched.code


def log_lines(path: Path, count: int | None, *, follows: bool) -> Iterator[str]:
    """Yield the last `count` lines of a log, or all; if it `follows`, then each new one, across the file's rotation.

    Raises: OSError if it cannot be read.
    """
    if path.exists():
        path.open("rb").close()  # `tail` would say so only to its own stderr
    argv = ["tail", "-n", "+1" if count is None else str(count), *(["-F"] if follows else []), str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as tail:
        assert tail.stdout  # noqa: S101 - opened above
        try:
            for line in tail.stdout:
                yield line.decode("utf-8", "replace").rstrip("\n")
        finally:
            tail.kill()


class NotRunning(ClaudiusError):
    """No daemon runs."""


class Launched(Struct, frozen=True):
    """The outcome of a start."""

    pid: int | None
    code: int
    """The exit code for the command."""
    message: str = ""

    @property
    def is_ready(self) -> bool:
        """Whether the daemon is listening."""
        return self.code == 0


def begin(home: Home) -> Launched:
    """Have systemd start the daemon where it is installed as a service, else start it from here.

    Raises: ClaudiusError.
    """
    from claudius.cli.daemon_unit import installed
    from claudius.config.load import load

    unit = "" if is_running(home) else installed(home, os.environ)
    if not unit:
        return launch(home)
    load(home, os.environ)  # says what is wrong with a setting: systemd says only that the start failed
    try:
        _systemctl("start", unit)
    except ClaudiusError as error:
        return Launched(None, EXIT_FAILED, f"{error.message}; `claudius daemon logs -n 1` says why")
    return Launched(running(home).pid, 0)


def serve(home: Home, unit: Unit) -> None:
    """Install a service and start it; a daemon that was started by hand makes room for it. Raises: ClaudiusError."""
    from claudius.cli.daemon_unit import write_unit

    if is_running(home) and not running(home).unit:
        end(home)
    write_unit(unit)


def launch(home: Home) -> Launched:
    """Start `claudius daemon run` in its own session; wait until it is ready, is waiting, or has ended."""
    from claudius.runtime.life import READY_FD

    home.create()
    ours, theirs = os.pipe()
    with TemporaryFile(dir=home.run) as stderr:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "claudius", "daemon", "run"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            env={**os.environ, READY_FD: str(theirs)},
            cwd=home.root,
            pass_fds=(theirs,),
            start_new_session=True,
            umask=0o077,
        )
        os.close(theirs)
        with os.fdopen(ours, "rb", buffering=0) as pipe:
            told = {"event": "late"}
            if select.select([pipe], [], [], READY_S)[0]:
                line = os.read(pipe.fileno(), select.PIPE_BUF)
                told = json.loads(line) if line else {}  # empty: it ended without a word
        match told.get("event"):
            case "ready":
                launched = Launched(process.pid, 0)
            case "waits":
                launched = Launched(process.pid, EXIT_TRY_AGAIN, f"process {process.pid} waits: {told['message']}")
            case "late":
                message = f"process {process.pid} is not ready after {READY_S:.0f} s: see `claudius daemon logs`"
                launched = Launched(process.pid, EXIT_TRY_AGAIN, message)
            case _:
                code = process.wait()
                stderr.seek(0)
                said = stderr.read().decode("utf-8", "replace").strip().splitlines()
                message = (said or [f"the daemon ended with {code}"])[-1].removeprefix("claudius: ")
                launched = Launched(None, code if code > 0 else EXIT_FAILED, message)
    process.returncode = launched.code  # the daemon outlives us: silences "subprocess is still running"
    return launched


def running(home: Home) -> Holder:
    """Return the daemon that holds a home. Raises: NotRunning."""
    found = holder(home) if is_held(home) else None
    if found is None:
        raise NotRunning(f"no daemon runs for {home.root}")
    if found.role != "daemon":
        raise NotRunning(f"no daemon runs for {home.root}; process {found.pid}, a command, holds it for now")
    return found


def is_running(home: Home) -> bool:
    """Return whether a daemon holds a home."""
    try:
        return bool(running(home))
    except NotRunning:
        return False


def end(home: Home) -> int:
    """Stop the daemon of a home, wait until the home is free; return its process id. Raises: NotRunning, TryAgain."""
    found = running(home)
    if found.unit:
        _systemctl("stop", found.unit)
    else:
        try:
            with suppress(ProcessLookupError):
                os.kill(found.pid, signal.SIGTERM)
        except PermissionError as error:
            raise NotRunning(f"process {found.pid} belongs to another user") from error
    until = time.monotonic() + ENDED_S
    while is_held(home):
        if time.monotonic() > until:
            raise TryAgain(f"process {found.pid} has not ended within {ENDED_S:.0f} s: end it with kill -9 {found.pid}")
        time.sleep(LOOK_AGAIN_S)
    return found.pid


def _systemctl(*words: str) -> None:
    from claudius.cli.daemon_unit import SYSTEM

    *verbs, unit = words
    of_the_machine = unit.startswith(SYSTEM)
    argv = ["systemctl", *(() if of_the_machine else ("--user",)), *verbs, unit.removeprefix(SYSTEM)]
    ran = subprocess.run(argv, capture_output=True, text=True, check=False)
    if ran.returncode:
        why = f"{' '.join(argv)}: {(ran.stderr.strip() or str(ran.returncode)).splitlines()[0]}"
        raise ClaudiusError(f"{why}; as root: {' '.join(argv)}" if of_the_machine and os.geteuid() else why)


COLOURS = {"DEBUG": "bright_black", "WARNING": "yellow", "ERROR": "red", "CRITICAL": "red"}
FIRST = ("at", "level", "logger", "event", "traceback")


def readable(line: str) -> str:
    """Return a JSON line as text; a line that is none is returned as it is."""
    try:
        event = json.loads(line)
    except ValueError:
        return safe(line)
    if not isinstance(event, dict):
        return safe(line)
    level = str(event.get("level", ""))
    at = str(event.get("at", "")).replace("T", " ")[:19]
    facts = {name: value for name, value in event.items() if name not in FIRST and value not in (None, "")}
    what = _turn_line(facts) if event.get("event") == "turn" and "total_ms" in facts else _event_line(event, facts)
    head = f"{click.style(at, dim=True)} {click.style(f'{level:<7}', fg=COLOURS.get(level))} {safe(what)}"
    trace = "".join(f"\n    {safe(one)}" for one in str(event.get("traceback") or "").splitlines())
    return head + trace


def _event_line(event: dict[str, Any], facts: dict[str, Any]) -> str:
    room = str(event.get("logger", "")).removeprefix("claudius.")
    told = "  ".join(f"{name}={_fact(value)}" for name, value in facts.items())
    return f"{room}: {event.get('event', '')}" + (f"  {told}" if told else "")


def _turn_line(facts: dict[str, Any]) -> str:
    said = facts.get("apology") or facts.get("outcome", "")
    took = f"{facts['total_ms'] / 1000:.1f} s, model {facts['model_ms'] / 1000:.1f} s"
    cost = dollars(facts["cost_usd"]) if "cost_usd" in facts else ""
    unposted = "" if facts.get("posted") else "not posted yet"
    parts = (said, f"in {took}", facts.get("rung", ""), facts.get("model", ""), cost, unposted)
    where = f"{facts.get('conversation', '')} {facts.get('person', '')}".strip()
    return f"turn {facts.get('turn', '')}: {', '.join(str(one) for one in parts if one)}  {where}"


def _fact(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
