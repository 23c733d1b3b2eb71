"""`claudius daimon`, `claudius schedule` and the clock, run as real commands."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from pathlib import Path
from typing import Any

from driven import CLAUDIUS, Machine, reply
from lab.loopback.daimon import LINE, DaimonServer, Whispers


async def run(machine: Machine, *args: str, env: dict[str, str]) -> Any:
    """Run a reading command while this process answers it. Returns its document."""
    process = await asyncio.create_subprocess_exec(
        str(CLAUDIUS),
        *args,
        "--json",
        env=machine.environment(env),
        cwd=machine.user,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 120)
    assert out, err.decode()
    return json.loads(out)


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
        "backup",
        "memory_expiry",
        "records",
        "soul_state_check",
        "archive",
        "silence",
        "tick",
        "overwriting",
    }, "cortex, networks and daimons are all off"
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
