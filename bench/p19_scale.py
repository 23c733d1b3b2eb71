"""P19: what a turn costs on PostgreSQL, as ratios of the same turn on SQLite, in one run; and what several workers do.

All sides are the daemon's own intake, lanes and delivery (`crowd.py`, `workers.py`), with `fsync` on. The server is one
of this run, reached by its socket; CPU counts its processes too. Floors: the scale design, section 12, by their names.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import psycopg

from command import Bench, alone
from figures import UNJUDGED, Beside, Figure, bound, within
from process import QUIET, daemon
from sides import Side, alternate, side

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "tests"))

from lab import postgres  # noqa: E402 - the lab is beside the bench

LANES, TURNS, QUICK_TURNS = 64, 12, 4
SERIAL, QUICK_SERIAL = 100, 30
REST_S = 10.0
REPORTED_S = 15.0
"""By then a server has counted what was asked of it before: each session reports up to ten seconds late."""
CALL_S = 2.0
WAITING, QUICK_WAITING = 1000, 200
LEASE_S, QUICK_LEASE_S = 9.0, 3.0
HANGING = 4
"""Conversations in the middle of a turn when their worker ends."""
MANY_CORES = 8
DELAY_S = 0.001
TICKS = os.sysconf("SC_CLK_TCK")
CORES = len(os.sched_getaffinity(0))
THROUGHPUT, CPU, ALONE = bound("P19.throughput"), bound("P19.cpu"), bound("P19.commit")
ON_TWO = "_cores" if CORES <= 2 else ""
TWO, FOUR, IDEAL = bound(f"P19.two{ON_TWO}"), bound("P19.four"), bound(f"P19.waiting{ON_TWO}")
LOCKED, FAR, SAME, SAME_SPEED = map(bound, ("P19.locked", "P19.far", "P19.before", "P19.before_speed"))


def measure(bench: Bench) -> Iterator[Figure]:
    """Measure one floor after the other."""
    with postgres.running({"fsync": "on", "synchronous_commit": "on"}) as server:
        yield from one_worker(bench, server)
        yield from several_workers(bench, server)
        yield from with_and_without_the_lock(bench, server)
        yield from many_that_wait(bench, server)
        yield from far_away(bench, server)
        yield from taken_over(bench, server)
    yield from as_installed(bench)


def one_worker(bench: Bench, server: postgres.Server) -> Iterator[Figure]:
    """Alternate a soul on a file with one on a server (P1, P3, P4), and let that one rest (P8)."""
    turns, serial = (QUICK_TURNS, QUICK_SERIAL) if bench.is_quick else (TURNS, SERIAL)
    with ExitStack() as stack:
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
                "commit_ms": statistics.median(lone["commits_ms"]),
                "alone_ms": statistics.median(lone["ms"]),
            }

        sides: dict[str, Callable[[], Any]] = {name: lambda name=name: talk(name) for name in souls}
        found = alternate(bench.rounds, sides)
        vacuum_itself(url, does=False)  # the server's own transactions are nobody's at rest
        souls["postgres"].ask("rest", seconds=REPORTED_S)
        began = transactions(url)
        core = souls["postgres"].ask("rest", seconds=REST_S)
        asked = (transactions(url) - began - 2) / REST_S
        vacuum_itself(url, does=True)
        answered = [one.ask("end") for one in souls.values()]
    assert answered == [(bench.rounds + 1) * (LANES * turns + serial)] * 2, answered
    for key, name, unit, limit in (
        ("per_s", f"turns/s, {LANES} conversations [P1]", "turns/s", THROUGHPUT),
        ("cpu_ms", "CPU a turn, with the server's [P3]", "ms", CPU),
        ("commit_ms", "a turn's commit, one conversation, p50 [P4]", "ms", ALONE),
        ("alone_ms", "the whole of that turn, p50", "ms", UNJUDGED),
    ):
        ours, theirs = ([one[key] for one in found[side_]] for side_ in ("postgres", "sqlite"))
        yield _figure(name, unit, ours, Beside(name="SQLite", bound=limit, samples=theirs))
    yield _figure("transactions/s at rest [P8]", "/s", [asked], within("P19.resting", 1), is_counted=True)
    yield _figure("CPU at rest [P8]", "% of a core", [core], within("P19.rest_cpu", 1), is_counted=True)


def several_workers(bench: Bench, server: postgres.Server) -> Iterator[Figure]:
    """Alternate one worker with two, and two with four where there are cores for them (P2)."""
    turns = QUICK_TURNS if bench.is_quick else TURNS
    with ExitStack() as stack:
        crews = {n: stack.enter_context(crew(bench, server, n)) for n in ((1, 2, 4) if CORES >= MANY_CORES else (1, 2))}
        sides: dict[str, Callable[[], float]] = {
            f"{n}": lambda n=n: together(crews[n], LANES // n, turns)
            for n in crews  # type: ignore[misc] - mypy knows no type of a lambda with a default
        }
        found = alternate(bench.rounds, sides)
    yield _figure(
        "turns/s, 2 workers [P2]", "turns/s", found["2"], Beside(name="1 worker", bound=TWO, samples=found["1"])
    )
    if "4" in found:
        beside = Beside(name="2 workers", bound=FOUR, samples=found["2"])
        yield _figure("turns/s, 4 workers [P2]", "turns/s", found["4"], beside)


def with_and_without_the_lock(bench: Bench, server: postgres.Server) -> Iterator[Figure]:
    """Alternate four workers that write one at a time with four that do not (P5)."""
    turns = QUICK_TURNS if bench.is_quick else TURNS
    with crew(bench, server, 4) as locked, crew(bench, server, 4, is_locked=False) as free:
        sides: dict[str, Callable[[], float]] = {
            "locked": lambda: together(locked, LANES // 4, turns),
            "free": lambda: together(free, LANES // 4, turns),
        }
        found = alternate(bench.rounds, sides)
    name = "turns/s, 4 workers that write one at a time [P5]"
    beside = Beside(name="without the lock", bound=LOCKED, samples=found["free"])
    yield _figure(name, "turns/s", found["locked"], beside)


def many_that_wait(bench: Bench, server: postgres.Server) -> Iterator[Figure]:
    """Have two workers hold many conversations that all wait for a slow model at once (P6)."""
    lanes = QUICK_WAITING if bench.is_quick else WAITING
    with crew(bench, server, 2, call_s=CALL_S) as workers:
        found = [together(workers, lanes // 2, 1) for _ in range(bench.rounds + 1)][1:]
    name = f"turns/s, {lanes:,} conversations on 2 workers, a model of {CALL_S:g} s [P6]"
    beside = Beside(name="no work besides the model", bound=IDEAL, samples=[lanes / CALL_S] * len(found))
    yield _figure(name, "turns/s", found, beside)


def far_away(bench: Bench, server: postgres.Server) -> Iterator[Figure]:
    """Alternate a server that answers at once with one that takes a millisecond longer (P7)."""
    turns, serial = (QUICK_TURNS, QUICK_SERIAL) if bench.is_quick else (TURNS, SERIAL)
    found: dict[str, dict[str, list[Any]]] = {}
    with ExitStack() as stack:
        ways = {name: stack.enter_context(side(HERE / "delay.py", bench.home(name))) for name in ("near", "far")}
        workers = {
            name: stack.enter_context(crew(bench, server, 1, through=way, delay_s=DELAY_S * (name == "far")))
            for name, way in ways.items()
        }

        def talk(name: str) -> dict[str, Any]:
            (worker,) = workers[name]
            per_s = together([worker], LANES, turns)
            lone = worker.ask("talk_from", first=0, conversations=1, turns=serial)
            return {"per_s": per_s, "ms": statistics.median(lone["ms"]), "trips": lone["trips"]}

        rounds = alternate(bench.rounds, {name: lambda name=name: talk(name) for name in workers})  # type: ignore[misc] - mypy knows no type of a lambda with a default
        for name, those in rounds.items():
            found[name] = {key: [one[key] for one in those] for key in ("per_s", "ms", "trips")}
    far, near = found["far"], found["near"]
    more = [there - here for there, here in zip(far["ms"], near["ms"], strict=True)]
    name = f"a turn of one conversation, {1000 * DELAY_S:g} ms more a round trip: added [P7]"
    yield _figure(name, "ms", more, within("P19.added", len(more)))
    name = f"turns/s, {LANES} conversations, {1000 * DELAY_S:g} ms more a round trip [P7]"
    yield _figure(name, "turns/s", far["per_s"], Beside(name="none more", bound=FAR, samples=near["per_s"]))
    trips = far["trips"]
    name = "round trips a turn, those after its reply too [P7]"
    yield _figure(name, "", trips, within("P19.trips", len(trips)), is_counted=True)


def taken_over(bench: Bench, server: postgres.Server) -> Iterator[Figure]:
    """Kill a worker in the middle of its calls, and let another one leave: when is everything answered (P9)?"""
    lease_s = QUICK_LEASE_S if bench.is_quick else LEASE_S
    killed, left = [], []
    for _ in range(bench.rounds):
        with crew(bench, server, 2, lease_s=lease_s, is_whole=False) as (doomed, heir):
            others = doomed.ask("hang", count=HANGING)
            doomed.kill()
            at_s = time.monotonic()
            killed.append(heir.ask("spoken", count=others + HANGING) - at_s)
        with crew(bench, server, 2, lease_s=lease_s, is_whole=False) as (leaver, heir):
            others = leaver.ask("hang", count=HANGING)
            at_s = leaver.ask("leave")
            left.append(heir.ask("spoken", count=others + HANGING) - at_s)
    name = f"taken over and answered after kill -9, leases of {lease_s:g} s [P9]"
    yield _figure(name, "s", killed, within("P19.killed", len(killed), lease_s), is_counted=True)
    yield _figure("taken over after a good end [P9]", "s", left, within("P19.left", len(left)), is_counted=True)


def as_installed(bench: Bench) -> Iterator[Figure]:
    """Alternate the default install with that of another checkout, `--peer before=PATH` (P10)."""
    turns = QUICK_TURNS if bench.is_quick else TURNS
    given = bench.peers.get("before")
    trees = {"now": HERE.parent} | ({"before": given} if given else {})
    if given is None:
        why = Beside(name="before", bound=SAME, reason="not run: give --peer before=PATH of another checkout")
        yield Figure(id="P19", name="SQLite: as before [P10]", unit="", samples=[0.0], beside=(why,))
        return
    with ExitStack() as stack:
        souls = {}
        for name, tree in trees.items():
            root = bench.home(name)
            souls[name] = Side([sys.executable, "-c", OF_A_TREE, tree], root)
            stack.callback(souls[name].close)
            souls[name].ask("begin", root=str(root / "soul"))

        def talk(name: str) -> dict[str, float]:
            found = souls[name].ask("talk", conversations=LANES, turns=turns)
            with daemon(bench.home(name), QUIET | {"PYTHONPATH": str(trees[name] / "daemon")}) as awake:
                return found | {"start_ms": awake.ready_ms, "mib": awake.rss_mib()}

        found = alternate(bench.rounds, {name: lambda name=name: talk(name) for name in trees})  # type: ignore[misc] - mypy knows no type of a lambda with a default
        for one in souls.values():
            one.ask("end")
    for key, name, unit, limit in (
        ("per_s", f"turns/s, {LANES} conversations", "turns/s", SAME_SPEED),
        ("cpu_ms", "CPU a turn", "ms", SAME),
        ("start_ms", "start → ready", "ms", SAME),
        ("mib", "memory when it is ready", "MiB", SAME),
    ):
        now, before = ([one[key] for one in found[side_]] for side_ in ("now", "before"))
        yield _figure(f"{name} [P10]", unit, now, Beside(name="before", bound=limit, samples=before), of="SQLite")


OF_A_TREE = """import runpy, sys
from pathlib import Path
tree = Path(sys.argv[1])
sys.path[:0] = [str(tree / "daemon"), str(tree / "bench"), str(tree / "tests")]
runpy.run_path(str(tree / "bench" / "crowd.py"), run_name="__main__")"""
"""Runs the crowd of a checkout with that checkout's own modules."""


