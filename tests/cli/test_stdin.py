"""`claudius chat --once` and stdin: `-` says what stands there, and a file by `<` is shown with what is said."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from case_rows import Row, rows
from driven import CLAUDIUS, Machine, reply

NOTES = "The kiln cracked on Tuesday.\nOrder 12 bricks – zq-notes.\n"


def said(machine: Machine, command: str, stdin: bytes) -> subprocess.CompletedProcess[str]:
    """Run a row's command with this file as its stdin."""
    (machine.user / "notes.txt").write_bytes(stdin)
    typed = command.removeprefix("$ claudius").replace("notes.txt", str(machine.user / "notes.txt"))
    return subprocess.run(
        ["sh", "-c", f"{CLAUDIUS}{typed}"],
        env=machine.environment(),
        cwd=machine.user,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("row", rows("newcomer", "any", only="stdin"))
def test_a_text_on_stdin_stands_in_the_prompt(row: Row, tmp_path: Path) -> None:
    """Both ways it is in the prompt once, whole; the words of the command stand before it."""
    row.knows_only("must")
    for number, command in enumerate(row.input["says"]):
        machine = Machine(tmp_path / str(number))
        machine.scripted(reply("Bricks."))
        ran = said(machine, command, NOTES.encode())
        tail = machine.ok("why", "--json").json["prompt"]["tail"]

        assert (ran.returncode, ran.stdout.strip()) == (0, "Bricks."), ran.stderr
        assert tail.count("zq-notes") == 1
        assert "The kiln cracked on Tuesday." in tail
        assert ("summarise this" in tail) == ("summarise" in command)


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    """Bytes that are no text, and nothing at all behind `-`, are named in one line; nothing is said."""
    machine = Machine(tmp_path)
    told = [
        said(machine, f"$ claudius chat --once {what} < notes.txt", stdin)
        for what, stdin in (("hi", b"\xff\xfe\x00"), ("-", b" \n"))
    ]

    assert [one.returncode for one in told] == [2, 2]
    assert ["no text" in told[0].stderr, "needs a text" in told[1].stderr] == [True, True]


def test_a_loop_over_a_file_keeps_its_lines(tmp_path: Path) -> None:
    """A file that something read from already is a loop's; one that is taken whole is told on stderr, not with --json."""
    machine = Machine(tmp_path)
    machine.scripted(reply("One."))
    loop = f'while read x; do {CLAUDIUS} chat --once "$x"; done < notes.txt'
    (machine.user / "notes.txt").write_text(NOTES)
    ran = subprocess.run(
        ["sh", "-c", loop], env=machine.environment(), cwd=machine.user, capture_output=True, text=True, check=False
    )
    told = [
        said(machine, f"$ claudius chat --once hi {how} < notes.txt", NOTES.encode()).stderr for how in ("", "--json")
    ]

    assert ran.stdout.split() == ["One.", "One."], ran.stderr
    assert ["(attached 0.1 kB from stdin)" in one for one in told] == [True, False]
