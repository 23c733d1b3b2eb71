"""`claudius completion`: Tab completes commands and options in bash, zsh and fish."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from driven import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine."""
    return Machine(tmp_path)


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
