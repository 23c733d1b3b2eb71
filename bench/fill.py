"""Homes that were lived in: real turns of the engine in words as people use them, and their rows many times over.

Every tenth reply learns a fact, some land as something, some plan a reminder or write the portrait: moments, facts,
interactions, traces and plans stand in the store as the engine keeps them. A third of the turns is other people's.

    python bench/fill.py ROOT TURNS [MOMENTS]
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import script
from claudius.memory.sqlite.file import add_functions
from ours import CONVERSATION, PERSON, AtOnce, Soul

PEOPLE = 30
KEPT_TURNS = 12
"""The turns of the past that the prompt still renders, once the past was multiplied."""
PAUSE = timedelta(minutes=20)
_NUMBERS = "WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i WHERE i < :copies)"
_NEW = {
    "turn": "substr(turn, 1, 9) || printf('%07x', i.i)",
    "key": "key || '/' || i.i",
    "seq": "seq + i.i * :stride",
    "id": "id + i.i * :stride",
    "record": "record + i.i * :stride",
    "number": "number + i.i * :turns",
    "body": "chatted(rowid + i.i * :stride)",
    "text": "CASE text WHEN '' THEN '' ELSE chatted(id + i.i * :stride) END",
}
"""What makes a copied value differ from the original, by the column's name; the words of a copy are new ones."""
COPIED = {
    "turn_record": "id IN (SELECT record FROM turn WHERE conversation = :conversation)",
    "psyche_trace": "turn IN (SELECT turn FROM turn WHERE conversation = :conversation)",
    "appraisal": "turn IN (SELECT turn FROM turn WHERE conversation = :conversation)",
} | dict.fromkeys(("turn", "entry", "inbox", "outbox", "step", "interaction", "moment"), "conversation = :conversation")
"""What a turn leaves behind: by table, which rows are the conversation's. Moments come last: they read the outbox."""


def live(root: Path, turns: int) -> None:
    """Create a home at `root` that has taken so many turns, twenty minutes between two of them, until now."""
    asyncio.run(_lived(root, turns))


async def _lived(root: Path, turns: int) -> None:
    began, taken = datetime.now(UTC) - turns * PAUSE, 0

    def clock() -> datetime:
        return began + taken * PAUSE

    soul = Soul(root, AtOnce(lambda number: _reply(number, clock())), clock=clock)
    await soul.open()
    for taken in range(1, turns + 1):
        who = f"p{taken % PEOPLE}" if taken % 3 == 0 else ""
        place = (f"terminal:local:main:{who}", f"terminal:local:{who}") if who else (CONVERSATION, PERSON)
        await soul.turn(*place, text=script.chatted(taken))
    await soul.close()


def _reply(number: int, now: datetime) -> str:
    """Return the n-th reply of a model that does as it is told. Pure."""
    acts, words = "none", script.chatted(number).split()
    if number % 10 == 0:
        known = {"do": "know", "text": " ".join(words[:8]), "kind": "other", "keys": words[:5]}
        acts = json.dumps(known)
    elif number % 97 == 0:
        at = (now + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M")
        acts = json.dumps({"do": "remind", "at": at, "text": " ".join(words[:6])})
    landed = ("thanks, slight", "tease, clear", "criticism, slight", "worry, clear")[number % 4]
    appraisal = landed if number % 5 == 0 else "nothing"
    update = f"- {' '.join(words[:9])}" if number % 40 == 0 else ""
    said = script.reply(number, update=update)
    return f"<appraisal>{appraisal}</appraisal>\n<acts>{acts}</acts>\n{said}"


def multiply(root: Path, moments: int) -> int:
    """Copy the measured conversation's past until its audience holds about so many moments. Returns how many."""
    with closing(sqlite3.connect(root / "state" / "claudius.db", isolation_level=None)) as db:
        add_functions(db)
        db.create_function("chatted", 1, script.chatted, deterministic=True)
        db.execute("PRAGMA synchronous = OFF")
        own = {"conversation": CONVERSATION}
        count = "SELECT count(*) FROM moment WHERE conversation = :conversation"
        (kept,) = db.execute(count, own).fetchone()
        (turns,) = db.execute("SELECT max(number) FROM turn WHERE conversation = :conversation", own).fetchone()
        stride = 1 + max(db.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0] or 0 for table in _WITH_ROWS)  # noqa: S608 - our own names
        past = own | {"stride": stride, "turns": turns, "copies": moments // kept - 1}
        db.execute("BEGIN")
        for table, which in COPIED.items():
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            new = {**_NEW, "text": "text"} if table == "inbox" else _NEW
            made = ", ".join(new.get(name, name) for name in columns)
            rows = (
                f"SELECT {made} FROM i, (SELECT {'rowid, *' if 'body' in columns else '*'} FROM {table} WHERE {which})"  # noqa: S608 - our own names
            )
            db.execute(f"INSERT INTO {table} ({', '.join(columns)}) {_NUMBERS} {rows} WHERE :copies > 0", past)
        _fold(db, own)
        db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return int(db.execute(count, own).fetchone()[0])


_WITH_ROWS = ("inbox", "turn_record", "outbox", "moment", "interaction", "psyche_trace", "appraisal")


def _fold(db: sqlite3.Connection, own: dict[str, str]) -> None:
    """Make the conversation's row match its copied past: all but the newest turns are folded away."""
    (turns,) = db.execute("SELECT max(number) FROM turn WHERE conversation = :conversation", own).fetchone()
    past = own | {"turns": turns, "first": turns - KEPT_TURNS + 1, "upto": turns - KEPT_TURNS}
    db.execute("UPDATE conversation SET turns = :turns, history_from = :first WHERE conversation = :conversation", past)
    db.execute("UPDATE summary SET upto = :upto WHERE conversation = :conversation", past)


if __name__ == "__main__":
    home = Path(sys.argv[1])
    live(home, int(sys.argv[2]))
    print(multiply(home, int(sys.argv[3])) if len(sys.argv) > 3 else "lived")
