"""Make a home as large as asked, quickly: the turns of its conversations, cloned in SQL under other names."""

import sqlite3
from contextlib import closing
from pathlib import Path

from claudius.memory.sqlite.file import add_functions

TABLES = ("conversation", "conversation_person", "turn_record", "turn", "entry", "inbox", "outbox", "step", "moment")
CHANGED = {
    "conversation": "conversation || i.i", "turn": "turn || printf('%07x', i.i)", "key": "key || '/' || i.i",
    "seq": "seq + i.i * :stride", "id": "id + i.i * :stride", "record": "record + i.i * :stride",
}  # fmt: skip


def grow(database: Path, turns: int) -> int:
    """Clone every conversation until there are about `turns` turns; return how many there are."""
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        add_functions(db)
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA cache_size = -262144")
        (real,) = db.execute("SELECT count(*) FROM turn").fetchone()
        stride = 1 + max(_last(db, table) for table in ("inbox", "turn_record", "outbox", "moment"))
        db.execute("BEGIN")
        for table in TABLES:
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            made = ", ".join(CHANGED.get(one, one) for one in columns)
            db.execute(
                f"INSERT INTO {table} ({', '.join(columns)}) WITH RECURSIVE i(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM i "  # noqa: S608 - our own names
                f"WHERE i < :count) SELECT {made} FROM i, (SELECT * FROM {table})",
                {"count": turns // real, "stride": stride},
            )
        db.execute("COMMIT")
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (found,) = db.execute("SELECT count(*) FROM turn").fetchone()
    return int(found)


def _last(db: sqlite3.Connection, table: str) -> int:
    (found,) = db.execute(f"SELECT max(rowid) FROM {table}").fetchone()  # noqa: S608 - names of our own schema
    return int(found or 0)
