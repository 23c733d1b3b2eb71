"""`claudius backup` of a store on PostgreSQL: one snapshot in a file, verified by restoring it beside the store."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import psycopg
import pytest

from claudius.memory.postgres.moving import BESIDE, NAME_CHARS
from driven import Machine

MARK = "walnut cakes"


@pytest.fixture
def machine(tmp_path: Path, postgres_url: str) -> Machine:
    """Return a machine whose home keeps everything in PostgreSQL, and knows Tom."""
    made = Machine(tmp_path)
    made.home.mkdir(parents=True, mode=0o700)
    (made.home / "config.toml").write_text(f'[store]\nurl = "{postgres_url}"\n')
    made.ok("chat", "--once", f"My name is Tom. I like {MARK}.")
    return made


def schemas(url: str) -> list[str]:
    """Return the schemas beside the store's own that are there."""
    with psycopg.connect(url) as made:
        return [
            name
            for (name,) in made.execute(
                "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE left(current_schema(), %s) || '_re%%'",
                (NAME_CHARS,),
            )
        ]


def words(url: str, schema: str) -> str:
    """Return everything that was said in the store of a schema."""
    with psycopg.connect(url) as made:
        made.execute(f'SET search_path = "{schema}"'.encode())
        return "\n".join(said for (said,) in made.execute("SELECT content FROM entry"))


def test_scale_a_server_is_copied_verified_and_restored(machine: Machine, postgres_url: str) -> None:
    """What came after the copy is gone, what it held is there, nothing is left beside but what was replaced.

    Whoever is forgotten is erased from that, too; what others said there stays.
    """
    made = machine.ok("backup", "create", "--json").json
    listed = machine.ok("backup", "list", "--json").json
    found = machine.ok("backup", "verify", made["path"], "--json").json
    beside = schemas(postgres_url)
    machine.ok("chat", "--once", "I love oak planks.")
    machine.ok("backup", "restore", made["path"], "--yes")
    asked = machine.ok("chat", "--once", "What do you remember of me?", "--conversation", "other")
    kept = schemas(postgres_url)

    assert made["verified"]
    assert [one["path"] for one in listed] == [made["path"]]
    assert found["ok"]
    assert set(found["checks"]) == {"opens", "is_ours", "integrity", "foreign_keys", "rows", "sha256"}
    assert beside == []
    assert MARK in asked.stdout
    assert "oak" not in asked.stdout
    assert len(kept) == 1
    assert "_replaced_" in kept[0]
    assert [one["act"] for one in machine.ok("audit", "--json").json] == ["restore"]
    machine.ok("chat", "--once", "I am Ben, I like rye bread.", "--as", "ben")
    again = machine.ok("backup", "restore", made["path"], "--yes")
    machine.ok("users", "forget", "terminal:local:ada", "--yes")
    assert "_replaced_" in again.stdout
    assert [
        (MARK in said, "rye bread" in said) for said in map(partial(words, postgres_url), schemas(postgres_url))
    ] == [
        (False, False),
        (False, True),
    ]


def test_scale_two_copies_are_made_at_once(machine: Machine, postgres_url: str) -> None:
    """A copy is verified in a schema of its own: while another one is, and while one is put back, nothing waits."""
    with psycopg.connect(postgres_url) as other:
        (schema,) = other.execute("SELECT current_schema()").fetchone() or ("",)
        other.execute(f'CREATE SCHEMA "{schema[:NAME_CHARS]}{BESIDE}"')
        made = machine.ok("backup", "create", "--json").json
        other.rollback()

    assert made["verified"]
    assert schemas(postgres_url) == []


def test_scale_whoever_was_forgotten_since_the_copy_stays_forgotten(machine: Machine) -> None:
    """A restored copy is swept of everyone who was erased after it was made; the copy itself goes with the erasure."""
    made = Path(machine.ok("backup", "create", "--json").json["path"])
    aside = machine.root / made.name
    shutil.copy(made, aside)
    person = machine.ok("users", "list", "--json").json[0]["person"]
    receipt = machine.ok("users", "forget", person, "--yes", "--json").json
    fresh = machine.ok("backup", "list", "--json").json
    machine.ok("backup", "restore", str(aside), "--yes")

    assert receipt["verified"], receipt["left"]
    assert receipt["backups"] == 1
    assert len(fresh) == 1
    assert MARK.encode() not in Path(fresh[0]["path"]).read_bytes()
    assert MARK not in machine.run("users", "export", person).shown


def test_scale_what_waits_in_a_copy_has_a_lane_and_the_pushed_soul_stays(machine: Machine, postgres_url: str) -> None:
    """A message that waits when the copy is made is found by whoever looks for lanes; no lane's token is given twice."""
    machine.ok("soul", "push")
    with psycopg.connect(postgres_url) as made:
        made.execute("UPDATE inbox SET state = 'pending'")
        made.execute("SELECT setval('lane_token', 500)")
    copy = machine.ok("backup", "create", "--json").json["path"]
    machine.ok("backup", "restore", copy, "--yes")

    with psycopg.connect(postgres_url) as made:
        assert made.execute("SELECT ready FROM lane").fetchall() == [(True,)]
        assert made.execute("SELECT nextval('lane_token') > 500").fetchall() == [(True,)]
        assert made.execute("SELECT count(*) FROM soul_push").fetchall() == [(1,)]


@pytest.mark.slow
def test_scale_a_damaged_copy_is_not_restored(machine: Machine) -> None:
    """A copy that is cut off, or is not ours, is refused, and nothing changes."""
    made = Path(machine.ok("backup", "create", "--json").json["path"])
    cut, foreign = machine.root / "cut.db", machine.root / "foreign.db"
    cut.write_bytes(made.read_bytes()[:-20000])
    foreign.write_bytes(made.read_bytes())
    with closing(sqlite3.connect(foreign)) as theirs:
        theirs.execute("PRAGMA application_id = 1")
    codes = [machine.run("backup", what, str(path), *more).code for path in (cut, foreign)
             for what, more in (("verify", ()), ("restore", ("--yes",)))]  # fmt: skip
    assert codes == [1] * 4

    assert MARK in machine.ok("chat", "--once", "What do you remember of me?").stdout


def test_scale_a_dump_of_an_earlier_release_is_refused_by_one_line(machine: Machine) -> None:
    """The line says what reads a dump: pg_dump made it, as SQL."""
    old = machine.root / "claudius-20260101T000000.000000Z.sql.gz"
    old.write_bytes(b"")
    told = [machine.run("backup", *words) for words in (("verify", str(old)), ("restore", str(old), "--yes"),
            ("create", "new.sql.gz"))]  # fmt: skip

    assert [one.code for one in told] == [1, 1, 1]
    assert all("| psql DATABASE" in one.stderr and "Traceback" not in one.shown for one in told)


@pytest.mark.slow
def test_scale_a_copy_of_a_file_is_restored_to_a_server_and_one_of_a_server_to_a_file(
    machine: Machine, tmp_path: Path
) -> None:
    """A copy is the same kind of file wherever the soul is kept."""
    other = Machine(tmp_path / "other")
    other.ok("chat", "--once", "My name is Ben. I like rye bread.")
    theirs = other.ok("backup", "create", "--json").json["path"]
    ours = machine.ok("backup", "create", "--json").json["path"]
    machine.ok("backup", "restore", theirs, "--yes")
    other.ok("backup", "restore", ours, "--yes")
    asked = [one.ok("chat", "--once", "What do you remember of me?").stdout for one in (machine, other)]

    assert ["rye bread" in one for one in asked] == [True, False]
    assert [MARK in one for one in asked] == [False, True]
