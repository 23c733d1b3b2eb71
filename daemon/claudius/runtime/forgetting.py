"""Forgetting a person: out of the database, its log, git, the logs and the backups; then searched for, byte by byte.

Source: the security design, section 9.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from claudius.errors import ClaudiusError
from claudius.home import Home
from claudius.memory.archive import Archive
from claudius.memory.erasures import Erasures
from claudius.memory.personal import Erased, Probes
from claudius.memory.sqlite.backups import back_up
from claudius.memory.store import Store

log = logging.getLogger("claudius.forgetting")

SEARCH_S = 300.0
NOT_OURS = ("what was posted stays on the network", "the model's provider keeps what its own terms say",
            "copies that you made outside of the home")  # fmt: skip
"""What no erasing here can reach."""


class Around(Struct, frozen=True, kw_only=True):
    """What of the running process takes part."""

    freeze: Callable[[Sequence[str]], None]
    """Hears nothing more of these persons; of everyone again, with none."""
    forget_members: Callable[[str], None]
    end_session: Callable[[str], Awaitable[None]]
    """Lets a voice forget what it keeps of a conversation, its transcript too."""
    leave_out: Callable[[Callable[[str], bool]], int]
    """Writes the log anew."""


class Forgetting:
    """One home's way to forget."""

    def __init__(self, home: Home, store: Store, archive: Archive | None, around: Around) -> None:
        """Erase from `store` and everything beside it."""
        self._home, self._store, self._archive, self._around = home, store, archive, around
        self._ledger = Erasures(home.state)
        self._one_at_a_time = asyncio.Lock()

    async def forget(self, person: str, now: datetime, by: str) -> dict[str, Any]:
        """Erase a person, by any id of theirs; return the receipt. Raises: ClaudiusError where nobody is known so."""
        async with self._one_at_a_time:
            ids = list(await self._store.ids_of(person))
            if not ids:
                raise ClaudiusError(f"nobody is known as {person!r}: `claudius users list` names everyone")
            self._ledger.begin(ids, now, by)
            self._around.freeze(ids)
            try:
                return {"person": ids[0], **await self._forget(ids, now)}
            finally:
                self._around.freeze(())

    async def resume(self, now: datetime) -> int:
        """Carry on with what was cut off; return how many are forgotten by it. Raises: ClaudiusError."""
        left = self._ledger.unfinished()
        if not left:
            return 0
        people, _ = await self._store.everyone()
        ids = self._ledger.among(people, left)
        log.warning("an erasure was cut off: it goes on", extra={"people": len(ids)})
        await self._forget(ids, now)
        return len(ids)

    async def _forget(self, ids: Sequence[str], now: datetime) -> dict[str, Any]:
        probes = await self._store.probes(ids)
        if self._archive:
            async with self._archive.halted() as build_anew:
                erased = await self._erase(ids)
                await build_anew(ids)
        else:
            erased = await self._erase(ids)
        if any(_is_own(one) for one in ids):
            await asyncio.to_thread(self._forget_sessions)
        lines = self._around.leave_out(_says(ids))
        copies = await asyncio.to_thread(self._renew_backups, now)
        await self._store.scrub()
        found = await self._found(probes)
        if not found:
            self._ledger.finish(ids, now)
        log.info("somebody was forgotten", extra={"rows": dict(erased.rows), "left": found})
        return {
            "rows": dict(erased.rows),
            "git": erased.versions,
            "logs": lines,
            "backups": copies,
            "verified": not found,
            "left": found,
            "not_ours": list(NOT_OURS),
        }

    async def _erase(self, ids: Sequence[str]) -> Erased:
        erased = await self._store.erase(ids)
        await self._store.scrub()
        for conversation in erased.conversations:
            await self._around.end_session(conversation)
        for audience in erased.audiences:
            self._around.forget_members(audience)
        return erased

    def _forget_sessions(self) -> None:
        """Delete what this machine's user typed into sessions of Claude Code; each is without the soul from now on."""
        for directory in self._home.sessions:
            if directory.exists():
                shutil.rmtree(directory)

    def _renew_backups(self, now: datetime) -> int:
        """Take a verified copy, then delete everything older; return how many that were."""
        before = list(self._home.backups.iterdir())
        try:
            back_up(self._home.database, self._home.backups, now)
        except sqlite3.Error as error:
            raise ClaudiusError(f"no fresh backup could be made, so the old ones stay: {error}") from error
        for old in before:
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
        return sum(old.suffix != ".sha256" for old in before)

    async def _found(self, probes: Probes) -> list[str]:
        """Return the files in which something of it still stands, and `git` for its objects."""
        home = self._home
        places = (home.state, home.memory, home.logs, home.backups, home.run, *home.sessions)
        found = {
            *await asyncio.to_thread(_grep, "-w", probes.ids, places),
            *await asyncio.to_thread(_grep, "-a", probes.excerpts, places),
        }
        words = [word.encode() for word in (*probes.ids, *probes.excerpts)]
        if self._archive and await self._archive.holds(words):
            found.add("git")
        return sorted(str(Path(one).relative_to(self._home.root)) if one != "git" else one for one in found)


def _says(ids: Sequence[str]) -> Callable[[str], bool]:
    """Return what tells whether a line of the log names one of these, or tells more than a log should."""
    # a conversation of commands ends in `!` and the network's own id of whoever gives them
    words = [*ids, *(f"!{one.rpartition(':')[2]}" for one in ids)]
    named = re.compile("|".join(rf"(?<![\w.@-]){re.escape(one)}(?![\w.@-])" for one in words) or r"(?!)")
    return lambda line: '"level": "DEBUG"' in line or named.search(line) is not None


def _is_own(person: str) -> bool:
    """Tell whether an id is that of this machine's user, and no other name at the terminal. Pure."""
    network, _, rest = person.partition(":")
    return network == "terminal" and not rest.rpartition(":")[2].startswith("as-")


def _grep(how: str, words: Sequence[str], places: Sequence[Path]) -> list[str]:
    """Return the files below `places` that hold one of `words`, whatever else they hold.

    Another process reads: were the database opened and closed in this one, SQLite's locks on it would be gone.
    """
    there = [str(place) for place in places if place.exists()]
    if not words or not there:
        return []
    given = "\n".join(words).encode()
    command = ["grep", "-r", "-a", "-l", "-s", "-D", "skip", "-F", how, "-f", "-", "--", *there]
    ran = subprocess.run(command, input=given, capture_output=True, timeout=SEARCH_S, check=False, env={"LC_ALL": "C"})
    return [line.decode("utf-8", "replace") for line in ran.stdout.splitlines()]
