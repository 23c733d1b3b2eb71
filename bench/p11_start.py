"""P11: from start to ready, after a good stop and after a kill with 1,000 messages pending; and `claudius --help`.

No network is used: the daemon hears the terminal alone, and the model is the rehearsal's. Ready is what the daemon
reports to whoever started it: lock, checks, recovery, sockets open. Reported beside it: with Slack and the Anthropic
API
on loopback, which waits until Slack accepts the connection.
"""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from statistics import median
from typing import Any

from anchors import nanobot
from command import Bench, alone
from figures import Beside, Figure, bound
from process import Daemon, daemon
from sides import alternate, children_s, environment, side

HERE = Path(__file__).resolve().parent
HELP = bound("P11.help")
START = bound("P11.start")
RUNS, QUICK_RUNS = 7, 3
BUDGET_MS = 150
PENDING, QUICK_PENDING = 1000, 200
PLAN_MIB = 100
LOOK_S, STILL_LOOKS, MOST_LOOKS = 0.5, 6, 60
"""The process is at rest when it grew by less than a MiB within three seconds."""


def measure(bench: Bench) -> Iterator[Figure]:
    """Alternate starts with the peer's, and the command with a bare Python."""
    yield from _starts(bench)
    yield _help(bench)
    yield _once(bench)


def _starts(bench: Bench) -> Iterator[Figure]:
    pending = QUICK_PENDING if bench.is_quick else PENDING
    with ExitStack() as stack:
        still, fallen, whole = bench.home("still"), bench.home("fallen"), bench.home("whole")
        town = stack.enter_context(side(HERE / "town.py", bench.home("town")))
        addresses = town.ask("open", people=1)
        idle_mib: list[float] = []
        sides: dict[str, Callable[[], Any]] = {
            "still": lambda: _ready_ms(still),
            "fallen": lambda: _after_a_kill_ms(fallen, pending),
            "whole": lambda: _whole_ms(whole, addresses, idle_mib),
        }
        peer = bench.peer("nanobot", START, lambda path: _nanobot(bench, path, sides))
        found = alternate(bench.rounds, sides)
        town.ask("end")
    anchor = peer
    if not peer.reason:
        anchor = Beside(name="nanobot --version", bound=START, samples=found["nanobot"])
    whole_ms = median(found["whole"])
    yield Figure(
        id="P11",
        name="start → ready",
        unit="ms",
        samples=found["still"],
        beside=(anchor,),
        note=f"with Slack and the Anthropic API on loopback {whole_ms:.0f} ms",
    )
    yield Figure(
        id="P11",
        name=f"start → ready, {pending:,} pending after kill -9",
        unit="ms",
        samples=found["fallen"],
        beside=(anchor,),
        note="the oracle: all of them still stand, pending or answered, none answered twice",
    )
    yield Figure(
        id="P10",
        name="daemon at rest, Slack and the Anthropic API on",
        unit="MiB",
        samples=idle_mib[1:],
        note=f"plan {PLAN_MIB} MiB, with Discord too, which is not there yet",
        is_counted=True,
    )


def _ready_ms(home: Path) -> float:
    with daemon(home) as awake:
        return awake.ready_ms


def _whole_ms(home: Path, addresses: dict[str, str], idle_mib: list[float]) -> float:
    with daemon(home, addresses) as awake:
        idle_mib.append(_at_rest_mib(awake))
        return awake.ready_ms


def _at_rest_mib(awake: Daemon) -> float:
    """Wait until the process stops growing, because it still loads modules in its first seconds. Returns its MiB."""
    held = [awake.rss_mib()]
    while len(held) < MOST_LOOKS and (len(held) <= STILL_LOOKS or held[-1] - held[-1 - STILL_LOOKS] > 1):
        time.sleep(LOOK_S)
        held.append(awake.rss_mib())
    return held[-1]


def _after_a_kill_ms(home: Path, pending: int) -> float:
    """Leave messages as a kill leaves them, start, and check that each of them is there."""
    for kept in ("state", "run"):
        shutil.rmtree(home / kept, ignore_errors=True)
    argv = [sys.executable, HERE / "fallen.py", home, str(pending)]
    fell = subprocess.run(argv, env=environment(home), capture_output=True, check=False)
    assert fell.returncode == -signal.SIGKILL, fell.stderr
    with daemon(home) as awake:
        ready_ms = awake.ready_ms
        awake.kill()
    with closing(sqlite3.connect(home / "state" / "claudius.db")) as db:
        (kept_rows,) = db.execute("SELECT count(DISTINCT key) FROM inbox").fetchone()
        (twice,) = db.execute("SELECT count(*) - count(DISTINCT turn) FROM outbox").fetchone()
    assert (kept_rows, twice) == (pending, 0), (kept_rows, twice)
    return ready_ms


def _nanobot(bench: Bench, path: Path, sides: dict[str, Callable[[], Any]]) -> Beside:
    home = bench.home("nanobot")
    nanobot.version_ms(path, home)
    sides["nanobot"] = lambda: nanobot.version_ms(path, home)
    return Beside(name="nanobot", bound=START)


def _help(bench: Bench) -> Figure:
    """Alternate the two. A round is the median of several runs of each."""
    runs = QUICK_RUNS if bench.is_quick else RUNS
    home = bench.home("help")
    claudius = Path(sys.executable).with_name("claudius")
    found = alternate(
        bench.rounds,
        {
            "ours": lambda: _wall_ms([claudius, "--help"], home, runs),
            "bare": lambda: _wall_ms([sys.executable, "-c", "pass"], home, runs),
        },
    )
    return Figure(
        id="P11",
        name="claudius --help",
        unit="ms",
        samples=found["ours"],
        beside=(Beside(name="python -c pass", bound=HELP, samples=found["bare"]),),
        note=f"budget {BUDGET_MS} ms",
    )


def _once(bench: Bench) -> Figure:
    """Alternate one line said through a daemon with the help text; the CPU of the command alone."""
    runs, home = QUICK_RUNS if bench.is_quick else RUNS, bench.home("once")
    claudius = Path(sys.executable).with_name("claudius")
    with daemon(home):
        found = alternate(
            bench.rounds,
            {
                "once": lambda: _cpu_ms([claudius, "chat", "--once", "The bread came out at noon."], home, runs),
                "help": lambda: _cpu_ms([claudius, "--help"], home, runs),
            },
        )
    beside = (Beside(name="claudius --help", bound=bound("P11.once"), samples=found["help"]),)
    return Figure(
        id="P11", name="CPU of chat --once, through a daemon", unit="ms", samples=found["once"], beside=beside
    )


def _cpu_ms(argv: Sequence[str | Path], home: Path, runs: int) -> float:
    began = children_s()
    for _ in range(runs):
        subprocess.run(
            argv, cwd=home, env=environment(home) | {"CLAUDIUS_HOME": str(home)}, capture_output=True, check=True
        )
    return 1000 * (children_s() - began) / runs


def _wall_ms(argv: Sequence[str | Path], home: Path, runs: int) -> float:
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        ran = subprocess.run(argv, cwd=home, env=environment(home), capture_output=True, check=False)
        times.append(1000 * (time.perf_counter() - started))
        assert ran.returncode == 0, ran.stderr
    return median(times)


if __name__ == "__main__":
    alone(__file__)
