"""R9: a process that dies right after its login does not use up the network's logins."""

import itertools
import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claudius.runtime.life import LONGEST_S, STARTS, WITHIN_S, CrashBackoff, Start, hold_s
from driven import Machine

HOUR_S = 3600.0


class VirtualTime:
    """A clock that moves only when a person waits."""

    def __init__(self) -> None:
        """Start at a fixed instant."""
        self.now_s = 1_700_000_000.0

    def __call__(self) -> float:
        """Return the current time in seconds."""
        return self.now_s


def crash(path: Path, clock: VirtualTime, *, lives_s: float = 0.0, restarts_after_s: float = 0.0) -> tuple[float, str]:
    """Simulate one process: held back, logged in, dead. Returns the time of its login, and the backoff's message."""
    backoff = CrashBackoff(path, clock)
    clock.now_s += backoff.start()
    at_s, message = clock.now_s, backoff.message
    clock.now_s += lives_s + restarts_after_s
    return at_s, message


def most_within(logins: list[float], window_s: float) -> int:
    """Return the number of logins in the busiest window."""
    return max(sum(first <= login < first + window_s for login in logins) for first in logins)


def test_r09_fifty_instant_crashes_are_fewer_than_twenty_logins_an_hour(tmp_path: Path) -> None:
    """50 instant crashes with immediate restarts make under 20 logins in any hour, and the message names the reason."""
    clock = VirtualTime()

    lives = [crash(tmp_path / "starts", clock) for _ in range(50)]

    logins = [at_s for at_s, _ in lives]
    assert most_within(logins, HOUR_S) < 20
    assert most_within(logins, 24 * HOUR_S) < 200
    assert [later - earlier for earlier, later in itertools.pairwise(logins)][3:7] == [2, 4, 8, 16]
    assert "crash-loop brake" in lives[-1][1]
    assert f"{LONGEST_S:.0f} s" in lives[-1][1]


def test_r09_a_supervisor_that_waits_five_seconds_changes_nothing(tmp_path: Path) -> None:
    """With `RestartSec=5` and one second of life each there are under 20 logins in any hour."""
    clock = VirtualTime()

    logins = [crash(tmp_path / "starts", clock, lives_s=1, restarts_after_s=5)[0] for _ in range(50)]

    assert most_within(logins, HOUR_S) < 20


def test_r09_starts_that_end_well_are_not_counted(tmp_path: Path) -> None:
    """A person who stops and starts the daemon all day is never held back."""
    clock = VirtualTime()
    held = []
    for _ in range(50):
        backoff = CrashBackoff(tmp_path / "starts", clock)
        held.append(backoff.start())
        backoff.forgive()
        clock.now_s += 1

    assert set(held) == {0.0}


def test_r09_a_process_that_lives_resets_the_backoff(tmp_path: Path) -> None:
    """Once a process has lived longer than 300 s, the next crash counts as the first."""
    clock = VirtualTime()
    for _ in range(9):
        crash(tmp_path / "starts", clock)
    crash(tmp_path / "starts", clock, lives_s=WITHIN_S + 1)

    assert CrashBackoff(tmp_path / "starts", clock).start() == 0


@given(st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(0, 900)), max_size=30), st.floats(-1e9, 1e9))
def test_r09_whatever_the_file_holds_the_wait_is_bounded(starts: list[tuple[float, float]], now_s: float) -> None:
    """With jumping clocks and foreign files the wait is 0 to 900 s, and there is none before the fifth start."""
    kept = [Start(*start) for start in starts]

    assert 0 <= hold_s(kept, now_s) <= LONGEST_S
    assert hold_s(kept[: STARTS - 2], now_s) == 0


def test_r09_an_invalid_file_holds_nobody_back(tmp_path: Path) -> None:
    """A torn or foreign `run/starts` counts as missing."""
    path = tmp_path / "starts"
    path.write_bytes(b"[1, 2]\n\xff{")

    assert CrashBackoff(path, VirtualTime()).start() == 0


def test_r09_the_real_daemon_says_that_it_is_held_back_and_can_be_stopped(machine: Machine) -> None:
    """`start` exits 75 and names the reason, `status`, the log and a chat say so, and `stop` ends the wait."""
    machine.ok("seed")
    starts = machine.home / "run" / "starts"
    starts.write_text("".join(json.dumps([time.time() - n, 0]) + "\n" for n in range(12, 0, -1)))

    started = machine.run("daemon", "start")
    status = machine.run("status", "--json")
    told = machine.run("chat", "--once", "hello")
    machine.ok("daemon", "stop")

    assert started.code == 75
    assert "crash-loop brake" in started.stderr
    assert "crash-loop brake" in status.json["brake"]["message"]
    assert status.json["brake"]["wait_s"] > 100
    assert (told.code, "crash-loop brake" in told.stderr) == (75, True)
    assert any("crash-loop brake" in event["event"] for event in machine.events())
    assert len(starts.read_text().splitlines()) == 12


@pytest.mark.slow
def test_r09_a_chat_waits_until_the_backoff_is_over(machine: Machine) -> None:
    """`chat --once` waits out a backoff of some seconds, as it waits for a reply."""
    machine.ok("seed")
    starts = machine.home / "run" / "starts"
    starts.write_text("".join(json.dumps([time.time() - n, 0]) + "\n" for n in range(4, 0, -1)))

    assert machine.run("daemon", "start").code == 75
    machine.ok("chat", "--once", "hello")

    machine.ok("daemon", "stop")
