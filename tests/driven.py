"""Drive the real command `claudius` in a process of its own, with a home, an environment and a PATH of its own."""

from __future__ import annotations

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CLAUDIUS = Path(sys.executable).with_name("claudius")
REPOSITORY = Path(__file__).parents[1]
TIMEOUT_S = 60


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
    """A command that runs before a person."""

    process: subprocess.Popen[bytes]
    master: int
    shown: str = ""
    """All that it was sent so far; what is typed is echoed into it."""
    seen: int = 0
    """How much of that was waited for already."""

    def until(self, text: str) -> None:
        """Read until `text` is shown after what was waited for before."""
        while (at := self.shown.find(text, self.seen)) < 0:
            assert self._more(), f"it ended without {text!r}:\n{self.shown}"
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
        assert ready, f"nothing for {TIMEOUT_S} s after:\n{self.shown}"
        try:
            piece = os.read(self.master, 65536)
        except OSError:  # how Linux says that nobody holds the other end
            return False
        self.shown += piece.decode("utf-8", "replace")
        return bool(piece)


def until(pid: int, condition: Callable[[], object]) -> None:
    """Look again and again until `condition()` holds, while the process lives."""
    give_up_at = time.monotonic() + TIMEOUT_S
    while not condition():
        os.kill(pid, 0)
        assert time.monotonic() < give_up_at, "it did not come"
        time.sleep(0.02)


@dataclass(slots=True)
class Machine:
    """A machine as one user sees it: a directory of their own, a temporary one, an environment, no account anywhere."""

    root: Path
    env: dict[str, str] = field(default_factory=dict)
    umask: int = 0o022
    """What the parent of each command has set."""

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
        """Claudius's home; no command has made it yet."""
        return self.user / ".claudius"

    @property
    def tmp(self) -> Path:
        """Where temporary files go."""
        return self.root / "tmp"

    @property
    def bin(self) -> Path:
        """Commands put here are found before the machine's own."""
        return self.root / "bin"

    @property
    def log(self) -> Path:
        """The log."""
        return self.home / "logs" / "claudius.log"

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return exactly what a command gets: nothing of this machine but PATH."""
        return {
            "PATH": os.pathsep.join((str(self.bin), str(CLAUDIUS.parent), os.environ["PATH"])),
            "HOME": str(self.user),
            "TMPDIR": str(self.tmp),
            "LANG": "C.UTF-8",
            "LOGNAME": "ada",
            "CLAUDIUS_PROVIDERS": "rehearsal",
            **self.env,
            **(more or {}),
        }

    def run(self, *args: str, env: Mapping[str, str] | None = None, stdin: str = "", command: str = "") -> Ran:
        """Run `claudius ARGS`, or another command; return how it ended."""
        ended = subprocess.run(
            [command or str(CLAUDIUS), *args],
            env=self.environment(env),
            cwd=self.user,
            input=stdin.encode(),
            capture_output=True,
            timeout=TIMEOUT_S,
            umask=self.umask,
            check=False,
        )
        return Ran(args, ended.returncode, ended.stdout.decode(), ended.stderr.decode())

    def ok(self, *args: str, env: Mapping[str, str] | None = None, stdin: str = "") -> Ran:
        """Run a command that must succeed."""
        ran = self.run(*args, env=env, stdin=stdin)
        assert ran.code == 0, f"{args} ended with {ran.code}:\n{ran.shown}"
        return ran

    @contextmanager
    def terminal(self, *args: str, env: Mapping[str, str] | None = None) -> Iterator[Terminal]:
        """Run `claudius ARGS` before a person: its input and output are a terminal."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [str(CLAUDIUS), *args],
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
        """Run a command before a person to its end; return all that the terminal was sent."""
        with self.terminal(*args, env=env) as terminal:
            return terminal.rest()

    @contextmanager
    def daemon(self, env: Mapping[str, str] | None = None, *, is_stopped: bool = True) -> Iterator[int]:
        """Have the daemon awake for a block; give its process id. Where not `is_stopped`, it is killed at the end."""
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
    def foreground(self, env: Mapping[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """Be the parent of a daemon in the foreground until the block ends; both its streams are its stdout."""
        process = subprocess.Popen(
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
        """Return the log, event by event."""
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def until_logged(self, event: str) -> dict[str, Any]:
        """Wait until the log holds an event; return it."""
        until = time.monotonic() + TIMEOUT_S
        while time.monotonic() < until:
            found = next((one for one in self.events() if one["event"] == event), None)
            if found:
                return found
            time.sleep(0.02)
        raise AssertionError(f"never logged: {event}\n{self.log.read_text()}")

    def shim(self, name: str, lines: str) -> None:
        """Put a shell script before a command of the machine; it runs `lines`, then the real command."""
        real = shutil.which(name)
        assert real, f"{name} is not installed"
        path = self.bin / name
        path.write_text(f'#!/bin/sh\n{lines}\nexec {real} "$@"\n')
        path.chmod(0o755)

    def files(self) -> Iterator[Path]:
        """Walk everything that commands have made, directories too."""
        for top in (self.user, self.tmp):
            for directory, _, names in os.walk(top):
                if Path(directory) != top:
                    yield Path(directory)
                yield from (Path(directory) / name for name in names)

    def scripted(self, *replies: object) -> None:
        """Let the scripted voice say these from now on, one a call, and record each request."""
        lines = self.root / "scripted.jsonl"
        lines.write_text("".join(json.dumps(reply) + "\n" for reply in replies))
        self.env |= {
            "CLAUDIUS_PROVIDERS": "scripted",
            "CLAUDIUS_SCRIPTED_FILE": str(lines),
            "CLAUDIUS_SCRIPTED_RECORD": str(self.requests),
        }

    @property
    def requests(self) -> Path:
        """What the scripted voice was asked, one JSON line each."""
        return self.root / "requests.jsonl"


def reply(dialogue: str, **sections: str) -> str:
    """Write a reply in the step format: a monologue, the words aloud, and any further sections by tag."""
    parts = {"internal_monologue": "Somebody speaks.", "external_dialogue": dialogue, **sections}
    return "\n".join(f"<{tag}>{text}</{tag}>" for tag, text in parts.items())
