"""The store in one SQLite file: its schema, its single writer, and the readers beside it."""

from claudius.memory.sqlite.records import SqliteRecords
from claudius.memory.sqlite.store import SqliteStore

__all__ = ["SqliteRecords", "SqliteStore"]
