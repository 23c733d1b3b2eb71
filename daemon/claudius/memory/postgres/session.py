"""One transaction with the server by hand: for moving, copying and checking a store, which takes no turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from claudius.errors import TryAgain
from claudius.memory.opening import StorePlace
from claudius.memory.postgres.connection import OURS, translate
from claudius.memory.postgres.remedies import check_encoding

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
            check_encoding(made, place.shown)
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


def quoted(name: str) -> str:
    """Return a name as SQL has it. Pure."""
    return '"' + name.replace('"', '""') + '"'


_AT_WORK = b"""SELECT host, pid FROM worker WHERE NOT clean AND seen_at > clock_timestamp() - make_interval(secs => %s)
ORDER BY seen_at DESC LIMIT 1"""
