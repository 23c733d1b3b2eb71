"""The schema's own rules: each column is explained, migrations are numbered, and a turn's queries use an index."""

import inspect
import re
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest

import claudius.memory
from claudius.home import shipped
from claudius.memory.database import load_queries
from claudius.memory.ranking import stemmed
from claudius.memory.sqlite.file import APPLICATION_ID
from claudius.memory.sqlite.schema import create_database, empty_database, load_migrations, open_database

SCHEMA = shipped("memory") / "schema"


@cache
def tables() -> list[str]:
    """Return the tables of a fresh database, without the internal tables of virtual ones."""
    with closing(empty_database(load_migrations(SCHEMA))) as database:
        rows = database.execute("PRAGMA table_list").fetchall()
    return sorted(row[1] for row in rows if row[2] in ("table", "virtual") and not row[1].startswith("sqlite_"))


@pytest.mark.parametrize("file", sorted(SCHEMA.glob("*.sql")), ids=lambda path: path.name)
def test_every_column_has_a_comment(file: Path) -> None:
    """Each column's definition has a comment that says what it holds."""
    mute = [
        line.strip()
        for body in re.findall(r"CREATE TABLE \w+ \((.*?)\n\)", file.read_text("utf-8"), re.DOTALL)
        for line in body.splitlines()[1:]
        if re.match(r"    [a-z_]+ ", line) and not re.search(r"-- \S", line)
    ]

    assert mute == []


@pytest.mark.parametrize("table", tables())
def test_every_table_is_explained(table: str) -> None:
    """memory/README.md says what each table holds, how long, who sees it, and how to erase it."""
    readme = (shipped("memory") / "README.md").read_text("utf-8")

    row = re.search(rf"^\| `{table}` \|(.*)\|$", readme, re.MULTILINE)
    assert row is not None
    assert all(cell.strip() for cell in row[1].split("|"))
    assert len(row[1].split("|")) == 4


def test_no_table_is_explained_that_is_not_there() -> None:
    """The README's table lists exactly the tables of the schema."""
    readme = (shipped("memory") / "README.md").read_text("utf-8")

    assert sorted(re.findall(r"^\| `(\w+)` \|", readme, re.MULTILINE)) == tables()


def test_tables_check_their_types() -> None:
    """Every table is STRICT, except virtual ones, which cannot be: a wrong type is an error."""
    with closing(empty_database(load_migrations(SCHEMA))) as database:
        rows = database.execute("PRAGMA table_list").fetchall()
    loose = [row[1] for row in rows if row[1] in tables() and row[2] == "table" and not row[5]]

    assert loose == []


def test_a_fresh_database_is_ours_and_durable(tmp_path: Path) -> None:
    """The file has our application id, version and WAL mode; the writer syncs each commit and checks foreign keys."""
    path = tmp_path / "state" / "claudius.db"
    path.parent.mkdir()
    migrations = load_migrations(SCHEMA)
    connection = open_database(path, migrations, tmp_path / "backups")
    found = {
        name: connection.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("application_id", "user_version", "journal_mode", "synchronous", "foreign_keys")
    }
    connection.close()

    assert found == {
        "application_id": APPLICATION_ID,
        "user_version": len(migrations),
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
    }


def test_a_database_that_was_half_made_is_made_anew(tmp_path: Path) -> None:
    """A crash during creation leaves no database in place, and the next start creates it."""
    path = tmp_path / "claudius.db"
    (tmp_path / ".new-claudius.db").write_bytes(b"half")
    (tmp_path / ".new-claudius.db-wal").write_bytes(b"half")

    create_database(path, load_migrations(SCHEMA))

    assert sorted(file.name for file in tmp_path.iterdir()) == ["claudius.db"]


def test_migrations_are_numbered_without_a_gap(tmp_path: Path) -> None:
    """A missing number, or a name without one, is an error at once, before any migration runs."""
    (tmp_path / "0001_first.sql").write_text("")
    (tmp_path / "0003_third.sql").write_text("")
    with pytest.raises(ValueError, match="0002"):
        load_migrations(tmp_path)


