"""Reading needs no writing: on a full, read-only or damaged store each look happens, and says that it is not noted."""

import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg
import pytest

from claudius.errors import EXIT_CONFIG, EXIT_TRY_AGAIN
from driven import CLAUDIUS, TIMEOUT_S, Machine, Ran, reply
from faults.test_r17_read_only import mode, obey_modes

ANA = "terminal:local:as-ana"
LOOKS = (
    ("why", "--json"),
    *(
        ("users", what, ANA, "--json", *more)
        for what, *more in (("show",), ("log",), ("log", "--diff"), ("log", "--blame"), ("export",))
    ),
)
NOT_NOTED = "claudius: this look could not be noted in the audit log: "
PAGE_BYTES = 4096

on_linux = pytest.mark.skipif(os.uname().sysname != "Linux", reason="root obeys modes on Linux only, where asked to")


def lived(tmp_path: Path, *, is_killed: bool = False) -> Machine:
    """Return a home where Ana has two versions of a portrait. A killed daemon leaves its write-ahead log behind."""
    machine = Machine(tmp_path)
    lived_in(machine)
    if is_killed:
        machine.scripted(reply("Yes."))
        with machine.daemon(is_stopped=False):
            machine.ok("chat", "--once", "hello", "--as", "ana")
    return machine


def lived_in(machine: Machine) -> None:
    """Have Ana say two lines, each of which gives her portrait a version."""
    for number in range(2):
        portrait = f"## Persona\nAna, of {number} words."
        machine.scripted(reply("Yes.", user_model_check="true", user_model_update=portrait, model_change_note="so"))
        machine.ok("chat", "--once", "hello", "--as", "ana")


