"""The store in one SQLite file: opening, checking and copying it. Its topics are those of `memory/`."""

from claudius.memory.sqlite.store import SqliteRecords, SqliteStore

__all__ = ["SqliteRecords", "SqliteStore"]
