"""`claudius migrate`: a whole soul moves to PostgreSQL and back; whatever is cut off, nothing has moved."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from claudius.cli import migrate as command
from claudius.home import Home, shipped
from claudius.memory.database import StorePlace
from claudius.memory.postgres import moving
from driven import Machine
from grown import grow

MARK = "walnut cakes"
MEMORY = shipped("memory")


class Cut(BaseException):
    """The process ends here."""


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a machine's directory whose home has a life behind it."""
    made = Machine(tmp_path_factory.mktemp("lived"))
    for line in (f"My name is Tom. I like {MARK}.", "I work on the harbour looms.", "What do you remember of me?"):
        made.ok("chat", "--once", line)
    made.ok("chat", "--once", "What time is it in Tokyo?")
    made.ok("state", "set", "currentTopic", "bridges")
    return made.root


@pytest.fixture
def machine(lived: Path, tmp_path: Path) -> Machine:
    """Return a machine of this test's own with that life."""
    shutil.copytree(lived, tmp_path, dirs_exist_ok=True)
    return Machine(tmp_path)


def cut_after(tables: int) -> moving.Told:
    """Return a progress function that ends the process once it heard of this many tables."""
    heard: list[str] = []

    def told(table: str, rows: int) -> None:
        heard.extend([table] if table not in heard[-1:] else [])
        if len(heard) == tables:
            raise Cut

    return told


def tables_at(url: str) -> dict[str, Any]:
    """Return the number of rows of each table of a server."""
    with psycopg.connect(url) as made:
        names = made.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
        )
        return {name: made.execute(f'SELECT count(*) FROM "{name}"').fetchone() for (name,) in names.fetchall()}  # noqa: S608 - our own names


def but_audit(document: dict[str, Any]) -> dict[str, Any]:
    """Return what a move counted, but for the log of who looked at what meanwhile."""
    return {name: one for name, one in document["tables"].items() if name != "audit"}


def test_scale_f18_a_soul_moves_there_and_back(machine: Machine, postgres_url: str) -> None:
    """Tables are equal by hash there and back; the soul goes on at each, and replay is identical."""
    turn = machine.ok("why", "--json").json["turn"]
    shown = machine.ok("why", turn, "--json").json
    used = machine.ok("tools", "calls", "--json").json
    there = machine.ok("migrate", postgres_url, "--json").json
    kept = Path(there["kept"])
    why = machine.ok("why", turn, "--json").json
    replayed = machine.ok("replay", turn, "--json").json
    kept_there = machine.ok("tools", "calls", "--json").json
    back = machine.ok("migrate", "sqlite", "--json").json
    again = machine.ok("replay", turn, "--json").json

    assert but_audit(there) == but_audit(back)
    assert there["rows"] > 20
    assert [one["tool"] for one in used] == ["clock"]
    assert kept_there == used
    assert why == shown
    assert replayed["identical"]
    assert again["identical"]
    assert kept.stat().st_mode & 0o777 == 0o400
    assert machine.ok("config", "get", "store.url").stdout.strip() == "sqlite"


def test_scale_f18_what_is_said_there_comes_back(machine: Machine, postgres_url: str) -> None:
    """A soul that moved remembers, learns, counts on from the same numbers, and takes all of it back to a file."""
    machine.ok("migrate", postgres_url)
    asked = machine.ok("chat", "--once", "What do you remember of me?", "--conversation", "other")
    machine.ok("chat", "--once", "I love oak planks.")
    machine.ok("migrate", "sqlite")
    found = machine.ok("chat", "--once", "What did I say of oak planks?", "--conversation", "third")
    status = machine.ok("doctor", "--json").json

    assert MARK in asked.stdout
    assert "oak" in found.stdout
    assert status["ok"], status
    with closing(sqlite3.connect(machine.home / "state" / "claudius.db")) as file:
        terms = file.execute("SELECT count(*) FROM moment_place WHERE term LIKE 'oak%'").fetchone()
        assert terms[0] > 0


def test_scale_f18_a_pause_comes_back(machine: Machine, postgres_url: str) -> None:
    """A soul that was paused for every process is paused by its settings where it is kept in a file again."""
    machine.ok("migrate", postgres_url)
    machine.ok("config", "set", "runtime.paused", "true")
    there = machine.ok("config", "get", "runtime.paused").stdout.strip()
    machine.ok("migrate", "sqlite")

    assert (there, machine.ok("config", "get", "runtime.paused").stdout.strip()) == ("false", "true")


