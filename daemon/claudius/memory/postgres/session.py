"""What is done with a server by hand, in one transaction: moving, copying and checking a store, which takes no turns.

Also what an error of the server means, and why one is closed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from msgspec import Struct

from claudius.errors import (
    StaleTurn,
    StoreAway,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreMoved,
    StoreReadOnly,
    StoreRefused,
    TryAgain,
)
from claudius.foreign import unquoted
from claudius.memory.opening import StorePlace

CONNECT_S = 10
OURS = {"application_name": "claudius", "connect_timeout": str(CONNECT_S)}
LOST, MOVED = "CL001", "CL002"
"""What `lane_held` and `soul_is_here` raise on the server: the lane's token has moved; the soul is not there."""
MOVED_AWAY = "a move has not finished, or the soul has moved away: `claudius doctor` says what to do"
NEEDS = 140000
"""The oldest server, as `server_version_num` says it."""
_PASSWORD = "correct CLAUDIUS_STORE_PASSWORD in .env, or the user in store.url"  # noqa: S105 - no password
_REFUSED = (
    (
        r"no pg_hba\.conf entry",
        "it has no pg_hba.conf entry for us",
        "pg_hba.conf on the server must let this user in from this machine",
    ),
    (
        r"root certificate",
        "there is no root certificate",
        "put the server's root certificate there, or name its file in store.url: sslrootcert=…",
    ),
    (
        r"certificate verify failed",
        "its certificate cannot be verified",
        "the file that sslrootcert names must hold what signed the server's certificate",
    ),
    (
        r"certificate for .* does not match",
        "its certificate does not match its name",
        "store.url must name the server as its certificate does",
    ),
    (r"does not support SSL", "it does not support SSL", "turn ssl on at the server, or correct sslmode in store.url"),
    (
        r"role .* does not exist",
        "its role does not exist",
        "correct store.url, or create it: docs/scale.md has the two lines",
    ),
    (
        r"database .* does not exist",
        "its database does not exist",
        "correct store.url, or create it: docs/scale.md has the two lines",
    ),
    (
        r"permission denied for database",
        "permission denied for the database",
        "GRANT CONNECT ON DATABASE … TO … as the server's administrator",
    ),
    (
        r"not permitted to log in",
        "the role is not permitted to log in",
        "ALTER ROLE … LOGIN as the server's administrator",
    ),
    (r"password|authentication failed|SASL", "password authentication failed", _PASSWORD),
    (
        r"definition of service|connection option|invalid .* value",
        "store.url does not say how to connect",
        "correct store.url, or the service that it names",
    ),
)
"""What the driver or the server says where nobody is let in until somebody corrects something, and what; the first that
fits counts; our words for it, and what to do."""
_AWAY = (
    (r"resolve host|translate host name", "its host was not found", "correct the host in store.url"),
    (
        r"too many (connections|clients)|connection slots",
        "it has too many connections",
        "raise max_connections, or the limit of this user or database",
    ),
    *(
        (pattern, words, "make sure that the server is running, and that store.url names it")
        for pattern, words in (
            (r"refused", "connection refused"),
            (r"time(d )?out|answer", "it did not answer in time"),
            (r"no route|unreachable|no such file", "there is no way to it"),
            (r"starting up", "it is starting up"),
            (r"shutting down|terminat", "it is shutting down"),
            (r"closed|lost", "the connection was lost"),
        )
    ),
)
"""What they say where a later try may succeed."""


def away(name: str, error: Exception) -> StoreAway:
    """Return the error of a way to the server that does not work, with what to do if that is known. Pure."""
    said = str(error)
    for pattern, words, what in _REFUSED:
        if re.search(pattern, said, re.IGNORECASE):
            return StoreRefused(f"{name} cannot be used: {words}", what)
    for pattern, words, what in _AWAY:
        if re.search(pattern, said, re.IGNORECASE):
            return StoreAway(f"{name} cannot be reached: {words}", what)
    return StoreAway(f"{name} cannot be reached: {unquoted(error)}")


