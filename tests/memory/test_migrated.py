"""What an older home had learned, planned and felt is there after the migrations."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from claudius.home import shipped
from claudius.memory.database import Database, load_queries
from claudius.memory.moments import find_moments
from claudius.memory.psyche import recall_psyche
from claudius.memory.ranking import asked_for, stemmed
from claudius.memory.sqlite.schema import _migrate, load_migrations
from claudius.perception import private
from contracts.store.ground import ANA, BEN, DM, heard

OLD = "INSERT INTO psyche_episode (turn, at_s, person, name, conversation, text, previous, stems, previous_stems, importance, sources, is_own)"


@contextmanager
def older(tmp_path: Path, sign: str) -> Iterator[tuple[sqlite3.Connection, Callable[[], Database]]]:
    """Yield a database as it was before the migration that has these words, and what brings it up to date."""
    migrations = load_migrations(shipped("memory") / "schema")
    before = next(n for n, sql in migrations.items() if sign in sql) - 1
    with closing(sqlite3.connect(tmp_path / "old.db", isolation_level=None)) as connection:
        _migrate(connection, {n: sql for n, sql in migrations.items() if n <= before}, 0)

        def upgraded() -> Database:
            _migrate(connection, migrations, before)
            connection.row_factory = sqlite3.Row
            return Database(connection, load_queries(shipped("memory") / "queries"))

        yield connection, upgraded


def test_memory_k1_nothing_learned_is_lost_when_episodes_become_moments(tmp_path: Path) -> None:
    """K1: an episode of an older database is a moment with the same id, found by its words; its fact is in force."""
    with older(tmp_path, "CREATE TABLE moment ") as (connection, upgraded):
        sources = f'["{private(ANA)}"]'
        connection.execute(
            f"{OLD} VALUES ('t1', 5.5, ?, 'Ana', 'slack:T1:D1:', 'I bake walnut cakes', '', 'bak', '', 0.42, ?, 0)",
            (ANA, sources),
        )
        said = [
            ("name", "Ana", 5.5, 1),
            ("allergic to", "walnuts", 6.5, 1),
            ("lives in", "Leeds", 7.5, 0),
            ("lives in", "Hull", 8.5, 1),
            ("is", "vegan", 9.5, 1),
            ("no longer", "I'm no longer vegan", 10.5, 1),
        ]
        for key, value, at_s, newest in said:
            connection.execute(
                "INSERT INTO psyche_fact (person, key, value, sources, turn, stated_s, is_single, newest)"
                " VALUES (?, ?, ?, ?, 't1', ?, 1, ?)",
                (ANA, key, value, sources, at_s, newest),
            )
        db = upgraded()

        found = find_moments(db, asked_for("who is baking walnuts?"), heard(n=1))
        facts = sorted(db.all("facts_of", persons=f'["{ANA}"]'), key=lambda one: int(one["id"]))
        shown_then = [db.value("fact_text", id=one["id"]) for one in facts]
        following = db.value("number_next", person=ANA, audience=private(ANA), letter="f")

    assert [(one.id, one.text, one.importance) for one in found.moments.values()] == [(1, "I bake walnut cakes", 42)]
    assert [(one["short"], one["kind"], one["text"], one["unchecked"], one["ended_at"] is None) for one in facts] == [
        (1, "name", "Ana", 1, True),
        (2, "constraint", "allergic to walnuts", 1, True),
        (3, "other", "lives in Leeds", 1, False),
        (4, "other", "lives in Hull", 1, True),
        (5, "other", "is vegan", 1, False),
    ]
    assert shown_then == ["name: Ana", "allergic to: walnuts", "lives in: Leeds", "lives in: Hull", "is: vegan"]
    assert following == 6


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("I am allergic to walnuts, and my sister's boats were painted", "ana allerg walnut sister boat paint"),
        ("Ich habe gestern zwei Häuser besichtigt", "ana gest zwei haus besichtigt"),
        ("Мои сёстры купили красные лодки", "ana мо сестр куп красн лодк"),
        ("Mes sœurs habitaient à Lyon avec les enfants", "ana sœur habit lyon enfant"),
        ("Ayer compré dos camisas azules en el mercado", "ana ayer compr dos camis azul merc"),
    ],
)
def test_memory_k5_the_stems_of_a_text_do_not_change_without_a_migration(text: str, stems: str) -> None:
    """K5: what is deleted leaves the index by the stems that it was indexed with; others need the index built anew."""
    assert " ".join(stemmed(text, "Ana")) == stems


ROWS = (
    (1, "2026-03-02", "reminder:1", {"what": "oil the chain"}, 'They said: "oil the chain" Say it.', ANA, None, None),
    (2, "2026-03-01", "promise:2", {"what": "send it", "event": "promise_due"}, "Do it now: send it", ANA, None, None),
    (3, "2026-03-03", "own", {"what": "look in"}, "You meant to look in.", "", None, None),
    (4, "2026-01-01", "reminder:4", {"what": "old"}, "They said: old", ANA, "turn4", None),
    (5, "2026-01-02", "reminder:5", {"what": "late"}, "They said: late", BEN, "", "2026-01-09"),
)


def test_plans_of_an_older_home_wait_on_under_numbers(tmp_path: Path) -> None:
    """Reminders and promises are numbered soonest first, for each person; the soul's own plans stay as they were."""
    with older(tmp_path, "CREATE TABLE numbered ") as (connection, upgraded):
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
        upgraded()
        rows = [*map(tuple, connection.execute("SELECT short, made_as, text, state FROM due ORDER BY id"))]
        counted = [*map(tuple, connection.execute("SELECT person, audience, letter, last FROM numbered"))]

    assert rows == [
        (2, "remind", "oil the chain", "waiting"),
        (1, "promise", "send it", "waiting"),
        (0, "", "You meant to look in.", "waiting"),
        (0, "", "They said: old", "said"),
        (0, "", "They said: late", "lapsed"),
    ]
    assert counted == [(ANA, private(ANA), "p", 2)]


