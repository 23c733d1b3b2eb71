"""Create the tables in an empty schema of PostgreSQL, and check whose and which version an existing one is."""

from __future__ import annotations

from pathlib import Path

from claudius.errors import StoreCorrupt, StoreTooNew, TryAgain
from claudius.memory.postgres.connection import PostgresConnection

VERSION = 25
CREATING = 0x436C6475
"""One process creates the tables; the others wait for it. `Cldu`, as in the header of the SQLite file."""


def prepare(connection: PostgresConnection, memory: Path, name: str) -> None:
    """Create the tables if the schema is empty. Raises: StoreCorrupt, StoreTooNew, psycopg.Error."""
    connection.execute("SELECT pg_advisory_lock(:lock)", {"lock": CREATING})
    try:
        if not is_empty(connection):
            check_identity(connection, name)
            check_settled(connection, name)
            return
        connection.script((memory / "postgres" / "schema.sql").read_text("utf-8"))
    finally:
        connection.execute("SELECT pg_advisory_unlock(:lock)", {"lock": CREATING})


def check_settled(connection: PostgresConnection, name: str) -> None:
    """Check that no move to or from this server is unfinished. Raises: TryAgain."""
    if connection.execute("SELECT migrating FROM release WHERE id = 1").fetchone()["migrating"]:
        raise TryAgain(f"{name}: a move has not finished, or the soul has moved away: `claudius migrate` again ends it")


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
