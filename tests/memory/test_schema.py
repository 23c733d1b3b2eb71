"""The schema's own rules: each column and table is explained, and migrations are numbered."""

from __future__ import annotations

import inspect
import re
from contextlib import closing
from pathlib import Path

import pytest

from claudius.home import shipped
from claudius.memory.database import load_queries
from claudius.memory.sqlite.file import APPLICATION_ID
from claudius.memory.sqlite.schema import create_database, empty_database, load_migrations, open_database

SCHEMA = shipped("memory") / "schema"


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
