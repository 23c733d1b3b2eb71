"""P9: head of line: the wall time of 1,000 conversations that each wait for one model call of 2 s, in one burst.

The burst goes through the daemon's own intake and lanes, which have no cap on simultaneous calls. The ancestor works
strictly one after the other: some of its conversations are timed, and the rest is extrapolated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from command import Bench, alone
from figures import Beside, Figure, bound
from sides import alternate, peer_python, side

HERE = Path(__file__).resolve().parent
BURST, QUICK_BURST = 1000, 200
CALL_S = 2.0
GRACE_S = 1.0
ANCESTOR_BURST = 2
ROWS = 1000

CALL = bound("P9.call")
ANCESTOR = bound("P9.claudicle")


def measure(bench: Bench) -> Iterator[Figure]:
    """Alternate our side, and the ancestor if it is given. The anchor is the duration of the call itself."""
    burst = QUICK_BURST if bench.is_quick else BURST
    with ExitStack() as stack:
        root = bench.home("burst")
        ours = stack.enter_context(side(HERE / "crowd.py", root))
        ours.ask("begin", root=str(root / "soul"), call_s=CALL_S)
        sides: dict[str, Callable[[], Any]] = {"ours": partial(ours.ask, "talk", conversations=burst, turns=1)}
        ancestor = bench.peer("claudicle", ANCESTOR, lambda path: _begin(bench, stack, path, sides))
        found = alternate(bench.rounds, sides)
        answered = ours.ask("end")
    assert answered == (bench.rounds + 1) * burst, answered
    walls = [one["wall_s"] for one in found["ours"]]
    if not ancestor.reason:
        samples = [burst * one["wall_s"] / ANCESTOR_BURST for one in found["claudicle"]]
        ancestor = Beside(name="claudicle", version=ancestor.version, bound=ANCESTOR, samples=samples)
    each = f"{burst:,} conversations × one call of {CALL_S:g} s"
    yield Figure(
        id="P9",
        name=f"{each}, after {GRACE_S:g} s",
        unit="s",
        samples=[wall - GRACE_S for wall in walls],
        beside=(Beside(name="one call", bound=CALL, samples=[CALL_S] * len(walls)),),
        note=f"{answered} messages, each answered once",
    )
    yield Figure(
        id="P9",
        name=each,
        unit="s",
        samples=walls,
        beside=(ancestor,),
        note=f"the ancestor is strictly serial: {ANCESTOR_BURST} of its conversations are timed and multiplied",
    )


def _begin(bench: Bench, stack: ExitStack, path: Path, sides: dict[str, Callable[[], Any]]) -> Beside:
    python = peer_python(path)
    driver = stack.enter_context(side(HERE / "anchors" / "claudicle.py", bench.home("claudicle"), python))
    version = driver.ask("begin", path=str(path), rows=ROWS)
    sides["claudicle"] = partial(driver.ask, "turns", count=ANCESTOR_BURST, conversations=ANCESTOR_BURST, call_s=CALL_S)
    return Beside(name="claudicle", bound=ANCESTOR, version=version)


if __name__ == "__main__":
    alone(__file__)
