"""Every query on the path of a turn uses an index, however much is kept."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest

import claudius.memory
from claudius.home import shipped
from claudius.memory.database import load_queries
from claudius.memory.sqlite.schema import empty_database, load_migrations

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
        "call_found",
        "calls_of_turn",
        "calls_open",
        "calls_waiting",
        "calls_lapse_next",
        "cards_decided",
        "call_of_its_turn",
    ]
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
