"""Erases a person from the database, its log, git, the logs and the backups, then searches for anything left.

Others are answered meanwhile. Each step is idempotent, and the next start resumes an erasure that a crash interrupted:
`state/erasures.jsonl` records whose erasure began and did not end, `state/erasing-*.json` what it searches for. The
record comes before the row in the audit log, that row before anything is erased; an erasure without it is refused.
Where several processes share the store, each lets go of the person first, and nobody hears them until the store holds
nothing of them: if the process that erases fails or dies, another one erases what is left in the store.

Source: the security design, section 9.
"""

from __future__ import annotations

import asyncio
import logging
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from claudius.errors import ClaudiusError, StoreError
from claudius.home import Home
from claudius.memory import search
from claudius.memory.archive import Archive
from claudius.memory.audit import CLI, AuditEntry
from claudius.memory.erasure import Erased, Erasures, Probes
from claudius.memory.leases import Asked, LeaseStore
from claudius.memory.opening import set_aside
from claudius.memory.sqlite.backups import SET_ASIDE, is_ours
from claudius.memory.store import Store

log = logging.getLogger(__name__)

SEARCH_S = 900.0
SWEEPS = 6
"""How often the database is searched and cleaned before the erasure gives up."""
THEMSELF, ONCE_IN = "themself", timedelta(days=1)
"""A person may erase themself from chat once in this period."""
NOT_OURS = ("what was posted stays on the network", "the model's provider keeps what its own terms say",
            "copies that you made outside of the home")  # fmt: skip
"""What an erasure cannot reach."""
UNREAD = "it cannot be read, so nobody could be erased from it: look whether you need it, and delete it if not"


