"""Create the tables in an empty schema of PostgreSQL, and check whose and which version an existing one is."""

from __future__ import annotations

from pathlib import Path

from claudius.errors import StoreCorrupt, StoreTooNew
from claudius.memory.postgres.connection import PostgresConnection

VERSION = 24
_LOCK = 0x436C6475
"""One process creates the tables; the others wait for it. `Cldu`, as in the header of the SQLite file."""


def prepare(connection: PostgresConnection, memory: Path, name: str) -> None:
    """Create the tables if the schema is empty. Raises: StoreCorrupt, StoreTooNew, psycopg.Error."""
    connection.execute("SELECT pg_advisory_lock(:lock)", {"lock": _LOCK})
    try:
        if not is_empty(connection):
            check_identity(connection, name)
            return
        connection.script((memory / "postgres" / "schema.sql").read_text("utf-8"))
    finally:
        connection.execute("SELECT pg_advisory_unlock(:lock)", {"lock": _LOCK})


def is_empty(connection: PostgresConnection) -> bool:
    """Return whether the schema holds no table."""
    sql = "SELECT 1 AS one FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r' LIMIT 1"
    return connection.execute(sql).fetchone() is None


def check_identity(connection: PostgresConnection, name: str) -> None:
    """Check that the tables are ours, and not of a later version. Raises: StoreCorrupt, StoreTooNew."""
    if connection.execute("SELECT to_regclass('release') IS NULL AS is_foreign").fetchone()["is_foreign"]:
        raise StoreCorrupt(f"{name} holds tables that are not Claudius's: give it a database or a schema of its own")
    (version,) = connection.execute("SELECT schema FROM release WHERE id = 1").fetchone()
    if version > VERSION:
        raise StoreTooNew(
            f"{name} was written by a later version of Claudius (schema {version}, this one knows {VERSION}); "
            "run that version or a newer one"
        )
