"""A home whose `store.url` names PostgreSQL: the same commands and copies; and SQLite pays nothing for it."""

import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import psycopg
import pytest

from claudius.home import shipped
from claudius.memory.database import StorePlace
from claudius.memory.postgres.moving import BESIDE, NAME_CHARS, put_in_force
from driven import Machine

MARK = "walnut cakes"


@pytest.fixture
def machine(tmp_path: Path, postgres_url: str) -> Machine:
    """Return a machine whose home keeps everything in PostgreSQL."""
    made = Machine(tmp_path)
    made.keep_at(postgres_url)
    return made


def test_scale_a_soul_on_postgres_speaks_and_remembers(machine: Machine) -> None:
    """`chat --once` answers in one process what it was told in another; `why`, `users` and `status` read it."""
    told = machine.run("chat", "--once", f"My name is Tom. I like {MARK}.")
    asked = machine.run("chat", "--once", "What do you remember of me?", "--conversation", "other")
    why = machine.run("why", "--json").json
    status = machine.run("status", "--json").json
    people = machine.run("users", "list", "--json").json

    assert told.code == asked.code == 0, told.stderr + asked.stderr
    assert MARK in asked.stdout
    assert MARK in why["utterance"]
    assert status["turns"]["total"] == 2
    assert [one["name"] for one in people] == ["Tom"]
    assert not (machine.home / "state" / "claudius.db").exists()


def test_scale_the_owner_edits_and_reads_beside(machine: Machine) -> None:
    """What an owner sets by a command is in force, and stands in the audit log."""
    machine.run("chat", "--once", "Good morning.")
    machine.run("state", "set", "currentTopic", "bridges")
    state = machine.run("state", "show", "--json").json
    person = machine.run("users", "list", "--json").json[0]["person"]
    machine.run("users", "show", person)
    audit = machine.run("audit", "--json").json

    assert state["currentTopic"]["value"] == "bridges"
    assert [(one["act"], one["target"]) for one in audit] == [("state", "currentTopic"), ("read", person)]


def test_scale_the_owner_pauses_every_process_from_the_command_line(machine: Machine) -> None:
    """`config set runtime.paused` is no setting of one home: `status` shows it, and the terminal is answered as ever."""
    machine.ok("chat", "--once", "Good morning.")
    said = machine.ok("config", "set", "runtime.paused", "true").stdout
    paused, shown = machine.run("status", "--json").json, machine.run("status").stdout
    machine.ok("chat", "--once", "Are you there?")
    machine.ok("config", "set", "runtime.paused", "false")
    resumed, audit = machine.run("status", "--json").json, machine.ok("audit", "--json").json

    assert "for every process" in said
    assert (paused["paused"], paused["server"]["lanes"]["paused"], resumed["paused"]) == (True, True, False)
    assert "paused: nobody but the terminal" in shown
    assert "paused" not in (machine.home / "config.toml").read_text()
    assert [one["act"] for one in audit] == ["pause", "resume"]


def test_scale_whoever_is_forgotten_is_in_no_table(machine: Machine) -> None:
    """`users forget` erases the server's rows, and a file of before; the receipt is verified, and names what is not ours."""
    machine.ok("chat", "--once", "I am Tom, and this is a file.", env={"CLAUDIUS_STORE_URL": "sqlite"})
    machine.run("chat", "--once", f"My name is Tom. I like {MARK} very much indeed.")
    person = machine.run("users", "list", "--json").json[0]["person"]

    receipt = machine.run("users", "forget", person, "--yes", "--json").json
    export = machine.run("users", "export", person)

    assert receipt["verified"], receipt["left"]
    assert any("write-ahead log" in one for one in receipt["not_ours"])
    assert MARK not in export.shown
    assert machine.run("users", "list", "--json").json == []


def test_scale_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    """A server that cannot be reached is one line that names it, and never the password."""
    machine = Machine(tmp_path)
    env = {"CLAUDIUS_STORE_URL": "postgres://tom@127.0.0.1:1/soul", "CLAUDIUS_STORE_PASSWORD": "hunter2-hunter2"}

    ran = machine.run("chat", "--once", "Hello", env=env)

    assert ran.code == 75
    assert "postgres://tom@127.0.0.1:1/soul cannot be reached" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "hunter2" not in ran.stdout + ran.stderr