class Forgetting:
    """Erases persons from one home."""

    def __init__(
        self,
        home: Home,
        store: Store,
        archive: Archive | None,
        *,
        forget_members: Callable[[str], None],
        end_session: Callable[[str], Awaitable[None]],
        leave_out: Callable[[Callable[[str], bool]], int],
    ) -> None:
        """Erase from `store` and everything beside it.

        `forget_members` discards who can see an audience, `end_session` makes a provider discard what it keeps of a
        conversation, including its transcript, and `leave_out` rewrites the log without the lines that match (blocks).
        """
        self._home, self._store, self._archive = home, store, archive
        self._forget_members, self._end_session, self._leave_out = forget_members, end_session, leave_out
        self.frozen: frozenset[str] = frozenset()
        """Nobody hears these persons while they are being erased."""
        self._frozen_elsewhere: frozenset[str] = frozenset()
        self._ledger = Erasures(home.state)
        self._one_at_a_time = asyncio.Lock()
        self._is_erasing = False

    async def forget(self, person: str, now: datetime, by: str, origin: str = CLI) -> dict[str, Any]:
        """Erase a person, by any id of theirs, and return the receipt. Raises: ClaudiusError if the id is unknown.

        `by`: `THEMSELF`, or the person id of the owner; `origin`: from where it is asked.
        """
        async with self._one_at_a_time:
            ids = list(await self._store.people.ids_of(person))
            if not ids:
                raise ClaudiusError(f"nobody is known as {person!r}: `claudius users list` names everyone")
            begun = self._ledger.begin(ids, now, THEMSELF if by == THEMSELF else "owner")
            try:
                await self._note(ids[0], by, origin, now)
            except ClaudiusError:
                self._ledger.withdraw(begun)
                raise
            return {"person": ids[0], **await self._forget(ids, None, now)}

    async def _note(self, person: str, by: str, origin: str, now: datetime) -> None:
        alias = self._ledger.aliases([person])[person]
        who = alias if by == THEMSELF else by
        await self._store.audit.note(AuditEntry(who=who, act="forget", target=alias, origin=origin), now)

    async def look(self, leases: LeaseStore) -> Sequence[Asked]:
        """Hear nobody whom any process erases now, and return who that is."""
        asked = await leases.forgetting.asked()
        self._frozen_elsewhere = frozenset(one for person in asked for one in person.ids)
        return asked

    async def let_go(self, leases: LeaseStore) -> None:
        """Keep nothing more of whom another process is erasing, and say so; hear them again once it is done.

        While this process erases somebody it lets nobody else go: the other erasure waits for that.
        """
        asked = await self.look(leases)
        for person in (one for one in asked if not one.is_done and not self._is_erasing):
            for conversation in person.conversations:
                await self._end_session(conversation)
            for audience in person.audiences:
                self._forget_members(audience)
            await asyncio.to_thread(self._leave_out, _says(person.ids))
            if self._archive:
                await self._archive.let_go(person.ids)
            await leases.forgetting.have_let_go(person.number)
        if self._archive and not asked:
            self._archive.rests = False

    async def finish(self, leases: LeaseStore) -> None:
        """Erase from the store what a process left that failed or died, so that the person is heard again; for ever.

        Files, copies and the search are the business of that process's home, when it starts again.
        """
        while True:
            try:
                await self._finish(leases)
            except ClaudiusError as error:
                log.error("an erasure is not finished yet", extra={"error": error.message})  # noqa: TRY400 - no trace
            await asyncio.sleep(leases.times.renew_s)

    async def _finish(self, leases: LeaseStore) -> None:
        async with self._one_at_a_time, leases.forgetting.left() as person:
            if person:
                log.warning("an erasure that another process left is finished")
                await self._store.erasure.erase(person.ids, person.aliases)

    def is_frozen(self, person: str) -> bool:
        """Return whether a person is being erased just now, here or by another process."""
        return person in self.frozen or person in self._frozen_elsewhere

    async def waits_until(self, person: str, now: datetime) -> datetime | None:
        """Return until when a person who asks in chat has to wait; None if they need not."""
        last = self._ledger.last_at([person, *await self._store.people.ids_of(person)], THEMSELF)
        return last + ONCE_IN if last and now < last + ONCE_IN else None

    async def resume(self, now: datetime, owner: str) -> int:
        """Resume interrupted erasures. Returns how many persons are forgotten by it. Raises: ClaudiusError.

        `owner`: the person id that the audit log names for those that the owner asked for.
        """
        left = self._ledger.unfinished()
        if not left:
            return 0
        log.warning("an interrupted erasure is resumed", extra={"people": len(left)})
        done = 0
        for probes in self._ledger.kept_probes():
            async with self._one_at_a_time:
                await self._forget(probes.ids, probes, now)
            done += len(probes.ids)
        people, _ = await self._store.erasure.everyone()
        searched = [one for probes in self._ledger.kept_probes() for one in probes.ids]
        waiting = self._ledger.unfinished()
        ids = self._ledger.among(people, waiting.keys() - self._ledger.hashes(searched))
        if ids:
            async with self._one_at_a_time:
                asked = self._ledger.among(ids, [key for key, by in waiting.items() if by == THEMSELF])
                for one in ids:  # nothing is erased yet, and perhaps it is not in the audit log either
                    await self._note(one, *((THEMSELF, one.rpartition(":")[0]) if one in asked else (owner, CLI)), now)
                await self._forget(ids, None, now)
        elif not self._ledger.kept_probes():
            self._ledger.done(sorted(self._ledger.unfinished()), now)
        return done + len(ids)

    async def _forget(self, ids: Sequence[str], probes: Probes | None, now: datetime) -> dict[str, Any]:
        self.frozen, leases = frozenset(ids), self._store.leases
        try:
            if probes is None:
                probes = await self._store.erasure.probes(ids)
                self._ledger.keep_probes(probes)
            if leases is None:
                return await self._erase(ids, probes, now)
            for left in self._home.state.glob(f"{self._home.database.name}*"):
                left.unlink()  # a file that the soul left, or that was there before `store.url` was set
            async with leases.forgetting.letting_go(ids, self._ledger.aliases(ids)) as at_rest:
                receipt = await self._erase(ids, probes, now)
            logs = [f"the logs and files of {home}, where no process of this soul runs now" for home in at_rest]
            return receipt | {"not_ours": [*receipt["not_ours"], *logs]}
        finally:
            self.frozen, self._is_erasing = frozenset(), False

    async def _erase(self, ids: Sequence[str], probes: Probes, now: datetime) -> dict[str, Any]:
        self._is_erasing = True
        if self._archive:
            async with self._archive.halted() as build_anew:
                erased = await self._erase_rows(ids, probes)
                await build_anew(ids)
            copies_elsewhere = self._archive.beyond()
        else:
            erased, copies_elsewhere = await self._erase_rows(ids, probes), list[str]()
        if any(_is_own(one) for one in ids):
            # what this machine's user typed into Claude Code sessions; those sessions continue without the soul
            for directory in self._home.sessions:
                if directory.exists():
                    await asyncio.to_thread(shutil.rmtree, directory)
        lines = await asyncio.to_thread(self._leave_out, _says(ids))
        aside, unread = await self._erase_aside(ids)
        copies, kept = await self._copy_anew(probes, now)
        found = await self._found(probes, kept)
        for _ in range(SWEEPS):  # others may have said or done something between a sweep and the search
            if str(self._home.database.relative_to(self._home.root)) not in found:
                break
            _, kept = await self._copy_anew(probes, now)
            found = await self._found(probes, kept)
        found = [one for one in found if not one.startswith(tuple(unread))] + [f"{one} ({UNREAD})" for one in unread]
        # It is done, even where something is left that we may not delete; the receipt says so. An erasure that began
        # again at each start would take what the person has said since.
        self._ledger.drop_probes(ids)
        self._ledger.finish(ids, now)
        log.info("somebody was forgotten", extra={"rows": dict(erased.rows), "left": found})
        return {
            "rows": dict(erased.rows),
            "git": erased.versions,
            "logs": lines,
            "backups": copies,
            "kept": kept,
            "aside": aside,
            "verified": not found,
            "left": found,
            "not_ours": [*NOT_OURS, *copies_elsewhere, *await self._store.erasure.beyond()],
        }

    async def _erase_rows(self, ids: Sequence[str], probes: Probes) -> Erased:
        erased = await self._store.erasure.erase(ids, self._ledger.aliases(ids))
        await sweep(self._store, self._home.database, probes)
        for conversation in erased.conversations:
            await self._end_session(conversation)
        for audience in erased.audiences:
            self._forget_members(audience)
        return erased

    async def _erase_aside(self, ids: Sequence[str]) -> tuple[list[str], list[str]]:
        """Erase from what restores and moves have set aside, which may be the only true memory of others.

        Returns the names of those copies, and of those that cannot be read: nobody but the owner may delete them.
        """
        erased, unread = list[str](), list[str]()
        for name, copy, file in set_aside(self._home, self._store):
            if file != self._home.database and not file.exists():
                unread.append(name)
                continue
            try:
                await copy.open()
                try:
                    await erase_from_copy(copy, file, ids, self._ledger.aliases(ids))
                    await copy.erasure.scrub()
                finally:
                    await copy.close(clean=False)
                if file != self._home.database:  # portraits beside a database are an export of it, with a history
                    await asyncio.to_thread(shutil.rmtree, file.with_name(self._home.memory.name), ignore_errors=True)
                erased.append(name)
            except (StoreError, OSError) as error:
                log.error("a copy that was set aside cannot be read", extra={"copy": name, "error": str(error)})  # noqa: TRY400 - no trace
                unread.append(name)
        return erased, unread

    async def _copy_anew(self, probes: Probes, now: datetime) -> tuple[int, list[str]]:
        await sweep(self._store, self._home.database, probes)
        return await asyncio.to_thread(self._renew_backups, now)

    def _renew_backups(self, now: datetime) -> tuple[int, list[str]]:
        """Take a verified copy, then delete our older ones. Returns how many those were, and the foreign files."""
        before = sorted(self._home.backups.iterdir())
        try:
            made = self._store.back_up(self._home.backups, now)
        except StoreError as error:
            raise ClaudiusError(f"no fresh backup could be made, so the old ones stay: {error.message}") from error
        stays = (SET_ASIDE, made.name) if made else (SET_ASIDE,)
        ours = [one for one in before if is_ours(one.name) and not one.name.startswith(stays)]
        for old in ours:
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink(missing_ok=True)
        copies = sum(one.suffix != ".sha256" for one in ours)
        return copies, [str(one.relative_to(self._home.root)) for one in before if not is_ours(one.name)]

    async def _found(self, probes: Probes, kept: Sequence[str]) -> list[str]:
        """Return the files that still hold traces or could not be read, and `git` for its objects."""
        home = self._home
        backups = [path for path in home.backups.iterdir() if is_ours(path.name)]
        places = (home.state, home.memory, home.logs, *backups, home.run, *home.sessions)
        found = await _search(
            self._store, home.database, probes, places, self._archive.searched() if self._archive else None,
            [str(home.root / one) for one in kept] + [str(path) for path in home.state.glob("erasing-*.json")],
        )  # fmt: skip
        if found is None:
            return ["the search did not come to its end"]
        unread = [f"{one} (could not be read)" for one in found["unread"]]
        return sorted(one.removeprefix(f"{home.root}/") for one in (*found["found"], *unread))


