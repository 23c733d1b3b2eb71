"""P3: growth: CPU of a turn in a home that was lived in, and in one with many moments of the speaker, over a fresh one.

All take the same turns in words by Zipf, so that what is said is found again as it is among people.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import fill
from command import Bench, alone
from figures import Beside, Figure, bound, percentile
from sides import alternate, side

HERE = Path(__file__).resolve().parent
LIVED, QUICK_LIVED = 3000, 120
MOMENTS, QUICK_MOMENTS = 50_000, 1500
TURNS, QUICK_TURNS = 50, 20
NEVER_SAID = 1_000_000_000
"""From this number on nothing was said before."""


def measure(bench: Bench) -> Iterator[Figure]:
    """Alternate three of our souls."""
    lived, wanted = (QUICK_LIVED, QUICK_MOMENTS) if bench.is_quick else (LIVED, MOMENTS)
    turns = QUICK_TURNS if bench.is_quick else TURNS
    homes = {name: bench.home(name) for name in ("fresh", "lived", "moments")}
    fill.live(homes["lived"] / "soul", lived)
    shutil.copytree(homes["lived"] / "soul", homes["moments"] / "soul")
    kept = fill.multiply(homes["moments"] / "soul", wanted)
    said = dict.fromkeys(homes, NEVER_SAID)
    with ExitStack() as stack:
        souls = {name: stack.enter_context(side(HERE / "ours.py", home)) for name, home in homes.items()}

        def taken(name: str) -> dict[str, Any]:
            said[name] += turns
            found: dict[str, Any] = souls[name].ask("turns", count=turns, chats_from=said[name])
            return found

        for name, soul in souls.items():
            soul.ask("begin", root=str(homes[name] / "soul"))
        found = alternate(bench.rounds, {name: lambda name=name: taken(name) for name in souls})  # type: ignore[misc] - mypy knows no type of a lambda with a default
        for soul in souls.values():
            soul.ask("end")
    cpu = {name: [one["cpu_ms"] for one in rounds] for name, rounds in found.items()}
    p50 = {name: percentile([ms for one in rounds for ms in one["ms"]], 0.5) for name, rounds in found.items()}
    for name, told, key in (
        ("lived", f"CPU of a turn, {lived:,} turns lived", "P3.lived"),
        ("moments", f"CPU of a turn, {kept:,} moments of the speaker", "P3.moments"),
    ):
        yield Figure(
            id="P3",
            name=told,
            unit="ms",
            samples=cpu[name],
            beside=(Beside(name="a fresh home", bound=bound(key), samples=cpu["fresh"]),),
            note=f"p50 {p50[name]:.2f} ms over {p50['fresh']:.2f} ms",
        )


if __name__ == "__main__":
    alone(__file__)
