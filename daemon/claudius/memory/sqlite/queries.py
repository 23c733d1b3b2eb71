"""Named SQL queries from the files of `memory/queries`, and a connection that runs them by name."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)

Row = tuple[Any, ...]


def load_queries(directory: Path) -> Mapping[str, str]:
    """Read every `-- name: NAME` block of a directory. Raises: ValueError for a duplicate name."""
    found: dict[str, str] = {}
    for file in sorted(directory.glob("*.sql")):
        _, *blocks = _NAME.split(file.read_text("utf-8"))
        for name, sql in zip(blocks[::2], blocks[1::2], strict=True):
            if name in found:
                raise ValueError(f"{file}: the query {name} stands twice")
            found[name] = sql.strip().rstrip(";")
    return MappingProxyType(found)


class Database:
    """One connection with its named queries. Not thread-safe."""

    __slots__ = ("connection", "queries")

    def __init__(self, connection: sqlite3.Connection, queries: Mapping[str, str]) -> None:
        """Take an open connection; the caller who opened it closes it."""
        self.connection = connection
        self.queries = queries

    def run(self, query: str, /, **values: Any) -> sqlite3.Cursor:
        """Execute one named query."""
        return self.connection.execute(self.queries[query], values)

    def change(self, query: str, /, **values: Any) -> int:
        """Execute one named query and return how many rows it changed."""
        return self.connection.execute(self.queries[query], values).rowcount

    def one(self, query: str, /, **values: Any) -> Row | None:
        """Return the first row of a named query; None if there is none."""
        row: Row | None = self.connection.execute(self.queries[query], values).fetchone()
        return row

    def all(self, query: str, /, **values: Any) -> list[Row]:
        """Return every row of a named query."""
        return self.connection.execute(self.queries[query], values).fetchall()

    def dicts(self, query: str, /, **values: Any) -> list[dict[str, Any]]:
        """Return every row of a named query as a dict by column name."""
        cursor = self.connection.execute(self.queries[query], values)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor]

    def each(self, query: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Execute one named query for each row of values."""
        self.connection.executemany(self.queries[query], rows)
