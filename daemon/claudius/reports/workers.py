"""The document of `claudius workers`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

from claudius.home import Home
from claudius.memory.records import Records
from claudius.memory.store import Store

GONE_S = 60.0
"""A worker that has not renewed for so long holds nothing any more."""


def workers(home: Home) -> list[dict[str, Any]]:
    """Return the processes that take turns, oldest first; empty if the store is a file. Raises: StoreError."""
    from claudius.memory.opening import open_records

    with closing(open_records(home)) as records:
        return workers_of(records)


def closed(home: Home) -> str:
    """Return why nobody can take turns at the server, and what to do; empty if they can, or the store is a file.

    Raises: StoreError.
    """
    from claudius.memory.opening import place_of

    place = place_of(home)
    if not place.is_postgres:
        return ""
    from claudius.memory.postgres.session import closed_at

    found = closed_at(place)
    return found.line(place.shown, place.url) if found else ""


def drain(home: Home, name: str) -> bool:
    """Have a process end its turns and leave. Returns False if none of this name is at work. Raises: StoreError."""
    from claudius.reports.opened import edit

    async def asked(store: Store) -> bool:
        return await store.leases.drain(name)

    return edit(home, asked)


def workers_of(records: Records) -> list[dict[str, Any]]:
    """Return the processes that take turns of one store, oldest first. Raises: StoreError."""
    return [{**one, "state": _state(one)} for one in records.workers()]


def _state(one: Mapping[str, Any]) -> str:
    if one["clean"]:
        return "ended"
    return "gone" if one["seen_s"] > GONE_S else "at work"
