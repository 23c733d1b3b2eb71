"""P10: memory: what 10,000 live conversations add to an idle soul, and whether a long life adds more.

A conversation lives once it has had a turn: its lane ends when it has no more work. Reported beside it, without a
bound:
what as many conversations hold while each waits for the model. Idle means after some first turns, so no import counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from command import Bench, alone
from figures import UNJUDGED, Beside, Bound, Figure, bound, within
from process import QUIET, daemon
from sides import side

HERE = Path(__file__).resolve().parent
LIVE, QUICK_LIVE = 10_000, 1000
PARKED, QUICK_PARKED = 2000, 200
SOAK, QUICK_SOAK = 10_000, 1000
REST_S, QUICK_REST_S = 60.0, 5.0
SOAKING = 100
"""Conversations of the soak: each has a long history that is folded again and again."""
WARM = 200

TASKS = bound("P10.tasks")
SOAKED = bound("P10.soak")
TOLD = UNJUDGED


def measure(bench: Bench) -> Iterator[Figure]:
    """Measure a process that only grows: each round adds further live conversations."""
    live, parked = (QUICK_LIVE, QUICK_PARKED) if bench.is_quick else (LIVE, PARKED)
    alive, waiting, tasks = [], [], []
    with ExitStack() as stack:
        bare = stack.enter_context(side(HERE / "anchors" / "tasks.py", bench.home("tasks")))
        for _ in range(1 if bench.is_quick else min(3, bench.rounds)):
            root = bench.home("live")
            with side(HERE / "crowd.py", root) as ours:
                ours.ask("begin", root=str(root / "soul"))
                idle = ours.ask("visit", first=0, count=WARM)
                alive.append(ours.ask("visit", first=WARM, count=live) - idle)
                idle = ours.ask("visit", first=0, count=WARM)
                waiting.append(ours.ask("park", first=WARM, count=parked) - idle)
                assert ours.ask("end") == 2 * WARM + live + parked
            tasks.append(bare.ask("parked", count=live))
    yield _figure(f"{live:,} live conversations", alive, tasks, TASKS)
    per = [live / parked * mib for mib in waiting]
    yield _figure(f"{live:,} that wait for the model", per, tasks, TOLD, f"{parked:,} waited, the rest is multiplied")
    yield _soaked(bench)
    yield from _started(bench)


def _figure(name: str, ours: Sequence[float], tasks: Sequence[float], bound: Bound, note: str = "") -> Figure:
    beside = Beside(name="parked asyncio tasks", bound=bound, samples=tasks)
    return Figure(
        id="P10", name=f"{name}, less idle", unit="MiB", samples=ours, beside=(beside,), note=note, is_counted=True
    )


def _soaked(bench: Bench) -> Figure:
    """Compare the last tenth of many turns with the sixth, because caches fill in the first half."""
    turns = QUICK_SOAK if bench.is_quick else SOAK
    root = bench.home("soak")
    with side(HERE / "crowd.py", root) as ours:
        ours.ask("begin", root=str(root / "soul"))
        held = ours.ask("soak", conversations=SOAKING, turns=turns)
        assert ours.ask("end") == turns
    return Figure(
        id="P10",
        name=f"soak of {turns:,} turns, end",
        unit="MiB",
        samples=held[-1:],
        beside=(Beside(name="after six tenths", bound=SOAKED, samples=held[5:6]),),
        note=f"after each tenth: {', '.join(f'{mib:.1f}' for mib in held)} MiB",
        is_counted=True,
    )


def _started(bench: Bench) -> Iterator[Figure]:
    """Leave a daemon alone for a while after its start: nobody has said anything yet."""
    api = QUIET | {"CLAUDIUS_PROVIDERS": "anthropic_api", "ANTHROPIC_API_KEY": "sk-ant-bench"}
    for name, settings, key in (("terminal only", QUIET, "P10.terminal"), ("with the API's library", api, "P10.api")):
        held = []
        for _ in range(1 if bench.is_quick else min(3, bench.rounds)):
            home, mib = bench.home("rest"), 0.0
            for _ in ("compiles every module, as an installer does: that takes 11 MiB", "measured"):
                with daemon(home, settings) as awake:
                    time.sleep(QUICK_REST_S if bench.is_quick else REST_S)
                    mib = awake.rss_mib()
            held.append(mib)
        told = f"daemon before its first turn, {name}"
        beside = (within(key, len(held)),)
        yield Figure(id="P10", name=told, unit="MiB", samples=held, beside=beside, is_counted=True)


if __name__ == "__main__":
    alone(__file__)
