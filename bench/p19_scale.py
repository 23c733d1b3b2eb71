"""P19: what a turn costs on PostgreSQL, as ratios of the same turn on SQLite, in one run; and a process at rest.

Both sides are the daemon's own intake, lanes and delivery (`crowd.py`), with `fsync` on. The server is one of this run,
reached by its socket; CPU counts its processes too. Floors: the scale design, section 12 (there P1, P3, P4, P8).
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psycopg

from command import Bench, alone
from figures import Beside, Bound, Figure
from sides import alternate, side

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests"))

from lab import postgres  # noqa: E402 - the lab is beside the bench

LANES, TURNS, QUICK_TURNS = 64, 12, 4
SERIAL, QUICK_SERIAL = 100, 30
REST_S = 10.0
REPORTED_S = 15.0
"""By then a server has counted what was asked of it before: each session reports up to ten seconds late."""
TICKS = os.sysconf("SC_CLK_TCK")
THROUGHPUT, CPU, ALONE = Bound(">=", 0.35, None), Bound("<=", 3.0, None), Bound("<=", 1.5, None)
STATEMENTS, CORE = Bound("<=", 2.0, None), Bound("<=", 0.5, None)


def measure(bench: Bench) -> Iterator[Figure]:
    """Alternate a soul on a file with one on a server."""
    turns, serial = (QUICK_TURNS, QUICK_SERIAL) if bench.is_quick else (TURNS, SERIAL)
    with ExitStack() as stack:
        server = stack.enter_context(postgres.running({"fsync": "on", "synchronous_commit": "on"}))
        url = stack.enter_context(postgres.schema(server, "bench"))
        souls = {}
        for name, where in (("sqlite", ""), ("postgres", url)):
            root = bench.home(name)
            souls[name] = stack.enter_context(side(HERE / "crowd.py", root))
            souls[name].ask("begin", root=str(root / "soul"), url=where)
        assert server.data is not None
        data = server.data

        def talk(name: str) -> dict[str, Any]:
            """Take the turns of one round: many conversations, then one alone."""
            before = server_cpu_s(data)
            found = souls[name].ask("talk", conversations=LANES, turns=turns)
            served_ms = 1000 * (server_cpu_s(data) - before) / (LANES * turns) if name == "postgres" else 0.0
            lone = souls[name].ask("talk", conversations=1, turns=serial)
            return {
                "per_s": found["per_s"],
                "cpu_ms": found["cpu_ms"] + served_ms,
                "alone_ms": statistics.median(lone["ms"]),
            }

        sides: dict[str, Callable[[], Any]] = {name: lambda name=name: talk(name) for name in souls}
        found = alternate(bench.rounds, sides)
        souls["postgres"].ask("rest", seconds=REPORTED_S)
        began = transactions(url)
        core = souls["postgres"].ask("rest", seconds=REST_S)
        asked = (transactions(url) - began - 2) / REST_S
        answered = [one.ask("end") for one in souls.values()]
    assert answered == [(bench.rounds + 1) * (LANES * turns + serial)] * 2, answered
    for key, name, unit, bound in (
        ("per_s", f"turns/s, {LANES} conversations", "turns/s", THROUGHPUT),
        ("cpu_ms", "CPU a turn, with the server's", "ms", CPU),
        ("alone_ms", "a turn of one conversation, p50", "ms", ALONE),
    ):
        ours, theirs = ([one[key] for one in found[side_]] for side_ in ("postgres", "sqlite"))
        yield Figure(
            id="P19",
            name=f"PostgreSQL: {name}",
            unit=unit,
            samples=ours,
            beside=(Beside(name="SQLite", bound=bound, samples=theirs),),
        )
    floors = ((asked, "transactions/s at rest", "/s", STATEMENTS), (core, "CPU at rest", "% of a core", CORE))
    for value, name, unit, bound in floors:
        one = Beside(name="floor", bound=bound, samples=[1.0])
        yield Figure(id="P19", name=f"PostgreSQL: {name}", unit=unit, samples=[value], beside=(one,), is_counted=True)


def transactions(url: str) -> int:
    """Return how many transactions the server has committed in this database; each asking adds two."""
    with psycopg.connect(url, autocommit=True) as made:
        made.execute("SELECT pg_stat_clear_snapshot()")
        row = made.execute("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()").fetchone()
    return int(row[0]) if row else 0


def server_cpu_s(data: Path) -> float:
    """Return the CPU seconds that the processes of a server have taken, those that ended included."""
    first = int((data / "postmaster.pid").read_text().split()[0])
    ticks = 0
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, ValueError):
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            if int(place.name) == first:
                ticks += sum(map(int, fields[11:15]))  # its own, and of children that ended
            elif int(fields[1]) == first:
                ticks += sum(map(int, fields[11:13]))
    return ticks / TICKS


if __name__ == "__main__":
    alone(__file__)
