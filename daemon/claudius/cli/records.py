"""Open the store for reading while another process may be running turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from claudius.home import Home
from claudius.memory.records import Records


@contextmanager
def records(home: Home) -> Iterator[Records]:
    """Open the home's records, read-only; empty if nothing was ever stored. Raises: StoreError."""
    from claudius.memory.sqlite import SqliteRecords

    kept = SqliteRecords(home.database)
    try:
        yield kept
    finally:
        kept.close()
