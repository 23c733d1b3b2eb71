"""`claudius audit`: commands are in it, a restored copy takes nothing out of it, and an erasure takes only ids."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from driven import Machine, reply

ADA, BO = "terminal:local:ada", "terminal:local:as-bo"


def shown(machine: Machine, *words: str) -> list[tuple[Any, ...]]:
    """Return the acts that the command lists."""
    found = machine.ok("audit", "--json", *words).json
    return [(row["act"], row["who"], row["target"], row["from"]) for row in found]


def test_a_restored_copy_edits_nothing(tmp_path: Path) -> None:
    """What was done after the copy was made stays in the log, before the restore itself; erased ids stay away."""
    machine = Machine(tmp_path)
    machine.scripted(reply("Hello."))
    machine.ok("chat", "--once", "hello", "--as", "bo")
    machine.ok("users", "show", BO)
    copy = machine.ok("backup", "create", str(tmp_path / "copy.db"), "--json").json["path"]
    machine.ok("config", "set", "log.level", "WARNING")
    machine.ok("users", "forget", BO, "--yes")
    before = shown(machine)

    machine.ok("backup", "restore", copy, "--yes")
    after = shown(machine)

    assert [act for act, *_ in before] == ["read", "setting", "forget"]
    assert after == [*before, ("restore", ADA, "copy.db", "cli")]
    assert BO.encode() not in (machine.home / "state" / "claudius.db").read_bytes()


def test_the_log_of_a_later_release_stays(tmp_path: Path) -> None:
    """A person who goes back to an earlier release by a copy keeps what was done with the later one."""
    machine = Machine(tmp_path)
    machine.ok("config", "set", "log.level", "WARNING")
    copy = machine.ok("backup", "create", str(tmp_path / "copy.db"), "--json").json["path"]
    machine.ok("config", "set", "log.level", "INFO")
    with closing(sqlite3.connect(machine.home / "state" / "claudius.db")) as later:
        later.execute("PRAGMA user_version = 9999")

    machine.ok("backup", "restore", copy, "--yes")

    assert [act for act, *_ in shown(machine)] == ["setting", "setting", "restore"]


def test_a_damaged_database_is_restored_all_the_same(tmp_path: Path) -> None:
    """The log of a database that cannot be read is lost with it; the copy's own stays, and the restore is in it."""
    machine = Machine(tmp_path)
    machine.ok("config", "set", "log.level", "WARNING")
    copy = machine.ok("backup", "create", str(tmp_path / "copy.db"), "--json").json["path"]
    (machine.home / "state" / "claudius.db").write_bytes(b"no database at all" * 999)

    machine.ok("backup", "restore", copy, "--yes")

    assert shown(machine) == [("setting", ADA, "log.level", "cli"), ("restore", ADA, "copy.db", "cli")]


def test_the_newest_are_shown_and_all_are_exported(tmp_path: Path) -> None:
    """50 lines by default and `-n N`, but all as JSON; `--since` counts from a time in UTC, and in words it is a table."""
    machine = Machine(tmp_path)
    machine.ok("config", "set", "log.level", "WARNING")
    with closing(sqlite3.connect(machine.home / "state" / "claudius.db")) as kept, kept:
        old = "2020-01-01T00:00:00.000000Z"
        values = [(old, "files", "setting", f"s{n}", "files") for n in range(60)]
        kept.executemany("INSERT INTO audit (at, who, act, target, origin) VALUES (?, ?, ?, ?, ?)", values)

    assert len(machine.ok("audit").stdout.splitlines()) == 51
    assert len(machine.ok("audit", "-n", "3").stdout.splitlines()) == 4
    assert len(shown(machine)) == 61
    assert shown(machine, "--since", "2021-01-01") == [("setting", ADA, "log.level", "cli")]
    assert machine.ok("audit", "-n", "1").stdout.split()[:5] == ["at", "who", "act", "target", "from"]


def test_an_empty_home_has_done_nothing(tmp_path: Path) -> None:
    """Before anything was done the command says so, and makes no home."""
    machine = Machine(tmp_path)

    assert machine.ok("audit").stdout.strip() == "nothing is recorded yet"
    assert machine.ok("audit", "--json").json == []
    assert not machine.home.exists()


@pytest.mark.parametrize("editor", ["true", "/bin/sh -c 'echo more >> \"$0\"'"])
def test_an_edit_of_the_soul_counts_if_it_changes_something(editor: str, tmp_path: Path) -> None:
    """An editor that is left without a change leaves no file and no line; a change is one line, before it is in force."""
    machine = Machine(tmp_path, env={"EDITOR": editor})

    machine.ok("soul", "edit")

    own = machine.home / "soul" / "soul.md"
    is_changed = editor != "true"
    assert own.exists() == is_changed
    assert shown(machine) == [("soul", ADA, "soul.md", "cli")] * is_changed
    assert not list((machine.home / "state").glob("edit-*"))


def test_doctor_names_a_rule_that_shuts_an_owner_out(tmp_path: Path) -> None:
    """An empty list, and an owner whom no list lets in, are findings: both are seldom meant."""
    machine = Machine(tmp_path)
    machine.ok("config", "set", "owners", "slack:T1:U1,slack:T1:U2")
    machine.ok("config", "set", "access.slack_people", "U2")
    machine.ok("config", "set", "access.discord_roles", "[]")

    found = machine.run("doctor", "--json").json["checks"]
    problems = [one["detail"] for one in found if one["name"] == "access" and not one["ok"]]

    assert problems == [
        "access.discord_roles is empty: nobody is heard by it",
        "access.slack_people or its denials leave out the owner slack:T1:U1",
    ]
