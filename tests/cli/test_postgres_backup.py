"""`claudius backup` of a store on PostgreSQL: pg_dump at one snapshot, verified by restoring it beside the store."""

from __future__ import annotations

import gzip
import shutil
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
    if not shutil.which("pg_dump"):
        pytest.skip("pg_dump is not installed")
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
    assert set(found["checks"]) == {"opens", "is_ours", "rows", "sha256"}
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
    """A restored dump is swept of everyone who was erased after it was made; the dump itself goes with the erasure."""
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
    assert MARK.encode() not in gzip.decompress(Path(fresh[0]["path"]).read_bytes())
    assert MARK not in machine.run("users", "export", person).shown


@pytest.mark.slow
def test_scale_a_damaged_copy_is_not_restored(machine: Machine) -> None:
    """A dump that is cut off, or holds a table that is not ours, is refused, and nothing changes."""
    made = Path(machine.ok("backup", "create", "--json").json["path"])
    whole = gzip.decompress(made.read_bytes())
    cut, foreign = machine.root / "cut.sql.gz", machine.root / "foreign.sql.gz"
    cut.write_bytes(made.read_bytes()[:-2000])
    foreign.write_bytes(gzip.compress(whole.replace(b".boot (n,", b".pg_authid (n,")))
    short = machine.root / "short.sql.gz"
    short.write_bytes(gzip.compress(whole.partition(b"-- PostgreSQL database dump complete")[0]))
    codes = [machine.run("backup", what, str(path), *more).code for path in (cut, foreign, short)
             for what, more in (("verify", ()), ("restore", ("--yes",)))]  # fmt: skip
    assert codes == [1] * 6

    assert MARK in machine.ok("chat", "--once", "What do you remember of me?").stdout


def test_scale_a_pg_dump_that_is_missing_or_too_old_is_one_line(machine: Machine) -> None:
    """The line says which program is missing or too old, and what to install."""
    old = machine.bin / "pg_dump"
    old.write_text("#!/bin/sh\necho 'pg_dump (PostgreSQL) 9.6.1'\n")
    old.chmod(0o755)
    too_old = machine.run("backup", "create")
    old.unlink()
    bare = machine.root / "bare"
    bare.mkdir()
    for name in ("git", "sh"):
        (bare / name).symlink_to(shutil.which(name) or name)
    missing = machine.run("backup", "create", env={"PATH": str(bare)})

    assert (too_old.code, missing.code) == (1, 1)
    assert "is of PostgreSQL 9" in too_old.stderr
    assert "pg_dump is not installed" in missing.stderr
    assert "Traceback" not in too_old.shown + missing.shown


@pytest.mark.slow
def test_scale_a_copy_of_another_kind_is_told(machine: Machine, tmp_path: Path) -> None:
    """A file's copy is not restored to a server, nor a server's to a file."""
    other = Machine(tmp_path / "other")
    other.ok("chat", "--once", "Hello")
    theirs = other.ok("backup", "create", "--json").json["path"]
    ours = machine.ok("backup", "create", "--json").json["path"]
    refused = [machine.run("backup", "restore", theirs, "--yes"), other.run("backup", "restore", ours, "--yes")]

    assert [one.code for one in refused] == [1, 1]
    assert all("another kind" in one.stderr for one in refused)


@pytest.mark.slow
def test_scale_nothing_is_restored_under_a_worker(machine: Machine, postgres_url: str) -> None:
    """While a process takes turns there, the store is not exchanged."""
    made = machine.ok("backup", "create", "--json").json["path"]
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("INSERT INTO worker (worker, host, pid, version, roles) VALUES ('w', 'far', 7, '1', 'lanes')")
    ran = machine.run("backup", "restore", made, "--yes")

    assert ran.code == 75
    assert "process 7 on far" in ran.stderr
