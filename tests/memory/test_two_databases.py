"""SQLite and PostgreSQL hold the same: tables, queries, and for one life the same prompts, byte for byte."""

import json
import re
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from claudius.home import Home, shipped
from claudius.memory.database import Database, StorePlace, load_queries
from claudius.memory.opening import open_store
from claudius.memory.records import Records
from claudius.memory.sqlite.file import add_functions
from claudius.memory.sqlite.schema import empty_database, load_migrations
from claudius.perception import Kind, Perception, edited, private, shared
from claudius.provider import Request
from claudius.providers.scripted import Scripted
from claudius.testing.alive import alive
from claudius.testing.rehearsal_adapter import RehearsalAdapter
from driven import repeated
from minds import START, Clock

MEMORY = shipped("memory")
QUERIES = load_queries(MEMORY / "queries")
OWN = load_queries(MEMORY / "postgres", "queries.sql")
ASKS = re.compile(r"^(SELECT|WITH)\b|\bRETURNING\b", re.MULTILINE)
NUMBERS = {"answers", "entries", "version", "invocation_count", "history_from"}
UNNAMED = ("1", "?column?")
ASKED = (
    "max('b', 'a')", "max('a', NULL)", "min('B', 'a')", "min(NULL, 'a')", "max(2, 10)", "max(NULL, 10)", "min(2, 10)",
    "json_extract('{\"a\": \"x\"}', '$.a')", "json_extract('[\"x\", \"y\"]', '$[1]')", "json_extract(NULL, '$.a')",
    "(SELECT group_concat(value) FROM json_each('[\"x\", \"y\"]'))", "(SELECT count(*) FROM json_each(NULL))",
    "(SELECT group_concat(key, ' ') FROM json_each('{\"x\": 1, \"y\": 2}'))",
    "(SELECT group_concat(value) FROM json_each('{\"k\": [\"x\", \"y\"]}', '$.k'))",
    "(SELECT count(*) FROM json_each('{}', '$.k'))",
)  # fmt: skip
"""Expressions with SQLite's functions, as far as queries use them."""
INTERNAL = {
    "release", "moment_index", "moment_new", "lane", "worker", "role", "unread", "changed", "whisper_claim",
    "letting_go", "let_go", "rate", "early", "rest", "told", "booking", "soul_push", "soul_file",
}  # fmt: skip
"""What only PostgreSQL has: its version, an index that is a table, and who holds which conversation."""
LINES = (
    ("ana", "", "My name is Zoe, and I live in Porto. I love harbour looms."),
    ("ben", "", "Could you remember that I prefer oak?"),
    ("ana", "ops", "The loom bridge rusts again near the harbour."),
    ("ben", "ops", "I will bring the oak planks by tomorrow."),
    ("dee", "ops", "Ana, what did Ben say about the loom bridge?"),
    ("ana", "", "What did I say about the harbour looms?"),
    ("ben", "", "Zażółć gęślą jaźń: 李雷, नमस्ते, مرحبا \u202e 🙂, and a\0b."),
    ("dee", "all", "I prefer steel, and I love harbour looms."),
    ("ana", "all", "Did you keep what Dee said of steel?"),
    ("ana", "", "You are wrong about the bridge, and I am angry."),
    ("ben", "ops", "The oak planks are here, the bridge stands."),
    ("dee", "", "What do you remember of me?"),
)


def queries_of(sql: str) -> list[str]:
    """Return the parameters of a query."""
    return sorted(set(re.findall(r"(?<![:\w]):([a-z_]\w*)", re.sub(r"--.*|'[^']*'|\"[^\"]*\"", "", sql))))


@pytest.mark.parametrize("name", sorted(OWN))
def test_a_query_in_other_words_takes_the_same_parameters(name: str) -> None:
    """Each text of PostgreSQL's own stands for a query of the same name, with the same parameters."""
    assert queries_of(OWN[name]) == queries_of(QUERIES[name])


