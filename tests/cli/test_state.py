"""`claudius daimon`, `process` and `schedule`: the shapes that people script against, and the clock."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from driven import Machine, reply
from lab.loopback.daimon import LINE, DaimonServer, Whispers


async def run(machine: Machine, *args: str, env: dict[str, str]) -> Any:
    """Run a reading command while this process answers it. Returns its document."""
    return (await asyncio.to_thread(machine.run, *args, "--json", env=env)).json


async def test_d02_d03_by_hand_from_whisper_to_why(tmp_path: Path) -> None:
    """2, 3: after a manual ask the next turn's prompt holds the line, and the one after does not. `why` shows it."""
    machine = Machine(tmp_path, env={"LOGNAME": "ada"})
    machine.scripted(reply("One."), reply("Two."))
    async with DaimonServer() as kothar:
        env = kothar.environment()
        whispered = await run(machine, "daimon", "whisper", env=env)
        first = await run(machine, "chat", "--once", "Hello.", env=env)
        await run(machine, "chat", "--once", "And now?", env=env)
        why = await run(machine, "why", first["turn"], env=env)
        listed = await run(machine, "daimon", "list", env=env)
        replayed = await run(machine, "replay", first["turn"], env=env)

    asked = [json.loads(line) for line in machine.requests.read_text().splitlines()]
    assert {name: whispered[name] for name in ("daimon", "whisper", "transport", "stored")} == {
        "daimon": "kothar", "whisper": LINE, "transport": "http", "stored": True,
    }  # fmt: skip
    assert [LINE in json.dumps(one) for one in asked] == [True, False]
    assert LINE in why["prompt"]["tail"]
    assert "daimonic_intuition" in [one["step"] for one in why["thoughts"]]
    assert replayed["identical"] is True
    assert (listed[0]["name"], listed[0]["enabled"], listed[0]["mode"], listed[0]["transport"]) == (
        "kothar",
        True,
        "whisper",
        "http",
    )
    assert listed[0]["last_whisper_at"]


async def test_a_daimon_that_refuses_us_is_told_of_by_list_and_doctor(tmp_path: Path) -> None:
    """6: with a wrong token the command fails with its reason, and `daimon list` and `doctor` say so. Mute is kept."""
    machine = Machine(tmp_path)
    async with DaimonServer([Whispers(status=401)]) as kothar:
        env = kothar.environment()
        whispered = await run(machine, "daimon", "whisper", env=env)
        listed = await run(machine, "daimon", "list", env=env)
        doctor = await run(machine, "doctor", env=env)
    muted = machine.run("daimon", "mute", "kothar", env=env)
    after = machine.ok("daimon", "list", "--json", env=env).json
    unknown = machine.run("daimon", "mute", "nobody", env=env)
    off = machine.run("daimon", "whisper")

    assert (whispered["stored"], "refused our token" in whispered["reason"]) == (False, True)
    assert "refused our token" in listed[0]["problem"]
    assert [one["ok"] for one in doctor["checks"] if one["name"] == "daimons"] == [False]
    assert (muted.code, after[0]["mode"]) == (0, "off")
    assert (unknown.code, off.code) == (2, 1)
    assert len(off.stderr.splitlines()) == 1


def test_the_daemons_schedule_shows_its_jobs(tmp_path: Path) -> None:
    """The daemon lists each job with its next time. Turns of the command line start none."""
    machine = Machine(tmp_path, env={"CLAUDIUS_CLOCK_TIMEZONE": "Europe/Rome"})
    machine.ok("chat", "--once", "Hello.")
    before = machine.ok("schedule", "list", "--json").json
    with machine.daemon():
        listed: list[Any] = []
        for _ in range(100):
            listed = machine.ok("schedule", "list", "--json").json
            if listed:
                break
    text = machine.ok("schedule", "list").stdout
    refused = [machine.run("schedule", "cancel", one) for one in ("backup", "nothing", "9" * 30)]

    assert before == []
    ids = {one["id"] for one in listed}
    assert ids >= {"backup", "memory_expiry", "records", "soul_state_check"}
    assert ids <= {
        "backup", "memory_expiry", "records", "soul_state_check", "archive", "silence", "tick", "overwriting",
    }, "cortex, networks and daimons are all off"  # fmt: skip
    assert all(one["kind"] == "job" and one["due_at"].endswith("Z") for one in listed)
    assert "backup" in text
    assert [(one.code, len(one.stderr.splitlines())) for one in refused] == [(1, 1)] * 3


def test_the_schedule_shows_reminders_in_local_time(tmp_path: Path) -> None:
    """The list names the hour there and the words that asked, not the instruction for the model; JSON stays in UTC."""
    env = {"CLAUDIUS_CLOCK_TIMEZONE": "Europe/Rome", "CLAUDIUS_CLOCK": "2026-01-05T12:00:00Z"}
    machine = Machine(tmp_path, env=env)

    said = machine.ok("chat", "--once", "Remind me tomorrow at 9 to pay the rent.", "--json").json["receipts"]
    (listed,) = machine.ok("schedule", "list", "--json").json
    text = machine.ok("schedule", "list").stdout

    assert said == ["⏰ Tue 6 Jan 2026, 9:00 Europe/Rome · pay the rent · p1"]
    assert (listed["due_at"], listed["due_local"]) == ("2026-01-06T08:00:00.000000Z", "2026-01-06T09:00:00+01:00")
    assert listed["what"] == "pay the rent"
    assert re.search(r"  Tue 2026-01-06 09:00  terminal:local:main:main .*pay the rent", text)


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


def test_a_broken_process_is_named_and_the_soul_goes_on(machine: Machine) -> None:
    """`soul check` names the file and the remedy, and a turn runs the entry process instead."""
    for head, detail in (
        ('steps = ["internal_monologue", "sing"]', "there is no step 'sing'"),
        ('steps = ["internal_monologue"]\ncolour = "red"', "colour"),
        ('python = "nowhere:nothing"', "nowhere"),
        ('python = "os:path"', "is not a mental process"),
    ):
        own(machine, "main_process", f"+++\n{head}\n+++\nBroken.\n")
        machine.scripted(reply("still here"))
        checked = machine.run("soul", "check")

        assert (checked.code, detail in checked.stdout) == (1, True), head
        assert machine.ok("chat", "--once", "hello").stdout == "still here\n"


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
