"""R1: kill -9 at each write of one turn, and of one in which a plan comes due. Nothing is lost, answered or told twice."""

import json
import re
import shutil
import subprocess
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from claudius.cognition.prompt.assembly import prompt_sha256
from claudius.cognition.prompt.snapshot import rebuild
from claudius.memory.sqlite import SqliteRecords
from driven import CLAUDIUS, Machine, reply, until

MAIN = "terminal:local:main:main"
WRITES = ("pwrite64", "fdatasync", "sendto", "write")
PUSH_POINTS = 40

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace: apt-get install strace")


def machine_of(root: Path) -> Machine:
    """Return a machine whose soul answers by script and learns a little."""
    machine = Machine(root)
    machine.scripted()
    machine.ok("chat", "--once", "before", "--json")
    return machine


PLANNED, DUE, LATER = "2026-01-05T12:00:00Z", "2026-01-06T12:00:00Z", "2026-01-06T13:00:00Z"


def machine_that_planned(root: Path) -> Machine:
    """Return a machine that was asked for a reminder, hours after its time."""
    machine = Machine(root, env={"CLAUDIUS_CLOCK_TIMEZONE": "UTC", "CLAUDIUS_CLOCK": PLANNED})
    remind = {"do": "remind", "at": "2026-01-06T09:00", "text": "call the dentist"}
    machine.scripted(reply("Yes.", acts=json.dumps(remind)))
    machine.ok("chat", "--once", "before", "--json")
    machine.env["CLAUDIUS_CLOCK"] = DUE
    machine.scripted()
    return machine


def killed(machine: Machine, call: str, number: int, trace: Path) -> bool:
    """Say one line under a tracer that kills at the `number`-th `call`. Returns whether it was killed."""
    argv = ["strace", "-f", "-qq", "-o", str(trace), "-e", f"trace={call}"]
    argv += ["-e", f"inject={call}:signal=KILL:when={number}", str(CLAUDIUS), "chat", "--once", "the line", "--json"]
    ended = subprocess.run(
        argv, env=machine.environment(), cwd=machine.user, capture_output=True, timeout=120, check=False
    )
    return ended.returncode != 0


def check_oracle(machine: Machine, kills: int, due: int) -> None:
    """Check O1, O3, O6, O7 and O10 at the terminal: one answer for each accepted line, in order, and nothing waits.

    Each of `due` plans was heard once and told once.
    """
    later = ["after"] * (1 + due)  # what comes due beside a line may be told with the next one
    after = [machine.ok("chat", "--once", line, "--json").json for line in later][-1]
    kept = SqliteRecords(machine.home / "state" / "claudius.db")
    entries = (kept.conversation(MAIN) or {})["entries"]
    heard = [entry["content"] for entry in entries if entry["entry_type"] == "userMessage"]
    assert heard in (["before", "the line", *later], ["before", *later])
    by_turn = Counter(entry["turn"] for entry in entries if entry["entry_type"] == "externalDialog")
    assert set(by_turn.values()) == {1}
    assert len(by_turn) == len(heard) + due
    assert sum(entry["entry_type"] == "perception" for entry in entries) == due
    assert not kept.plans()
    assert not any(entry["unsaid"] for entry in entries)
    counts = kept.counts(datetime.now(UTC))
    assert (counts["inbox"], counts["outbox"]) == ({"pending": 0, "dead": 0}, {"pending": 0, "failed": 0})
    assert not kept.integrity()
    calls = [json.loads(line) for line in machine.requests.read_text().splitlines()]
    assert len(calls) <= len(heard) + due + kills
    turn = kept.turn(after["turn"]) or {}
    assert prompt_sha256(rebuild(turn["snapshot"], kept)) == turn["prompt_sha256"]
    kept.close()


