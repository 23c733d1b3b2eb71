"""Play a first session on a real terminal: setup, greeting, ten lines, a reminder while typing, leaving, coming back.

docs/session.md holds it as it looks at 80 columns; after a change that it shows, write it anew:

    .venv/bin/python tests/session.py
"""

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from checkout import checkout, path_of
from drawn import Drawn, drawn
from driven import CLAUDIUS, Machine
from tree import REPOSITORY

PAGE = REPOSITORY / "docs" / "session.md"
LINES = (
    "hello, my name is Ada",
    "I build footbridges in Porto",
    "I like my tea black and strong",
    "what do you remember about me?",
    "it drives me mad when the steel rusts before the paint is dry, and this year it has done so three times",
    "what are we talking about?",
    "do I like tea or coffee?",
    "who are you?",
    "thank you, that is kind",
    "remind me in 10 seconds to look at the paint",
)
BEGUN, ENDED = "I think it is the sh", "ape of the drain"
BACK = "what do you remember about me?"
_VARIES = re.compile(r"(?<=⏰ )\w{3} \d+ \w{3} \d{4}, \d+:\d\d\b|\b\d\d:\d\d(:\d\d)?\b")


def machine_at(root: Path) -> Machine:
    """Return ada's machine, with a checkout of the project in her directory."""
    machine = Machine(root, env={"TZ": "UTC", "SHELL": "/bin/bash"})
    machine.user.mkdir(parents=True, exist_ok=True)
    checkout(machine.user, claudius=f'exec {CLAUDIUS} "$@"')
    machine.env["PATH"] = f"{machine.user}/.local/bin:{path_of(machine.user)}"
    return machine


def play(machine: Machine, columns: int) -> list[list[str]]:
    """Play the session at a width; return the screens: the first hour, the reminder as it comes, the end, the return."""
    with _shown(machine, columns, "./setup.sh") as first:
        for line in LINES:
            _said(first, line)
        begun = first.lines
        first.keys(BEGUN)
        first.until(lambda: len(first.lines) > len(begun) and first.lines[-2:] == ["", f"you › {BEGUN}"])
        reminded = first.lines
        _said(first, ENDED)
        first.say("/quit")
        first.rest()
        whole = first.lines
    with _shown(machine, columns, str(CLAUDIUS), "chat") as again:
        _said(again, BACK)
        again.say("/quit")
        again.rest()
        back = again.lines
    return [_masked(part) for part in (begun[:-1], reminded[len(begun) - 1 :], whole[len(reminded) - 1 :], back)]


@contextmanager
def _shown(machine: Machine, columns: int, command: str, *args: str) -> Iterator[Drawn]:
    with drawn(machine, *args, columns=columns, command=command) as shown:
        shown.until_asked()
        yield shown


def _said(shown: Drawn, line: str) -> None:
    """Say a line, and draw until it is answered to the end."""
    before = len(shown.lines)
    shown.say(line)
    shown.until(lambda: len(shown.lines) > before + 1 and shown.lines[-2:] == ["", "you ›"])


def _masked(lines: list[str]) -> list[str]:
    return _VARIES.sub("…", "\n".join(lines)).strip("\n").split("\n")


def page(screens: list[list[str]]) -> str:
    """Return the page as docs/session.md has it, with these screens."""
    rest = iter(screens)
    text = PAGE.read_text("utf-8")
    return re.sub(r"```text\n.*?```\n", lambda _: "\n".join(("```text", *next(rest), "```", "")), text, flags=re.DOTALL)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as root:
        PAGE.write_text(page(play(machine_at(Path(root)), 80)), "utf-8")
