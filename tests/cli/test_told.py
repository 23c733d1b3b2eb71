"""What a person told is exported with their data, and forgotten with them: through the commands."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from driven import Machine

TOLD, PLAN = "I am allergic to walnuts", "I am going to bake a walnut cake tonight"


def test_memory_w2_what_must_not_be_eaten_is_known_here_and_elsewhere_and_promised_for_good(tmp_path: Path) -> None:
    """W2: the voice without a model answers with the constraint where it is named, in any conversation."""
    machine = Machine(tmp_path)
    told = machine.ok("chat", "--once", TOLD).stdout
    machine.ok("chat", "--once", "I take insulin twice a day")

    here = machine.ok("chat", "--once", "Are walnuts good for me?").stdout
    elsewhere = machine.ok("chat", "--conversation", "kitchen", "--once", "Are walnuts good for me?").stdout

    assert "walnuts" in told
    assert "as long as this talk" not in told
    assert "walnuts" in here
    assert "walnuts" in elsewhere


def test_memory_k5_what_is_told_is_recalled_exported_and_forgotten_by_commands(tmp_path: Path) -> None:
    """W1, K5: the voice without a model says the allergy elsewhere; export holds moment and fact, forget leaves none."""
    machine = Machine(tmp_path)
    machine.run("chat", "--once", TOLD)
    person = json.loads(machine.run("users", "list", "--json").stdout)[0]["person"]

    elsewhere = machine.run("chat", "--conversation", "kitchen", "--once", PLAN).stdout
    exported = json.loads(machine.run("users", "export", person, "--json").stdout)
    forgotten = machine.run("users", "forget", person, "--yes")
    again = machine.run("chat", "--conversation", "cellar", "--once", PLAN).stdout

    assert "allergic to walnuts" in elsewhere
    assert [one["text"] for one in exported["moments"] if not one["is_own"]] == [TOLD, PLAN]
    assert [(one["kind"], one["text"]) for one in exported["facts"]] == [("constraint", "Is allergic to walnuts")]
    assert forgotten.code == 0, forgotten.shown
    assert "allergic" not in again
    with closing(sqlite3.connect(next(tmp_path.rglob("claudius.db")))) as db:
        assert db.execute("SELECT count(*) FROM fact").fetchone() == (0,)
        assert [text for (text,) in db.execute("SELECT text FROM moment WHERE is_own = 0")] == [PLAN]
        assert not [term for (term,) in db.execute("SELECT term FROM moment_stem") if term.startswith("allerg")]
