"""R29: kill -9 at file-changing system calls of every command that changes something.

The next start finds all of the old or all of the new; the command, repeated, ends right; no accepted message and no row
of the audit log is lost. Each test prints its row of the table: command, points, outcomes.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from driven import Machine
from every_command import CHANGES, NOT_KILLED, commands
from killing import (
    ACCEPTED,
    ADA,
    BEN,
    BETWEEN_RENAMES,
    Change,
    Killed,
    accept,
    acts,
    copied,
    furnish,
    kill,
    killed,
    points,
    seen,
    shown,
)  # fmt: skip

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")
ROWS = {row["id"]: row for row in json.loads((Path(__file__).parents[1] / "cases" / "forget.json").read_text())["rows"]}
RESTORE, IMPORT = CHANGES["backup restore"], CHANGES["backup restore --portable"]
MUTANTS = {
    "no note is written": "r.replace = lambda root, fresh, aside: r._carry_out("
    "[(p, aside / p.name) for p in fresh if p.exists()] + [(n, p) for p, n in fresh.items() if n])",
    "no start obeys the note": "r.obey = lambda root: None",
}


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


@pytest.mark.parametrize("name", CHANGES)
def test_r29_a_command_killed_at_a_few_points(
    first: Machine, tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """R29 (CI): where something moves, goes or becomes durable."""
    _tell(kill(first, CHANGES[name], tmp_path, every=False), capfd)


@pytest.mark.nightly
@pytest.mark.parametrize("name", CHANGES)
def test_r29_a_command_killed_at_every_point(
    first: Machine, tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """R29 (nightly): every call that does something, where of many equal ones three are taken."""
    _tell(kill(first, CHANGES[name], tmp_path, every=True), capfd)


def _tell(killed: Killed, capfd: pytest.CaptureFixture[str]) -> None:
    with capfd.disabled():
        sys.stderr.write("\n".join(["", *shown([killed])]))
    assert not any(outcome.startswith("78") for outcome in killed.outcomes)


@pytest.mark.parametrize("row", ["stays-restore-first-day", "stays-import"])
def test_r29_between_two_renames(first: Machine, tmp_path: Path, row: str) -> None:
    """At each rename: the old or the new memory, whole; on the first day, too, without a copy in `backups/`."""
    right = ROWS[row]["right"]
    assert right.keys() <= {"next_start", "says", "or"}
    assert not list((first.home / "backups").glob("claudius-*"))

    killed = kill(first, IMPORT if row == "stays-import" else RESTORE, tmp_path, every=False, calls=BETWEEN_RENAMES)

    assert killed.points >= 4
    assert set(killed.outcomes) <= {"old", "new"}


def _killed_restore(first: Machine, tmp_path: Path) -> Machine:
    """Return a machine whose restore was killed right after the database had been moved away."""
    found = points(copied(first, tmp_path / "whole"), RESTORE, tmp_path / "trace")
    away = [one for one in found if one.call in BETWEEN_RENAMES][1:]  # the first one puts the note in its place
    machine = copied(first, tmp_path / "killed")
    assert killed(machine, RESTORE, tmp_path / "trace", away[1]) != 0
    assert not (machine.home / "state" / "claudius.db").exists()
    return machine


def _asked(machine: Machine, sql: str, database: Path | None = None) -> list[Any]:
    with closing(
        sqlite3.connect(f"file:{database or machine.home / 'state' / 'claudius.db'}?mode=ro", uri=True)
    ) as kept:
        return [one for (one,) in kept.execute(sql)]


def test_r29_a_restore_that_is_done_again(first: Machine, tmp_path: Path) -> None:
    """Both accepted messages are answered once, what was answered since the copy is not, and no act is gone."""
    row = ROWS["stays-restore-again"]
    assert row["right"].keys() == {"accepted_answered", "audit"}
    machine = _killed_restore(first, tmp_path)

    machine.ok("backup", "restore", str(machine.root / "copy.db"), "--yes")
    answered = f"SELECT inbox.key FROM outbox JOIN inbox USING (turn) WHERE inbox.key IN {ACCEPTED}"  # noqa: S608 - our own keys
    with machine.daemon():
        machine.ok("chat", "--once", "after", "--conversation", "after")

    assert sorted(_asked(machine, answered)) == sorted(ACCEPTED)
    assert len(ACCEPTED) == row["right"]["accepted_answered"]
    assert set(acts(first)) <= set(acts(machine))


def test_r29_a_restore_and_then_somebody_is_forgotten(first: Machine, tmp_path: Path) -> None:
    """What was set aside may be the only true memory: the one person is erased from it, all else is still there."""
    assert ROWS["stays-restore-then-forget"]["right"] == {"owner_told_first": True, "toms_memory": "still there"}
    machine = _killed_restore(first, tmp_path)
    kept = seen(first)

    with machine.daemon():  # which remembers that it has asked whether he is sure
        machine.ok("chat", "--once", "!forget me", "--as", "ben")
        told = machine.ok("chat", "--once", "!forget me yes", "--as", "ben").stdout

    (aside,) = (machine.home / "backups").glob("replaced-*/claudius.db")
    assert "You are forgotten" in told
    assert _asked(machine, "SELECT text FROM due WHERE text <> ''", aside)  # what was planned since the copy
    lines = _asked(machine, "SELECT content FROM entry WHERE entry_type = 'userMessage'", aside)
    assert "I am Ben." not in lines
    assert "Remind me tomorrow at 9 to pay the rent." in lines
    assert len([one for one in kept["said"] if "bridges" in one]) == len([one for one in lines if "bridges" in one])
    assert BEN.encode() not in aside.read_bytes()
    assert ADA.encode() in aside.read_bytes()


@pytest.mark.parametrize("unreadable", [False, True])
def test_r29_the_receipt_names_what_was_set_aside(first: Machine, tmp_path: Path, unreadable: bool) -> None:  # noqa: FBT001 - pytest's way
    """It says from which set-aside copy a person was erased, and which one no one can read; that one stays."""
    machine = copied(first, tmp_path / "machine")
    machine.ok("backup", "restore", str(machine.root / "copy.db"), "--yes")
    (aside,) = (machine.home / "backups").glob("replaced-*/claudius.db")
    if unreadable:
        aside.write_bytes(b"no database")
    ran = machine.run("users", "forget", BEN, "--yes", "--json")

    name = str(aside.parent.relative_to(machine.home))
    assert aside.exists()
    assert ran.json["aside"] == ([] if unreadable else [name])
    assert ran.json["verified"] is not unreadable
    assert [one.partition(" ")[0] for one in ran.json["left"]] == ([name] if unreadable else [])


@pytest.mark.parametrize("mutant", MUTANTS)
@pytest.mark.parametrize("change", [RESTORE, IMPORT], ids=["restore", "import"])
def test_r29_a_mutant_is_caught(first: Machine, tmp_path: Path, mutant: str, change: Change) -> None:
    """Files that are replaced without a note, and a note that no start obeys, are seen."""
    (tmp_path / "mutant").mkdir()
    (tmp_path / "mutant" / "sitecustomize.py").write_text(f"import claudius.home as r\n{MUTANTS[mutant]}\n")
    machine = copied(first, tmp_path / "machine")
    machine.env["PYTHONPATH"] = str(tmp_path / "mutant")

    with pytest.raises(AssertionError, match="killed at"):
        kill(machine, change, tmp_path / "killed", every=False, calls=BETWEEN_RENAMES, is_whole=True)


SIGNS = {
    "portraits": "memory/.git/HEAD",
    "a backup": "backups/claudius-20260101T000000.000000Z.db",
    "what was set aside": "backups/replaced-20260101T000000.000000Z/claudius.db",
    "a broken copy": "backups/quarantine-20260101T000000.000000Z/claudius.db",
    "an erasure": "state/erasures.jsonl",
    "a log of a life": "logs/claudius.log",
}


@pytest.mark.parametrize("sign", SIGNS)
def test_r29_a_home_without_its_database_is_not_a_new_one(first: Machine, tmp_path: Path, sign: str) -> None:
    """78 and one line for the one who opens it: what is missing, the newest sound copy, the command; the doctor agrees."""
    machine = Machine(tmp_path)
    path = machine.home / SIGNS[sign]
    path.parent.mkdir(parents=True)
    path.write_text('{"event": "awake", "boot": "0"}\n')
    if path.name != "claudius.log":
        shutil.copyfile(first.root / "copy.db", path)
    machine.ok("config", "set", "memory.window", "7")

    started = machine.run("chat", "--once", "hello")
    doctor = machine.run("doctor", "--json")
    (found,) = (one for one in doctor.json["checks"] if not one["ok"])

    assert (started.code, doctor.code) == (78, 1)
    assert not (machine.home / "state" / "claudius.db").exists()
    (line,) = started.stderr.splitlines()
    assert "claudius.db is missing" in line
    assert found["name"] == "database"
    assert line.removeprefix("claudius: ") == found["detail"]
    if "backups/" in SIGNS[sign] and "quarantine" not in SIGNS[sign]:
        command = line.partition("run: claudius ")[2]
        assert command == f"backup restore {path} --yes"
        machine.ok(*command.split())
        assert machine.ok("chat", "--once", "hello").stdout
    else:
        assert "move the whole home aside" in line


def test_r29_a_new_home_starts_as_ever(tmp_path: Path) -> None:
    """Its texts and settings, and a log of starts that failed, are no sign of a life."""
    machine = Machine(tmp_path)
    machine.ok("seed")
    failed = machine.run("daemon", "run", env={"CLAUDIUS_PROVIDERS": "nonsense"})

    assert failed.code == 78
    assert machine.log.exists()
    assert machine.ok("chat", "--once", "hello").stdout