@pytest.mark.parametrize(("key", "scheme"), [("store.url", "postgres"), ("archive.remote", "https")])
def test_scale_a_password_in_the_url_is_refused(tmp_path: Path, key: str, scheme: str) -> None:
    """The password belongs into .env: a URL that holds one is bad configuration."""
    env = {f"CLAUDIUS_{key.replace('.', '_').upper()}": f"{scheme}://tom:secret-word@host/soul"}
    ran = Machine(tmp_path).run("config", "check", env=env)

    assert ran.code == 78
    assert f"{key}: holds a password" in ran.shown
    assert "secret-word" not in ran.shown


def test_scale_a_password_is_not_set_as_part_of_a_url(tmp_path: Path) -> None:
    """`config set` refuses it before it writes anything: not into config.toml, not into the audit log, not on screen."""
    machine = Machine(tmp_path)
    machine.ok("config", "set", "memory.window", "30")
    before = (machine.home / "config.toml").read_bytes()
    for key in ("store.url", "store.listen_url"):
        for url in (
            "postgres://tom:secret-word@host/soul",
            "postgres://tom@host/soul?sslmode=require&password=secret-word",
            "postgres://tom@host/soul?%70assword=secret-word",
            "postgres://tom@host/soul?sslpassword=secret-word",
        ):
            ran = machine.run("config", "set", key, url)

            assert ran.code == 78
            assert f"{key}: holds a password; put it into .env as CLAUDIUS_STORE_PASSWORD" in ran.stderr
            assert "secret-word" not in ran.shown

    assert (machine.home / "config.toml").read_bytes() == before
    assert "store" not in machine.ok("audit").stdout
    assert not any(b"secret-word" in path.read_bytes() for path in machine.home.rglob("*") if path.is_file())


def test_scale_w10_sqlite_imports_nothing_of_it(tmp_path: Path) -> None:
    """W10: a soul on SQLite has a turn without the driver, and without a module of the other store."""
    code = (
        "import asyncio, sys\n"
        "from claudius.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(sorted(one for one in sys.modules if 'psycopg' in one or 'memory.postgres' in one))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, "chat", "--once", "Hello"],
        env=Machine(tmp_path).environment(),
        capture_output=True,
        text=True,
        check=True,
    )

    assert ran.stdout.splitlines()[-1] == "[]"


@pytest.fixture
def known(tmp_path: Path, postgres_url: str) -> Machine:
    """Return a machine whose home keeps everything in PostgreSQL, and knows Tom."""
    made = Machine(tmp_path)
    made.keep_at(postgres_url)
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


def test_scale_a_server_is_copied_verified_and_restored(known: Machine, postgres_url: str) -> None:
    """What came after the copy is gone, what it held is there, nothing is left beside but what was replaced.

    Whoever is forgotten is erased from that, too; what others said there stays.
    """
    made = known.ok("backup", "create", "--json").json
    listed = known.ok("backup", "list", "--json").json
    found = known.ok("backup", "verify", made["path"], "--json").json
    beside = schemas(postgres_url)
    known.ok("chat", "--once", "I love oak planks.")
    known.ok("backup", "restore", made["path"], "--yes")
    asked = known.ok("chat", "--once", "What do you remember of me?", "--conversation", "other")
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
    assert [one["act"] for one in known.ok("audit", "--json").json] == ["restore"]
    known.ok("chat", "--once", "I am Ben, I like rye bread.", "--as", "ben")
    now = datetime.now(UTC)
    for _ in range(2):  # within one second
        put_in_force(StorePlace(postgres_url), Path(made["path"]), shipped("memory"), now)
    known.ok("users", "forget", "terminal:local:ada", "--yes")
    assert sorted(
        (MARK in said, "rye bread" in said) for said in map(partial(words, postgres_url), schemas(postgres_url))
    ) == [(False, False), (False, False), (False, True)]


def test_scale_two_copies_are_made_at_once(known: Machine, postgres_url: str) -> None:
    """A copy is verified in a schema of its own: while another one is, and while one is put back, nothing waits."""
    with psycopg.connect(postgres_url) as other:
        (schema,) = other.execute("SELECT current_schema()").fetchone() or ("",)
        other.execute(f'CREATE SCHEMA "{schema[:NAME_CHARS]}{BESIDE}"')
        made = known.ok("backup", "create", "--json").json
        other.rollback()

    assert made["verified"]
    assert schemas(postgres_url) == []


