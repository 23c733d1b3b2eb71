"""S30: everything that the process, SQLite and git create is private to the owner, whatever the umask."""

import logging
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from claudius.runtime.logs import PrivateFile
from driven import REPOSITORY, Machine, reply

PERSON = "terminal:local:ada"


def _learning(fact: str) -> str:
    return reply(
        "Well met, Ada.",
        user_model_check="true",
        user_model_update=f"# Ada\n\n## Persona\n- {fact}",
        model_change_note="She told me her trade.",
    )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine whose shells have set the most permissive umask."""
    machine = Machine(tmp_path, umask=0o000)
    machine.scripted(_learning("Builds bridges."))
    return machine


def _wide(machine: Machine) -> list[str]:
    """List paths that others may touch: not 0700 (directories) or 0600 (files; git's own objects are 0400)."""
    found = []
    for path in machine.files():
        if path.is_symlink():
            continue
        mode = stat.S_IMODE(path.lstat().st_mode)
        fine = {0o700} if path.is_dir() else {0o600, 0o400}
        if mode not in fine:
            found.append(f"{mode:04o} {path.relative_to(machine.root)}")
    return found


def test_s30_normal_use_leaves_only_private_files(machine: Machine) -> None:
    """Talk, models in git, settings, state, an edited soul, a revert and doctor leave nothing that others can read."""
    editor = machine.bin / "editor"
    editor.write_text('#!/bin/sh\necho "One more line." >>"$1"\n')
    editor.chmod(0o755)
    life = [
        ("chat", "--once", "My name is Ada."),
        ("chat", "--once", "I dig, too."),
        ("config", "set", "memory.window", "30"),
        ("state", "set", "emotionalState", "focused"),
        ("soul", "edit"),
        ("soul", "edit", "dossiers/bridges.md"),
        ("users", "revert", PERSON, "1"),
        ("chat", "--once", "And now?"),
        ("doctor",),
    ]

    for number, args in enumerate(life):
        machine.scripted(_learning(f"Builds {number} bridges."))
        machine.ok(*args, env={"EDITOR": str(editor)})
        assert _wide(machine) == [], args

    kept = {path.name for path in machine.files()}
    assert {"claudius.db", "claudius.log", "claudius.lock", "config.toml", "soul.md", "bridges.md", ".git"} <= kept


def test_s30_what_lives_as_long_as_the_process_is_private_too(machine: Machine) -> None:
    """While the soul is awake, its socket, lock, write-ahead log and shared memory are private to the owner."""
    with machine.terminal("chat") as terminal:
        terminal.until("you › ")
        terminal.type("My name is Ada.")
        terminal.until("Well met, Ada.")

        kept = {path.name for path in machine.files()}
        assert {"claudius.sock", "claudius.lock", "claudius.db-wal", "claudius.db-shm"} <= kept
        assert _wide(machine) == []


def test_s30_what_git_sees_is_private(machine: Machine) -> None:
    """At each call of git, nothing under the home or the temporary directory is wider, temporary files included."""
    seen = machine.root / "seen"
    machine.shim("git", f'find "{machine.user}" "{machine.tmp}" -mindepth 1 -perm /077 -not -type l >>{seen}')

    machine.ok("chat", "--once", "My name is Ada.")

    assert seen.exists(), "git was not called"
    assert seen.read_text() == ""


def test_s30_a_backup_before_a_migration_is_private(machine: Machine) -> None:
    """An older database is backed up before it is migrated, and the copy is as private as the original."""
    machine.ok("chat", "--once", "My name is Ada.")
    with closing(sqlite3.connect(machine.home / "state" / "claudius.db")) as fresh:
        (application,) = fresh.execute("PRAGMA application_id").fetchone()
    for path in sorted((machine.home / "state").iterdir()):
        path.unlink()
    first = min((REPOSITORY / "memory" / "schema").glob("*.sql"))
    with closing(sqlite3.connect(machine.home / "state" / "claudius.db")) as old:
        old.executescript(first.read_text() + f"\nPRAGMA application_id = {application};\nPRAGMA user_version = 1;")
    (machine.home / "state" / "claudius.db").chmod(0o600)

    machine.ok("chat", "--once", "My name is Ada.")

    assert [path for path in (machine.home / "backups").iterdir() if path.is_file()]
    assert _wide(machine) == []


@pytest.mark.usefixtures("careless")
def test_s30_a_rotated_log_is_private(tmp_path: Path) -> None:
    """The log and each rotated file are 0600, without any help from the umask."""
    handler = PrivateFile(tmp_path / "claudius.log", maxBytes=200, backupCount=3, encoding="utf-8")
    for number in range(20):
        handler.handle(logging.makeLogRecord({"msg": f"line {number} {'x' * 50}", "levelno": logging.INFO}))
    handler.close()

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 4
    assert set(modes.values()) == {0o600}


def test_s30_doctor_mends_what_was_made_wider_and_says_so(machine: Machine) -> None:
    """`doctor` closes a home that a person opened to others, and reports how many paths it closed."""
    machine.ok("chat", "--once", "My name is Ada.")
    (machine.home / "state" / "claudius.db").chmod(0o644)
    (machine.home / "memory").chmod(0o755)

    told = machine.ok("doctor", "--security")

    assert "2 paths" in told.stdout
    assert _wide(machine) == []


def test_s30_a_home_in_the_open_is_closed_at_the_next_start(machine: Machine) -> None:
    """A home directory that others may enter is 0700 again as soon as any turn runs."""
    machine.home.mkdir()
    machine.home.chmod(0o777)

    machine.ok("chat", "--once", "My name is Ada.")

    assert _wide(machine) == []
