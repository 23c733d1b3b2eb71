"""A server that is closed, or whose move is killed: no line leads to a second soul, and the move ends when it is repeated."""

import os
import re
import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
import pytest

from claudius.cli import migrate as command
from claudius.home import shipped
from claudius.memory.postgres import moving
from claudius.memory.postgres.schema import create_sql, known
from driven import Machine
from killing import MOVES, Change, Killed, Point, copied, killed, points, run, shown, spread
from lab import postgres
from lab.postgres import Server

MEMORY = shipped("memory")
COMMAND = re.compile(r"`claudius migrate '([^']+)'`")


class Cut(BaseException):
    """The process ends here."""


def _cut(*_: object, **__: object) -> None:
    raise Cut


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine whose soul has lived in its file."""
    made = Machine(tmp_path / "one")
    made.ok("chat", "--once", "My name is Tom. I like walnut cakes.")
    return made


@pytest.fixture
def other(tmp_path: Path) -> Machine:
    """Return another machine, whose home holds nothing."""
    return Machine(tmp_path / "two")


def cut_at(machine: Machine, patch: pytest.MonkeyPatch, to: str, where: Any, step: str) -> None:
    """Move until `step`, where the process ends."""
    with patch.context() as patched:
        patched.setattr(os, "environ", machine.environment())
        patched.setattr(where, step, _cut)
        with pytest.raises(Cut):
            command.migrate.main([to], standalone_mode=False)


def state_at(url: str) -> int:
    """Return what the server says of itself: 0 here, 1 a move has not finished, 2 the soul has left."""
    with psycopg.connect(url) as made:
        row = made.execute("SELECT migrating FROM release").fetchone()
    assert row
    return int(row[0])


def run_sql(url: str, sql: str) -> None:
    """Run one statement at the server."""
    with psycopg.connect(url, autocommit=True) as made:
        made.execute(sql.encode())


def files_of(machine: Machine) -> list[str]:
    """Return the databases of a home."""
    return sorted(path.name for path in (machine.home / "state").glob("*.db"))


def test_scale_a_soul_that_left_is_not_taken_again(machine: Machine, other: Machine, postgres_url: str) -> None:
    """Once the soul is back in one home's file, no other home gets it from the server; the line names that home."""
    machine.ok("migrate", postgres_url)
    machine.ok("migrate", "sqlite")
    there = {"CLAUDIUS_STORE_URL": postgres_url}
    other.keep_at(postgres_url)
    taken, back = other.run("migrate", "sqlite"), other.run("migrate", postgres_url)
    started = other.run("chat", "--once", "Hello", env=there)

    assert (taken.code, back.code, started.code) == (75, 75, 75)
    for ran in (taken, back, started):
        assert f"the soul has left this server: it is in a file now, in {machine.home} on " in ran.stderr
        assert COMMAND.findall(ran.stderr) == [postgres_url]
    assert files_of(other) == []
    assert state_at(postgres_url) == 2
    machine.ok("migrate", postgres_url)  # what the line says
    assert "walnut cakes" in machine.ok("chat", "--once", "What do you remember of me?").stdout


