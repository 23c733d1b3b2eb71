"""One transaction with the server by hand: for moving, copying and checking a store, which takes no turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from claudius.errors import StoreCorrupt, StoreError, TryAgain
from claudius.memory.database import StorePlace
from claudius.memory.postgres.connection import OURS, translate
from claudius.memory.postgres.remedies import check_server

GONE_S = 60.0
"""A process that has not renewed its leases for so long does not count as one at work."""
Made = psycopg.Connection[tuple[Any, ...]]


@contextmanager
def connected(place: StorePlace) -> Iterator[Made]:
    """Yield a connection whose one transaction is committed at the end of the block; an error takes it back.

    Raises: StoreError.
    """
    words = OURS | ({"password": place.password} if place.password else {})
    try:
        with psycopg.connect(psycopg.conninfo.make_conninfo(place.url, **words)) as made:
            check_server(made, place.shown)
            made.execute("SET idle_in_transaction_session_timeout = 0; SET lock_timeout = '10s'")
            yield made
    except psycopg.Error as error:
        raise translate(error, place.shown) from error


def check_nobody_works(made: Made, place: StorePlace) -> None:
    """Check that no process takes turns at a server. Raises: TryAgain, which names one and its machine."""
    row = made.execute(_AT_WORK, (GONE_S,)).fetchone()
    if row:
        raise TryAgain(f"{place.shown}: process {row[1]} on {row[0]} takes turns there: end it, and run this again")


def value_of(made: Made, sql: str) -> Any:
    """Return the first value of a statement's first row; None if there is none."""
    row = made.execute(sql.encode()).fetchone()
    return row[0] if row else None


def check_room(name: str, schema: str | None, user: str, *, may_create: bool) -> None:
    """Check that the tables can be made, by a row of `ROOM`. Raises: StoreError."""
    if schema is None:
        fix = "correct store.url, or CREATE SCHEMA … AUTHORIZATION makes it"
        raise StoreError(f"{name}: the schema that it names does not exist, or is not {user}'s to use: {fix}")
    if not may_create:
        fix = f"GRANT CREATE ON SCHEMA {quoted(schema)} TO {quoted(user)}, or name a database that is {user}'s own"
        raise StoreError(f"{name}: {user} may not make tables in the schema {schema}: {fix}")


def is_unused(made: Made, name: str) -> bool:
    """Return whether the schema holds nothing yet.

    Raises: StoreError if something else than a soul is in it, or nothing can be made there.
    """
    if not value_of(made, IS_EMPTY):
        if not value_of(made, IS_OURS):
            raise StoreCorrupt(f"{name} {FOREIGN}")
        return False
    schema, user, may_create = made.execute(ROOM.encode()).fetchone() or (None, "", False)
    check_room(name, schema, user, may_create=may_create)
    return True


def quoted(name: str) -> str:
    """Return a name as SQL has it. Pure."""
    return '"' + name.replace('"', '""') + '"'


IS_EMPTY = """SELECT NOT EXISTS (SELECT FROM pg_depend d WHERE d.refclassid = 'pg_namespace'::regclass
    AND d.refobjid = current_schema()::regnamespace
    AND d.classid IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass)
    AND NOT EXISTS (SELECT FROM pg_depend e WHERE (e.classid, e.objid, e.deptype) = (d.classid, d.objid, 'e')))
    AS found"""
"""Whether the schema holds nothing, but what belongs to extensions."""
IS_OURS = """SELECT EXISTS (SELECT FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = 'release' AND a.attname = 'migrating')
    AS found"""
"""Whether it holds the tables of a soul."""
ROOM = """SELECT current_schema()::text AS schema, current_user::text AS user,
    coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create"""
FOREIGN = "holds what is not Claudius's: give it a database or a schema of its own"
_AT_WORK = b"""SELECT host, pid FROM worker WHERE NOT clean AND seen_at > clock_timestamp() - make_interval(secs => %s)
ORDER BY seen_at DESC LIMIT 1"""
