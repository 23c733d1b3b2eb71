"""Searches for what is left of a person who is erased, and removes it from the database."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from claudius.memory import search
from claudius.memory.erasure import UNENDED, Probes
from claudius.memory.store import Store

SEARCH_S = 900.0
SWEEPS = 6
"""How often the database is searched and cleaned before the erasure gives up."""

UNREAD = "it cannot be read, so nobody could be erased from it: look whether you need it, and delete it if not"


async def erase_from_copy(store: Store, database: Path, ids: Sequence[str], aliases: Mapping[str, str]) -> None:
    """Erase persons from a copy that is open, and that nobody else uses. Raises: StoreError."""
    probes = await store.erasure.probes(ids)
    await store.erasure.erase(ids, aliases)
    await sweep(store, database, probes)


async def sweep(store: Store, database: Path, probes: Probes) -> None:
    """Search the database and remove the matches, until nothing is found or nothing more can be done."""
    for _ in range(SWEEPS):
        found = await searched(store, database, probes)
        if found is None or not found["rows"] + list(found["pages"]):
            return
        await store.erasure.blank(found["rows"], await store.erasure.narrowed(probes))
        await store.erasure.rewrite(found["pages"])


async def searched(
    store: Store,
    database: Path,
    probes: Probes,
    places: Sequence[Path] = (),
    git: Mapping[str, Any] | None = None,
    left_out: Sequence[str] = (),
) -> dict[str, Any] | None:
    """Search the database and these places, outside the event loop; None if the search did not come to its end."""
    await store.erasure.empty_log()
    asked = {
        **msgspec.to_builtins(await store.erasure.narrowed(probes)),
        "database": str(database),
        "places": [str(place) for place in places],
        "git": git,
        "left_out": list(left_out),
    }
    found = await asyncio.to_thread(search.run, asked, within_s=SEARCH_S)
    if found is not None and (rows := await store.erasure.rows_with(probes)):
        found["rows"] += rows
        found["found"].append(str(database))
    return found


def left_of(found: Mapping[str, Any] | None, home: Path, unread: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return all that may still hold traces, and what of it was not searched, each by its path in the home. Pure.

    `found` is what a search found, `unread` names copies that cannot be opened.
    """
    if found is None:
        return [UNENDED], [UNENDED]
    held = [str(one).removeprefix(f"{home}/") for one in found["found"]]
    damaged = [str(one).removeprefix(f"{home}/") + " (could not be read)" for one in found["unread"]]
    held, damaged = ([one for one in those if not one.startswith(tuple(unread))] for those in (held, damaged))
    unsearched = sorted([*damaged, *(f"{one} ({UNREAD})" for one in unread)])
    return sorted(held) + unsearched, unsearched