async def erase_from_copy(store: Store, database: Path, ids: Sequence[str], aliases: Mapping[str, str]) -> None:
    """Erase persons from a copy that is open, and that nobody else uses. Raises: StoreError."""
    probes = await store.erasure.probes(ids)
    await store.erasure.erase(ids, aliases)
    await sweep(store, database, probes)


async def sweep(store: Store, database: Path, probes: Probes) -> None:
    """Search the database and remove the matches, until nothing is found or nothing more can be done."""
    for _ in range(SWEEPS):
        found = await _search(store, database, probes)
        if found is None or not found["rows"] + list(found["pages"]):
            return
        await store.erasure.blank(found["rows"], await store.erasure.narrowed(probes))
        await store.erasure.rewrite(found["pages"])


async def _search(
    store: Store,
    database: Path,
    probes: Probes,
    places: Sequence[Path] = (),
    git: Mapping[str, Any] | None = None,
    left_out: Sequence[str] = (),
) -> dict[str, Any] | None:
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


def _says(ids: Sequence[str]) -> Callable[[str], bool]:
    """Return a predicate that matches log lines naming one of these ids, or saying more than a log should."""
    # the key of a command conversation ends in `!` and the network's own id of its author
    words = [*ids, *(f"!{one.rpartition(':')[2]}" for one in ids)]
    escaped = [form.decode() for one in words for form in search.forms(one)]
    named = re.compile("|".join(rf"(?<![\w.@-]){re.escape(one)}(?![\w.@-])" for one in escaped) or r"(?!)")
    return lambda line: '"level": "DEBUG"' in line or named.search(line) is not None


def _is_own(person: str) -> bool:
    """Return whether an id is that of this machine's user, and not another name at the terminal. Pure."""
    network, _, rest = person.partition(":")
    return network == "terminal" and not rest.rpartition(":")[2].startswith("as-")
