"""T13: kill -9 at each state of a tool's call, on both stores: one effect at most, one reply, nothing paid twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from claudius.home import Home
from claudius.memory.database import StorePlace
from claudius.memory.opening import open_store
from claudius.tool import CallState
from handy import POINTS, SAID, UNKNOWN

HANDY = Path(__file__).parents[1] / "handy.py"
NIGHTLY = os.environ.get("CLAUDIUS_TEST_PROFILE") == "nightly"
CLASSES = ("read", "write", "send") if NIGHTLY else ("read", "send")
EACH = [(flow, point) for flow, points in POINTS.items() for point in points]
PAIRS = [(flow, *pair) for flow, points in POINTS.items() for pair in combinations_with_replacement(points, 2)]


def lived(root: Path, flow: str, cls: str, point: str, url: str) -> int:
    """Let a soul live until it ends, or is killed; return how it ended."""
    words = [sys.executable, str(HANDY), str(root), flow, cls, point, *filter(None, [url])]
    ran = subprocess.run(words, capture_output=True, timeout=90, check=False, text=True)
    sys.stderr.write(ran.stderr)  # shown where the test fails
    return ran.returncode


def lines(root: Path, name: str) -> list[str]:
    """Return what happened outside of the process."""
    path = root / name
    return path.read_text().splitlines() if path.exists() else []


def judge(root: Path, flow: str, cls: str, kills: int, url: str) -> str:
    """Check what is left after a process that ended in good order; return the state of the one call."""
    with closing(open_store(Home(root), StorePlace(url) if url else StorePlace()).records()) as records:
        (call,) = records.calls(9)
    effects, posts, calls = (lines(root, name) for name in ("effects", "posts", "calls"))
    state = CallState(call["state"])
    assert state in ((CallState.DONE,) if cls == "read" else (CallState.DONE, CallState.UNKNOWN))
    assert len(effects) <= (1 + kills if cls == "read" else 1)
    assert effects or state is CallState.UNKNOWN
    assert (
        len({one.partition(" ")[0] for one in posts}) == len(posts) == (3 if flow == "asked" else 1)
    )  # none twice; a card is its own
    assert posts[-1].partition(" ")[2] == (SAID if state is CallState.DONE else UNKNOWN)
    assert len(calls) <= 2 + kills  # one that was under way is asked again, none that was paid
    return state


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(("flow", "point"), EACH if NIGHTLY else EACH[2::4])
def test_t13_killed_at_each_state(flow: str, point: str, cls: str, tmp_path: Path) -> None:
    """The next process ends what a killed one began, or says that it does not know."""
    assert lived(tmp_path, flow, cls, point, "") == -signal.SIGKILL
    assert lived(tmp_path, flow, cls, "none", "") == 0

    state = judge(tmp_path, flow, cls, 1, "")
    if cls != "read":
        is_open = point in ("after_start_1", "after_effect_1", "before_end_1")
        assert state is (CallState.UNKNOWN if is_open else CallState.DONE)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(("flow", "point"), EACH if NIGHTLY else EACH[3::6])
def test_t13_killed_at_each_state_on_a_server(
    flow: str, point: str, cls: str, tmp_path: Path, postgres_url: str
) -> None:
    """Likewise where the lane's lease must pass first, and its token moves."""
    assert lived(tmp_path, flow, cls, point, postgres_url) == -signal.SIGKILL
    assert lived(tmp_path, flow, cls, "none", postgres_url) == 0

    judge(tmp_path, flow, cls, 1, postgres_url)


@pytest.mark.nightly
@pytest.mark.parametrize("cls", ["read", "send"])
@pytest.mark.parametrize(("flow", "first", "second"), PAIRS)
def test_t13_killed_twice(flow: str, first: str, second: str, cls: str, tmp_path: Path) -> None:
    """All pairs of states: the second process is killed as well, wherever it comes so far."""
    assert lived(tmp_path, flow, cls, first, "") == -signal.SIGKILL
    kills = 1 + (lived(tmp_path, flow, cls, second, "") == -signal.SIGKILL)
    assert lived(tmp_path, flow, cls, "none", "") == 0

    judge(tmp_path, flow, cls, kills, "")
