"""The daemon in its own process, started as `claudius daemon start` does it, with its own home."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from claudius.runtime.life import READY_FD
from claudius.testing.alive import UNHURRIED
from sides import SideFailed, environment

READY_S = 120.0
ENDS_IN_S = 20.0
QUIET = {"CLAUDIUS_PROVIDERS": "rehearsal"}
"""The settings of a daemon whose model needs no network."""


@dataclass(frozen=True, slots=True)
class Daemon:
    """A process that is ready."""

    process: subprocess.Popen[bytes]
    ready_ms: float
    """The time from its start until it reported ready."""

    def rss_mib(self) -> float:
        """Return the memory that it holds now."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def cpu_ms(self) -> float:
        """Return the CPU time that all its threads have had, those that ended included."""
        return 1000 * time.clock_gettime((~self.process.pid << 3) | 2)  # as clock_getcpuclockid(3) makes it

    def kill(self) -> None:
        """End it as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@contextmanager
def daemon(root: Path, more: Mapping[str, str] = QUIET) -> Iterator[Daemon]:
    """Run a daemon at `root` for the length of a block, with `more` in its environment.

    Raises: SideFailed if it fails.
    """
    root.mkdir(parents=True, exist_ok=True)
    ours, theirs = os.pipe()
    with (root / "daemon.log").open("wb") as log, os.fdopen(ours, "rb", buffering=0) as pipe:
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "claudius", "daemon", "run"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=root,
            env=environment(root) | UNHURRIED | {"CLAUDIUS_HOME": str(root), READY_FD: str(theirs), **more},
            pass_fds=(theirs,),
        )
        os.close(theirs)
        try:
            select.select([pipe], [], [], READY_S)
            line = pipe.readline()
            ready_ms = 1000 * (time.perf_counter() - started)
            if not line or json.loads(line)["event"] != "ready":
                raise SideFailed((root / "daemon.log").read_text("utf-8", "replace").strip()[-2000:] or "not ready")
            yield Daemon(process, ready_ms)
        finally:
            process.terminate()
            try:
                process.wait(ENDS_IN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
