"""The migration to appraisals: an older soul goes on from where it stood."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from claudius.home import shipped
from claudius.memory.database import Database, load_queries
from claudius.memory.psyche import recall_psyche
from claudius.memory.sqlite.schema import _migrate, load_migrations

ANA = "slack:T1:U1"
NUMBERS = '{"at_s":7.25,"energy":0.8123456789012345,"valence":0.3,"mood":"engaged"}'
EDGE = f'{{"person":"{ANA}","at_s":7.25,"warmth":0.1234567890123456,"stances":[["soften",1.0,1]],"name":"Ana"}}'


def test_an_older_soul_goes_on_from_where_it_stood(tmp_path: Path) -> None:
    """A15: numbers and relations stay bit for bit, intentions are gone."""
    migrations = load_migrations(shipped("memory") / "schema")
    before = next(n for n, sql in migrations.items() if "CREATE TABLE appraisal " in sql) - 1
    with closing(sqlite3.connect(tmp_path / "old.db", isolation_level=None)) as connection:
        _migrate(connection, {n: sql for n, sql in migrations.items() if n <= before}, 0)
        connection.execute("INSERT INTO psyche_state (id, version, numbers, kernel) VALUES (1, 9, ?, 'k')", (NUMBERS,))
        connection.execute("INSERT INTO psyche_edge VALUES (?, ?, '2026-01-01T00:00:00Z')", (ANA, EDGE))
        connection.execute("INSERT INTO psyche_kernel VALUES ('k', '[]', '')")
        connection.execute(
            "INSERT INTO psyche_trace (turn, at, person, kernel, inputs, after, edges) VALUES"
            " ('t', '2026-01-01T00:00:00Z', ?, 'k', ?, '{}', '[]')",
            (ANA, f'{{"at_s":1.0,"shifts":[["{ANA}","soften",1.0]]}}'),
        )
        _migrate(connection, migrations, before)
        connection.row_factory = sqlite3.Row
        db = Database(connection, load_queries(shipped("memory") / "queries"))

        found = recall_psyche(db, [ANA])
        tables = {row["name"] for row in connection.execute("SELECT name FROM sqlite_master")}

    assert found.numbers
    assert found.numbers.energy == 0.8123456789012345
    assert found.edges[0].warmth == 0.1234567890123456
    assert "psyche_intention" not in tables
