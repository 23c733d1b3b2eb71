"""The store in one SQLite file: its schema's life, its one writer, what is read beside it."""

from claudius.memory.sqlite.records import SqliteRecords
from claudius.memory.sqlite.store import SqliteStore

__all__ = ["SqliteRecords", "SqliteStore"]
