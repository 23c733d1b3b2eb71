"""A store with as many rows of memory as asked: real turns of the engine, cloned in SQL under other names.

One share of the rows is the past of the measured conversation, most of it folded away. The rest belongs to other
conversations of other people. The column's name decides what a clone may not share (keys, ids, names).

    python bench/fill.py ROOT ROWS
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from ours import CONVERSATION, Soul

TURNS = 25
"""Real turns from which everything is cloned."""
OWN_SHARE = 0.02
"""The share of the rows that is the measured conversation's own past."""
KEPT_TURNS = 12
"""The turns of that past that the prompt still renders."""
SEED = "terminal:local:main:seed"
CLONED = (
    "person", "conversation", "conversation_person", "turn_record", "turn", "entry", "inbox", "outbox", "step",
    "revision", "user_model", "blob",
)  # fmt: skip
_OF_MODELS = (
    "SELECT revision FROM user_model WHERE person IN (SELECT person FROM turn WHERE conversation = :conversation)"
)
_NUMBERS = "WITH RECURSIVE i(i) AS (SELECT :first UNION ALL SELECT i + 1 FROM i WHERE i + 1 < :first + :count)"
_NEW = {
    "conversation": "'{conversation}'",
    "turn": "substr(turn, 1, 9) || printf('%07x', i.i)",
    "key": "key || '/' || i.i",
    "person": "CASE person WHEN '' THEN '' ELSE person || i.i END",
    "audience": "audience || i.i",
    "sha256": "lower(hex(randomblob(32)))",
    "seq": "seq + i.i * {stride}",
    "id": "id + i.i * {stride}",
    "record": "record + i.i * {stride}",
    "revision": "revision + i.i * {stride}",
    "git_commit": "'cloned'",
}
_OWN = _NEW | {"person": "person", "audience": "audience", "number": f"number + (i.i - {{first}}) * {TURNS}"}


def fill(root: Path, rows: int) -> int:
    """Create a home at `root` with about `rows` rows of working memory. Returns the actual number."""
    asyncio.run(_talk(root))
    with closing(sqlite3.connect(root / "state" / "claudius.db", isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA cache_size = -262144")
        (each,) = db.execute("SELECT count(*) FROM entry WHERE conversation = ?", (SEED,)).fetchone()
        own = int(rows * OWN_SHARE / each)
        others = max(0, rows // each - own - 2)
        db.execute("CREATE TEMP TABLE model_blob AS SELECT rowid AS id FROM blob WHERE length(content) < 8192")
        db.execute("BEGIN")
        _clone(db, SEED, _NEW | {"conversation": "conversation || i.i"}, CLONED, 1, others)
        _clone(
            db, CONVERSATION, _OWN, ("turn_record", "turn", "entry", "inbox", "outbox", "step", "blob"), others + 1, own
        )
        _fold(db)
        db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (found,) = db.execute("SELECT count(*) FROM entry").fetchone()
    return int(found)


async def _talk(root: Path) -> None:
    soul = Soul(root)
    await soul.open()
    for conversation, person in ((SEED, "terminal:local:seed"), (CONVERSATION, "terminal:local:tom")):
        await soul.store.documents.set_model(
            person, f"private:{person}", PORTRAIT, "the bench", "owner", soul.mind.clock()
        )
        for _ in range(TURNS):
            await soul.turn(conversation, person)
    await soul.close()


def _clone(
    db: sqlite3.Connection, conversation: str, new: dict[str, str], tables: tuple[str, ...], first: int, count: int
) -> None:
    """Copy the rows of one conversation `count` times; `new` makes each copied value different from the original."""
    stride = 1 + max(_last(db, table) for table in ("inbox", "turn_record", "outbox", "revision"))
    for table in tables:
        columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
        made = [
            new.get(name, name).format(conversation=conversation, stride=stride, first=first - 1) for name in columns
        ]
        into = f"INSERT INTO {table} ({', '.join(columns)})"
        copied = f"SELECT {', '.join(made)} FROM i, ({_model(table)}) WHERE :count > 0"  # noqa: S608 - our own names
        db.execute(f"{into} {_NUMBERS} {copied}", {"conversation": conversation, "first": first, "count": count})


def _last(db: sqlite3.Connection, table: str) -> int:
    (found,) = db.execute(f"SELECT max(rowid) FROM {table}").fetchone()  # noqa: S608 - names of our own schema
    return int(found or 0)


def _model(table: str) -> str:
    """Select the rows of a table that belong to one conversation."""
    of_turns = "SELECT {} FROM turn WHERE conversation = :conversation"
    chosen = {
        "turn_record": f"id IN ({of_turns.format('record')})",
        "person": f"person IN ({of_turns.format('person')})",
        "user_model": f"person IN ({of_turns.format('person')})",
        "revision": f"id IN ({_OF_MODELS})",
        "blob": "rowid IN (SELECT id FROM model_blob WHERE id % 2 = (:conversation LIKE '%:seed'))",
    }
    return f"SELECT * FROM {table} WHERE {chosen.get(table, 'conversation = :conversation')}"  # noqa: S608 - as above


def _fold(db: sqlite3.Connection) -> None:
    """Make the measured conversation's row match its cloned past: all but the newest turns are folded away."""
    own = {"conversation": CONVERSATION}
    (turns,) = db.execute("SELECT max(number) FROM turn WHERE conversation = :conversation", own).fetchone()
    own |= {"turns": turns, "first": turns - KEPT_TURNS + 1, "upto": turns - KEPT_TURNS}
    db.execute("UPDATE conversation SET turns = :turns, history_from = :first WHERE conversation = :conversation", own)
    db.execute("DELETE FROM summary WHERE conversation = :conversation", own)
    db.execute(
        "INSERT INTO summary (conversation, text, sources, upto, nonce, at) "
        "SELECT conversation, 'They talk about a door.', json_array(audience), :upto, "
        "'00000000000000000000000000000000', last_at FROM conversation WHERE conversation = :conversation",
        own,
    )


PORTRAIT = """# Tom

## Persona
- A carpenter who restores doors; patient with wood, less so with people.

## Speaking Style
- Short sentences, dry.

## Interests & Domains
- Oak, hinges, old locks.
"""

if __name__ == "__main__":
    print(fill(Path(sys.argv[1]), int(sys.argv[2])))
