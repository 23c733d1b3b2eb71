"""R20: if soul.md breaks while the soul is awake, the last good one stays in force, and the soul says so."""

import json
from pathlib import Path

import pytest

from claudius.cognition.processes import check_process, find
from claudius.cognition.steps import STEPS
from claudius.home import Home, shipped
from claudius.providers.scripted import Scripted
from claudius.soul import SoulSource
from claudius.testing.alive import alive
from driven import Machine, in_force, reply

GOOD = "# Claudius\n\n## Persona\nThe good one, word for word.\n"
BROKEN = {"empty": b"", "no text": b"\xff" * 64, "ten megabytes": b"# x\n" * 2_500_000}
KEPT = {"byte order mark": b"\xef\xbb\xbf" + GOOD.encode(), "carriage returns": GOOD.replace("\n", "\r\n").encode()}


def test_r20_a_broken_soul_file_leaves_the_last_good_one_in_force(machine: Machine) -> None:
    """Broken at run time: the next turn uses the last good soul, and the person who talks is told."""
    machine.scripted(*[reply("Yes.")] * 5)
    machine.ok("seed")
    soul = machine.home / "soul" / "soul.md"
    soul.write_text(GOOD)
    with machine.daemon():
        machine.ok("chat", "--once", "before")
        told, checked = [], []
        for broken in BROKEN.values():
            soul.write_bytes(broken)
            in_force()
            checked.append(machine.run("soul", "check").code)
            told.append(machine.ok("chat", "--once", "again").stderr)
        soul.unlink()  # if it is deleted, the last good one stays too
        checked.append(machine.run("soul", "check").code)
        machine.ok("chat", "--once", "after")
    prompts = [json.loads(line)["system"] for line in machine.requests.read_text().splitlines()]

    assert checked == [1, 1, 1, 0]
    assert all("the last good version stays in use" in said for said in told)
    assert (len(prompts), len(set(prompts))) == (5, 1)
    assert "The good one, word for word." in prompts[0]


def test_r20_an_owners_process_that_cannot_be_imported_is_replaced(tmp_path: Path) -> None:
    """If a process's module raises on import, the shipped process answers and the log says why."""
    machine = Machine(tmp_path, env={"PYTHONPATH": str(tmp_path)})
    machine.scripted(reply("Yes."))
    machine.ok("seed")
    (tmp_path / "broken_minds.py").write_text("1 / 0\n")
    (machine.home / "soul" / "processes").mkdir(mode=0o700, exist_ok=True)
    for name in ("greeting", "main_process"):
        (machine.home / "soul" / "processes" / f"{name}.md").write_text(
            '+++\npython = "broken_minds:any"\n+++\nMine.\n'
        )

    ran = machine.ok("chat", "--once", "hello")

    assert ran.stdout == "Yes.\n"
    assert "ZeroDivisionError" in machine.log.read_text()


ODD = '+++\nsteps = ["external_dialogue"]\n+++\n## external_dialogue\nBe odd about it.\n'


def test_r20_a_process_of_the_owner_s_that_breaks_stays_as_it_was(home: Home) -> None:
    """Misspelt at run time: a conversation in it goes on with the last good one, and the person who talks is told."""
    mind = home.soul / "processes" / "main_process.md"
    mind.parent.mkdir()
    source = SoulSource(home.soul, shipped("soul"), STEPS, judge=check_process)
    mind.write_text(ODD)
    whole = find("main_process", source.current())
    assert whole is not None
    assert source.problems == ()

    for broken in ('"external_dialog"', "3", "[" * 5000 + "]" * 5000):
        mind.write_text(ODD.replace('["external_dialogue"]', broken))
        assert find("main_process", source.current()) == whole
        assert [problem.file for problem in source.problems] == [str(mind)]
    mind.write_text(ODD.replace("steps", "stepz"))
    assert find("main_process", source.current()) == whole
    assert [problem.file for problem in source.problems] == [str(mind)]


@pytest.mark.parametrize("name", KEPT)
async def test_r20_byte_order_marks_and_carriage_returns_change_nothing(home: Home, name: str) -> None:
    """A byte order mark or carriage returns do not become part of the soul."""
    (home.soul / "soul.md").write_bytes(KEPT[name])
    voice = Scripted(default=reply("Yes."))

    async with alive(home, voice) as soul:
        await soul.network.hear("m")
        await soul.network.until_visible(1)

    assert "The good one, word for word.\n" in voice.requests[0].system
    assert "\r" not in voice.requests[0].system
    assert "\ufeff" not in voice.requests[0].system


async def test_r20_an_edit_within_a_turn_is_the_next_turn_s(home: Home) -> None:
    """One turn has one soul: an edit during the model call takes effect with the next turn."""
    path = home.soul / "soul.md"
    path.write_text(GOOD)

    def edit(_: object) -> str:
        """Write half of another soul during this turn, and return a reply that needs a second call."""
        path.write_text(GOOD.replace("good", "other"))
        return "<internal_monologue>It never ends"

    voice = Scripted([edit, reply("Yes.")], default=reply("Yes."))
    async with alive(home, voice) as soul:
        await soul.network.hear("m")
        await soul.network.until_visible(1)

    systems = {request.system for request in voice.requests}
    assert len(voice.requests) == 2
    assert len(systems) == 1
    assert "The good one" in systems.pop()
