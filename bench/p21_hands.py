"""P21: what tools cost who does not use them: CPU of a turn, memory and start with three servers, and a worker's start.

The turn is taken beside one of a soul whose tools are switched off, on a store that holds 10,000 calls; the daemon's
start and memory beside one without servers; the loop of a process that starts the hands beside one that does nothing.
"""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

from claudius.tools.mcp import McpHands
from command import Bench, alone
from figures import UNJUDGED, Beside, Figure, bound, within
from p11_start import _at_rest_mib
from process import daemon
from sides import TESTS, alternate, environment, side

HERE = Path(__file__).resolve().parent
LAB = TESTS / "lab" / "mcp_server.py"
TURNS, QUICK_TURNS = 300, 60
STARTS, QUICK_STARTS = 7, 2
CALLS = 10_000
CPU, START = bound("P21.cpu"), bound("P21.start")
TICK_S, LOOKS_S = 0.001, 3.0
FILLED = (
    "WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < ?) "
    "INSERT INTO tool_call (id, turn, conversation, audience, person, tool, class, args, args_sha256, state, asked_at) "
    "SELECT 'filled' || i || '/0', 'filled' || i, 'terminal:local:main:bench', 'private:terminal:local:tom', "
    "'terminal:local:tom', 'clock', 'look', '{}', '', 'done', '2026-01-01T00:00:00.000000Z' FROM i"
)


def measure(bench: Bench) -> Iterator[Figure]:
    """Alternate a soul with tools and one without, a daemon with servers and one without; start the hands."""
    yield _cpu(bench)
    yield from _daemon(bench)
    yield _stall(bench)


def _cpu(bench: Bench) -> Figure:
    turns = QUICK_TURNS if bench.is_quick else TURNS
    with ExitStack() as stack:
        sides: dict[str, Any] = {}
        souls = []
        for name in ("tools", "none"):
            root = bench.home(name) / "soul"
            root.mkdir(mode=0o700)
            if name == "none":
                (root / "config.toml").write_text("[tools]\nenabled = false\n")
            soul = stack.enter_context(side(HERE / "ours.py", root.parent))
            soul.ask("begin", root=str(root))
            if name == "tools":
                _fill(root)
            souls.append(soul)
            sides[name] = partial(soul.ask, "turns", count=turns)
        found = alternate(bench.rounds, sides)
        for soul in souls:
            soul.ask("end")
    cpu = {name: [one["cpu_ms"] for one in found[name]] for name in sides}
    beside = Beside(name="tools switched off", bound=CPU, samples=cpu["none"])
    note = f"{CALLS:,} calls kept"
    return Figure(
        id="P21", name="CPU of a turn that uses no tool", unit="ms", samples=cpu["tools"], beside=(beside,), note=note
    )


def _fill(root: Path) -> None:
    with closing(sqlite3.connect(root / "state" / "claudius.db", isolation_level=None)) as db:
        db.execute(FILLED, (CALLS,))


def _daemon(bench: Bench) -> Iterator[Figure]:
    """Start both in turn; a round is a start of each."""
    homes = {"three": bench.home("three"), "none": bench.home("bare")}
    claudius = Path(sys.executable).with_name("claudius")
    for name in ("one", "two", "three"):
        argv = [claudius, "tools", "add", name, "--allow", "echo=look", "--", sys.executable, LAB, "good", f"./{name}"]
        env = environment(homes["three"]) | {"CLAUDIUS_HOME": str(homes["three"])}
        subprocess.run(argv, cwd=homes["three"], env=env, check=True, capture_output=True)
    ready: dict[str, list[float]] = {name: [] for name in homes}
    held: dict[str, list[float]] = {name: [] for name in homes}

    def started(name: str) -> None:
        with daemon(homes[name]) as awake:
            ready[name].append(awake.cpu_ms())
            held[name].append(_at_rest_mib(awake))

    alternate(QUICK_STARTS if bench.is_quick else STARTS, {name: partial(started, name) for name in homes})
    beside = Beside(name="no server", bound=START, samples=ready["none"][1:])
    name = "CPU of a start with three servers"
    yield Figure(id="P21", name=name, unit="ms", samples=ready["three"][1:], beside=(beside,))
    more = [three - none for three, none in zip(held["three"][1:], held["none"][1:], strict=True)]
    name, beside = "more memory at rest with three servers", within("P21.memory", len(more))
    yield Figure(id="P21", name=name, unit="MiB", samples=more, beside=(beside,), is_counted=True)


def _stall(bench: Bench) -> Figure:
    rounds = 2 if bench.is_quick else bench.rounds
    found = [asyncio.run(_gap_ms(bench.home("hands"), starts=True)) for _ in range(rounds)]
    still = [asyncio.run(_gap_ms(bench.home("still"), starts=False)) for _ in range(rounds)]
    return Figure(
        id="P21",
        name="longest stall of the loop while the hands and a server start",
        unit="ms",
        samples=found,
        beside=(within("P21.stall", rounds), Beside(name="nothing is started", bound=UNJUDGED, samples=still)),
    )


async def _gap_ms(home: Path, *, starts: bool) -> float:
    """Return the longest time between two steps of the loop, while a server is started or for as long."""
    hands, loop = McpHands(home / "cwd"), asyncio.get_running_loop()
    spec = {"command": [sys.executable, str(LAB), "good", str(home / "file")], "env": {}}
    job = asyncio.create_task(hands.list("lab", spec) if starts else asyncio.sleep(LOOKS_S))  # type: ignore[arg-type] # either is awaited
    longest, last = 0.0, loop.time()
    while not job.done():
        await asyncio.sleep(TICK_S)
        now = loop.time()
        longest, last = max(longest, now - last - TICK_S), now
    await job
    await hands.close()
    return 1000 * longest


if __name__ == "__main__":
    alone(__file__)