def test_a_query_has_one_meaning(tmp_path: Path) -> None:
    """A query name that is defined twice is an error when the queries are read."""
    (tmp_path / "a.sql").write_text("-- name: one\nSELECT 1;\n-- name: one\nSELECT 2;\n")
    with pytest.raises(ValueError, match="twice"):
        load_queries(tmp_path)


def test_no_sql_stands_in_python() -> None:
    """SQL lives in files: Python has only PRAGMAs, transactions, schema look-ups, and SQL built from schema names."""
    room = Path(inspect.getfile(inspect.unwrap(load_queries))).parent
    words = r'"[^"\n]*\b(SELECT|INSERT|UPDATE|DELETE|CREATE)\b[^"\n]*"'
    found = {
        f"{path.name}: {match[0]}"
        for path in room.glob("*.py")
        for match in re.finditer(words, path.read_text("utf-8"))
        if not re.search("sqlite_master|count|FROM boot|json_each|pragma_table_info|CREATE VIRTUAL", match[0])
    }

    assert found == set()


QUERIES = load_queries(shipped("memory") / "queries")
ASKS = re.compile(r"(--.*\n)*(SELECT|WITH)\b")
SLOW = {name for name, sql in QUERIES.items() if "-- scans: " in sql}


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    """Return an empty database with the schema."""
    with closing(empty_database(load_migrations(shipped("memory") / "schema"))) as made:
        yield made


@cache
def sources() -> str:
    """Return the source of every module that runs a query."""
    return "".join(path.read_text("utf-8") for path in Path(claudius.memory.__file__).parent.rglob("*.py"))


