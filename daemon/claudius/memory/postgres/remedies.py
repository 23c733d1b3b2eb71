"""Say what to do where a PostgreSQL server cannot be reached, or its database cannot hold a soul."""

from __future__ import annotations

import re
from typing import Any

import psycopg

from claudius.errors import StoreAway, StoreError, StoreRefused
from claudius.foreign import unquoted

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
