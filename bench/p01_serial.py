"""P1 and P2: turns a second through intake, lanes and delivery, of one conversation and of 256 at once.

The model answers at once, network and model are in the process (`crowd.py`), git is off. Each person writes again as
soon as they are answered. The ancestor takes its turns one after the other.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from command import Bench, alone
from figures import Beside, Bound, Figure, bound, percentile
from sides import Side, alternate, peer_python, side

HERE = Path(__file__).resolve().parent
ROWS = 1000
"""Of the ancestor's memory."""
TURNS, QUICK_TURNS = 150, 60
IN_FLIGHT, EACH, QUICK_EACH = 256, 6, 2
FEWER = 3
"""The ancestor takes a third as many turns a round, because each of its turns is slower."""
CALL_S = 0.5
"""What a model takes; many conversations do not wait for one another's."""
ANCESTOR, MANY, ANCESTOR_MANY = map(bound, ("P1.claudicle", "P2.alone", "P2.claudicle"))


def measure(bench: Bench) -> Iterator[Figure]:
    """Alternate one conversation, many, and the ancestor if it is given."""
    turns, each = (QUICK_TURNS, QUICK_EACH) if bench.is_quick else (TURNS, EACH)
    with ExitStack() as stack:
        souls = {}
        for name in ("one", "many"):
            root = bench.home(name)
            souls[name] = stack.enter_context(side(HERE / "crowd.py", root))
            souls[name].ask("begin", root=str(root / "soul"))
        sides: dict[str, Callable[[], Any]] = {
            "one": lambda: souls["one"].ask("talk", conversations=1, turns=turns),
            "many": lambda: souls["many"].ask("talk", conversations=IN_FLIGHT, turns=each),
        }
        ancestor = bench.peer("claudicle", ANCESTOR, lambda path: _begin(bench, stack, path, sides, turns // FEWER))
        found = alternate(bench.rounds, sides)
        answered = [soul.ask("end") for soul in souls.values()]
    assert answered == [(bench.rounds + 1) * turns, (bench.rounds + 1) * IN_FLIGHT * each], answered
    serial = [one["per_s"] for one in found.get("claudicle", ())]
    waiting = [1 / (1 / per_s + CALL_S) for per_s in serial]
    yield _figure("P1", "turns/s, one conversation", found["one"], (_beside(ancestor, ANCESTOR, serial),))
    alone_ = Beside(name="one conversation", bound=MANY, samples=[one["per_s"] for one in found["one"]])
    name = f"turns/s, {IN_FLIGHT} conversations"
    yield _figure("P2", name, found["many"], (alone_, _beside(ancestor, ANCESTOR_MANY, waiting)))


def _beside(ancestor: Beside, limit: Bound, samples: Sequence[float]) -> Beside:
    return Beside(name="claudicle", bound=limit, version=ancestor.version, reason=ancestor.reason, samples=samples)


def _figure(metric: str, name: str, rounds: Sequence[dict[str, Any]], beside: Sequence[Beside]) -> Figure:
    singles = [ms for one in rounds for ms in one["ms"]]
    cpu_ms = statistics.median(one["cpu_ms"] for one in rounds)
    return Figure(
        id=metric,
        name=name,
        unit="turns/s",
        samples=[one["per_s"] for one in rounds],
        singles=singles,
        beside=beside,
        note=(
            f"a turn: p50 {percentile(singles, 0.5):.2f} ms, p99 {percentile(singles, 0.99):.2f} ms, "
            f"{cpu_ms:.2f} ms of CPU; {len(singles)} in all, each answered once"
        ),
    )


def _begin(bench: Bench, stack: ExitStack, path: Path, sides: dict[str, Callable[[], Any]], turns: int) -> Beside:
    driver: Side = stack.enter_context(
        side(HERE / "anchors" / "claudicle.py", bench.home("claudicle"), peer_python(path))
    )
    version = driver.ask("begin", path=str(path), rows=ROWS)
    sides["claudicle"] = lambda: driver.ask("turns", count=turns)
    return Beside(name="claudicle", bound=ANCESTOR, version=version)


if __name__ == "__main__":
    alone(__file__)
