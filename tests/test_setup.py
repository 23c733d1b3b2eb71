"""setup.sh installs what requirements.lock names and checks each hash; then it greets, and says what there is."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from checkout import checkout, path_of
from driven import CLAUDIUS, Machine, Ran
from tree import REPOSITORY


def name_of(requirement: str) -> str:
    """Return a package's normalised name."""
    found = re.match(r"[\w.-]+", requirement)
    assert found
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def parts(text: str) -> list[str]:
    """Return the packages of a lock file, each with its hashes."""
    return re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]


def set_up(tmp_path: Path, locked: str, **env: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run setup.sh in its own checkout with that installer; return the result and what the installer was asked for."""
    checkout(tmp_path, locked=locked)
    (tmp_path / "calls").touch()
    ran = subprocess.run(
        ["./setup.sh"],
        cwd=tmp_path,
        env={"PATH": path_of(tmp_path), "HOME": str(tmp_path), **env},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return ran, (tmp_path / "calls").read_text().splitlines()


def test_the_lock_has_every_dependency_with_its_hashes() -> None:
    """Every library of every extra is in the lock at one exact version, and every entry has a hash."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(line for lines in project["optional-dependencies"].values() for line in lines)]

    locked = parts((REPOSITORY / "requirements.lock").read_text())

    assert {name_of(line) for line in asked} - {"claudius-daemon"} <= {name_of(part) for part in locked}
    for part in locked:
        assert re.match(r"[\w.-]+==[\w.!]+ ", part)  # a version may have an epoch
        assert "--hash=sha256:" in part


def test_setup_installs_by_hash_and_then_itself_alone(tmp_path: Path) -> None:
    """Only the packages of the requested extras are taken from the lock; Claudius itself installs no dependencies."""
    ran, calls = set_up(tmp_path, locked="true")

    assert ran.returncode == 0, ran.stderr
    assert ["--require-hashes" in calls[0], "--no-deps" in calls[1], len(calls)] == [True, True, 2]
    asked = {name_of(part) for part in parts((tmp_path / "asked").read_text())}
    assert {"aiohttp", "yarl", "anthropic", "slack-bolt", "hatchling"} <= asked
    assert not asked & {"claude-agent-sdk", "pytest", "mypy"}


def test_setup_says_where_the_lock_does_not_fit(tmp_path: Path) -> None:
    """A platform without these versions gets what pyproject.toml allows, and is told that no hash was checked."""
    ran, calls = set_up(tmp_path, locked="echo no such wheel; exit 1")

    assert ran.returncode == 0, ran.stderr
    assert calls[1].endswith("-e .[api,discord,documents,images,slack,tools]")
    assert "no such wheel" in ran.stderr
    assert "without hashes" in ran.stderr


@pytest.mark.parametrize("said", ["THESE PACKAGES DO NOT MATCH THE HASHES FROM", "Hash mismatch for `rich`"])
def test_setup_ends_where_a_download_is_another(tmp_path: Path, said: str) -> None:
    """A download whose hash differs from the lock ends the setup; nothing else is tried."""
    ran, calls = set_up(tmp_path, locked=f"echo '{said}' >&2; exit 1")

    assert ran.returncode == 1
    assert len(calls) == 1
    assert "requirements.lock" in ran.stderr


def test_another_python_gets_an_environment_beside(tmp_path: Path) -> None:
    """PYTHON names the Python; where .venv is of another, it stays as it is, and .venv-VERSION takes everything."""
    other = tmp_path / "other python"
    other.write_text('#!/bin/sh\ncase "$2" in *print*) echo 3.99.0 ;; esac\n')
    other.chmod(0o755)
    (tmp_path / ".venv-3.99.0" / "bin").mkdir(parents=True)
    (tmp_path / ".venv-3.99.0" / "bin" / "python").symlink_to(sys.executable)
    (tmp_path / ".venv-3.99.0" / "bin" / "claudius").symlink_to("/bin/true")

    ran, calls = set_up(tmp_path, "true", PYTHON=str(other))

    assert ran.returncode == 0, ran.stderr
    assert calls
    assert all("--python .venv-3.99.0/bin/python" in call for call in calls)
    assert {path.name for path in (tmp_path / ".venv").iterdir()} == {"bin"}


def test_a_python_that_cannot_hold_claudius_is_named(tmp_path: Path) -> None:
    """Where PYTHON does not fit, no other is taken in its place: setup.sh says so and does nothing."""
    ran, calls = set_up(tmp_path, "true", PYTHON="false")

    assert (ran.returncode, calls) == (1, [])
    assert "PYTHON=false" in ran.stderr


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return ada's machine, whose own directory is a checkout that is not installed yet."""
    machine = Machine(tmp_path)
    checkout(machine.user, claudius=f'exec {CLAUDIUS} "$@"')
    machine.env["PATH"] = path_of(machine.user)
    return machine


def run(machine: Machine, *words: str, **env: str) -> Ran:
    """Run ./setup.sh where there is no terminal."""
    return machine.run(*words, env=env, command="./setup.sh")


def turns(machine: Machine) -> int:
    """Return how often the soul was spoken to."""
    total: int = machine.run("status", "--json").json["turns"]["total"]
    return total


def test_a_new_home_greets_and_answers_one_line_and_an_old_one_is_told_nothing(machine: Machine) -> None:
    """Without a terminal: a new soul greets in one line and answers one; a second run says nothing to it."""
    first = run(machine)
    second = run(machine)

    assert (first.code, second.code) == (0, 0), first.shown + second.shown
    assert first.stdout.startswith("Good day. I am Claudius.")
    assert (second.stdout, turns(machine)) == ("", 1)


def test_the_greeting_asks_no_model(machine: Machine) -> None:
    """With a provider that cannot be reached, the greeting stands all the same; --no-talk says nothing to the soul."""
    dead = {"CLAUDIUS_PROVIDERS": "openai_compat", "CLAUDIUS_OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}
    ran = run(machine, "--no-talk", **dead)

    assert (ran.code, ran.stdout) == (
        0,
        "Good day. I am Claudius. Tell me what to keep for you, or ask what I can do.\n",
    )
    assert turns(machine) == 0


def test_a_soul_of_ones_own_greets_in_its_own_words(machine: Machine) -> None:
    """The greeting is the soul's own line, under its own name; without one it is the shipped line."""
    soul = machine.home / "soul"
    soul.mkdir(parents=True)
    (soul / "soul.md").write_text("# Beata, the first\n\nYou are Beata.\n")
    shipped = run(machine, "--no-talk")
    (soul / "rehearsal.md").write_text("## greeting\n> hello …\n- Salve: $soul speaks.\n")
    own = run(machine, "--no-talk")

    assert shipped.stdout.startswith("Good day. I am Beata.")
    assert own.stdout == "Salve: Beata speaks.\n"


def test_setup_is_quiet_while_all_goes_well(machine: Machine) -> None:
    """What the installer says is in a log; it is shown only if the installation fails."""
    (machine.user / "bin" / "uv").write_text("#!/bin/sh\nseq 200\n")
    ran = run(machine, "--no-talk")

    assert ran.code == 0
    assert len(ran.stderr.splitlines()) <= 8, ran.stderr
    assert (machine.user / ".venv" / "claudius-install.log").read_text().startswith("1\n2\n")


def test_setup_says_where_the_command_lies_and_how_tab_completes_it(machine: Machine) -> None:
    """The command is named where it can be called: by its name, or by its path; Tab completion is named once."""
    away = run(machine, "--no-talk", SHELL="/bin/zsh")
    near = run(machine, "--no-talk", PATH=f"{machine.user}/.local/bin:{machine.env['PATH']}")

    called = f"{machine.user}/.venv/bin/claudius"
    assert f"the command is {called}; it is claudius once ~/.local/bin is on your PATH" in away.stderr
    assert 'claudius completion zsh)"' in away.stderr
    assert "~/.zshrc" in away.stderr
    assert f"all is ready: {called} chat" in away.stderr
    assert "all is ready: claudius chat" in near.stderr
    assert "the command is claudius (a link in ~/.local/bin)" in near.stderr
    assert "completion" not in near.stderr
    assert (machine.user / ".local" / "bin" / "claudius").is_symlink()


def test_setup_knows_its_words() -> None:
    """--help names every word that setup.sh takes; an unknown one ends it with exit code 2, before anything is done."""
    told = subprocess.run(["./setup.sh", "--help"], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    wrong = subprocess.run(["./setup.sh", "--nonsense"], cwd=REPOSITORY, capture_output=True, text=True, check=False)

    assert all(word in told.stdout for word in ("--no-talk", "--claude", "test", "--help", "leaves out the slow"))
    assert (wrong.returncode, wrong.stdout) == (2, "")
