"""`SqliteRecords`: what commands read beside the process that takes turns."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from claudius.errors import StoreError, StoreFull, StoreReadOnly
from claudius.home import shipped
from claudius.memory.records import Records
from claudius.memory.sql.connection import Database, load_queries
from claudius.memory.sql.rows import dump
from claudius.memory.sqlite.file import open_reader, pragma
from claudius.memory.sqlite.schema import check_identity, check_new, empty_database, load_migrations, translate

if TYPE_CHECKING:
    from claudius.soul.source import PushedSoul


class SqliteRecords(Records):
    """A read-only view of one database file."""

    def __init__(self, path: Path, *, memory: Path | None = None, is_lasting: bool = False) -> None:
        """Open the database at `path`. Raises: StoreCorrupt, StoreTooNew, StoreError.

        `is_lasting`: it stays open while others write, so that it needs the log's index, which reading alone does not.
        """
        memory = memory or shipped("memory")
        opened = _open(path, load_migrations(memory / "schema"), is_lasting=is_lasting)
        database = Database(opened, load_queries(memory / "queries"))
        super().__init__(database, path.parent.parent / "memory", partial(translate, path=path))

    def served(self) -> Mapping[str, Any] | None:
        """Return nothing: the store is a file."""
        return None

    def pushed_soul(self) -> PushedSoul | None:
        """Return nothing: the home's files are the soul."""
        return None

    def workers(self) -> Sequence[Mapping[str, Any]]:
        """Return nothing: one process at a time takes turns."""
        return ()

    def marks(self, seen: int) -> tuple[int, str]:
        """Return the file's version, and an opaque mark of what the console shows; empty if the version is `seen`."""
        version = int(pragma(self._db.connection, "data_version"))
        if version == seen:
            return version, ""
        with self._snapshot() as db:
            return version, dump(db.dicts("what_changed")[0])

    def size(self) -> Mapping[str, Any]:
        """Return the size of the database, its number of turns and days, and whether free pages can be returned."""
        with self._snapshot() as db:
            page, pages, free, vacuum = (
                int(pragma(db.connection, name))
                for name in ("page_size", "page_count", "freelist_count", "auto_vacuum")
            )
            row = db.one("turns_span")
        turns, days = (row["turns"], row["days"] or 0.0) if row else (0, 0.0)
        return {"bytes": page * (pages - free), "turns": turns, "days": days, "gives_back": bool(vacuum)}

    def integrity(self) -> Sequence[str]:
        """Return the problems that `integrity_check` and `foreign_key_check` find; empty if the file is sound."""
        with self._snapshot() as db:
            found = [row["integrity_check"] for row in db.connection.execute("PRAGMA integrity_check(20)")]
            foreign = [
                f"{row['table']}: row without its {row['parent']}"
                for row in db.connection.execute("PRAGMA foreign_key_check")
            ]
        return [line for line in found if line != "ok"] + foreign


def _open(path: Path, migrations: Mapping[int, str], *, is_lasting: bool) -> sqlite3.Connection:
    if not path.exists():
        check_new(path)
        return empty_database(migrations)
    try:
        connection = open_reader(path) if is_lasting else _beside_or_alone(path)
        try:
            found = check_identity(connection, path, migrations)
        except BaseException:
            connection.close()
            raise
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise translate(error, path) from error
    if found < len(migrations):
        connection.close()
        raise StoreError(f"{path} is of an earlier version of Claudius: run `claudius chat`, which migrates it")
    return connection


def _beside_or_alone(path: Path) -> sqlite3.Connection:
    """Open the database to read it, also where nothing can be written and nobody has it open. Raises: sqlite3.Error."""
    try:
        return open_reader(path)
    except sqlite3.Error as error:
        if not isinstance(translate(error, path), (StoreFull, StoreReadOnly)):
            raise
        return open_reader(path, is_alone=True)
