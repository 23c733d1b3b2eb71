"""Run the real command `claudius` in its own process, with its own home, environment and PATH."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import termios
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forked import popen

CLAUDIUS = Path(sys.executable).with_name("claudius")
REPOSITORY = Path(__file__).parents[1]
EDITED_S = 0.3
TIMEOUT_S = 60
ROWS = 24


@dataclass(frozen=True, slots=True)
class Ran:
    """How one command ended."""

    args: tuple[str, ...]
    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """Return the one JSON document on stdout."""
        return json.loads(self.stdout)

    @property
    def shown(self) -> str:
        """Return everything that a person would see."""
        return self.stdout + self.stderr


@dataclass(slots=True)
class Terminal:
    """A command that runs on a pseudo-terminal, as a person would run it."""

    process: subprocess.Popen[Any]
    master: int
    shown: str = ""
    """All output so far; typed lines are echoed into it."""
    seen: int = 0
    """How much of `shown` earlier waits have consumed."""

    def until(self, text: str) -> None:
        """Read until `text` is shown, after the text of the previous wait."""
        while (at := self.shown.find(text, self.seen)) < 0:
            assert self._more(), f"the command ended without showing {text!r}:\n{self.shown}"
        self.seen = at + len(text)

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self.master, line.encode() + b"\n")

    def rest(self) -> str:
        """Read to the end of the command; return all that was shown."""
        while self._more():
            pass
        self.process.wait(TIMEOUT_S)
        return self.shown

    def _more(self) -> bool:
        ready, _, _ = select.select([self.master], [], [], TIMEOUT_S)
        assert ready, f"no output for {TIMEOUT_S} s after:\n{self.shown}"
        try:
            piece = os.read(self.master, 65536)
        except OSError:  # Linux raises this once nobody holds the other end
            return False
        self.shown += piece.decode("utf-8", "replace")
        return bool(piece)


def until(pid: int, condition: Callable[[], object]) -> None:
    """Poll until `condition()` is true, while the process lives."""
    give_up_at = time.monotonic() + TIMEOUT_S
    while not condition():
        os.kill(pid, 0)
        assert time.monotonic() < give_up_at, "the condition did not become true in time"
        time.sleep(0.02)


def in_force() -> None:
    """Wait until an edit of the settings or the soul is in force: a process looks at them every quarter of a second."""
    edited = time.monotonic()
    until(os.getpid(), lambda: time.monotonic() > edited + EDITED_S)


@dataclass(slots=True)
class Machine:
    """A machine as one user sees it: a home directory, a temporary directory, an environment, no account anywhere."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)
    umask: int = 0o022
    """The umask that each command inherits."""

    def __post_init__(self) -> None:
        """Make the directories."""
        for directory in (self.user, self.tmp, self.bin):
            directory.mkdir(parents=True, exist_ok=True)

    @property
    def user(self) -> Path:
        """The user's own directory."""
        return self.root / "user"

    @property
    def home(self) -> Path:
        """Claudius's home; commands create it."""
        return self.user / ".claudius"

    @property
    def tmp(self) -> Path:
        """Where temporary files go."""
        return self.root / "tmp"

    @property
    def bin(self) -> Path:
        """The directory of commands that are found before the machine's own."""
        return self.root / "bin"

    def keep_at(self, url: str) -> None:
        """Have the home name a store, before anything is kept in it."""
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        (self.home / "config.toml").write_text(f'[store]\nurl = "{url}"\n')

    @property
    def log(self) -> Path:
        """The path of the log."""
        return self.home / "logs" / "claudius.log"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return exactly the environment that a command gets: nothing of this machine but PATH."""
        return {
            "PATH": os.pathsep.join((str(self.bin), str(CLAUDIUS.parent), os.environ["PATH"])),
            "HOME": str(self.user),
            "TMPDIR": str(self.tmp),
            "LANG": "C.UTF-8",
            "LOGNAME": "ada",
            "CLAUDIUS_PROVIDERS": "rehearsal",
            "CLAUDIUS_RECALL_EMBEDDER": "off",  # as installed by default; it takes a second and 130 MB a daemon
            **self.env,
            **(more or {}),
        }

    def run(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        command: str = "",
        within_s: float = TIMEOUT_S,
    ) -> Ran:
        """Run `claudius ARGS`, or another command; return how it ended."""
        with popen(
            [command or str(CLAUDIUS), *args],
            env=self.environment(env),
            cwd=self.user,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            umask=self.umask,
        ) as process:
            try:
                stdout, stderr = process.communicate(stdin.encode(), within_s)
            except BaseException:
                process.kill()
                raise
        return Ran(args, process.returncode, stdout.decode(), stderr.decode())

    def ok(self, *args: str, env: Mapping[str, str] | None = None, stdin: str = "", within_s: float = TIMEOUT_S) -> Ran:
        """Run a command that must succeed."""
        ran = self.run(*args, env=env, stdin=stdin, within_s=within_s)
        assert ran.code == 0, f"{args} ended with {ran.code}:\n{ran.shown}"
        return ran

    @contextmanager
    def terminal(
        self, *args: str, env: Mapping[str, str] | None = None, columns: int = 80, command: str = ""
    ) -> Iterator[Terminal]:
        """Run `claudius ARGS`, or another command, with a terminal as its input and output: one that only prints."""
        ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (ROWS, columns))
        process = popen(
            [command or str(CLAUDIUS), *args],
            env=self.environment({"TERM": "dumb", **(env or {})}),
            cwd=self.user,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            umask=self.umask,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            yield Terminal(process, ours)
        finally:
            process.kill()
            process.wait()
            os.close(ours)

    def seen(self, *args: str, env: Mapping[str, str] | None = None) -> str:
        """Run a command on a terminal to its end; return everything that it wrote there."""
        with self.terminal(*args, env=env) as terminal:
            return terminal.rest()

    @contextmanager
    def daemon(self, env: Mapping[str, str] | None = None, *, is_stopped: bool = True) -> Iterator[int]:
        """Run the daemon in the background for a block; yield its process id. It is killed if not `is_stopped`."""
        started = self.run("daemon", "start", "--json", env=env)
        pid = started.json["pid"]
        try:
            assert started.code == 0, started.shown
            yield pid
            if is_stopped:
                self.ok("daemon", "stop")
        finally:
            if pid is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    @contextmanager
    def foreground(self, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[Any]]:
        """Run the daemon in the foreground, as its parent, until the block ends; stdout and stderr are one stream."""
        process = popen(
            [str(CLAUDIUS), "daemon", "run"],
            env=self.environment(env),
            cwd=self.user,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            umask=self.umask,
        )
        try:
            until(process.pid, (self.home / "run" / "claudius.sock").exists)
            yield process
        finally:
            process.kill()
            process.communicate()

    def events(self) -> list[dict[str, Any]]:
        """Return the log's events, oldest first."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def until_logged(self, event: str) -> dict[str, Any]:
        """Wait until the log holds an event; return that event."""
        until = time.monotonic() + TIMEOUT_S
        while time.monotonic() < until:
            found = next((one for one in self.events() if one["event"] == event), None)
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"never logged: {event}\n{self.log.read_text()}")

    def shim(self, name: str, lines: str) -> None:
        """Put a shell script in front of a command of the machine; it runs `lines`, then the real command."""
        real = shutil.which(name)
        assert real, f"{name} is not installed"
        path = self.bin / name
        path.write_text(f'#!/bin/sh\n{lines}\nexec {real} "$@"\n')
        path.chmod(0o755)

    def files(self) -> Iterator[Path]:
        """Yield every file and directory that the commands have created."""
        for top in (self.user, self.tmp):
            for directory, _, names in os.walk(top):
                if Path(directory) != top:
                    yield Path(directory)
                yield from (Path(directory) / name for name in names)

    def scripted(self, *replies: object) -> None:
        """Have the scripted provider return these replies from now on, one a call, and record each request."""
        lines = self.root / "scripted.jsonl"
        lines.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
        self.env |= {
            "CLAUDIUS_PROVIDERS": "scripted",
            "CLAUDIUS_SCRIPTED_FILE": str(lines),
            "CLAUDIUS_SCRIPTED_RECORD": str(self.requests),
        }

    @property
    def requests(self) -> Path:
        """Return the requests that the scripted provider received, one per JSON line."""
        return self.root / "requests.jsonl"


