"""`claudius audit`, `upgrade` and `completion`: who did what, whether the database fits, and Tab in three shells."""

import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import claudius
from claudius.home import shipped
from claudius.memory.postgres.schema import known
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


def test_the_newest_are_shown_and_all_are_exported(machine: Machine) -> None:
    """50 lines by default and `-n N`, but all as JSON; `--since` counts from a time in UTC, and in words it is a table."""
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


def test_an_empty_home_has_done_nothing(machine: Machine) -> None:
    """Before anything was done the command says so, and makes no home."""
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


def test_doctor_names_a_rule_that_shuts_an_owner_out(machine: Machine) -> None:
    """An empty list, and an owner whom no list lets in, are findings: both are seldom meant."""
    machine.ok("config", "set", "owners", "slack:T1:U1,slack:T1:U2")
    machine.ok("config", "set", "access.slack_people", "U2")
    machine.ok("config", "set", "access.discord_roles", "[]")

    found = machine.run("doctor", "--json").json["checks"]
    problems = [one["detail"] for one in found if one["name"] == "access" and not one["ok"]]

    assert problems == [
        "access.discord_roles is empty: nobody is heard by it",
        "access.slack_people or its denials leave out the owner slack:T1:U1",
    ]


KNOWN = len([*(shipped("memory") / "schema").glob("*.sql")])


def test_no_index_is_asked_and_the_way_to_look_is_printed(machine: Machine) -> None:
    """`latest` is null; the text names how to look; 0 where the database fits; nothing is created, and bare is a misuse."""
    told = machine.ok("upgrade", "--check")
    found = machine.ok("upgrade", "--check", "--json").json
    bare = machine.run("upgrade")

    wanted = {"version": claudius.__version__, "latest": None, "schema": None, "schema_known": KNOWN, "ok": True}
    assert found == wanted
    assert "pip index versions claudius-daemon" in told.stdout
    assert bare.code == 2
    assert not machine.home.exists()


def test_a_database_of_a_later_release_is_told(machine: Machine) -> None:
    """A schema that this release does not know is a failure."""
    machine.ok("chat", "--once", "hello")
    with closing(sqlite3.connect(machine.home / "state" / "claudius.db")) as database:
        database.execute(f"PRAGMA user_version = {KNOWN + 1}")

    ran = machine.run("upgrade", "--check")

    assert ran.code == 1
    assert "a later release wrote the database" in ran.stdout


@pytest.mark.parametrize(("oldest", "code"), [(25, 0), (99, 1)])
def test_scale_the_schema_of_a_server_is_told(tmp_path: Path, postgres_url: str, oldest: int, code: int) -> None:
    """With a server, its own version is told, and that it fits as long as this release may write beside it."""
    machine, env = Machine(tmp_path), {"CLAUDIUS_STORE_URL": postgres_url}
    empty = machine.ok("upgrade", "--check", "--json", env=env).json
    machine.ok("chat", "--once", "hello", env=env)
    with psycopg.connect(postgres_url) as made:
        made.execute("UPDATE release SET schema = 99, oldest = %s", (oldest,))
    ran = machine.run("upgrade", "--check", env=env)
    found = machine.run("upgrade", "--check", "--json", env=env).json

    assert (empty["schema"], empty["schema_known"], empty["ok"]) == (None, known(shipped("memory")), True)
    assert ran.code == code
    assert f"knows schema {known(shipped('memory'))}; postgres://claudius@/postgres has 99" in ran.stdout
    assert ("a later release wrote the database" in ran.stdout) is bool(code)
    assert found["schema"] == 99


def completed(machine: Machine, line: str) -> set[str]:
    """Return what bash would offer for a line that ends where Tab is pressed."""
    words = {"_CLAUDIUS_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    return {one.partition(",")[2] for one in machine.ok(env=words).stdout.splitlines()}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_is_given_its_lines(machine: Machine, shell: str) -> None:
    """The lines name the command and the shell's own way to complete; without SHELL, how to install them is said."""
    lines = machine.ok("completion", shell).stdout
    told = machine.ok("completion", env={"SHELL": f"/usr/bin/{shell}"}).stdout

    assert f"_CLAUDIUS_COMPLETE={shell}_complete" in lines
    assert f"claudius completion {shell}" in told
    assert len(told.splitlines()) == 1
    if found := shutil.which(shell):
        assert subprocess.run([found, "-n"], input=lines, text=True, check=False).returncode == 0


def test_commands_and_options_are_completed(machine: Machine) -> None:
    """A command is completed by its beginning, hidden ones never, its options and its own commands likewise."""
    assert completed(machine, "claudius co") >= {"config", "conversations", "completion", "cortex"}
    assert "seed" not in completed(machine, "claudius ")
    assert completed(machine, "claudius chat --on") == {"--once"}
    assert completed(machine, "claudius daemon st") == {"start", "status", "stop"}


def test_an_unknown_shell_is_one_clear_line(machine: Machine) -> None:
    """A shell that is not known ends it with exit code 2 and the names of those that are."""
    ran = machine.run("completion", "tcsh")

    assert ran.code == 2
    assert all(shell in ran.stderr for shell in ("bash", "zsh", "fish"))
