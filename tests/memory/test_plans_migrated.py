"""A15: what an older home had planned waits on, under numbers, in its own words; what had come or lapsed is known so."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from claudius.home import shipped
from claudius.memory.sqlite.schema import _migrate, load_migrations
from claudius.perception import private
from contracts.store.ground import ANA, BEN, DM

ROWS = (
    (
        1,
        "2026-03-02",
        f"reminder:{1}",
        {"what": "oil the chain"},
        'They said: "oil the chain" Say it.',
        ANA,
        None,
        None,
    ),
    (2, "2026-03-01", "promise:2", {"what": "send it", "event": "promise_due"}, "Do it now: send it", ANA, None, None),
    (3, "2026-03-03", "own", {"what": "look in"}, "You meant to look in.", "", None, None),
    (4, "2026-01-01", "reminder:4", {"what": "old"}, "They said: old", ANA, "turn4", None),
    (5, "2026-01-02", "reminder:5", {"what": "late"}, "They said: late", BEN, "", "2026-01-09"),
)


def test_plans_of_an_older_home_wait_on_under_numbers(tmp_path: Path) -> None:
    """Reminders and promises are numbered soonest first, for each person; the soul's own plans stay as they were."""
    migrations = load_migrations(shipped("memory") / "schema")
    before = next(n for n, sql in migrations.items() if "CREATE TABLE numbered " in sql) - 1
    with closing(sqlite3.connect(tmp_path / "old.db", isolation_level=None)) as connection:
        _migrate(connection, {n: sql for n, sql in migrations.items() if n <= before}, 0)
        for n, at, key, params, text, asked_by, turn, lapsed_at in ROWS:
            connection.execute(
                "INSERT INTO due (id, kind, scheduled_for, conversation, key, params, text, audience, person, asked_by,"
                " fired_turn, lapsed_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    n,
                    f"schedule/{n}",
                    at,
                    DM,
                    key,
                    json.dumps(params),
                    text,
                    private(ANA),
                    ANA,
                    asked_by,
                    turn,
                    lapsed_at,
                ),
            )
        _migrate(connection, migrations, before)
        rows = connection.execute("SELECT short, made_as, text, state FROM due ORDER BY id").fetchall()
        counted = connection.execute("SELECT person, audience, letter, last FROM numbered").fetchall()

    assert rows == [
        (2, "remind", "oil the chain", "waiting"),
        (1, "promise", "send it", "waiting"),
        (0, "", "You meant to look in.", "waiting"),
        (0, "", "They said: old", "said"),
        (0, "", "They said: late", "lapsed"),
    ]
    assert counted == [(ANA, private(ANA), "p", 2)]
