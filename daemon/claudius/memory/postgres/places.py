"""Read the URL of a store: whether it is PostgreSQL's, and what of it people may be shown. No import of a driver."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

SQLITE = "sqlite"
SCHEMES = ("postgres", "postgresql")


def is_postgres(url: str) -> bool:
    """Return whether a store's URL names a PostgreSQL server. Pure."""
    return url.partition(":")[0] in SCHEMES


def shown(url: str) -> str:
    """Return a URL without its password and its parameters. Pure."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    return urlunsplit((parts.scheme, f"{user.partition(':')[0]}{at}{host}", parts.path, "", ""))