def test_scale_f18_the_index_of_moments_is_what_postgres_would_have_made(machine: Machine, postgres_url: str) -> None:
    """The stems that are copied are those that the store would have indexed."""
    from claudius.memory.ranking import stemmed  # noqa: PLC0415 - heavy

    machine.ok("migrate", postgres_url)
    with psycopg.connect(postgres_url) as made:
        held = set(made.execute("SELECT stem, moment FROM moment_index").fetchall())
        said = made.execute("SELECT id, text, pictures, name, audience_number FROM moment_said").fetchall()

    wanted = {
        (f"{stem}:{number}", id_)
        for id_, text, pictures, name, number in said
        for stem in stemmed(f"{text} {pictures}", name)
    }
    assert held == wanted
    assert held


def test_scale_f18_a_dry_run_moves_nothing(machine: Machine, postgres_url: str) -> None:
    """`--dry-run` copies and compares everything, and leaves both as they were."""
    ran = machine.ok("migrate", postgres_url, "--dry-run", "--json").json

    assert ran["dry_run"]
    assert ran["rows"] > 20
    assert tables_at(postgres_url) == {}
    assert machine.ok("config", "get", "store.url").stdout.strip() == "sqlite"
    assert MARK in machine.ok("chat", "--once", "What do you remember of me?").stdout


@pytest.mark.parametrize("stride", [8, pytest.param(1, marks=pytest.mark.slow)])
def test_scale_f18_cut_at_each_table_nothing_has_moved(machine: Machine, postgres_url: str, stride: int) -> None:
    """However far a copy came, there and back, the other side holds nothing of it, and the next try moves everything."""
    home, place = Home(machine.home), StorePlace(postgres_url)
    count = len(machine.ok("migrate", postgres_url, "--dry-run", "--json").json["tables"])
    for tables in range(1, 2 * count + 1, stride):
        with pytest.raises(Cut):
            moving.to_postgres(home.database, place, MEMORY, cut_after(tables), is_kept=True)
        assert moving.state_of(place) == "empty"
    there = machine.ok("migrate", postgres_url, "--json").json
    for tables in range(1, 2 * count + 1, stride):
        with pytest.raises(Cut):
            moving.to_sqlite(place, home.state / ".moving.db", MEMORY, cut_after(tables), is_kept=True)
        assert moving.state_of(place) == "soul"
        assert not [*home.state.glob("*moving*")]
    back = machine.ok("migrate", "sqlite", "--json").json

    assert there["tables"] == back["tables"]


@pytest.mark.parametrize(
    ("to", "step"),
    [("server", "write"), ("server", "_aside"), ("server", "finish"), ("sqlite", "_aside"), ("sqlite", "write")],
)
def test_scale_f18_cut_after_the_copy(
    machine: Machine, postgres_url: str, monkeypatch: pytest.MonkeyPatch, to: str, step: str
) -> None:
    """Between the copy and its last word, no process writes to the server; the same command again finishes the move."""
    is_back = to == "sqlite"
    if is_back:
        machine.ok("migrate", postgres_url)
    monkeypatch.setattr(os, "environ", machine.environment())
    with monkeypatch.context() as patch:
        patch.setattr(moving if step == "finish" else command, step, _cut)
        with pytest.raises(Cut):
            command.migrate.main([to if is_back else postgres_url], standalone_mode=False)
    meanwhile = machine.run("chat", "--once", "Hello", env={} if is_back else {"CLAUDIUS_STORE_URL": postgres_url})
    machine.ok("migrate", to if is_back else postgres_url)

    assert meanwhile.code == 75
    assert "claudius migrate" in meanwhile.stderr
    assert MARK in machine.ok("chat", "--once", "What do you remember of me?", "--conversation", "x").stdout
    assert (machine.home / "state" / "claudius.db").exists() == is_back


def _cut(*_: object, **__: object) -> None:
    raise Cut


