"""R29: kill -9 at file-changing system calls of every command that changes something.

The next start finds all of the old or all of the new; the command, repeated, ends right; no accepted message and no row
of the audit log is lost. Each test prints its row of the table: command, points, outcomes.
"""

import asyncio
import shutil
import sys
from pathlib import Path

import pytest

from driven import Machine
from every_command import CHANGES, NOT_KILLED, commands
from killing import accept, furnish, kill, shown

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """Return a machine whose soul knows people, and has accepted two messages that wait for an answer."""
    machine = Machine(tmp_path_factory.mktemp("first"))
    furnish(machine)
    asyncio.run(accept(machine))
    return machine


def test_r29_every_command_is_in_one_table() -> None:
    """A new command is killed here, or says why it changes nothing."""
    assert not CHANGES.keys() & NOT_KILLED.keys()
    assert {name.partition(" --")[0] for name in (*CHANGES, *NOT_KILLED)} == {*commands()}


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.nightly)], ids=["few", "every"])
@pytest.mark.parametrize("name", CHANGES)
def test_r29_a_command_killed(
    first: Machine,
    tmp_path: Path,
    name: str,
    every: bool,  # noqa: FBT001 - parametrized
    capfd: pytest.CaptureFixture[str],
) -> None:
    """R29: where something moves, goes or becomes durable; nightly at every call, of many equal ones at three."""
    found = kill(first, CHANGES[name], tmp_path, every=every)
    with capfd.disabled():
        sys.stderr.write("\n".join(["", *shown([found])]))
    assert not any(outcome.startswith("78") for outcome in found.outcomes)