def points(machine: Machine, trace: Path) -> list[tuple[str, int]]:
    """Count the writes of one undisturbed turn, by system call and thread, as the tracer counts them."""
    argv = ["strace", "-f", "-qq", "--seccomp-bpf", "-o", str(trace), "-e", "trace=" + ",".join(WRITES)]
    subprocess.run(
        [*argv, str(CLAUDIUS), "chat", "--once", "undisturbed"],
        env=machine.environment(),
        cwd=machine.user,
        capture_output=True,
        timeout=120,
        check=True,
    )
    counted: Counter[tuple[str, str]] = Counter(re.findall(r"^(\d+)\s+(\w+)\(", trace.read_text(), re.MULTILINE))
    most = {call: max((n for (_, name), n in counted.items() if name == call), default=0) for call in WRITES}
    return [(call, number) for call in WRITES for number in range(1, most[call] + 1)]


def spread(found: list[tuple[str, int]], count: int) -> list[tuple[str, int]]:
    """Choose `count` points evenly."""
    return found if len(found) <= count else [found[place * len(found) // count] for place in range(count)]


def run_points(tmp_path: Path, first: Machine, chosen: list[tuple[str, int]], due: int = 0) -> None:
    """Kill one turn at each chosen point, each in its own home, and check the oracle after the next start."""
    deaths = 0
    for place, (call, number) in enumerate(chosen):
        shutil.copytree(first.root, tmp_path / f"m{place}", symlinks=True)
        machine = Machine(tmp_path / f"m{place}", env=dict(first.env))
        machine.scripted()
        was_killed = killed(machine, call, number, tmp_path / "trace")
        deaths += was_killed
        machine.env |= {"CLAUDIUS_CLOCK": LATER} if due else {}
        try:
            check_oracle(machine, int(was_killed), due)
        except AssertionError as error:
            raise AssertionError(f"killed at {call} number {number}") from error
    assert deaths >= len(chosen) // 2


@needs_strace
@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 8))])
def test_r01_kill_at_forty_points_of_a_turn(tmp_path: Path, part: int) -> None:
    """R1 (CI): forty points are spread over every write of a turn, and each test takes an eighth of them."""
    found = spread(points(machine_of(tmp_path / "count"), tmp_path / "trace"), PUSH_POINTS)
    assert len(found) >= 30
    run_points(tmp_path, machine_of(tmp_path / "first"), found[part::8])


@needs_strace
@pytest.mark.nightly
def test_r01_kill_at_every_write_of_a_turn(tmp_path: Path) -> None:
    """R1 (nightly): every write of a turn."""
    found = points(machine_of(tmp_path / "count"), tmp_path / "trace")
    run_points(tmp_path, machine_of(tmp_path / "first"), found)


@needs_strace
@pytest.mark.parametrize("count", [5, pytest.param(10_000, marks=pytest.mark.nightly)])
def test_r01_kill_where_a_plan_comes_due(tmp_path: Path, count: int) -> None:
    """A4: whatever write of it the process dies at, what was asked for is said once; nightly at each of them."""
    found = spread(points(machine_that_planned(tmp_path / "count"), tmp_path / "trace"), count)
    run_points(tmp_path, machine_that_planned(tmp_path / "first"), found, due=1)


def test_r01_a_reply_that_was_thought_is_offered_at_the_next_attach(machine: Machine) -> None:
    """What a killed process left unsaid is said once, to the one who listens next."""
    machine.scripted(reply("first"))
    machine.ok("chat", "--once", "before")
    machine.scripted({"deltas": [reply("late")], "delay_s": 60})
    process = subprocess.Popen(
        [str(CLAUDIUS), "chat", "--once", "the line"],
        env=machine.environment(),
        cwd=machine.user,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(process.pid, lambda: len(machine.requests.read_text().splitlines()) == 2)
    process.kill()
    process.wait()
    machine.scripted(reply("late"), reply("now"))

    ran = machine.ok("chat", "--once", "after")

    assert ran.stdout == "now\n"
    assert ran.stderr == "(earlier) late\n"