def check_server(made: psycopg.Connection[Any], name: str) -> None:
    """Check that the server is new enough, and keeps text as UTF-8; close the connection if not. Raises: StoreError."""
    wrong, encoding = "", made.info.parameter_status("server_encoding")
    if made.info.server_version < NEEDS:
        wrong = f"is PostgreSQL {made.info.server_version // 10000}: Claudius needs 14 or newer"
    elif encoding != "UTF8":
        wrong = (
            f"is a database in {encoding}, which cannot hold every text: "
            "make it anew with createdb --encoding UTF8 --template template0"
        )
    if wrong:
        made.close()
        raise StoreError(f"{name} {wrong}")


def translate(error: Exception, name: str) -> StoreError:
    """Translate an error of PostgreSQL or of the way to it into one of ours, with a one-line message.

    The server's own words show the row that it refuses, so that none of them is in it.
    """
    if isinstance(error, psycopg.Error) and error.sqlstate == LOST:
        return StaleTurn()
    if isinstance(error, psycopg.Error) and error.sqlstate == MOVED:
        return StoreMoved(f"{name}: {MOVED_AWAY}")
    if isinstance(error, psycopg.errors.DiskFull):
        return StoreFull(f"{name}: no space left to write to; free some, nothing was accepted meanwhile")
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return StoreReadOnly(f"{name} takes no writes ({unquoted(error)}): `store.url` must name the primary")
    if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return away(name, error)
    return StoreError(f"{name}: {unquoted(error)}")


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


HERE, COMING, LEFT = 0, 1, 2
"""What `release.migrating` says. Earlier releases wrote 1 for both of the others."""
CLOSED_SQL = "SELECT migrating, to_jsonb(release) AS kept FROM release WHERE id = 1"
"""The columns that tell who closed it are not there before a server was migrated."""


class Move(Struct, frozen=True):
    """One move, of one home."""

    id: str = ""
    """What the home and the server know it by; empty = of an earlier release, or of nobody."""
    home: str = ""
    """The home that began it, for a person to read."""


class Closed(Struct, frozen=True):
    """Why nobody writes to a server."""

    is_left: bool
    """The soul has left it; else a move to it has not finished."""
    move: Move = Move()

    def is_of(self, move: Move) -> bool:
        """Whether it was this move that closed the server. Pure."""
        return bool(move.id) and move.id == self.move.id

    def why(self) -> str:
        """Return what has happened. Pure."""
        if self.is_left:
            return (
                f"the soul has left this server: it is in a file now, in {self.move.home or 'the home that moved it'}"
            )
        if self.move.home:
            return f"a move to this server has not finished; it was begun in {self.move.home}"
        return "a move to this server has not finished, or the soul has left it"

    def fix(self, url: str) -> str:
        """Return what to type, and where. Pure."""
        again = f"`claudius migrate '{url}'`"
        if self.is_left:
            ends = "`claudius migrate sqlite` there ends a move that was interrupted"
            return f"run Claudius there; {again} there brings the soul back, {ends}"
        if self.move.home:
            return f"run {again} there again, which ends it"
        return f"run {again} in the home whose file holds the soul"

    def line(self, shown: str, url: str) -> str:
        """Return the line for a person. Pure."""
        return f"{shown}: {self.why()}: {self.fix(url)}"


def closed_of(row: Mapping[str, Any]) -> Closed | None:
    """Return why a server with this row of `CLOSED_SQL` is closed; None if it is open. Pure."""
    if row["migrating"] == HERE:
        return None
    kept = row["kept"]
    return Closed(row["migrating"] == LEFT, Move(kept.get("move", ""), kept.get("mover", "")))


def closed_by(made: Made) -> Closed | None:
    """Return why a server is closed; None if it is open, or holds no tables of ours."""
    if not value_of(made, IS_OURS):
        return None
    migrating, kept = made.execute(CLOSED_SQL.encode()).fetchone() or (HERE, {})
    return closed_of({"migrating": migrating, "kept": kept})


def closed_at(place: StorePlace) -> Closed | None:
    """Return why a server is closed; None if it is open, or holds no tables of ours. Raises: StoreError."""
    with connected(place) as made:
        return closed_by(made)