def plan(database: sqlite3.Connection, sql: str) -> list[str]:
    """Return SQLite's query plan, step by step."""
    values = dict.fromkeys(re.findall(r":(\w+)", sql))
    return [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def test_no_table_is_read_from_end_to_end(database: sqlite3.Connection) -> None:
    """No plan contains a SCAN, except of an index of unfinished rows; the exceptions in SLOW have their reasons."""
    partial = database.execute(
        "SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '% WHERE %'"
    ).fetchall()
    small = "|".join(["VIRTUAL TABLE", "SUBQUERY", "CONSTANT", "subquery", *(f"INDEX {name}$" for (name,) in partial)])

    plans = {name: plan(database, QUERIES[name]) for name in set(QUERIES) - SLOW}

    scans = {
        name: [step for step in steps if step.startswith("SCAN") and not re.search(small, step)]
        for name, steps in plans.items()
    }
    assert {name: steps for name, steps in scans.items() if steps} == {}
    assert [name for name, steps in plans.items() if any("AUTOMATIC" in step for step in steps)] == []


def test_nothing_on_the_way_of_a_turn_is_sorted(database: sqlite3.Connection) -> None:
    """Order comes from an index: no plan has a temporary b-tree, except for a person's few documents."""
    few = {"archive_files_of", "linked", "person_versions", "person_by_id", "person_by_name", "state_as_of", "dead"}
    few |= {"turn_perceptions", "models_own", "others_in_turn"}

    sorts = {name for name in set(QUERIES) - SLOW if "TEMP B-TREE" in "".join(plan(database, QUERIES[name]))}

    assert sorts <= few


def test_a_mark_that_is_not_needed_is_not_there(database: sqlite3.Connection) -> None:
    """Each query listed as slow does scan, so that no exception outlives its reason."""
    needless = [name for name in SLOW if not any(step.startswith("SCAN") for step in plan(database, QUERIES[name]))]

    assert needless == []


def test_every_column_can_be_read_by_its_name(database: sqlite3.Connection) -> None:
    """No two columns of a query share a name, each name is a word, and a query read as a value has one column."""
    for name, sql in QUERIES.items():
        if ASKS.match(sql):
            values = dict.fromkeys(re.findall(r":(\w+)", sql), 1)
            names = [column[0] for column in database.execute(sql, values).description]
            assert sorted({one for one in names if re.fullmatch(r"\w+", one)}) == sorted(names), name
            assert len(names) == 1 or not re.search(rf"\.values?\(\s*\"{name}\"", sources()), name


def test_every_query_is_used() -> None:
    """Every query in the files is run somewhere."""
    used = sources()

    unused = [name for name in QUERIES if f'"{name}"' not in used]

    assert [name for name in unused if not (name.startswith("usage_by_") and 'f"usage_by_{by}"' in used)] == []


@pytest.mark.parametrize("name", ["accept", "take", "answer", "say", "settle_turn"])
def test_a_state_is_compared_and_not_looked_up_in_a_table_made_for_it(database: sqlite3.Connection, name: str) -> None:
    """Counted: a query of every turn makes at most one ephemeral table, the one for the column's own list."""
    values = dict.fromkeys(re.findall(r":(\w+)", QUERIES[name]))

    steps = [row[1] for row in database.execute(f"EXPLAIN {QUERIES[name]}", values)]

    assert steps.count("OpenEphemeral") <= 1


def test_t34_what_a_turn_asks_of_calls_costs_the_same_among_ten_thousand(database: sqlite3.Connection) -> None:
    """T34: SQLite takes as many steps for each question, but for the end of a range, as with the call of this conversation alone."""
    names = [
        "call_found", "calls_of_turn", "calls_open", "calls_waiting", "calls_lapse_next", "cards_decided",
        "call_of_its_turn",
    ]  # fmt: skip
    values = {"id": "t1/0", "turn": "t1", "conversation": "c1", "receipt": "r"}
    fill = (
        "INSERT INTO tool_call (id, turn, conversation, audience, person, tool, class, args, args_sha256, state, asked_at) "
        "SELECT 't' || value || '/0', 't' || value, 'c' || value, 'a', 'p', 'clock', 'look', '{}', '', "
        "CASE value WHEN 1 THEN 'waiting' ELSE 'done' END, '2026-01-01' FROM (WITH RECURSIVE n(value) AS (SELECT :first UNION ALL "
        "SELECT value + 1 FROM n WHERE value < :last) SELECT value FROM n)"
    )

    def steps(name: str) -> int:
        """Count the steps of one query."""
        taken: list[int] = []
        database.set_progress_handler(lambda: taken.append(1) or 0, 1)
        database.execute(QUERIES[name], values).fetchall()
        database.set_progress_handler(None, 0)
        return len(taken)

    database.execute(fill, {"first": 1, "last": 1})
    few = {name: steps(name) for name in names}
    database.execute(fill, {"first": 2, "last": 10_000})
    many = {name: steps(name) for name in names}
    database.rollback()

    assert {name: many[name] - few[name] for name in names if abs(many[name] - few[name]) > 2} == {}
    assert few["calls_open"] > 10


def test_a_change_of_stems_comes_with_an_index_that_is_built_anew() -> None:
    """What is deleted must give the stems that were indexed. Other stems: a migration in both stores, then its names here."""
    lines = """Ana's meetings were moved to Tuesday, I'm allergic to walnuts :: Meine Schlüssel liegen bei den Nachbarn :: J'ai
        oublié l'insuline à la maison :: Las llaves están en la cocina :: Missä mökin avain on? :: Anahtarlar nerede? :: Hol van
        a kulcs, őri? :: Ключи лежат в кухне :: Τα κλειδιά είναι εδώ :: المفاتيح في المطبخ :: चाबी रसोई में है :: 열쇠는 어디에 있어?
        :: 鍵はどこですか :: 钥匙在哪里 :: กุญแจอยู่ที่ไหน :: Ｆｕｌｌ 🎉 naïve 2026"""
    found = [stemmed(" ".join(line.split()), "Zoë") for line in lines.split("::")]
    files = [
        [file.name for file in sorted(folder.glob("*.sql")) if sign in file.read_text("utf-8")][-1]
        for folder, sign in (
            (SCHEMA, "'delete-all'"),
            (shipped("memory") / "postgres", "moment_new (moment) SELECT id"),
        )
    ]

    assert (zlib.crc32(repr(found).encode()), *files) == (
        3306563629,
        "0039_question_words.sql",
        "0043_question_words.sql",
    )