def test_every_query_gives_the_same_columns_on_both(postgres_url: str) -> None:
    """Each query runs on an empty PostgreSQL, and its columns have the names and the order that they have in SQLite."""
    from claudius.memory.postgres.connection import PostgresConnection, load_texts  # noqa: PLC0415 - an extra
    from claudius.memory.postgres.schema import prepare  # noqa: PLC0415 - likewise

    texts = load_texts(MEMORY)
    with (
        closing(empty_database(load_migrations(MEMORY / "schema"))) as kept,
        closing(PostgresConnection(StorePlace(postgres_url))) as served,
    ):
        add_functions(kept)
        kept.execute("PRAGMA foreign_keys = ON")
        prepare(served, MEMORY, "a test")
        differing = {
            name: found
            for name in sorted(QUERIES)
            if ASKS.search(QUERIES[name])
            and (found := (columns(kept, QUERIES[name]), columns(served, texts[name])))[0] != found[1]
        }

    assert differing == {}
    assert texts.keys() == QUERIES.keys() | load_queries(MEMORY / "postgres", "leases.sql").keys()


def test_functions_answer_the_same_on_both(postgres_url: str) -> None:
    """What PostgreSQL has in the place of SQLite's functions gives the same, of nothing too."""
    from claudius.memory.postgres.connection import PostgresConnection  # noqa: PLC0415 - an extra
    from claudius.memory.postgres.schema import prepare  # noqa: PLC0415 - likewise

    with (
        closing(empty_database(load_migrations(MEMORY / "schema"))) as kept,
        closing(PostgresConnection(StorePlace(postgres_url))) as served,
    ):
        prepare(served, MEMORY, "a test")
        for asked in ASKED:
            found, wanted = (dict(one.execute(f"SELECT {asked} AS found").fetchone()) for one in (served, kept))

            assert found == wanted, asked


def test_scale_a_row_is_judged_where_the_server_shares_a_query(postgres_url: str) -> None:
    """Reading every row for what is broken works where the planner would share it among processes of the server."""
    from claudius.memory.postgres.connection import PostgresConnection, load_texts  # noqa: PLC0415 - an extra
    from claudius.memory.postgres.schema import prepare  # noqa: PLC0415 - likewise

    with closing(PostgresConnection(StorePlace(postgres_url))) as served:
        prepare(served, MEMORY, "a test")
        served.execute("INSERT INTO audited (id, digests, seen) VALUES (1, '{}', 0)")
        served.execute("ANALYZE")
        served.execute(load_texts(MEMORY)["rows_invalid"], {"most": 5}).fetchall()


def test_scale_recall_finds_by_an_index_while_the_tables_are_empty(postgres_url: str) -> None:
    """The plan that a new soul's first turns make stays in use while the tables grow: it must not read them whole."""
    from claudius.memory.postgres.connection import PostgresConnection, load_texts  # noqa: PLC0415 - an extra
    from claudius.memory.postgres.schema import prepare  # noqa: PLC0415 - likewise

    with closing(PostgresConnection(StorePlace(postgres_url))) as served:
        prepare(served, MEMORY, "a test")
        served.execute("SET plan_cache_mode = force_generic_plan")
        for name in ("moment_stems", "moment_places", "moments_around", "entries_recalled"):
            sql = load_texts(MEMORY)[name]
            values = {one: 1 if one in NUMBERS | {"most", "first", "last"} else "[]" for one in queries_of(sql)}
            plan = "\n".join(row["QUERY PLAN"] for row in served.execute(f"EXPLAIN {sql}", values))

            assert not re.search(r"Hash Join|Merge Join|Seq Scan on (moment|entry)", plan), f"{name}\n{plan}"