def _run(machine: Machine, sql: str) -> None:
    with closing(sqlite3.connect(machine.home / "state" / "claudius.db")) as file, file:
        file.execute(sql)


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("UPDATE boot SET clean = 0", "did not end cleanly"),
        ("UPDATE outbox SET state = 'pending' WHERE seq = 1", "1 message waits for an answer"),
    ],
)
def test_scale_a_soul_with_something_unfinished_stays(machine: Machine, postgres_url: str, sql: str, says: str) -> None:
    """What did not end cleanly, or still owes an answer, is not moved: 75, and what to do."""
    _run(machine, sql)

    ran = machine.run("migrate", postgres_url)

    assert ran.code == 75
    assert says in ran.stderr
    assert tables_at(postgres_url) == {}


def test_scale_a_soul_that_runs_stays(machine: Machine, postgres_url: str) -> None:
    """While a daemon has the home, nothing is moved."""
    with machine.daemon():
        ran = machine.run("migrate", postgres_url)

    assert ran.code == 75
    assert tables_at(postgres_url) == {}


@pytest.mark.slow
def test_scale_no_soul_is_moved_upon_another(machine: Machine, postgres_url: str, tmp_path: Path) -> None:
    """A server that holds a soul, or tables of others, is left as it is."""
    other = Machine(tmp_path / "other")
    other.ok("chat", "--once", "Hello", env={"CLAUDIUS_STORE_URL": postgres_url})
    before = tables_at(postgres_url)
    taken = machine.run("migrate", postgres_url)
    held = tables_at(postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as made:
        made.execute("DROP TABLE release")
    foreign = machine.run("migrate", postgres_url)

    assert (taken.code, foreign.code) == (75, 78)
    assert "holds a soul already" in taken.stderr
    assert "not Claudius's" in foreign.stderr
    assert held == before


def test_scale_a_worker_at_work_keeps_the_soul_there(machine: Machine, postgres_url: str) -> None:
    """Back to a file only when no process takes turns there; its machine and process are named."""
    machine.ok("migrate", postgres_url)
    with psycopg.connect(postgres_url, autocommit=True) as made:
        made.execute("INSERT INTO worker (worker, host, pid, version, roles) VALUES ('w', 'far', 7, '1', 'lanes')")
    ran = machine.run("migrate", "sqlite")

    assert ran.code == 75
    assert "process 7 on far" in ran.stderr


def test_scale_a_variable_that_names_the_store_is_told(machine: Machine, postgres_url: str) -> None:
    """Where the environment says where the store is, config.toml would change nothing: the command says so."""
    ran = machine.run("migrate", postgres_url, env={"CLAUDIUS_STORE_URL": "sqlite"})

    assert ran.code == 78
    assert "CLAUDIUS_STORE_URL" in ran.stderr


@pytest.mark.slow
def test_scale_u0000_of_before_is_moved(machine: Machine, postgres_url: str) -> None:
    """U+0000, which PostgreSQL cannot hold, reads U+FFFD there, in texts and in JSON."""
    _run(machine, "UPDATE entry SET content = 'a' || char(0) || 'b' WHERE n = 0")
    _run(machine, """UPDATE inbox SET payload = json_set(payload, '$.text', 'a' || char(0) || 'b')""")
    machine.ok("migrate", postgres_url)

    with psycopg.connect(postgres_url) as made:
        contents = made.execute("SELECT content FROM entry WHERE n = 0").fetchall()
        texts = made.execute("SELECT json_extract(payload, '$.text') FROM inbox").fetchall()
    assert {one for (one,) in [*contents, *texts]} == {"a\ufffdb"}


@pytest.mark.nightly
def test_scale_f18_a_hundred_thousand_turns_move_there_and_back(
    machine: Machine, postgres_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A long life moves there and back, equal by hash, and replay of what it began with is identical."""
    turn = machine.ok("why", "--json").json["turn"]
    turns = grow(machine.home / "state" / "claudius.db", 100_000)
    there = machine.ok("migrate", postgres_url, "--json", within_s=1800).json
    replayed = machine.ok("replay", turn, "--json").json
    back = machine.ok("migrate", "sqlite", "--json", within_s=1800).json
    again = machine.ok("replay", turn, "--json").json
    with capsys.disabled():
        print(f"\n{turns} turns, {there['rows']} rows: there {there['seconds']} s, back {back['seconds']} s")  # noqa: T201 - the figure

    assert turns >= 100_000
    assert but_audit(there) == but_audit(back)
    assert replayed["identical"]
    assert again["identical"]