def test_scale_whoever_was_forgotten_since_the_copy_stays_forgotten(known: Machine) -> None:
    """A restored copy is swept of everyone who was erased after it was made; the copy itself goes with the erasure."""
    made = Path(known.ok("backup", "create", "--json").json["path"])
    aside = known.root / made.name
    shutil.copy(made, aside)
    person = known.ok("users", "list", "--json").json[0]["person"]
    receipt = known.ok("users", "forget", person, "--yes", "--json").json
    fresh = known.ok("backup", "list", "--json").json
    known.ok("backup", "restore", str(aside), "--yes")

    assert receipt["verified"], receipt["left"]
    assert receipt["backups"] == 1
    assert len(fresh) == 1
    assert MARK.encode() not in Path(fresh[0]["path"]).read_bytes()
    assert MARK not in known.run("users", "export", person).shown


def test_scale_what_waits_in_a_copy_has_a_lane_and_the_pushed_soul_stays(known: Machine, postgres_url: str) -> None:
    """A message that waits when the copy is made is found by whoever looks for lanes; no lane's token is given twice."""
    known.ok("soul", "push")
    with psycopg.connect(postgres_url) as made:
        made.execute("UPDATE inbox SET state = 'pending'")
        made.execute("SELECT setval('lane_token', 500)")
    copy = known.ok("backup", "create", "--json").json["path"]
    known.ok("backup", "restore", copy, "--yes")

    with psycopg.connect(postgres_url) as made:
        assert made.execute("SELECT ready FROM lane").fetchall() == [(True,)]
        assert made.execute("SELECT nextval('lane_token') > 500").fetchall() == [(True,)]
        assert made.execute("SELECT count(*) FROM soul_push").fetchall() == [(1,)]


@pytest.mark.slow
def test_scale_a_damaged_copy_is_not_restored(known: Machine) -> None:
    """A copy that is cut off, or is not ours, is refused, and nothing changes."""
    made = Path(known.ok("backup", "create", "--json").json["path"])
    cut, foreign = known.root / "cut.db", known.root / "foreign.db"
    cut.write_bytes(made.read_bytes()[:-20000])
    foreign.write_bytes(made.read_bytes())
    with closing(sqlite3.connect(foreign)) as theirs:
        theirs.execute("PRAGMA application_id = 1")
    codes = [known.run("backup", what, str(path), *more).code for path in (cut, foreign)
             for what, more in (("verify", ()), ("restore", ("--yes",)))]  # fmt: skip
    assert codes == [1] * 4

    assert MARK in known.ok("chat", "--once", "What do you remember of me?").stdout


def test_scale_a_dump_of_an_earlier_release_is_refused_by_one_line(known: Machine) -> None:
    """The line says what reads a dump: pg_dump made it, as SQL."""
    old = known.root / "claudius-20260101T000000.000000Z.sql.gz"
    old.write_bytes(b"")
    told = [known.run("backup", *words) for words in (("verify", str(old)), ("restore", str(old), "--yes"),
            ("create", "new.sql.gz"))]  # fmt: skip

    assert [one.code for one in told] == [1, 1, 1]
    assert all("| psql DATABASE" in one.stderr and "Traceback" not in one.shown for one in told)


@pytest.mark.slow
def test_scale_a_copy_of_a_file_is_restored_to_a_server_and_one_of_a_server_to_a_file(
    known: Machine, tmp_path: Path
) -> None:
    """A copy is the same kind of file wherever the soul is kept."""
    other = Machine(tmp_path / "other")
    other.ok("chat", "--once", "My name is Ben. I like rye bread.")
    theirs = other.ok("backup", "create", "--json").json["path"]
    ours = known.ok("backup", "create", "--json").json["path"]
    known.ok("backup", "restore", theirs, "--yes")
    other.ok("backup", "restore", ours, "--yes")
    asked = [one.ok("chat", "--once", "What do you remember of me?").stdout for one in (known, other)]

    assert ["rye bread" in one for one in asked] == [True, False]
    assert [MARK in one for one in asked] == [False, True]