def columns(connection: Any, sql: str) -> list[str]:
    """Run a query with values of some kind, undo it, and return the names of its columns."""
    errors: list[Exception] = []
    names = queries_of(sql)
    for values in (dict.fromkeys(names), dict.fromkeys(names, 1), {one: 1 if one in NUMBERS else "1" for one in names}):
        connection.execute("BEGIN IMMEDIATE")
        try:
            found = connection.execute(sql, values)
            return ["" if column[0] in UNNAMED else column[0] for column in found.description or ()]
        except connection.Error as error:
            errors.append(error)
        finally:
            connection.execute("ROLLBACK")
    assert any(isinstance(error, connection.IntegrityError) for error in errors), f"{sql}\n{errors}"
    return []  # it ran, and the row was refused


def test_both_schemas_have_the_same_tables(postgres_url: str) -> None:
    """Tables, columns in their order, what may be null, and keys are the same; so is every index by name."""
    import psycopg  # noqa: PLC0415 - an extra

    from claudius.memory.postgres.schema import create_sql, known  # noqa: PLC0415 - likewise

    with closing(empty_database(load_migrations(MEMORY / "schema"))) as kept:
        wanted = sqlite_shape(kept)
    with psycopg.connect(postgres_url, autocommit=True) as served:
        served.execute(create_sql(MEMORY, known(MEMORY)).encode())
        found = postgres_shape(served)

    assert found == wanted


def sqlite_shape(kept: sqlite3.Connection) -> dict[str, Any]:
    """Return each table's columns and key, and the names of the indexes."""
    tables = {
        name: [
            (column["name"], column["type"], bool(column["notnull"]) or bool(column["pk"]), column["pk"])
            for column in kept.execute("SELECT * FROM pragma_table_info(?)", (name,))
        ]
        for name, *_ in Database(kept, {}).tables()
        if not name.startswith("moment_index")
    }
    names = kept.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name")
    return {"tables": tables, "indexes": [row["name"] for row in names]}


def postgres_shape(served: Any) -> dict[str, Any]:
    """Return the same of PostgreSQL."""
    types = {"text": "TEXT", "bigint": "INTEGER", "double precision": "REAL", "bytea": "BLOB"}
    rows = served.execute("""SELECT c.table_name, c.column_name, c.data_type, c.is_nullable = 'NO',
        coalesce((SELECT k.ordinal_position FROM information_schema.key_column_usage k
            JOIN information_schema.table_constraints t USING (constraint_schema, constraint_name)
            WHERE t.constraint_type = 'PRIMARY KEY' AND k.table_schema = c.table_schema
                AND k.table_name = c.table_name AND k.column_name = c.column_name), 0)
        FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name)
        WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE'
        ORDER BY c.table_name, c.ordinal_position""").fetchall()
    tables: dict[str, list[Any]] = {}
    for table, column, kind, is_filled, key in rows:
        if table not in INTERNAL:
            tables.setdefault(table, []).append((column, types[kind], is_filled, key))
    names = served.execute(
        """SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()
        AND indexname !~ '_(pkey|key)$' AND tablename <> ALL (%s) ORDER BY indexname COLLATE "C" """,
        [list(INTERNAL)],
    )
    return {"tables": tables, "indexes": [name for (name,) in names.fetchall()]}


def parrot(request: Request) -> str:
    """Say, think, judge and intend what was just heard, so that it moves as many rows as a turn can."""
    text = request.tail.rpartition('"text":"')[2].partition('"')[0]
    who = re.findall(r"\((rehearsal:t:\w+)\): \d+ message", request.tail)
    judged = {"peer_id": who[0], "trust": len(text) % 10, "rationale": text} if who else {}
    meant = {"operation": "create", "type": "support", "target": "loom", "horizon": "long", "description": text}
    return repeated(text, intention_updates=json.dumps(meant), assess_peer=json.dumps(judged))


