"""The store in one SQLite file: opening, checking and copying it. Its topics are those of `memory/sql/`."""

from claudius.memory.sqlite.records import SqliteRecords
from claudius.memory.sqlite.store import SqliteStore

__all__ = ["SqliteRecords", "SqliteStore"]
