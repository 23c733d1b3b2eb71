"""The sides of a comparison: each in its own process, on the same cores, with its own home, asked in turn.

A side is a script that answers JSON lines: `{"name": ..., ...}` in, `{"ok": ...}` or `{"error": ...}` out.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")

CORES = "BENCH_CORES"
TESTS = Path(__file__).resolve().parents[1] / "tests"
"""The directory of the test lab: loopback servers of networks and models."""
KEPT = ("PATH", "LANG", "LC_ALL", "TZ")
"""All that a side gets of this process's environment. Home, temporary directory and cores are its own."""
ENDS_IN_S = 20.0

Answers = Mapping[str, Callable[..., Any]]


class SideFailed(Exception):
    """A side could not do what it was asked. Its last output is the message."""


class Side:
    """One running side. `ask` waits for its answer."""

    def __init__(self, argv: Sequence[str | Path], home: Path) -> None:
        """Start `argv` with `home` as its home and working directory."""
        home.mkdir(parents=True, exist_ok=True)
        self._log = (home / "side.log").open("wb")
        self._process = subprocess.Popen(
            [str(word) for word in argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            cwd=home,
            env=environment(home),
            start_new_session=True,
        )
        self._path = home / "side.log"

    def ask(self, name: str, **values: Any) -> Any:
        """Have the side run one command. Raises: SideFailed."""
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise SideFailed("no pipes")
        with suppress(BrokenPipeError):
            stdin.write(json.dumps({"name": name, **values}).encode() + b"\n")
            stdin.flush()
        line = stdout.readline()
        if not line:
            raise SideFailed(self._path.read_text("utf-8", "replace").strip()[-2000:] or "it ended without output")
        answer = json.loads(line)
        if "error" in answer:
            raise SideFailed(answer["error"])
        return answer["ok"]

    def kill(self) -> None:
        """End the side as a power cut would."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End the side by closing its input, and finally by force."""
        if self._process.stdin:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(ENDS_IN_S)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        self._log.close()


@contextmanager
def side(script: Path, home: Path, python: Path | None = None) -> Iterator[Side]:
    """Run one side for the length of a block: a script of ours, under this Python or a peer's."""
    started = Side([python or sys.executable, script], home)
    try:
        yield started
    finally:
        started.close()


def peer_python(path: Path) -> Path:
    """Return the Python of a peer's own environment, or ours if it has none."""
    own = path / ".venv" / "bin" / "python"
    return own if own.exists() else Path(sys.executable)


def environment(home: Path) -> dict[str, str]:
    """Return a side's environment: nothing from this machine's own except PATH."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    return kept | {
        "HOME": str(home),
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),  # noqa: S108 - where it lies is the caller's choice
        "PYTHONPYCACHEPREFIX": str(home / "pycache"),
        "PYTHONHASHSEED": "0",
        "CLAUDIUS_RECALL_EMBEDDER": "off",  # as installed by default
        "PYTHONPATH": str(TESTS),
        CORES: ",".join(map(str, sorted(os.sched_getaffinity(0)))),
    }


def serve(answers: Answers) -> None:
    """Act as a side: answer until the input ends. Output of libraries goes to the log, never between the answers."""
    cores = os.environ.get(CORES)
    if cores:
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        try:
            answer: dict[str, Any] = {"ok": answers[asked.pop("name")](**asked)}
        except Exception as error:  # noqa: BLE001 - it is reported to the caller
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        out.write(json.dumps(answer).encode() + b"\n")


def rss_mib() -> float:
    """Return the memory that this process holds now, after garbage collection, in MiB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def cpu_s() -> float:
    """Return the seconds of CPU that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def children_s() -> float:
    """Return the seconds of CPU of all processes that this one started and that ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def alternate(rounds: int, sides: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Run every side once to warm up, and then A B A B for each round. Returns each side's results, in order."""
    found: dict[str, list[T]] = {name: [] for name in sides}
    for number in range(rounds + 1):
        for name, once in sides.items():
            result = once()
            if number:
                found[name].append(result)
    return found
