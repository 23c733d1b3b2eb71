"""T13, T14: kill -9 at each state of a tool's call, on both stores: one effect at most, one reply, nothing paid twice."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from claudius.home import Home
from claudius.memory.database import StorePlace
from claudius.memory.opening import open_store
from claudius.tool import CallState
from handy import FAILED, OPEN, POINTS, SAID, UNKNOWN

HANDY = Path(__file__).parents[1] / "handy.py"
NIGHTLY = os.environ.get("CLAUDIUS_TEST_PROFILE") == "nightly"
KILLED = -signal.SIGKILL
WORDS = {CallState.DONE: SAID, CallState.FAILED: FAILED, CallState.UNKNOWN: UNKNOWN}
Lived = Callable[..., int]


def goes_on(points: tuple[str, ...], cls: str, point: str) -> tuple[str, ...]:
    """Return the points that the next process comes to, if one was killed at `point`."""
    if point in OPEN:
        point = "before_start" if cls == "read" else "before_answer"
    return points[points.index(point) + (not point.startswith("before_")) :]


ONCE = [
    (flow, cls, point)
    for flow, points in POINTS.items()
    for cls in (("read", "write", "send") if NIGHTLY else ("read", "send"))
    for point in (*points, *(("after_settles",) if flow == "asked" else ()))
    if (cls, point) != ("read", "while_starting")  # nothing waits for it
]
TWICE = [
    (flow, cls, f"{first} {second}")
    for flow, points in POINTS.items()
    for cls in ("read", "send")  # `write` is journalled as `send` is
    for first in points
    for second in goes_on(points, cls, first)
    if "after_effect" not in (first, second)  # both worlds are as at `before_end`
    if cls == "send" or "while_starting" not in (first, second)
]
KILLS = [
    *(("sqlite", *one) for one in (ONCE if NIGHTLY else ONCE[2::4])),
    *(("postgres", *one) for one in (ONCE if NIGHTLY else ONCE[3::6])),
    *(pytest.param(store, *one, marks=pytest.mark.nightly) for store in ("sqlite", "postgres") for one in TWICE),
]


@pytest.fixture(scope="module")
def lived() -> Iterator[Lived]:
    """Return what lets a soul live until it ends, or is killed, and returns how it ended."""
    with subprocess.Popen([sys.executable, str(HANDY)], stdin=-1, stdout=-1, text=True) as server:

        def live(*words: object) -> int:
            assert server.stdin
            assert server.stdout
            print(*words, file=server.stdin, flush=True)
            return int(server.stdout.readline())

        yield live


def lines(root: Path, name: str) -> list[str]:
    """Return what happened outside of the process."""
    path = root / name
    return path.read_text().splitlines() if path.exists() else []


def kept(root: Path, url: str) -> CallState | None:
    """Return how the call stands; None = nobody has asked for it yet."""
    with closing(open_store(Home(root), StorePlace(url) if url else StorePlace()).records()) as records:
        return next((CallState(one["state"]) for one in records.calls(9)), None)


def killed_at(lived: Lived, root: Path, flow: str, cls: str, point: str, url: str = "") -> bool:
    """Let a soul be killed at a point; return whether that was amid the call.

    After a post it may be: a call that is allowed at once is begun while its question is still being posted.
    """
    assert lived(root, flow, cls, point, url) == KILLED
    is_open = kept(root, url) is CallState.STARTED
    assert is_open is (point in OPEN) or (is_open and point == "after_post")
    return is_open


def judge(root: Path, flow: str, cls: str, killed: tuple[bool, ...], url: str) -> None:
    """Check what is left after a process that ended in good order. `killed`: whether each before it was amid the call."""
    effects, posts, calls, settled = (lines(root, name) for name in ("effects", "posts", "calls", "settled"))
    opened = sum(killed)
    if cls == "read":
        state = CallState.FAILED if opened > 1 else CallState.DONE  # two attempts in all
    else:
        state = CallState.UNKNOWN if opened else CallState.DONE

    assert kept(root, url) is state
    assert len(effects) <= (1 + opened if cls == "read" else 1)
    assert effects or state is not CallState.DONE
    assert len({one.partition(" ")[0] for one in posts}) == len(posts) == (3 if flow == "asked" else 1)  # none twice
    assert posts[-1].partition(" ")[2] == WORDS[state]
    assert {one.partition(" ")[2] for one in settled} == ({"Allowed by Ana."} if flow == "asked" else set())
    assert len(calls) <= 2 + len(killed)  # one that was under way is asked again, none that was paid


@pytest.mark.parametrize(("store", "flow", "cls", "points"), KILLS)
def test_t13_killed_at_each_state(
    store: str, flow: str, cls: str, points: str, tmp_path: Path, request: pytest.FixtureRequest, lived: Lived
) -> None:
    """The next process ends what a killed one began, or says that it does not know; by night, of all pairs of states.

    On a server the lane's lease must pass first, and its token moves.
    """
    url = request.getfixturevalue("postgres_url") if store == "postgres" else ""
    killed = tuple([killed_at(lived, tmp_path, flow, cls, point, url) for point in points.split()])
    assert lived(tmp_path, flow, cls, "none", url) == 0

    judge(tmp_path, flow, cls, killed, url)
