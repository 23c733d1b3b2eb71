"""P16: one member is erased while others talk: their worst reply, and memory, beside a run without an erasure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from command import Bench, alone
from figures import Beside, Figure, bound
from sides import side

HERE = Path(__file__).resolve().parent
TURNS, QUICK_TURNS = 8000, 800
CONVERSATIONS_PER_TURN = 0.4
QUIET_S, QUICK_QUIET_S = 20.0, 5.0
REPLY = bound("P16.reply")
MEMORY = bound("P16.memory")
ACK_MS = 3000.0


def measure(bench: Bench) -> Iterator[Figure]:
    """Each round fills its own home."""
    turns = QUICK_TURNS if bench.is_quick else TURNS
    during, without, peak, rest, told = [], [], [], [], ""
    broken: list[str] = []
    alone_mib = quiet_mib = 0.0
    for _ in range(1 if bench.is_quick else min(3, bench.rounds)):
        root = bench.home("erased")
        with side(HERE / "erased.py", root) as soul:
            size = soul.ask(
                "begin", root=str(root / "soul"), turns=turns, conversations=int(turns * CONVERSATIONS_PER_TURN)
            )
            quiet = soul.ask("talk", seconds=QUICK_QUIET_S if bench.is_quick else QUIET_S)
            found = soul.ask("erase")
            soul.ask("end")
        during.append(found["worst_reply_ms"])
        without.append(quiet["worst_reply_ms"])
        peak.append(found["peak_mib"])
        alone_mib, quiet_mib = found["alone_mib"], quiet["peak_mib"]
        rest.append(found["rest_mib"])
        told = (
            f"{turns:,} turns, {size / 2**20:.0f} MiB; it took {found['took_s']:.1f} s and {found['replies']} replies; "
            f"p50 {found['p50_ms']:.1f} ms beside {quiet['p50_ms']:.1f}, "
            f"p99 {found['p99_ms']:.1f} beside {quiet['p99_ms']:.1f}; "
            f"worst ack {found['worst_ack_ms']:.0f} ms; versions by owner {found['owner_versions']}; "
            f"verified {found['verified']} {found['left']}; own files untouched {found['own_files']} {found['kept']}; "
            f"others' records whole {found['whole']}, broken {found['broken']}"
        )
        broken += [name for name, holds in _promises(found).items() if not holds]
    yield Figure(
        id="P16", name="worst reply of others, erasing", unit="ms", samples=during,
        beside=(Beside(name="without an erasure", bound=REPLY, samples=without),), note=told,
    )  # fmt: skip
    yield Figure(
        id="P16", name="memory at its peak, erasing", unit="MiB", samples=peak, is_counted=True,
        beside=(Beside(name="at rest", bound=MEMORY, samples=rest),), note=(
            f"the process and its children, PSS; the process alone {alone_mib:.0f} MiB, "
            f"talking without an erasure {quiet_mib:.0f}"
        ),
    )  # fmt: skip
    assert not broken, broken


def _promises(found: Mapping[str, Any]) -> dict[str, bool]:
    return {
        "the receipt is verified": found["verified"],
        "no version is by owner": found["owner_versions"] == 0,
        "the owner's own files stay": found["own_files"],
        "what is kept of others' turns is whole": found["broken"] == 0,
        "no acknowledgement is later than 3 s": found["worst_ack_ms"] <= ACK_MS,
    }


if __name__ == "__main__":
    alone(__file__)
