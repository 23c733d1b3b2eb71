"""docs/hands.md is true: its server, its own tool and its talk work as they stand, with the replies of a model below."""

import json
import re
import sys
from pathlib import Path

from driven import REPOSITORY, Machine, reply, until

TEXT = (REPOSITORY / "docs" / "hands.md").read_text("utf-8")
FILE = re.compile(r"^`~/([\w./-]+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```shell\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _use(tool: str, **args: str) -> str:
    return f"<tool_use>{json.dumps({'tool': tool, 'args': args})}</tool_use>"


TALK = [
    [_use("clock", zone="Asia/Tokyo"), reply("It is late in Tokyo.")],
    [_use("desk.read_note", name="bees"), reply("From ten degrees on, says your note.")],
    [_use("desk.read_note", name="frost"), reply("The frost came in May.")],
    [_use("desk.send", to="ben@example.org", text="I come at six."), reply("It is on its way.")],
    [_use("trains", line="blue"), reply("Four.")],
]
"""What the model writes, a message a line."""


def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    """Time in Tokyo, one's notes, a mail that must ask: through real commands, a real server and a daemon."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada"})
    machine.shim("python3", f'exec {sys.executable} "$@"')
    for name, text in [
        *FILE.findall(TEXT),
        ("notes/bees.md", "They fly from ten degrees on."),
        ("notes/frost.md", "May."),
    ]:
        (machine.user / name).parent.mkdir(parents=True, exist_ok=True)
        (machine.user / name).write_text(text)
    machine.scripted(*[one for said in TALK for one in said])
    rest, exports, asked = TALK[-1], "", 0
    try:
        for part in [
            part for block in SHELL.findall(TEXT) for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
        ]:
            typed, _, shown = part.partition("\n")
            if typed.startswith("export "):
                exports = f"{typed}; "
                continue
            if "daemon restart" in typed:
                machine.scripted(*rest)
            ran = machine.run("-euo", "pipefail", "-c", exports + typed, command="bash")
            assert ran.code == 0, f"$ {typed}\n{ran.shown}"
            pattern = ".*?".join(re.escape(piece) for piece in shown.strip().split("…"))
            said = (
                ran.stderr.strip() + "\n" + ran.stdout.strip()
                if "(earlier)" in shown or "cat:" in shown
                else ran.stdout
            )
            assert re.fullmatch(pattern, said.strip(), re.DOTALL), f"$ {typed}\n{ran.shown}"
            if typed.startswith("claudius tools allow"):  # what comes of it is told by itself
                asked = 4 if not asked else 8
                until(0, lambda most=asked: len(machine.requests.read_text().splitlines()) >= most)
    finally:
        machine.run("daemon", "stop")
    assert asked == 8
