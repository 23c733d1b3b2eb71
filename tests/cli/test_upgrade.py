"""`claudius upgrade --check`: whether the database fits this release, and how to look for a newer one. It asks no one."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import claudius
from claudius.home import shipped
from claudius.memory.postgres.schema import known
from driven import Machine

KNOWN = len([*(shipped("memory") / "schema").glob("*.sql")])


def test_no_index_is_asked_and_the_way_to_look_is_printed(tmp_path: Path) -> None:
    """`latest` is null; the text names how to look; 0 where the database fits; nothing is created, and bare is a misuse."""
    machine = Machine(tmp_path)

    told = machine.ok("upgrade", "--check")
    found = machine.ok("upgrade", "--check", "--json").json
    bare = machine.run("upgrade")

    wanted = {"version": claudius.__version__, "latest": None, "schema": None, "schema_known": KNOWN, "ok": True}
    assert found == wanted
    assert "pip index versions claudius-daemon" in told.stdout
    assert bare.code == 2
    assert not machine.home.exists()


def test_a_database_of_a_later_release_is_told(tmp_path: Path) -> None:
    """A schema that this release does not know is a failure."""
    machine = Machine(tmp_path)
    machine.ok("chat", "--once", "hello")
    with closing(sqlite3.connect(machine.home / "state" / "claudius.db")) as database:
        database.execute(f"PRAGMA user_version = {KNOWN + 1}")

    ran = machine.run("upgrade", "--check")

    assert ran.code == 1
    assert "a later release wrote the database" in ran.stdout


@pytest.mark.parametrize(("oldest", "code"), [(25, 0), (99, 1)])
def test_scale_the_schema_of_a_server_is_told(tmp_path: Path, postgres_url: str, oldest: int, code: int) -> None:
    """With a server, its own version is told, and that it fits as long as this release may write beside it."""
    machine, env = Machine(tmp_path), {"CLAUDIUS_STORE_URL": postgres_url}
    empty = machine.ok("upgrade", "--check", "--json", env=env).json
    machine.ok("chat", "--once", "hello", env=env)
    with psycopg.connect(postgres_url) as made:
        made.execute("UPDATE release SET schema = 99, oldest = %s", (oldest,))
    ran = machine.run("upgrade", "--check", env=env)
    found = machine.run("upgrade", "--check", "--json", env=env).json

    assert (empty["schema"], empty["schema_known"], empty["ok"]) == (None, known(shipped("memory")), True)
    assert ran.code == code
    assert f"knows schema {known(shipped('memory'))}; postgres://claudius@/postgres has 99" in ran.stdout
    assert ("a later release wrote the database" in ran.stdout) is bool(code)
    assert found["schema"] == 99