async def life(home: Home, place: StorePlace) -> tuple[list[tuple[str, ...]], Mapping[str, Any]]:
    """Live the same life in a store. Return every prompt, and what commands show of it afterwards."""
    home.create()
    voice, clock, network = Scripted(default=parrot), Clock(), RehearsalAdapter()

    def running() -> float:
        """Return the seconds that have passed: no one sets this clock."""
        return (clock() - START).total_seconds()

    nonces = (f"{n:032x}" for n in range(1_000_000))
    for channel in ("ops", "all"):
        network.audiences[f"shared:rehearsal:t:{channel}"] = tuple(
            f"rehearsal:t:{one}" for one in ("ana", "ben", "dee")
        )
    settings = {
        "CLAUDIUS_SOUL_STATE_INTERVAL": "1",
        "CLAUDIUS_USER_MODEL_INTERVAL": "1",
        "CLAUDIUS_CORTEX_ENABLED": "false",
    }
    async with alive(
        home,
        voice,
        network=network,
        settings=settings,
        clock=clock,
        running=running,
        store=open_store(home, place),
        nonce=lambda: next(nonces),
    ) as soul:
        for n, (person, channel, text) in enumerate(LINES * 2):
            await brought(network, said(person, channel, text, n, clock))
            await soul.idle()
            clock.forward(minutes=7)
        first = said("ana", "", "I never said so.", 0, clock)
        await brought(network, edited(first, clock(), f"{99:020d}"))
        await soul.idle()
        clock.forward(hours=80)
        await brought(network, said("ana", "", "What of the looms, after all?", 99, clock))
        await soul.idle()
        with closing(soul.records()) as records:
            shown = documents(home, records)
    asked = [(one.system, *(f"{one.role}: {one.content}" for one in one.history), one.tail) for one in voice.requests]
    return asked, shown


async def brought(network: RehearsalAdapter, perception: Perception) -> None:
    """Deliver a perception as the network does."""
    assert network._accept
    await network._accept(perception)


def said(person: str, channel: str, text: str, n: int, clock: Clock) -> Perception:
    """Return what a person says somewhere; its key and position depend on `n` alone."""
    place, who = f"rehearsal:t:{channel or f'dm-{person}'}:{'1' if channel else ''}", f"rehearsal:t:{person}"
    return Perception(
        key=f"{place}#{n}",
        conversation=place,
        audience=shared(place) if channel else private(who),
        person=who,
        name=person.capitalize(),
        text=text,
        at=clock() + timedelta(seconds=1),
        position=f"{n:020d}",
        kind=Kind.MENTION if channel else Kind.MESSAGE,
    )


def documents(home: Home, records: Records) -> Mapping[str, Any]:
    """Return what commands show of a life, apart from how long a call took."""
    turns: Sequence[str] = [
        entry["turn"]
        for one in records.conversations()
        for entry in (records.conversation(one["conversation"]) or {})["entries"]
    ]
    found = {
        "conversations": records.conversations(),
        "turns": [records.turn(turn) for turn in dict.fromkeys(turns)],
        "people": records.people(),
        "models": [records.person(f"rehearsal:t:{one}") for one in ("ana", "ben", "dee")],
        "state": records.state(every_audience=True),
        "psyche": records.psyche(),
        "peers": records.peers(),
        "personal": records.personal(["rehearsal:t:ana"]),
        "usage": {by: records.usage(by) for by in ("day", "model", "person", "conversation", "job")},
    }
    text = re.sub(r'"ms":\d+', '"ms":0', msgspec.json.encode(found, enc_hook=str).decode())
    plain: Mapping[str, Any] = json.loads(text.replace(str(home.root), ""))
    return plain


async def test_one_life_asks_the_same_prompts_on_both(home: Home, postgres_url: str, tmp_path: Any) -> None:
    """The prompts of one life are the same on both databases, byte for byte, and so is all that commands show of it."""
    prompts, shown = await life(home, StorePlace())
    served, there = await life(Home(tmp_path / "other"), StorePlace(postgres_url))

    assert len(prompts) > 20
    assert served == prompts
    assert there == shown
