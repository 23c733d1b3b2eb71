"""Whole lives in virtual time: whatever network, model and `kill -9` do, nothing is lost and nothing is said twice."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lab.simulation.mutants import MUTANTS, OF_WORKERS

KEPT = Path(__file__).parents[1] / "faults" / "seeds.txt"
"""Seeds that failed once, one a line."""
PUSH, FULL, NIGHTLY = 12, 300, 600
PUSH_OF_WORKERS, FULL_OF_WORKERS, NIGHTLY_OF_WORKERS = 2, 40, 160
LONG, MESSAGES = 20, 200
PART = 20
"""One child lives so many lives: it keeps what its killed processes held, and takes a second or two for each."""
OFTEN_SEEN = ("a_start_that_voids_all_leases", "own_clock_for_leases", "release_without_heard")
SELDOM_SEEN = ("no_lock_soul",)
"""What breaks one of the first few lives with several workers, and what one in some hundreds; the others, in dozens."""
WITHIN = 1000
"""Within this many seeds, a product that is broken on purpose is found out."""


def lives(*words: str) -> list[dict[str, Any]]:
    """Run seeds in a child process; return its output."""
    ran = subprocess.run([sys.executable, "-m", "lab.simulation", *words], capture_output=True, text=True, check=False)
    assert not ran.stderr, ran.stderr[-4000:]
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_seeds_that_ever_failed_hold_now() -> None:
    """Seeds that failed once pass now."""
    for seed in KEPT.read_text().split():
        assert lives("--seeds", seed, "--no-shrink") == []


def test_every_life_holds() -> None:
    """In a few lives, each message is answered once, in its place, and memory matches what was seen."""
    assert lives("--seeds", f"0-{PUSH - 1}") == []


def test_scale_every_life_of_several_workers_holds() -> None:
    """Workers are killed, paused, drained and have wrong clocks: each message is answered once, by the one who holds its lane."""
    assert lives("--workers", "--seeds", f"0-{PUSH_OF_WORKERS - 1}") == []


@pytest.mark.parametrize(
    ("mutant", "kind"),
    [
        *((one, ("--workers",)) for one in OFTEN_SEEN),
        *(
            pytest.param(one, ("--workers",), marks=pytest.mark.slow)
            for one in sorted({*OF_WORKERS} - {*OFTEN_SEEN, *SELDOM_SEEN})
        ),
        *(pytest.param(one, ("--workers",), marks=pytest.mark.nightly) for one in SELDOM_SEEN),
        *(pytest.param(one, (), marks=pytest.mark.slow) for one in sorted(MUTANTS)),
    ],
)
def test_scale_a_product_broken_on_purpose_is_found_out(mutant: str, kind: tuple[str, ...]) -> None:
    """The simulation can fail: each way to break the promise, or the rules of leases, breaks one of a thousand lives."""
    (found,) = lives(*kind, "--seeds", f"0-{WITHIN - 1}", "--mutant", mutant, "--until-broken")

    assert found["broken"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [(), ("--workers",)])
def test_a_life_is_a_function_of_its_seed(kind: tuple[str, ...]) -> None:
    """The same seed shows the same things in the same order."""
    told = [[(one["seed"], one["seen"]) for one in lives("--seeds", "0-2", "--tell", *kind)] for _ in range(2)]

    assert told[0] == told[1]
    assert [seed for seed, _ in told[0]] == [0, 1, 2]


PARTS = [
    *(pytest.param((), first, marks=pytest.mark.slow) for first in range(0, FULL, PART)),
    *(pytest.param((), first, marks=pytest.mark.nightly) for first in range(FULL, NIGHTLY, PART)),
    *(pytest.param(("--messages", str(MESSAGES)), first, marks=pytest.mark.nightly) for first in range(0, LONG, PART)),
    *(pytest.param(("--workers",), first, marks=pytest.mark.slow) for first in range(0, FULL_OF_WORKERS, PART)),
    *(
        pytest.param(("--workers",), first, marks=pytest.mark.nightly)
        for first in range(FULL_OF_WORKERS, NIGHTLY_OF_WORKERS, PART)
    ),
]


@pytest.mark.parametrize(("kind", "first"), PARTS)
def test_scale_many_lives_hold(kind: tuple[str, ...], first: int) -> None:
    """Hundreds of lives pass, long ones, and such with several workers; each night hundreds more."""
    assert lives(*kind, "--seeds", f"{first}-{first + PART - 1}") == []
