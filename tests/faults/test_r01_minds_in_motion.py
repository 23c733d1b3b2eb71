"""R1 in chains of processes, subprocesses and due plans: after kill -9 nothing is lost or doubled."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from driven import Machine, reply, until

MAIN = "terminal:local:main:main"
MINDS = '''
from datetime import timedelta
from claudius.cognition.craft import *

@mental_process(may_execute_now=True)
async def first(turn, memory):
    """Weigh, then hand on before a word is said; plan where it is told to."""
    if turn.perception.text == "plan":
        turn.schedule("the kettle", process="remind", after=timedelta(0), key="kettle")
        turn.say("planned")
        return memory
    memory, _ = await turn.think(memory, mental_query("it matters"))
    return Transition(memory, "second", {"by": "first"}, execute_now=True)

@mental_process()
async def second(turn, memory, *, by):
    """Answer for the first."""
    memory, line = await turn.think(memory, external_dialogue())
    turn.say(line)
    return Transition(memory, "greeting")

@mental_process()
async def remind(turn, memory):
    """Say what is due."""
    memory, line = await turn.think(memory, external_dialogue())
    turn.say(line)
    return memory

@subprocess(1)
async def muse(reflection, memory):
    """Think of what was said."""
    reflection.keep(times=reflection.kept.get("times", 0) + 1)
    memory, _ = await reflection.think(memory, internal_monologue("Muse."))
    return memory
'''
TRUE = "<mental_query>true</mental_query>"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine whose owner wrote their own processes."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada", "PYTHONPATH": str(tmp_path / "minds")})
    (tmp_path / "minds").mkdir()
    (tmp_path / "minds" / "my_minds.py").write_text(MINDS)
    for name, target in {"greeting": "first", "main_process": "first", "second": "second", "remind": "remind"}.items():
        write(machine, f"processes/{name}.md", f'+++\npython = "my_minds:{target}"\n+++\nOf a test.\n')
    return machine


def write(machine: Machine, name: str, text: str) -> None:
    """Write one text of the soul."""
    file = machine.home / "soul" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    for folder in (machine.home, machine.home / "soul", file.parent):
        folder.chmod(0o700)
    file.write_text(text)


def asked(machine: Machine) -> list[str]:
    """Return the purpose of every model call so far."""
    if not machine.requests.exists():
        return []
    return [json.loads(line)["purpose"] for line in machine.requests.read_text().rpartition("\n")[0].splitlines()]


def killed_while(machine: Machine, line: str, purpose: str, count: int) -> None:
    """Say a line at a terminal, and kill the process while its `count`-th call for that purpose hangs."""
    with machine.terminal("chat") as terminal:
        terminal.until("you › ")
        terminal.type(line)
        until(terminal.process.pid, lambda: Counter(asked(machine))[purpose] >= count)
        terminal.process.kill()
        terminal.process.wait()


def entries(machine: Machine) -> list[dict[str, Any]]:
    """Return the conversation's entries."""
    found: list[dict[str, Any]] = machine.ok("conversations", "show", MAIN, "--json").json["entries"]
    return found


def nothing_waits(machine: Machine) -> None:
    """Check O7 and O10: nothing waits, nothing is dead, and the database is intact."""
    status = machine.run("status", "--json").json
    assert (status["inbox"], status["outbox"]) == ({"pending": 0, "dead": 0}, {"pending": 0, "failed": 0})
    assert {check["name"]: check["ok"] for check in machine.run("doctor", "--json").json["checks"]}["database"]


def test_r01_kill_in_a_chain_of_processes(machine: Machine) -> None:
    """After a kill between two hops the finished call is not repeated, there is one reply, and the state moved once."""
    machine.scripted(TRUE, {"deltas": [reply("late")], "hang": True})
    killed_while(machine, "the line", "external_dialogue", 1)
    machine.scripted(reply("late"), TRUE, reply("now"))

    ran = machine.ok("chat", "--once", "after")

    assert (ran.stdout, ran.stderr) == ("now\n", "(earlier) late\n")
    assert asked(machine) == [
        "mental_query", "external_dialogue", "external_dialogue", "mental_query", "external_dialogue",
    ]  # fmt: skip
    kept = [(one["entry_type"], one["content"]) for one in entries(machine)]
    assert [content for kind, content in kept if kind == "userMessage"] == ["the line", "after"]
    assert [content for kind, content in kept if kind == "externalDialog"] == ["late", "now"]
    assert len([kind for kind, _ in kept if kind == "mentalQuery"]) == 2
    nothing_waits(machine)


def test_r01_kill_in_a_subprocess(machine: Machine) -> None:
    """After a kill in a reflection the reply stands, the reflection leaves nothing, and the next line is answered."""
    write(machine, "subprocesses/muse.md", '+++\npython = "my_minds:muse"\n+++\nMuse.\n')
    machine.scripted(TRUE, reply("said"), {"deltas": [reply("")], "hang": True})
    killed_while(machine, "the line", "internal_monologue", 1)
    before = [one["entry_type"] for one in entries(machine)]
    machine.scripted(TRUE, reply("again"), reply("mused"))

    ran = machine.ok("chat", "--once", "after")

    assert before == ["userMessage", "mentalQuery", "externalDialog"]
    assert ran.stdout == "again\n"
    nothing_waits(machine)


def test_r01_kill_in_what_came_due(machine: Machine) -> None:
    """After a kill while a due plan is thought about, it is heard once, said once, and no longer a plan."""
    machine.scripted({"deltas": [reply("tea")], "hang": True})
    killed_while(machine, "plan", "external_dialogue", 1)
    machine.scripted(reply("tea is ready"), TRUE, reply("now"))
    ran = machine.ok("chat", "--once", "after")

    assert (ran.stdout, ran.stderr) == ("now\n", "(earlier) tea is ready\n")
    assert machine.ok("schedule", "list", "--json").json == []
    kept = [(one["entry_type"], one["content"]) for one in entries(machine)]
    assert [content for kind, content in kept if kind == "perception"] == ["the kettle"]
    assert [content for kind, content in kept if kind == "externalDialog"] == ["planned", "tea is ready", "now"]
    nothing_waits(machine)