def test_scale_a_copy_that_was_not_finished_replaces_no_file(
    machine: Machine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A move was cut off, and the soul lived on in its file: the older copy never comes back, and the line ends it."""
    cut_at(machine, monkeypatch, postgres_url, command, "write")
    machine.ok("chat", "--once", "I love oak planks.")
    (machine.home / "config.toml").write_text(f'[store]\nurl = "{postgres_url}"\n')
    started, back = machine.run("chat", "--once", "Hello"), machine.run("migrate", "sqlite")

    assert state_at(postgres_url) == 1
    assert (started.code, back.code) == (75, 75)
    for ran in (started, back):
        assert f"a move to this server has not finished; it was begun in {machine.home} on " in ran.stderr
    machine.ok("migrate", *COMMAND.findall(started.stderr))
    assert "oak" in machine.ok("chat", "--once", "What did I say of oak planks?", "--conversation", "x").stdout


def test_scale_a_move_is_ended_by_the_home_that_began_it(
    machine: Machine, other: Machine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where only the last word is missing, another home opens nothing and puts its own soul nowhere."""
    cut_at(machine, monkeypatch, postgres_url, moving, "finish")
    other.keep_at(postgres_url)
    opened = other.run("migrate", postgres_url)
    (other.home / "config.toml").write_text("")
    other.ok("chat", "--once", "My name is Ana.")
    put = other.run("migrate", postgres_url)

    assert (opened.code, put.code) == (75, 75)
    assert state_at(postgres_url) == 1
    assert "the interrupted move is ended" in machine.ok("migrate", postgres_url).stdout
    assert "walnut cakes" in machine.ok("chat", "--once", "What do you remember of me?").stdout


@pytest.mark.parametrize("step", ["_aside", "write"])
def test_scale_only_its_own_home_ends_the_way_back(
    machine: Machine, other: Machine, postgres_url: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """An interrupted `migrate sqlite` is ended by its own home alone, also after a dry run, and without a new copy."""
    machine.ok("migrate", postgres_url)
    other.home.mkdir(parents=True, mode=0o700)
    shutil.copy(machine.home / "config.toml", other.home)
    cut_at(machine, monkeypatch, "sqlite", command, step)
    taken = other.run("migrate", "sqlite")
    machine.run("migrate", "sqlite", "--dry-run")
    ended = machine.ok("migrate", "sqlite")

    assert taken.code == 75
    assert files_of(other) == []
    assert "the interrupted move is ended" in ended.stdout
    assert files_of(machine) == ["claudius.db"]
    assert not (machine.home / "state" / "move").exists()
    assert "walnut cakes" in machine.ok("chat", "--once", "What do you remember of me?").stdout


def test_scale_the_copy_back_is_made_anew_before_it_is_whole(
    machine: Machine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut between the server's last word and the file's, the file is made again by the same home."""
    machine.ok("migrate", postgres_url)
    cut_at(machine, monkeypatch, "sqlite", moving, "sync")  # the note of the move is not written: nothing has moved
    assert state_at(postgres_url) == 0
    with monkeypatch.context() as patch:
        patch.setattr(command, "COPIED", "")
        cut_at(machine, monkeypatch, "sqlite", command, "_aside")
    assert state_at(postgres_url) == 2
    machine.ok("migrate", "sqlite")

    assert "walnut cakes" in machine.ok("chat", "--once", "What do you remember of me?").stdout


def test_scale_a_server_that_an_earlier_release_closed_stays_closed(
    machine: Machine, other: Machine, postgres_url: str
) -> None:
    """Of such a server no one knows why: nothing starts and nothing is taken; a home with a file may replace it."""
    run_sql(postgres_url, create_sql(MEMORY, 25))
    run_sql(postgres_url, "UPDATE release SET migrating = 1")
    (machine.home / "config.toml").write_text(f'[store]\nurl = "{postgres_url}"\n')
    started, taken = machine.run("chat", "--once", "Hello"), machine.run("migrate", "sqlite")
    other.home.mkdir(parents=True, mode=0o700)
    opened = other.run("migrate", postgres_url)

    assert (started.code, taken.code, opened.code) == (75, 75, 75)
    for ran in (started, taken, opened):
        assert "a move to this server has not finished, or the soul has left it" in ran.stderr
    machine.ok("migrate", *COMMAND.findall(started.stderr))
    with psycopg.connect(postgres_url) as made:
        assert made.execute("SELECT schema, migrating FROM release").fetchone() == (known(MEMORY), 0)
    assert "walnut cakes" in machine.ok("chat", "--once", "What do you remember of me?").stdout


def test_scale_nothing_is_written_where_the_soul_has_left(machine: Machine, postgres_url: str) -> None:
    """The server itself refuses every transaction that writes, whichever way it was closed."""
    machine.ok("migrate", postgres_url)
    for close in ("UPDATE release SET migrating = 1", "UPDATE release SET migrating = 2"):
        run_sql(postgres_url, close)
        with pytest.raises(psycopg.DatabaseError, match="moved away"):
            run_sql(postgres_url, "SELECT soul_is_here()")
    run_sql(postgres_url, "UPDATE release SET migrating = 0; SELECT soul_is_here()")


def test_scale_doctor_and_workers_say_that_nothing_can_start(machine: Machine, postgres_url: str) -> None:
    """`doctor` fails on a closed server, with the command; `workers` says why no one is there."""
    before = machine.run("workers", env={"CLAUDIUS_STORE_URL": postgres_url})
    machine.ok("migrate", postgres_url)
    machine.ok("migrate", "sqlite")
    env = {"CLAUDIUS_STORE_URL": postgres_url}
    found = machine.run("doctor", "--json", env=env)
    listed = machine.run("workers", env=env)

    assert "nobody has begun at this server yet" in before.stdout
    assert found.code == 1
    (check,) = [one for one in found.json["checks"] if one["name"] == "move"]
    assert not check["ok"]
    assert "nothing can start: the soul has left this server" in check["detail"]
    assert COMMAND.findall(check["fix"]) == [postgres_url]
    assert "the soul has left this server" in listed.stdout
    assert "names no database server" in machine.ok("workers").stdout


@pytest.mark.parametrize(
    ("to", "code", "says"),
    [
        ("postgres://tom:secret-word@127.0.0.1:1/soul", 78, "put it into .env as CLAUDIUS_STORE_PASSWORD"),
        ("postgres://tom@127.0.0.1:1/soul?password=secret-word", 78, "put it into .env as CLAUDIUS_STORE_PASSWORD"),
        ("mysql://tom@127.0.0.1:1/soul", 2, "the argument of `claudius migrate` must be postgres://"),
    ],
)
def test_scale_a_wrong_argument_is_refused_before_anything(tmp_path: Path, to: str, code: int, says: str) -> None:
    """A URL that holds a password, or of another kind, is refused as the argument: nothing is asked or made."""
    machine = Machine(tmp_path)
    for flags in ((), ("--dry-run",)):
        ran = machine.run("migrate", to, *flags)

        assert ran.code == code
        assert says in ran.stderr
        assert "the argument of `claudius migrate`" in ran.stderr
        assert "config.toml" not in ran.stderr
        assert "secret-word" not in ran.shown
        assert not machine.home.exists()


def test_scale_what_a_move_needs_at_its_end_is_checked_first(machine: Machine, postgres_url: str) -> None:
    """Settings that could not be written or read back stop a move before the server is asked."""
    (machine.home / "config.toml").write_text('[store]\nlisten_url = "postgres://tom:secret-word@host/soul"\n')
    ran = machine.run("migrate", postgres_url)

    assert ran.code == 78
    assert "store.listen_url: holds a password" in ran.stderr
    with psycopg.connect(postgres_url) as made:
        assert made.execute("SELECT to_regclass('release')").fetchone() == (None,)


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
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")
@pytest.mark.parametrize("form", ["few", pytest.param("every", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("way", ["there", "back"])
def test_r29_a_move_that_is_killed(
    first: Machine, tmp_path: Path, postgres_server: Server, way: str, form: str, capfd: pytest.CaptureFixture[str]
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
