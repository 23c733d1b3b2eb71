"""Create and migrate the tables in a schema of PostgreSQL, and check whose and which version an existing one is.

An upgrade is expand, run, contract: each migration says the oldest release that may write beside it (`-- oldest: N`, by
the schema that release knows). One that says its own number contracts, and waits until no older process is alive.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from claudius.errors import StoreCorrupt, StoreTooNew, TryAgain
from claudius.memory.opening import StorePlace
from claudius.memory.postgres.connection import PostgresConnection
from claudius.memory.postgres.session import (
    CLOSED_SQL,
    FOREIGN,
    IS_EMPTY,
    IS_OURS,
    ROOM,
    check_room,
    closed_of,
    connected,
    value_of,
)

BASE = 25
"""The version of `schema.sql`, and the SQLite schema that it mirrors; later ones are files beside it, `NNNN_*.sql`."""
CREATING = 0x436C6475
"""One process creates or migrates the tables; the others wait for it. `Cldu`, as in the header of the SQLite file."""
_OLDEST = re.compile(r"^-- oldest: (\d+)$", re.MULTILINE)


def migrations(memory: Path) -> Mapping[int, str]:
    """Read the migrations after `schema.sql`. Raises: ValueError if a number is missing."""
    found: dict[int, str] = {}
    for file in sorted((memory / "postgres").glob("[0-9]*.sql")):
        if int(file.name[:4]) != BASE + len(found) + 1:
            raise ValueError(f"{file}: expected a migration number {BASE + len(found) + 1:04d}")
        found[BASE + len(found) + 1] = file.read_text("utf-8")
    return found


def known(memory: Path) -> int:
    """Return the version of the schema that this release knows."""
    return BASE + len(migrations(memory))


def create_sql(memory: Path, version: int) -> str:
    """Return the statements that create the tables of a version."""
    later = [text + _step(number, text) for number, text in migrations(memory).items() if number <= version]
    return "\n".join([(memory / "postgres" / "schema.sql").read_text("utf-8"), *later])


def migrate_sql(memory: Path, found: int) -> str:
    """Return the statements that make the present version of an older one."""
    return "\n".join(text + _step(number, text) for number, text in migrations(memory).items() if number > found)


def _step(number: int, text: str) -> str:
    """Return what follows a migration: from now on, a release that is too old has no lane, and takes none."""
    return f"\nUPDATE release SET schema = {number}, oldest = greatest(oldest, {oldest_beside(number, text)});\n{_VOID}"


_VOID = """UPDATE lane SET token = nextval('lane_token'), worker = NULL, ready = true, lease_until = '-infinity'
WHERE worker IN (SELECT worker FROM worker WHERE worker.schema < (SELECT oldest FROM release));
"""


def oldest_beside(number: int, text: str) -> int:
    """Return the oldest schema whose release may write beside a migration. Raises: ValueError if it does not say so."""
    found = _OLDEST.search(text)
    if found is None:
        raise ValueError(f"migration {number:04d} does not say `-- oldest: N`")
    return int(found[1])


def prepare(connection: PostgresConnection, memory: Path, name: str) -> None:
    """Create the tables if the schema is empty, migrate them if they are older, or wait for who does.

    Raises: StoreCorrupt, StoreTooNew, psycopg.Error; TryAgain if the soul is moving, or an older process has to end.
    """
    connection.execute("SELECT pg_advisory_lock(:lock)", {"lock": CREATING})
    try:
        if is_empty(connection):
            check_room(name, **connection.execute(ROOM).fetchone())
            connection.script(create_sql(memory, known(memory)))
            return
        found = check_identity(connection, name, known(memory))
        check_settled(connection, name)
        if found < known(memory):
            _check_older(connection, memory, found, name)
            connection.script(migrate_sql(memory, found))
    finally:
        connection.execute("SELECT pg_advisory_unlock(:lock)", {"lock": CREATING})


def _check_older(connection: PostgresConnection, memory: Path, found: int, name: str) -> None:
    """Check that nobody is at work whom a contracting migration would break. Raises: TryAgain."""
    new = {number: text for number, text in migrations(memory).items() if number > found}
    contracting = [number for number, text in new.items() if oldest_beside(number, text) == number]
    if not contracting:
        return
    row = connection.execute(_OLDER, {"schema": contracting[-1]}).fetchone()
    if row:
        who = f"process {row['pid']} on {row['host']} is of release {row['version']}"
        raise TryAgain(f"{name}: {who}, which the new tables would break: end it, and start this one again")


_OLDER = """SELECT host, pid, version FROM worker WHERE NOT clean AND worker.schema < :schema
AND seen_at > clock_timestamp() - interval '60 s' ORDER BY started_at LIMIT 1"""


def check_settled(connection: PostgresConnection, name: str) -> None:
    """Check that no move to this server is unfinished, and that the soul has not left it. Raises: TryAgain."""
    if closed := closed_of(connection.execute(CLOSED_SQL).fetchone()):
        raise TryAgain(closed.line(name, connection.url))


def is_empty(connection: PostgresConnection) -> bool:
    """Return whether the schema holds nothing."""
    return bool(connection.execute(IS_EMPTY).fetchone()["found"])


def check_identity(connection: PostgresConnection, name: str, version: int) -> int:
    """Check that the tables are ours, and that a release that knows `version` may use them; return their version.

    Raises: StoreCorrupt, StoreTooNew.
    """
    if not connection.execute(IS_OURS).fetchone()["found"]:
        raise StoreCorrupt(f"{name} {FOREIGN}")
    row = connection.execute("SELECT schema, oldest FROM release WHERE id = 1").fetchone()
    if row is None:
        raise StoreCorrupt(f"{name} does not say which release its tables are of: restore a copy")
    if row["oldest"] > version:
        raise too_old(name, row["schema"], version)
    return int(row["schema"])


def released(place: StorePlace) -> tuple[int | None, int]:
    """Return a server's version, None if it holds no tables of ours, and the oldest that may write beside it.

    Raises: StoreError.
    """
    with connected(place) as made:
        if not value_of(made, IS_OURS):
            return None, 0
        schema, oldest = made.execute("SELECT schema, oldest FROM release").fetchone() or (None, 0)
    return schema, oldest


def too_old(name: str, schema: int, version: int) -> StoreTooNew:
    """Return the error that says that this release may not use the tables any more. Pure."""
    return StoreTooNew(
        f"{name} was written by a later version of Claudius (schema {schema}, this one knows {version}); "
        "run that version or a newer one"
    )
