"""`claudius process` and `claudius schedule`: the shapes that people script against, and an owner's own processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from driven import Machine, reply


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine whose soul has answered once."""
    machine = Machine(tmp_path)
    machine.scripted(reply("hello"))
    machine.ok("chat", "--once", "hi")
    return machine


def own(machine: Machine, name: str, text: str) -> None:
    """Write one of the owner's processes."""
    folder = machine.home / "soul" / "processes"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(text)


def test_the_processes_are_listed_and_shown(machine: Machine) -> None:
    """`list`, `show` and `graph` have every documented key, and each conversation at its process."""
    listed = machine.ok("process", "list", "--json").json
    shown = machine.ok("process", "show", "main_process", "--json").json
    graph = machine.ok("process", "graph", "--json").json["mermaid"]

    assert [one["name"] for one in listed][:2] == ["main_process", "greeting"]
    assert all({"name", "steps", "next"} <= set(one) for one in listed)
    assert {"overrides", "participation", "interruption", "linger_s", "conversations"} <= set(shown)
    assert shown["conversations"] == ["terminal:local:main:main"]
    assert graph.startswith("stateDiagram-v2\n")
    assert "  main_process --> frustrated\n" in graph
    assert machine.run("process", "graph").code == 2


def test_an_unknown_process_is_one_line_and_exit_1(machine: Machine) -> None:
    """An unknown name is reported with the remedy."""
    ran = machine.run("process", "show", "nothing")

    assert ran.code == 1
    assert ran.stderr == "claudius: no process 'nothing': `claudius process list` names them\n"


def test_an_owners_text_is_a_process(machine: Machine) -> None:
    """Steps, overrides and transitions as front matter are listed, shown and run."""
    text = (
        '+++\nsteps = ["internal_monologue", "external_dialogue"]\ninterruption = "replace"\nlinger_hours = 2.0\n'
        'after = "main_process"\n[transitions.user_model_check]\ntrue = "deep_work"\n+++\nSulk.\n\n## external_dialogue\nOne word.\n'
    )
    own(machine, "sulk", text)
    own(machine, "main_process", text.replace("main_process", "sulk"))

    shown = machine.ok("process", "show", "sulk", "--json").json
    machine.scripted(reply("no"))
    document = machine.ok("chat", "--once", "again", "--json").json

    assert shown["overrides"] == {"external_dialogue": "One word."}
    assert (shown["interruption"], shown["linger_s"]) == ("replace", 7200.0)
    assert shown["next"] == ["deep_work", "main_process"]
    assert document["process"] == "main_process"
    assert machine.ok("conversations", "list", "--json").json[0]["process"] == "sulk"


@pytest.mark.parametrize(
    ("head", "detail"),
    [
        ('steps = ["internal_monologue", "sing"]', "there is no step 'sing'"),
        ('steps = ["internal_monologue"]\ncolour = "red"', "colour"),
        ('python = "nowhere:nothing"', "nowhere"),
        ('python = "os:path"', "is not a mental process"),
    ],
)
def test_a_broken_process_is_named_and_the_soul_goes_on(machine: Machine, head: str, detail: str) -> None:
    """`soul check` names the file and the remedy, and a turn runs the entry process instead."""
    own(machine, "main_process", f"+++\n{head}\n+++\nBroken.\n")
    machine.scripted(reply("still here"))

    checked = machine.run("soul", "check")
    ran = machine.ok("chat", "--once", "hello")

    assert checked.code == 1
    assert detail in checked.stdout
    assert ran.stdout == "still here\n"


def test_a_step_that_a_process_names_is_not_called_unused(tmp_path: Path) -> None:
    """`soul check` says once what is wrong with it: it is no step, whoever asks it. One that no one names is unused."""
    machine = Machine(tmp_path)
    machine.ok("soul", "check")
    for folder in ("steps", "processes"):
        (machine.home / "soul" / folder).mkdir(parents=True, exist_ok=True)
    for name in ("confide", "forgotten"):
        (machine.home / "soul" / "steps" / f"{name}.md").write_text('+++\ntag = "b o l d"\n+++\nSay it.\n')
    head = '+++\nsteps = ["internal_monologue", "confide", "external_dialogue"]\n+++\n'
    (machine.home / "soul" / "processes" / "shop.md").write_text(f"{head}A shop.\n\n## confide\nMore.\n")

    shown = machine.run("soul", "check").stdout.splitlines()

    assert [line.partition(": ")[0].rpartition("/")[2] for line in shown if "is unused" in line] == ["forgotten.md"]
    assert [line for line in shown if "confide.md" in line and "tag is" in line]
