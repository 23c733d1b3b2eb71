"""The tutorial is true: its files, commands and Python code work in the order in which they appear."""

import re
import sys
from pathlib import Path

from driven import REPOSITORY, Machine

TEXT = (REPOSITORY / "docs" / "your-own-soul.md").read_text("utf-8")
FILE = re.compile(r"^`~/([\w./-]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```shell\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands() -> list[tuple[str, str]]:
    """Return each typed command with what it shows."""
    (block,) = SHELL.findall(TEXT)
    return [
        (part.partition("\n")[0], part.partition("\n")[2].strip())
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    ]


def test_the_tutorial_runs_as_it_stands(tmp_path: Path) -> None:
    """The tutorial's two processes and its subprocess speak, move, plan, and think while no one speaks."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada", "CLAUDIUS_SCRIPTED_RECORD": str(tmp_path / "asked")})
    machine.ok("soul", "check")
    for name, text in FILE.findall(TEXT):
        file = machine.user / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    exports = ""
    for typed, shown in commands():
        if typed.startswith("export "):
            exports = f"{typed}; "
            continue
        ran = machine.run("-euo", "pipefail", "-c", exports + typed, command="bash")
        assert ran.code == 0, f"$ {typed}\n{ran.shown}"
        pattern = ".*?".join(re.escape(piece) for piece in shown.split("…"))
        assert re.fullmatch(pattern, ran.shown.strip(), re.DOTALL), f"$ {typed}\n{ran.shown}"

    assert len(FILE.findall(TEXT)) == 6


def test_the_tutorials_test_runs(tmp_path: Path) -> None:
    """The tutorial's last block is a program that runs."""
    block = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)[-1]
    file = tmp_path / "test_mine.py"
    file.write_text(block)

    ran = Machine(tmp_path / "machine").run(str(file), command=sys.executable)

    assert ran.code == 0, ran.shown