def no_room() -> None:
    """Let no file grow in the child of a test: every write fails, as on a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (PAGE_BYTES, PAGE_BYTES))


def run(machine: Machine, args: tuple[str, ...], prepare: Callable[[], None] | None) -> Ran:
    """Run a command whose process is prepared first."""
    ran = subprocess.run(
        [CLAUDIUS, *args], env=machine.environment() | {"PYTHONDONTWRITEBYTECODE": "1"}, cwd=machine.user, capture_output=True, timeout=TIMEOUT_S,
        preexec_fn=prepare, check=False,
    )  # fmt: skip
    return Ran(args, ran.returncode, ran.stdout.decode(), ran.stderr.decode())


def check(machine: Machine, known: list[object], prepare: Callable[[], None] | None, why: str, code: int) -> None:
    """Every look shows what is known, with one line on stderr; a change refuses with an exit code."""
    database = machine.home / "state" / "claudius.db"
    before = database.read_bytes()
    looks = [run(machine, look, prepare) for look in LOOKS]
    changed = run(machine, ("users", "revert", ANA, "1"), prepare)

    assert [(one.code, one.json) for one in looks] == [(0, document) for document in known]
    for one in looks:
        (line,) = one.stderr.splitlines()
        assert line.startswith(NOT_NOTED)
        assert why in line
    assert changed.code == code
    assert why in changed.stderr
    assert NOT_NOTED not in changed.stderr
    assert database.read_bytes() == before


def looked(machine: Machine) -> list[object]:
    """Return what every look shows while all is well. It leaves the store as it was, a log of a killed process too."""
    state = machine.home / "state"
    shutil.copytree(state, state.with_name("as-it-was"))
    try:
        return [machine.ok(*look).json for look in LOOKS]
    finally:
        shutil.rmtree(state)
        state.with_name("as-it-was").rename(state)


@on_linux
@pytest.mark.parametrize(
    ("place", "is_killed"),
    [
        ("state", False),
        pytest.param("state", True, marks=pytest.mark.slow),
        pytest.param("state/claudius.db", False, marks=pytest.mark.slow),
    ],
)
def test_a_read_only_store_is_read(tmp_path: Path, place: str, *, is_killed: bool) -> None:
    """A look at a store that may not be written is not noted, whether or not its last process was killed."""
    machine = lived(tmp_path, is_killed=is_killed)
    known = looked(machine)

    with mode(machine.home / place, 0o400 if place.endswith("db") else 0o500):
        check(machine, known, obey_modes, "cannot be written", EXIT_CONFIG)

    assert machine.ok("audit", "--json").json == []


@pytest.mark.parametrize("is_killed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_store_on_a_full_disk_is_read(tmp_path: Path, *, is_killed: bool) -> None:
    """A look at a store without room is not noted; once there is room, it is noted again."""
    machine = lived(tmp_path, is_killed=is_killed)
    known = looked(machine)

    check(machine, known, no_room, "no space left", EXIT_TRY_AGAIN)

    assert machine.ok("users", "show", ANA).stderr == ""
    assert [row["act"] for row in machine.ok("audit", "--json").json] == ["read"]


def test_a_damaged_store_is_read_as_far_as_it_can_be(tmp_path: Path) -> None:
    """A damaged page takes no writing, but whatever does not stand on it is shown; a look at it names the damage."""
    machine = lived(tmp_path)
    known = looked(machine)
    database = machine.home / "state" / "claudius.db"
    with closing(sqlite3.connect(database)) as kept:
        (page,) = kept.execute("SELECT rootpage FROM sqlite_master WHERE name = 'whisper'").fetchone()
    with database.open("r+b") as file:
        file.seek((page - 1) * PAGE_BYTES)
        file.write(b"\xa5" * PAGE_BYTES)

    check(machine, known, None, "is damaged", EXIT_CONFIG)


@on_linux
def test_other_reading_commands_need_no_writing_either(tmp_path: Path) -> None:
    """What notes nothing says nothing: where no log can be made beside the file, it is read as it is."""
    machine = lived(tmp_path)
    reads = [("users", "list", "--json"), ("conversations", "list", "--json"), ("usage", "--json")]
    known = [machine.ok(*read).json for read in reads]

    with mode(machine.home / "state", 0o500):
        found = [run(machine, read, obey_modes) for read in reads]
    full = [run(machine, read, no_room) for read in reads]

    assert [(one.code, one.json, one.stderr) for one in found] == [(0, document, "") for document in known]
    assert [(one.code, one.json, one.stderr) for one in full] == [(0, document, "") for document in known]


@on_linux
def test_a_home_on_a_read_only_disk_is_read(tmp_path: Path) -> None:
    """Where nothing below the home may be made or written, each look shows what is known, and says that it is not noted."""
    machine = lived(tmp_path)
    known = looked(machine)
    places = [machine.home, *(path for path in machine.home.rglob("*") if path.is_dir())]

    with ExitStack() as stack:
        for place in places:
            stack.enter_context(mode(place, 0o500))
        looks = [run(machine, look, obey_modes) for look in LOOKS]

    assert [(one.code, one.json) for one in looks] == [(0, document) for document in known]
    assert [len(one.stderr.splitlines()) for one in looks] == [1] * len(LOOKS)
    assert {one.stderr.startswith(NOT_NOTED) for one in looks} == {True}


def test_scale_a_server_that_takes_no_writing_is_read(tmp_path: Path, postgres_url: str) -> None:
    """A standby, or a server whose disk is full, takes no row: each look shows what is known, and says so in one line."""
    machine = Machine(tmp_path, env={"CLAUDIUS_STORE_URL": postgres_url})
    lived_in(machine)
    known = [machine.ok(*look).json for look in LOOKS]

    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("ALTER DATABASE postgres SET default_transaction_read_only = on")
        try:
            looks = [machine.run(*look) for look in LOOKS]
            changed = machine.run("users", "revert", ANA, "1")
        finally:
            server.execute("ALTER DATABASE postgres RESET default_transaction_read_only")

    assert [(one.code, one.json) for one in looks] == [(0, document) for document in known]
    assert [len(one.stderr.splitlines()) for one in looks] == [1] * len(LOOKS)
    assert {one.stderr.startswith(NOT_NOTED) for one in looks} == {True}
    assert changed.code in (EXIT_CONFIG, EXIT_TRY_AGAIN)