def reply(dialogue: str, **sections: str) -> str:
    """Return a reply in the step format: a monologue, the spoken words, and any further sections by tag."""
    parts = {"internal_monologue": "Somebody speaks.", "external_dialogue": dialogue, **sections}
    return "\n".join(f"<{tag}>{text}</{tag}>" for tag, text in parts.items())


def repeated(text: str, **steps: str) -> str:
    """Return what a model writes that says, thinks and writes down everywhere what it just heard."""
    said = {"internal_monologue": f"They said {text}.", "model_change_note": text}
    checks = dict.fromkeys(("user_model_check", "soul_state_check"), "true")
    updates = {"user_model_update": f"## Persona\n{text}", "soul_state_update": f"currentTopic: {text}"}
    return reply(f"I heard: {text}", **said, **checks, **updates, **steps)


class ServedConsole:
    """A console that runs."""

    def __init__(self, machine: Machine, pid: int) -> None:
        self.machine, self.pid = machine, pid

    def __call__(self) -> str:
        """Return an address to enter by, once."""
        return self.machine.ok("console", "--link").stdout.strip()


@contextmanager
def serving_console(machine: Machine) -> Iterator[ServedConsole]:
    """Run the real command `claudius console` for a block."""
    process = popen(
        [str(CLAUDIUS), "console", "--no-open"],
        env=machine.environment(),
        cwd=machine.user,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout
        assert process.stdout.readline().startswith("http://127.0.0.1:")
        until(process.pid, (machine.home / "run" / "console" / "console.lock").exists)
        yield ServedConsole(machine, process.pid)
    finally:
        process.terminate()
        process.communicate(timeout=20)


class ConsoleClient:
    """A client that entered, without a browser."""

    def __init__(self, address: str) -> None:
        self.base, _, ticket = address.partition("/#")
        self.headers: dict[str, str] = {}
        self.headers["Authorization"] = f"Bearer {self.post('enter', {'ticket': ticket})['token']}"

    def get(self, path: str) -> Any:
        """Read one document."""
        return self._ask(path, None)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Post one document."""
        return self._ask(path, json.dumps(body).encode())

    def lines(self, path: str, body: dict[str, Any]) -> list[str]:
        """Post one document, and return the lines of the answer."""
        return self._text(path, json.dumps(body).encode()).splitlines()

    def _ask(self, path: str, data: bytes | None) -> Any:
        return json.loads(self._text(path, data))

    def _text(self, path: str, data: bytes | None) -> str:
        headers = self.headers | ({"Content-Type": "application/json"} if data else {})
        with urllib.request.urlopen(urllib.request.Request(f"{self.base}/api/{path}", data, headers)) as answer:  # noqa: S310 - our own server
            return str(answer.read().decode())
