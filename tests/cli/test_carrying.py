"""`claudius backup create --portable` and `restore`: moving a whole soul to another home."""

import json
from pathlib import Path
from typing import Any

import pytest

from driven import Machine, reply

ADA = "terminal:local:ada"
LEARNED = reply("Noted.") + (
    "<user_model_check>true</user_model_check><user_model_update section='Persona'>- Builds bridges.</user_model_update>"
    "<model_change_note>Learned her trade.</model_change_note>"
)


@pytest.fixture
def carried(tmp_path: Path) -> tuple[Machine, Path, dict[str, Any]]:
    """Return a home that knows ada and has a soul of its own, and its export."""
    machine, out = Machine(tmp_path / "here"), tmp_path / "out"
    machine.scripted(LEARNED)
    (machine.home / "soul").mkdir(parents=True)
    (machine.home / "soul" / "soul.md").write_text("# Beata\n\nA baker.\n")
    (machine.home / "config.toml").write_text("[memory]\nwindow = 7\n")
    (machine.home / ".env").write_text("GROQ_API_KEY=gsk_canary\n")
    (machine.home / ".env").chmod(0o600)
    machine.ok("chat", "--once", "I build bridges.")
    return machine, out, machine.ok("backup", "create", "--portable", str(out), "--json").json


def test_an_exported_soul_lives_on_in_another_home(
    carried: tuple[Machine, Path, dict[str, Any]], tmp_path: Path
) -> None:
    """Memory with its git history, texts and settings are imported, and the previous contents are set aside."""
    _, out, made = carried
    there = Machine(tmp_path / "there")
    there.scripted()
    there.ok("chat", "--once", "somebody else's talk")

    refused = there.run("backup", "restore", str(out))
    there.ok("backup", "restore", str(out), "--yes")
    there.ok("chat", "--once", "Are you there?")

    (model,) = there.ok("users", "show", ADA, "--json").json["models"]
    assert made["verified"]
    assert refused.code == 2
    assert "Builds bridges." in model["markdown"]
    assert model["commit"]
    assert there.ok("config", "get", "memory.window").stdout.strip() == "7"
    assert there.ok("soul", "show", "--json").json["soul.md"]["text"].startswith("# Beata")
    assert list((there.home / "backups").glob("replaced-*/claudius.db"))


def test_an_export_holds_no_secret_and_is_the_owners_alone(carried: tuple[Machine, Path, dict[str, Any]]) -> None:
    """No key leaves the home, and no one else may read the export."""
    _, out, made = carried

    paths = [out, *out.rglob("*")]

    assert sorted(made["files"]) == sorted(json.loads((out / "MANIFEST.json").read_text())["files"])
    assert not [path for path in paths if path.is_file() and b"gsk_canary" in path.read_bytes()]
    assert not [path for path in paths if path.stat().st_mode & 0o077]


def test_an_export_that_was_changed_is_not_imported(carried: tuple[Machine, Path, dict[str, Any]]) -> None:
    """With one changed byte, or one path outside the export, nothing of the home is touched."""
    machine, out, _ = carried
    (out / "soul" / "soul.md").write_text("# Somebody\n")
    changed = machine.run("backup", "restore", str(out), "--yes")
    (out / "MANIFEST.json").write_text(json.dumps({"files": {"../x": "0"}}))

    outside = machine.run("backup", "restore", str(out), "--yes")

    assert (changed.code, outside.code) == (1, 1)
    assert "nothing was imported" in changed.stderr
    assert "nothing was imported" in outside.stderr
    assert machine.ok("soul", "show", "--json").json["soul.md"]["text"].startswith("# Beata")


def test_a_backup_can_be_written_to_a_named_file(tmp_path: Path) -> None:
    """`backup create x.db` writes that exact file, and never overwrites one."""
    machine, copy = Machine(tmp_path), tmp_path / "mine.db"
    machine.scripted()
    machine.ok("chat", "--once", "hello")

    made = machine.ok("backup", "create", str(copy), "--json").json
    again = machine.run("backup", "create", str(copy))

    assert made["path"] == str(copy)
    assert machine.ok("backup", "verify", str(copy), "--json").json["ok"]
    assert again.code == 1


CODE = (
    "config.toml: providers = mypkg.voice",
    "config.toml: cortex.provider = mypkg.slow",
    "soul/processes/tutor.md: python = mypkg.tutor:tutor",
)


@pytest.fixture
def with_code(carried: tuple[Machine, Path, dict[str, Any]], tmp_path: Path) -> Path:
    """Return the export of a home whose settings and texts name code."""
    machine, out = carried[0], tmp_path / "with-code"
    (machine.home / "config.toml").write_text(
        'providers = ["mypkg.voice", "rehearsal"]\n[cortex]\nprovider = "mypkg.slow"\n'
    )
    (machine.home / "soul" / "processes").mkdir()
    (machine.home / "soul" / "processes" / "tutor.md").write_text('+++\npython = "mypkg.tutor:tutor"\n+++\nA tutor.\n')
    machine.ok("backup", "create", "--portable", str(out), "--json")
    return out


def test_an_import_names_the_code_that_it_takes_over(with_code: Path, tmp_path: Path) -> None:
    """Import strings run as the owner, so they are listed before anything is replaced, also with --yes."""
    there = Machine(tmp_path / "there")

    refused = there.run("backup", "restore", str(with_code))
    nothing_yet = there.run("config", "get", "cortex.provider").stdout.strip()
    agreed = there.ok("backup", "restore", str(with_code), "--yes")

    assert refused.code == 2
    assert len(refused.stderr.strip().splitlines()) == 1
    assert "--yes" in refused.stderr
    for line in CODE:
        assert line in refused.stderr
        assert line in agreed.stderr
    assert "rehearsal" not in refused.stderr
    assert nothing_yet == ""
    assert there.ok("config", "get", "cortex.provider").stdout.strip() == "mypkg.slow"


@pytest.mark.parametrize("answer", ["y", "n"])
def test_a_person_is_asked_before_an_import(with_code: Path, tmp_path: Path, answer: str) -> None:
    """At a terminal it asks, and a no leaves the home as it is."""
    there = Machine(tmp_path / "there")

    with there.terminal("backup", "restore", str(with_code)) as terminal:
        terminal.until("mypkg.tutor:tutor")
        terminal.until("Import it?")
        terminal.type(answer)
        terminal.rest()

    assert terminal.process.returncode == (0 if answer == "y" else 1)
    assert (there.home / "config.toml").exists() == (answer == "y")


def test_an_import_does_not_name_shipped_code(carried: tuple[Machine, Path, dict[str, Any]], tmp_path: Path) -> None:
    """Claudius's own names need no warning."""
    ran = Machine(tmp_path / "there").run("backup", "restore", str(carried[1]))

    assert ran.code == 2
    assert "code" not in ran.stderr
