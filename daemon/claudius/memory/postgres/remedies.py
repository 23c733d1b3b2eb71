"""Say what to do where a PostgreSQL server cannot be reached, or its database cannot hold a soul."""

from __future__ import annotations

import re
from typing import Any

import psycopg

from claudius.errors import StoreAway, StoreError, StoreRefused

NEEDS = 140000
"""The oldest server, as `server_version_num` says it."""
_PASSWORD = "correct CLAUDIUS_STORE_PASSWORD in .env, or the user in store.url"  # noqa: S105 - no password
_REFUSED = (
    (r"no pg_hba\.conf entry", "pg_hba.conf on the server must let this user in from this machine"),
    (r"root certificate", "put the server's root certificate there, or name its file in store.url: sslrootcert=…"),
    (r"certificate verify failed", "the file that sslrootcert names must hold what signed the server's certificate"),
    (r"certificate for .* does not match", "store.url must name the server as its certificate does"),
    (r"does not support SSL", "turn ssl on at the server, or correct sslmode in store.url"),
    (r"(database|role) .* does not exist", "correct store.url, or create it: docs/scale.md has the two lines"),
    (r"permission denied for database", "GRANT CONNECT ON DATABASE … TO … as the server's administrator"),
    (r"not permitted to log in", "ALTER ROLE … LOGIN as the server's administrator"),
    (r"password|authentication failed|SASL", _PASSWORD),
    (r"definition of service|connection option|invalid .* value", "correct store.url, or the service that it names"),
)
"""What the driver or the server says where nobody is let in until somebody corrects something, and what; the first that
fits counts."""
_AWAY = (
    (r"resolve host|translate host name", "correct the host in store.url"),
    (
        r"too many (connections|clients)|connection slots",
        "raise max_connections, or the limit of this user or database",
    ),
    (
        r"refused|time(d )?out|no route|unreachable|no such file|answer|closed|terminat|starting up|shutting down|lost",
        "make sure that the server is running, and that store.url names it",
    ),
)
"""What they say where a later try may succeed."""


def away(name: str, said: str) -> StoreAway:
    """Return the error of a way to the server that does not work, with what to do if that is known. Pure."""
    first = re.sub(r"\s+", " ", said.strip().split("\n")[0])
    for pattern, what in _REFUSED:
        if re.search(pattern, said, re.IGNORECASE):
            return StoreRefused(f"{name} cannot be used: {first}", what)
    what = next((what for pattern, what in _AWAY if re.search(pattern, said, re.IGNORECASE)), "")
    return StoreAway(f"{name} cannot be reached: {first}", what)


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
