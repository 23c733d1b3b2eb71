"""The signal handling that child processes inherit, however the suite itself was started."""

import signal
import subprocess
import sys
from pathlib import Path

CHILD = "import signal; assert signal.getsignal(signal.SIGINT) is signal.default_int_handler"


def test_a_child_can_be_interrupted() -> None:
    """Ctrl-C interrupts each child of a test."""
    subprocess.run([sys.executable, "-c", CHILD], check=True)


def test_a_child_can_be_interrupted_though_the_suite_runs_in_the_background() -> None:
    """A shell starts background jobs with SIGINT ignored, and children inherit that: the suite restores it first."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", f"{Path(__file__)}::{NAME}"],
        capture_output=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        check=False,
    )

    assert ran.returncode == 0, ran.stdout.decode()


NAME = test_a_child_can_be_interrupted.__name__
