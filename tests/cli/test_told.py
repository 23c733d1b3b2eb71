"""What a person told is exported with their data, and forgotten with them: through the commands."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from driven import Machine

TOLD, PLAN = "I am allergic to walnuts", "I am going to bake a walnut cake tonight"


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
    assert [(one["key"], one["value"]) for one in exported["facts"]] == [("allergic to", "walnuts")]
    assert forgotten.code == 0, forgotten.shown
    assert "allergic" not in again
    with closing(sqlite3.connect(next(tmp_path.rglob("claudius.db")))) as db:
        assert db.execute("SELECT count(*) FROM fact").fetchone() == (0,)
        assert [text for (text,) in db.execute("SELECT text FROM moment WHERE is_own = 0")] == [PLAN]
        assert not [term for (term,) in db.execute("SELECT term FROM moment_stem") if term.startswith("allerg")]
