"""Searches for what is left of a person who is erased, and removes it from the database and its copies."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from claudius.errors import ClaudiusError, StoreError
from claudius.home import Home
from claudius.memory import search
from claudius.memory.erasing import Probes
from claudius.memory.erasure import UNENDED
from claudius.memory.sqlite.backups import SET_ASIDE, is_ours
from claudius.memory.store import Store

SEARCH_S = 900.0
SWEEPS = 6
"""How often the database is searched and cleaned before the erasure gives up."""

UNREAD = "it cannot be read, so nobody could be erased from it: look whether you need it, and delete it if not"


async def erase_from_copy(store: Store, database: Path, ids: Sequence[str], aliases: Mapping[str, str]) -> None:
    """Erase persons from a copy that is open, and that nobody else uses, and write it anew. Raises: StoreError."""
    if ids:
        probes = await store.erasure.probes(ids)
        await store.erasure.erase(ids, aliases)
        await sweep(store, database, probes)
    if left := await store.erasure.overwrite():
        raise StoreError(f"somebody uses the database all the time: {', '.join(left)} could not be rewritten")


async def sweep(store: Store, database: Path, probes: Probes) -> None:
    """Search the database and remove the matches, until nothing is found or nothing more can be done."""
    for _ in range(SWEEPS):
        found = await searched(store, database, probes)
        if found is None or not found["rows"]:
            return
        await store.erasure.blank(found["rows"], await store.erasure.narrowed(probes))


async def searched(
    store: Store,
    database: Path,
    probes: Probes,
    places: Sequence[Path] = (),
    git: Mapping[str, Any] | None = None,
    left_out: Sequence[str] = (),
) -> dict[str, Any] | None:
    """Search the database and these places, outside the event loop; None if the search did not come to its end."""
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


def naming(ids: Sequence[str]) -> Callable[[str], bool]:
    """Return a predicate that matches log lines naming one of these ids, or saying more than a log should."""
    # the key of a command conversation ends in `!` and the network's own id of its author
    words = [*ids, *(f"!{one.rpartition(':')[2]}" for one in ids)]
    escaped = [form.decode() for one in words for form in search.forms(one)]
    named = re.compile("|".join(rf"(?<![\w.@-]){re.escape(one)}(?![\w.@-])" for one in escaped) or r"(?!)")
    return lambda line: '"level": "DEBUG"' in line or named.search(line) is not None


def renew_backups(store: Store, home: Home, now: datetime) -> tuple[int, list[str]]:
    """Take a verified copy, then delete our older ones. Returns how many those were, and the foreign files. Blocks.

    Raises: ClaudiusError if none can be taken, and there are older ones.
    """
    before = sorted(home.backups.iterdir())
    ours = [one for one in before if is_ours(one.name) and not one.name.startswith(SET_ASIDE)]
    try:
        store.back_up(home.backups, now)
    except StoreError as error:
        if ours:
            raise ClaudiusError(f"no fresh backup could be made, so the old ones stay: {error.message}") from error
    for old in ours:
        shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink(missing_ok=True)
    copies = sum(one.suffix != ".sha256" for one in ours)
    return copies, [str(one.relative_to(home.root)) for one in before if not is_ours(one.name)]
