"""Say what to do where a PostgreSQL server cannot be reached, or its database cannot hold a soul."""

from __future__ import annotations

import re
from typing import Any

import psycopg

from claudius.errors import StoreError

_PASSWORD = "correct CLAUDIUS_STORE_PASSWORD in .env, or the user in store.url"  # noqa: S105 - no password
_REMEDIES = (
    (r"no pg_hba\.conf entry", "pg_hba.conf on the server must let this user in from this machine"),
    (r"password|authentication failed|SASL", _PASSWORD),
    (r"root certificate", "put the server's root certificate there, or name its file in store.url: sslrootcert=…"),
    (r"(database|role) .* does not exist", "correct store.url, or create it: docs/scale.md has the two lines"),
    (r"resolve host|translate host name", "correct the host in store.url"),
    (
        r"refused|time(d )?out|no route|unreachable|no such file|answer|closed|terminat|starting up|shutting down|lost",
        "make sure that the server is running, and that store.url names it",
    ),
)
"""What the driver or the server says, and what to do about it; the first that fits counts."""


def remedy(said: str) -> str:
    """Return what to do about an error of the way to the server; empty if nothing is known. Pure."""
    return next((what for pattern, what in _REMEDIES if re.search(pattern, said, re.IGNORECASE)), "")


def check_encoding(made: psycopg.Connection[Any], name: str) -> None:
    """Check that the database keeps text as UTF-8; close the connection if not. Raises: StoreError."""
    encoding = made.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        made.close()
        raise StoreError(
            f"{name} is a database in {encoding}, which cannot hold every text: "
            "make it anew with createdb --encoding UTF8 --template template0"
        )
