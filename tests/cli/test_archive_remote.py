"""`archive.remote` as its owner sees it: a copy of the memory's history follows, and forgets with the soul."""

from pathlib import Path
from typing import Any

import pytest

from archiving import at, bare, linear
from claudius.home import Home
from claudius.reports import doctor
from driven import Machine

LIKES = "walnut cakes"
WRITES = (
    "<external_dialogue>So it is.</external_dialogue><user_model_check>true</user_model_check>"
    f"<user_model_update section='Persona'>- Likes {LIKES}.</user_model_update>"
)


def test_the_history_is_copied_and_forgets_with_the_soul(tmp_path: Path) -> None:
    """What a chat teaches is at the remote when it ends; `users forget` rewrites that history, and the receipt names it."""
    machine, remote = Machine(tmp_path), bare(tmp_path / "remote.git")
    machine.ok("config", "set", "archive.remote", remote)
    machine.scripted(WRITES)
    machine.ok("chat", "--once", f"My name is Tom. I like {LIKES}.")
    before = at(remote, "log", "-p", "main")
    person = machine.run("users", "list", "--json").json[0]["person"]

    receipt = machine.run("users", "forget", person, "--yes", "--json").json

    assert LIKES in before
    assert receipt["verified"], receipt["left"]
    assert any(remote in one for one in receipt["not_ours"])
    assert LIKES not in at(remote, "log", "-p", "main")
    assert linear(remote)


@pytest.mark.slow
def test_a_remote_that_is_away_is_one_line_of_a_receipt(tmp_path: Path) -> None:
    """No one waits for it: the chat answers, and the receipt says that its history is not rewritten yet."""
    machine, remote = Machine(tmp_path), bare(tmp_path / "remote.git")
    machine.ok("config", "set", "archive.remote", remote)
    machine.scripted(WRITES)
    machine.ok("chat", "--once", f"My name is Tom. I like {LIKES}.")
    Path(remote).rename(tmp_path / "away")
    person = machine.run("users", "list", "--json").json[0]["person"]

    said = machine.run("chat", "--once", "Good morning.")
    receipt = machine.run("users", "forget", person, "--yes", "--json").json

    assert said.code == 0
    assert receipt["verified"], receipt["left"]
    assert [one for one in receipt["not_ours"] if remote in one and "could not be rewritten yet" in one]


def test_doctor_has_one_verdict_of_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the remote is away, no other line calls the history sound."""
    away = {"kind": "archive", "subject": "", "detail": "not copied to the remote: away", "fix": "mend it"}

    async def told(*_: Any) -> dict[str, Any]:
        """Return what was told."""
        return {"brake": None, "health": {"problems": [away]}}

    monkeypatch.setattr(doctor, "ask", told)
    home = Home(tmp_path)
    home.create()

    assert [(one.ok, one.detail) for one in doctor.checks(home) if one.name == "archive"] == [(False, away["detail"])]