ADA = "slack:T1:U1"
NUMBERS = '{"at_s":7.25,"energy":0.8123456789012345,"valence":0.3,"mood":"engaged"}'
EDGE = f'{{"person":"{ADA}","at_s":7.25,"warmth":0.1234567890123456,"stances":[["soften",1.0,1]],"name":"Ana"}}'


def test_an_older_soul_goes_on_from_where_it_stood(tmp_path: Path) -> None:
    """A15: numbers and relations stay bit for bit, intentions are gone."""
    with older(tmp_path, "CREATE TABLE appraisal ") as (connection, upgraded):
        connection.execute("INSERT INTO psyche_state (id, version, numbers, kernel) VALUES (1, 9, ?, 'k')", (NUMBERS,))
        connection.execute("INSERT INTO psyche_edge VALUES (?, ?, '2026-01-01T00:00:00Z')", (ADA, EDGE))
        connection.execute("INSERT INTO psyche_kernel VALUES ('k', '[]', '')")
        connection.execute(
            "INSERT INTO psyche_trace (turn, at, person, kernel, inputs, after, edges) VALUES"
            " ('t', '2026-01-01T00:00:00Z', ?, 'k', ?, '{}', '[]')",
            (ADA, f'{{"at_s":1.0,"shifts":[["{ADA}","soften",1.0]]}}'),
        )
        db = upgraded()

        found = recall_psyche(db, [ADA])
        tables = {row["name"] for row in connection.execute("SELECT name FROM sqlite_master")}

    assert found.numbers
    assert found.numbers.energy == 0.8123456789012345
    assert found.edges[0].warmth == 0.1234567890123456
    assert "psyche_intention" not in tables


def test_the_index_of_an_older_home_forgets_what_was_blanked(tmp_path: Path) -> None:
    """Words whose text was gone before the index was told of it are no longer in it; what is there is found as before."""
    with older(tmp_path, "were blanked before") as (connection, upgraded):
        connection.execute(
            "INSERT INTO moment VALUES (1, 't1', '', 5, ?, 'Ana', ?, ?, 'I bake walnut cakes', '', 0, 0)",
            (ANA, DM, private(ANA)),
        )
        connection.execute("INSERT INTO moment_index (rowid, stems) VALUES (7, 'ghost:1')")
        upgraded()
        terms = {term for (term,) in connection.execute("SELECT term FROM moment_stem")}

    assert terms == {"ana:1", "bake:1", "cake:1", "walnut:1"}


def test_what_an_older_home_answered_in_claude_code_is_found(tmp_path: Path) -> None:
    """Its answers have no post: each is a moment with its words, under the person who asked."""
    with older(tmp_path, "session of Claude Code") as (connection, upgraded):
        for number, metadata in enumerate(('{"elsewhere":true}', None), 1):
            connection.execute(
                "INSERT INTO turn VALUES (?, ?, ?, '2026-01-01T00:00:00Z', ?, ?, '', '', '[]', 1, 0)",
                (DM, number, f"t{number}", private(ANA), ANA),
            )
            connection.execute(
                "INSERT INTO entry (conversation, number, n, entry_type, content, at, metadata, position, audience)"
                " VALUES (?, ?, 1, 'externalDialog', 'Salt rusts it.', '2026-01-01T00:00:00Z', ?, '', ?)",
                (DM, number, metadata, private(ANA)),
            )
        db = upgraded()

        found = find_moments(db, asked_for("what rusts?"), heard(n=1))

    assert [(one.turn, one.text, one.person, one.is_own) for one in found.moments.values()] == [
        ("t1", "Salt rusts it.", ANA, True)
    ]