@contextmanager
def crew(  # noqa: PLR0913 - all but three have a default
    bench: Bench,
    server: postgres.Server,
    count: int,
    *,
    call_s: float = 0.0,
    lease_s: float = 60.0,
    is_locked: bool = True,
    is_whole: bool = True,
    through: Side | None = None,
    delay_s: float = 0.0,
) -> Iterator[list[Side]]:
    """Start workers of one new soul. If it stays `is_whole`, the oracle judges it at the end.

    `through`: a way to the server that takes `delay_s` longer.
    """
    with ExitStack() as stack:
        ways = bench.home("ways")
        url = stack.enter_context(postgres.schema(server, ways.name))
        if through:
            (directory,) = re.findall(r"host=([^&]*)", url)
            port = through.ask("open", path=f"{unquote(directory)}/.s.PGSQL.5432", delay_s=delay_s)
            url = re.sub(r"@/(\w+)\?host=[^&]*&", rf"@127.0.0.1:{port}/\1?sslmode=disable&", url)
        workers = []
        for n in range(count):
            root = bench.home("worker")
            workers.append(stack.enter_context(side(HERE / "workers.py", root)))
            words = {"root": str(root / "soul"), "url": url, "called": f"w{n}", "ways": str(ways)}
            workers[-1].ask("start", **words, call_s=call_s, lease_s=lease_s, is_locked=is_locked)
        yield workers
        for one in workers:
            if is_whole:
                one.ask("end")
            one.kill()


def together(workers: Sequence[Side], conversations: int, turns: int) -> float:
    """Have the people of all workers talk at once, each worker's in so many conversations. Returns turns a second."""
    with ThreadPoolExecutor(len(workers)) as threads:
        asked = [
            threads.submit(one.ask, "talk_from", first=n * conversations, conversations=conversations, turns=turns)
            for n, one in enumerate(workers)
        ]
        found = [one.result() for one in asked]
    return sum(one["turns"] for one in found) / max(one["wall_s"] for one in found)


def _figure(
    name: str,
    unit: str,
    ours: Sequence[float],
    beside: Beside,
    *,
    of: str = "PostgreSQL",
    is_counted: bool = False,
) -> Figure:
    return Figure(id="P19", name=f"{of}: {name}", unit=unit, samples=ours, beside=(beside,), is_counted=is_counted)


def vacuum_itself(url: str, *, does: bool) -> None:
    """Say whether the server may clean and count its tables of its own accord."""
    with psycopg.connect(url, autocommit=True) as made:
        made.execute(f"ALTER SYSTEM SET autovacuum = {'on' if does else 'off'}".encode())
        made.execute("SELECT pg_reload_conf()")


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
