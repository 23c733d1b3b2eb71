"""A home whose `store.url` names PostgreSQL: the same commands, the same memory; and SQLite pays nothing for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from driven import Machine

MARK = "walnut cakes"


@pytest.fixture
def machine(tmp_path: Path, postgres_url: str) -> Machine:
    """Return a machine whose home keeps everything in PostgreSQL."""
    made = Machine(tmp_path)
    made.home.mkdir(parents=True, mode=0o700)
    (made.home / "config.toml").write_text(f'[store]\nurl = "{postgres_url}"\n')
    return made


def test_scale_a_soul_on_postgres_speaks_and_remembers(machine: Machine) -> None:
    """`chat --once` answers in one process what it was told in another; `why`, `users` and `status` read it."""
    told = machine.run("chat", "--once", f"My name is Tom. I like {MARK}.")
    asked = machine.run("chat", "--once", "What do you remember of me?", "--conversation", "other")
    why = machine.run("why", "--json").json
    status = machine.run("status", "--json").json
    people = machine.run("users", "list", "--json").json

    assert told.code == asked.code == 0, told.stderr + asked.stderr
    assert MARK in asked.stdout
    assert MARK in why["utterance"]
    assert status["turns"]["total"] == 2
    assert [one["name"] for one in people] == ["Tom"]
    assert not (machine.home / "state" / "claudius.db").exists()


def test_scale_the_owner_edits_and_reads_beside(machine: Machine) -> None:
    """What an owner sets by a command is in force, and stands in the audit log."""
    machine.run("chat", "--once", "Good morning.")
    machine.run("state", "set", "currentTopic", "bridges")
    state = machine.run("state", "show", "--json").json
    person = machine.run("users", "list", "--json").json[0]["person"]
    machine.run("users", "show", person)
    audit = machine.run("audit", "--json").json

    assert state["currentTopic"]["value"] == "bridges"
    assert [(one["act"], one["target"]) for one in audit] == [("state", "currentTopic"), ("read", person)]


def test_scale_the_owner_pauses_every_process_from_the_command_line(machine: Machine) -> None:
    """`config set runtime.paused` is no setting of one home: `status` shows it, and the terminal is answered as ever."""
    machine.ok("chat", "--once", "Good morning.")
    said = machine.ok("config", "set", "runtime.paused", "true").stdout
    paused, shown = machine.run("status", "--json").json, machine.run("status").stdout
    machine.ok("chat", "--once", "Are you there?")
    machine.ok("config", "set", "runtime.paused", "false")
    resumed, audit = machine.run("status", "--json").json, machine.ok("audit", "--json").json

    assert "for every process" in said
    assert (paused["server"]["lanes"]["paused"], resumed["server"]["lanes"]["paused"]) == (True, False)
    assert "paused: nobody but the terminal" in shown
    assert "paused" not in (machine.home / "config.toml").read_text()
    assert [one["act"] for one in audit] == ["pause", "resume"]


def test_scale_whoever_is_forgotten_is_in_no_table(machine: Machine) -> None:
    """`users forget` erases the server's rows, and a file of before; the receipt is verified, and names what is not ours."""
    machine.ok("chat", "--once", "I am Tom, and this is a file.", env={"CLAUDIUS_STORE_URL": "sqlite"})
    machine.run("chat", "--once", f"My name is Tom. I like {MARK} very much indeed.")
    person = machine.run("users", "list", "--json").json[0]["person"]

    receipt = machine.run("users", "forget", person, "--yes", "--json").json
    export = machine.run("users", "export", person)

    assert receipt["verified"], receipt["left"]
    assert any("write-ahead log" in one for one in receipt["not_ours"])
    assert MARK not in export.shown
    assert machine.run("users", "list", "--json").json == []


def test_scale_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    """A server that cannot be reached is one line that names it, and never the password."""
    machine = Machine(tmp_path)
    env = {"CLAUDIUS_STORE_URL": "postgres://tom@127.0.0.1:1/soul", "CLAUDIUS_STORE_PASSWORD": "hunter2-hunter2"}

    ran = machine.run("chat", "--once", "Hello", env=env)

    assert ran.code == 75
    assert "postgres://tom@127.0.0.1:1/soul cannot be reached" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "hunter2" not in ran.stdout + ran.stderr


@pytest.mark.parametrize(("key", "scheme"), [("store.url", "postgres"), ("archive.remote", "https")])
def test_scale_a_password_in_the_url_is_refused(tmp_path: Path, key: str, scheme: str) -> None:
    """The password belongs into .env: a URL that holds one is bad configuration."""
    env = {f"CLAUDIUS_{key.replace('.', '_').upper()}": f"{scheme}://tom:secret-word@host/soul"}
    ran = Machine(tmp_path).run("config", "check", env=env)

    assert ran.code == 78
    assert f"{key}: holds a password" in ran.shown
    assert "secret-word" not in ran.shown


@pytest.mark.parametrize("key", ["store.url", "store.listen_url"])
@pytest.mark.parametrize(
    "url",
    [
        "postgres://tom:secret-word@host/soul",
        "postgres://tom@host/soul?sslmode=require&password=secret-word",
        "postgres://tom@host/soul?%70assword=secret-word",
        "postgres://tom@host/soul?sslpassword=secret-word",
    ],
)
def test_scale_a_password_is_not_set_as_part_of_a_url(tmp_path: Path, key: str, url: str) -> None:
    """`config set` refuses it before it writes anything: not into config.toml, not into the audit log, not on screen."""
    machine = Machine(tmp_path)
    machine.ok("config", "set", "memory.window", "30")
    before = (machine.home / "config.toml").read_bytes()
    ran = machine.run("config", "set", key, url)

    assert ran.code == 78
    assert f"{key}: holds a password; put it into .env as CLAUDIUS_STORE_PASSWORD" in ran.stderr
    assert "secret-word" not in ran.shown
    assert (machine.home / "config.toml").read_bytes() == before
    assert key not in machine.ok("audit").stdout
    assert not any(b"secret-word" in path.read_bytes() for path in machine.home.rglob("*") if path.is_file())


def test_a_password_in_a_url_of_another_kind_is_not_shown(tmp_path: Path) -> None:
    """What is refused for another reason is named without its password."""
    ran = Machine(tmp_path).run("config", "set", "store.url", "mysql://tom:secret-word@host/soul")

    assert ran.code == 78
    assert "secret-word" not in ran.shown


def test_scale_a_worker_needs_a_server(tmp_path: Path) -> None:
    """A worker on a home of SQLite is told what to set."""
    ran = Machine(tmp_path).run("worker")

    assert ran.code == 78
    assert "store.url" in ran.shown


def test_scale_w10_sqlite_imports_nothing_of_it(tmp_path: Path) -> None:
    """W10: a soul on SQLite has a turn without the driver, and without a module of the other store."""
    code = (
        "import asyncio, sys\n"
        "from claudius.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted(one for one in sys.modules if 'psycopg' in one or 'memory.postgres' in one))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "chat", "--once", "Hello"],
        env=Machine(tmp_path).environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout.splitlines()[-1] == "[]"
