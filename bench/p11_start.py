"""P11, the command line's half: wall time of `claudius --help` over that of a bare Python.

The daemon's half (start to ready, replay of 1,000 rows after a kill) is not built yet.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from command import Bench, alone
from figures import Beside, Bound, Figure
from sides import alternate, environment

HELP = Bound("<=", 10.0, 7.0)
RUNS, QUICK_RUNS = 7, 3
BUDGET_MS = 150


def measure(bench: Bench) -> Iterator[Figure]:
    """Alternate the two; a round is the median of several runs of each."""
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
    yield Figure(
        id="P11",
        name="claudius --help",
        unit="ms",
        samples=found["ours"],
        beside=(Beside(name="python -c pass", bound=HELP, samples=found["bare"]),),
        note=f"budget {BUDGET_MS} ms; start to ready, and after a kill: not built yet",
    )


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
