"""R29 for `claudius migrate`: killed while it moves a soul to a server or back, and repeated, the soul is whole."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

from driven import Machine
from killing import MOVES, Change, Killed, Point, copied, killed, points, run, shown, spread
from lab import postgres
from lab.postgres import Server

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")
MAIN = "terminal:local:main:main"
PUSH_POINTS = 2


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """Return a machine whose soul has lived in its file."""
    machine = Machine(tmp_path_factory.mktemp("first"))
    machine.ok("chat", "--once", "My name is Tom. I like walnut cakes.")
    (machine.home / "state" / "reserve").unlink(missing_ok=True)
    return machine


@pytest.mark.slow
@pytest.mark.parametrize("form", ["few", pytest.param("every", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("way", ["there", "back"])
def test_r29_a_move_that_is_killed(
    first: Machine,
    tmp_path: Path,
    postgres_server: Server,
    way: str,
    form: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Whatever the next command says, the move repeated ends in one whole soul, at the place that it was moved to."""
    outcomes = Counter[str]()
    with postgres.schema(postgres_server, f"t_killed_{way}_whole") as url:
        machine = copied(first, tmp_path / "whole")
        change = _change(machine, way, url)
        found = [one for one in points(machine, change, tmp_path / "trace") if one.call in MOVES]
    chosen = found if form == "every" else spread(found, PUSH_POINTS)
    for place, point in enumerate(chosen):
        with postgres.schema(postgres_server, f"t_killed_{way}_{place}") as url:
            outcomes[_killed_at(copied(first, tmp_path / f"m{place}"), way, url, point, tmp_path / "trace")] += 1
    with capfd.disabled():
        row = Killed(f"migrate {way}", len(chosen), len(found), outcomes)
        sys.stderr.write("\n".join(["", *shown([row])]))


def _change(machine: Machine, way: str, url: str) -> Change:
    if way == "back":
        machine.ok("migrate", url)
    return Change(("migrate", url if way == "there" else "sqlite"))


def _killed_at(machine: Machine, way: str, url: str, point: Point, trace: Path) -> str:
    change = _change(machine, way, url)
    killed(machine, change, trace, point)
    start = machine.run("conversations", "show", MAIN)
    assert start.code != 0 or "walnut" in start.stdout, f"{point}: {start.shown}"
    assert start.code in (0, 75, 78), f"{point}: {start.shown}"
    ran = run(machine, change)
    assert ran.code in (0, 1), f"{point}: {ran.shown}"
    assert "walnut" in machine.ok("conversations", "show", MAIN).stdout
    assert machine.ok("config", "get", "store.url").stdout.strip() == change.args[1]
    return "whole" if start.code == 0 else f"{start.code}, repeated: whole"
