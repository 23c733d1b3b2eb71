"""Erases a person from the database, its log, git, the logs and the backups, then searches for anything left.

Others are answered meanwhile. Each step is idempotent, and the next start resumes an erasure that a crash interrupted:
`state/erasures.jsonl` records whose erasure began and did not end, `state/erasing-*.json` what it searches for. The
record comes before the row in the audit log, that row before anything is erased; an erasure without either is refused.
Where several processes share the store, each lets go of the person first, and nobody hears them until the store holds
nothing of them: if the process that erases fails or dies, another one erases what is left in the store. What the
database files still hold is overwritten in the next quiet hour, or at once where that keeps nobody waiting.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import shutil
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from claudius.errors import ClaudiusError, StoreError, StoreFull
from claudius.foreign import unquoted
from claudius.home import Home
from claudius.memory.archive import Archive
from claudius.memory.audit import CLI, AuditEntry
from claudius.memory.erasing import Posted, Probes
from claudius.memory.erasure import OVERWRITING, Begun, Beyond, Erased, Erasures, Voided, untold
from claudius.memory.leases import AskedToForget
from claudius.memory.opening import set_aside
from claudius.memory.sqlite.backups import is_ours
from claudius.memory.store import Store
from claudius.perception import Perception
from claudius.runtime.receipts import LENT, overwritten
from claudius.runtime.sweeping import SWEEPS, erase_from_copy, left_of, naming, renew_backups, searched, sweep

log = logging.getLogger(__name__)

THEMSELF, ONCE_IN = "themself", timedelta(days=1)
"""A person may erase themself from chat once in this period."""
NOT_OURS = tuple(map(Beyond, (
    "what people posted themselves stays on the network", "the model's provider keeps what its own terms say",
    "tools, daimons, observers and other programs keep what they were given",
    "copies that the owner made outside of the home",
)))  # fmt: skip
"""What an erasure cannot reach."""
NOTHING_CHANGED = "nothing was changed"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
UNSAY_AGAIN_S = 5.0
"""How long what turns may still write from old words waits, or what another process has noted."""
SETTLED = timedelta(minutes=1)
"""What was under way when somebody was erased has ended after this time, and can be overwritten with them."""


class Forgetting:
    """Erases persons from one home."""

    def __init__(  # noqa: PLR0913 - what it reaches, each by its name
        self,
        home: Home,
        store: Store,
        archive: Archive | None,
        *,
        forget_members: Callable[[str], None],
        end_session: Callable[[str], Awaitable[None]],
        leave_out: Callable[[Callable[[str], bool]], int],
        next_quiet: Callable[[datetime], datetime],
        is_daemon: bool,
        voided: Voided = untold,
        take_down: Callable[[Sequence[Posted]], Awaitable[Sequence[Posted]]] | None = None,
        wake: Callable[[str], None] = lambda _: None,
        second_line: Callable[[Begun, str], None] = lambda *_: None,
    ) -> None:
        """Erase from `store` and everything beside it.

        `forget_members` discards who can see an audience, `end_session` makes a provider discard what it keeps of a
        conversation, including its transcript, and `leave_out` rewrites the log without the lines that match (blocks).
        `voided` cancels turns that are to be thought again, `wake` has a conversation look for what waits, `take_down`
        deletes posts from their network, where that is wanted, and returns those that stand; `second_line` tells who
        asked that what waited for a quiet hour is done. `is_daemon`: others may be answered by this process.
        """
        self._next_quiet, self._is_daemon = next_quiet, is_daemon
        self._home, self._store, self._archive = home, store, archive
        self._kind = "server" if store.is_shared else "file"
        self._forget_members, self._end_session, self._leave_out = forget_members, end_session, leave_out
        self._voided, self._take_down, self._wake, self._second_line = voided, take_down, wake, second_line
        self.frozen: frozenset[str] = frozenset()
        """Nobody hears these persons while they are being erased."""
        self._frozen_elsewhere: frozenset[str] = frozenset()
        self._ledger = Erasures(home.state)
        self._one_at_a_time = asyncio.Lock()
        self._is_erasing = self._is_unsaying = False

    async def forget(
        self,
        person: str,
        now: datetime,
        by: str,
        origin: str = CLI,
        *,
        asked: Perception | None = None,
        at_once: bool = False,
    ) -> dict[str, Any]:
        """Erase a person, by any id of theirs, and return the receipt. Raises: ClaudiusError if the id is unknown.

        `by`: `THEMSELF`, or the person id of the owner; `origin`: from where it is asked; `asked`: the command in chat,
        whose author is given the receipt by the next process if this one dies. `at_once`: overwrite now what would wait
        for a quiet hour. Raises: StoreFull if there is no room to record it; then nothing was changed.
        """
        async with self._one_at_a_time:
            ids = list(await self._store.people.ids_of(person))
            if not ids:
                raise ClaudiusError(f"nobody is known as {person!r}: `claudius users list` names everyone")
            self.frozen = frozenset(ids)
            try:
                earlier = next((one for one in self._waiting() if one.ids[0] == ids[0]), None)
                begun, before = Begun(ids=tuple(ids), asked=asked, earlier=earlier), None
                try:
                    before = self._record(begun, now, THEMSELF if by == THEMSELF else "owner")
                    await self._note(ids[0], by, origin, now)
                    begun = await self._looked_up(begun)
                except ClaudiusError:
                    if before is not None:
                        self._ledger.withdraw(before)
                    self._drop(begun)
                    raise
                return await self._forget(begun, now, at_once=at_once)
            finally:
                self.frozen = frozenset()

    def _record(self, begun: Begun, now: datetime, by: str) -> int:
        """Record durably that an erasure begins; return what takes the record back."""
        self._keep(begun)
        try:
            return self._ledger.begin(begun.ids, now, by)
        except OSError as error:
            raise _refused(error) from error

    def _keep(self, begun: Begun) -> None:
        try:
            self._ledger.keep(begun)
        except OSError as error:
            raise _refused(error) from error

    def _drop(self, begun: Begun) -> None:
        """Keep nothing of an erasure that changed nothing; an earlier one still waits to be overwritten."""
        self._keep(begun.earlier) if begun.earlier else self._ledger.drop(begun.ids)

    async def _looked_up(self, begun: Begun) -> Begun:
        """Save what is to be searched for at the end, before anything is erased."""
        found, traces = await self._store.erasure.probes(begun.ids), await self._store.erasure.traces(begun.ids)
        begun = replace(begun, folders=found.folders, excerpts=found.excerpts, traces=traces, earlier=None)
        self._keep(begun)
        return begun

    def is_unfinished(self, person: str) -> bool:
        """Return whether an erasure of this person was begun and has not ended: whoever ends it gives the receipt."""
        return not self._ledger.hashes([person]).isdisjoint(self._ledger.unfinished())

    def is_to_be_told(self, person: str) -> bool:
        """Return whether whoever ends the erasure of this person gives them the receipt, because they asked in chat."""
        return any(person in begun.ids and begun.asked for begun in self._ledger.kept())

    def was_told(self, person: str) -> None:
        """Note that the receipt was given to the person; keep nothing more, unless a second line is to follow."""
        for begun in self._ledger.kept():
            if person in begun.ids and begun.receipt is not None:
                self._ledger.keep_receipt(begun, begun.receipt, is_told=True)

    @property
    def is_unsaying(self) -> bool:
        """Whether what was written from edited or deleted words is being erased, or is about to be."""
        return self._is_unsaying or self._store.inbox.is_unsaid

    async def unsay(self) -> None:
        """Erase what was written from words of edited and deleted messages, soon after each change; for ever.

        It rests as long as it worked, so that a flood of edits is undone together. Raises: StoreError.
        """
        inbox, is_shared, left = self._store.inbox, self._store.is_shared, True  # a process that was killed left it
        while True:
            self._is_unsaying, began_s = True, time.monotonic()
            try:
                async with self._one_at_a_time:
                    undone = await inbox.undo()
            finally:
                self._is_unsaying = False
            if undone.voided:
                self._voided(undone.voided)
            for conversation in undone.waiting:
                await inbox.try_now(conversation)
            for conversation in (*undone.waiting, *[where for where, _ in undone.voided]):
                self._wake(conversation)
            if self._archive and undone.is_new:
                self._archive.wake()  # git may hold what is gone
            await asyncio.sleep(time.monotonic() - began_s)
            left |= undone.is_new
            with suppress(StoreError):  # no room, say: it is tried again
                left = left and bool(await self._store.erasure.empty_log())
            with suppress(TimeoutError):
                async with asyncio.timeout(UNSAY_AGAIN_S if undone.is_left or left or is_shared else None):
                    await inbox.unsaid()

    async def _note(self, person: str, by: str, origin: str, now: datetime) -> None:
        alias = self._ledger.aliases([person])[person]
        who = alias if by == THEMSELF else by
        await self._store.audit.note(AuditEntry(who=who, act="forget", target=alias, origin=origin), now)

    async def look(self) -> Sequence[AskedToForget]:
        """Hear nobody whom any process erases now, and return who that is."""
        asked = await self._store.leases.forgetting.asked()
        self._frozen_elsewhere = frozenset(one for person in asked for one in person.ids)
        return asked

    async def let_go(self) -> None:
        """Keep nothing more of whom another process is erasing, and say so; hear them again once it is done.

        While this process erases somebody it lets nobody else go: the other erasure waits for that.
        """
        asked = await self.look()
        for person in (one for one in asked if not one.is_done and not self._is_erasing):
            for conversation in person.conversations:
                await self._end_session(conversation)
            for audience in person.audiences:
                self._forget_members(audience)
            await asyncio.to_thread(self._leave_out, naming(person.ids))
            if self._archive:
                await self._archive.let_go(person.ids)
            await self._store.leases.forgetting.have_let_go(person.number)
        if self._archive and not asked:
            self._archive.rests = False
        if (waiting := self._waiting()) and not await self._store.erasure.is_to_be_overwritten():
            self._overwritten(waiting)  # another process has done it

    async def finish(self) -> None:
        """Erase from the store what a process left that failed or died, so that the person is heard again; for ever.

        Files, copies and the search are the business of that process's home, when it starts again.
        """
        while True:
            try:
                await self._finish()
            except ClaudiusError as error:
                log.error("an erasure is not finished yet", extra={"error": error.message})  # noqa: TRY400 - no trace
            await asyncio.sleep(self._store.leases.times.renew_s)

    async def _finish(self) -> None:
        async with self._one_at_a_time, self._store.leases.forgetting.left() as person:
            if person:
                log.warning("an erasure that another process left is finished")
                await self._store.erasure.erase(person.ids, person.aliases, self._voided)
                await self._store.erasure.overwrite_later()  # the job may have run since it began; it comes each night

    def is_frozen(self, person: str) -> bool:
        """Return whether a person is being erased just now, here or by another process."""
        return person in self.frozen or person in self._frozen_elsewhere

    async def waits_until(self, person: str, now: datetime) -> datetime | None:
        """Return until when a person who asks in chat has to wait; None if they need not."""
        last = self._ledger.last_at([person, *await self._store.people.ids_of(person)], THEMSELF)
        return last + ONCE_IN if last and now < last + ONCE_IN else None

    async def resume(self, now: datetime, owner: str) -> Sequence[tuple[Perception, Mapping[str, Any]]]:
        """Resume interrupted erasures. Raises: ClaudiusError.

        `owner`: the person id that the audit log names for those that the owner asked for. Returns the commands in chat
        whose receipts were not given yet, each with its receipt; call `was_told` once one was.
        """
        left, kept = self._ledger.unfinished(), self._ledger.kept()
        if left:
            log.warning("an interrupted erasure is resumed", extra={"people": len(left)})
        for begun in kept:
            is_begun = not self._ledger.hashes(begun.ids).isdisjoint(left)
            if is_begun and begun.receipt is None:
                await self._resume(begun, left, now, owner)
            elif begun.receipt is None:  # it died before it was recorded: nothing was changed, and nobody was told so
                self._drop(begun)
        if waiting := self._ledger.unfinished():
            if ids := self._ledger.among((await self._store.erasure.everyone())[0], waiting):
                await self._resume(Begun(ids=tuple(ids), is_resumed=True), waiting, now, owner)
            else:
                self._ledger.done(sorted(waiting), now)
        if self._ledger.waiting() and self._is_quick:
            with suppress(StoreError):  # else the quiet hour does it
                await self.overwrite(tells=False)  # whoever asked is given the whole receipt, below
        return [(of.asked, of.receipt) for of in self._ledger.kept() if of.receipt and of.asked and not of.is_told]

    async def _resume(self, begun: Begun, by: Mapping[str, str], now: datetime, owner: str) -> None:
        async with self._one_at_a_time:
            self.frozen = frozenset(begun.ids)
            try:
                if not begun.folders:  # nothing is erased yet, and perhaps the audit log does not know of it
                    own = self._ledger.among(begun.ids, [key for key, who in by.items() if who == THEMSELF])
                    for one in begun.ids:
                        who, origin = (THEMSELF, one.rpartition(":")[0]) if one in own else (owner, CLI)
                        await self._note(one, who, origin, now)
                    begun = await self._looked_up(begun)
                else:
                    begun = replace(begun, is_resumed=True)
                await self._forget(begun, now)
            finally:
                self.frozen = frozenset()

    async def _forget(self, begun: Begun, now: datetime, *, at_once: bool = False) -> dict[str, Any]:
        ids, shared, began_s = begun.ids, self._store.leases, time.monotonic()

        def clock() -> datetime:
            return now + timedelta(seconds=time.monotonic() - began_s)

        try:
            if not shared.is_shared:
                receipt = await self._erase(begun, clock)
                at_once = at_once or self._is_quick
            else:
                for left in self._home.state.glob(f"{self._home.database.name}*"):
                    left.unlink()  # a file that the soul left, or that was there before `store.url` was set
                await self._overwrite_later(now)
                async with shared.forgetting.letting_go(ids, self._ledger.aliases(ids)) as at_rest:
                    receipt = await self._erase(begun, clock, at_rest)
                at_once = at_once or (not self._is_daemon and shared.forgetting.is_alone())
        finally:
            self._is_erasing = False
        try:
            in_use = await (self._store.erasure.overwrite() if at_once else self._store.erasure.empty_log())
        except StoreError as error:
            in_use = (error.message,)
        if in_use:
            log.error("not everything was overwritten yet", extra={"left": in_use})
        elif at_once:
            receipt = _verified(receipt)
        self._ledger.keep_receipt(begun, receipt)
        return receipt

    async def _overwrite_later(self, at: datetime) -> datetime:
        """Note that deleted rows are to be overwritten, and plan when. Returns when."""
        later = max(self._next_quiet(at + SETTLED), at + SETTLED)
        await self._store.erasure.overwrite_later()
        await self._store.plans.arm({OVERWRITING: later})
        return later

    async def overwrite(self, *, tells: bool = True) -> str:
        """Overwrite what erasures have left to a quiet hour; return the outcome. Raises: StoreError."""
        waiting = self._ledger.waiting()  # not one that ends meanwhile; a move leaves its file among what is set aside
        if not waiting and not await self._store.erasure.is_to_be_overwritten():
            return "nobody was erased since the last time"
        if left := await self._store.erasure.overwrite():
            return f"left until tomorrow: {', '.join(left)}"
        await self._erase_aside([one for begun in waiting for one in begun.ids])
        self._overwritten(waiting, tells=tells)
        return "what was erased is overwritten"

    @property
    def _is_quick(self) -> bool:
        """Whether overwriting keeps nobody waiting who shares the store."""
        return not self._store.is_shared and (not self._is_daemon or self._store.erasure.is_quick)

    def _overwritten(self, waiting: Sequence[Begun], *, tells: bool = True) -> None:
        """Keep nothing more of erasures whose deleted rows are overwritten now, and send the second line of each."""
        done = [(one.ids, one.receipt) for one in waiting]
        for begun in [one for one in self._ledger.waiting() if (one.ids, one.receipt) in done]:  # one may be told now
            receipt = _verified(begun.receipt or {})
            self._ledger.keep_receipt(begun, receipt)  # until `was_told`: a process that starts gives it, if need be
            if begun.is_told and (tells or begun.asked is None):
                self._second_line(begun, overwritten(receipt))

    def _waiting(self) -> list[Begun]:
        """Return each erasure that waits for this store."""
        return [one for one in self._ledger.waiting() if (one.receipt or {}).get("store") == self._kind]

    async def _erase(self, begun: Begun, clock: Callable[[], datetime], at_rest: Sequence[str] = ()) -> dict[str, Any]:
        self._is_erasing, ids, probes, now = True, begun.ids, begun.probes, clock()
        if self._archive:
            async with self._archive.halted() as build_anew:
                erased = await self._erase_rows(begun)
                await build_anew(ids)
            copies_elsewhere = self._archive.beyond()
        else:
            erased, copies_elsewhere = await self._erase_rows(begun), []
        if any(one.startswith("terminal:") and not one.rpartition(":")[2].startswith("as-") for one in ids):
            # what this machine's user typed into Claude Code sessions; those sessions continue without the soul
            for directory in self._home.sessions:
                if directory.exists():
                    await asyncio.to_thread(shutil.rmtree, directory)
        lines = await asyncio.to_thread(self._leave_out, naming(ids))
        aside, unread = await self._erase_aside(ids)
        copies, kept = await self._copy_anew(probes, now)
        found = await self._found(probes, kept)
        for _ in range(SWEEPS):  # others may have said or done something between a sweep and the search
            if found is None or str(self._home.database) not in found["found"]:
                break
            _, kept = await self._copy_anew(probes, now)
            found = await self._found(probes, kept)
        left, unsearched = left_of(found, self._home.root, unread)
        posts = await self._take_down(erased.posts) if self._take_down else erased.posts
        logs = "the logs and files of {}, where no process of this soul runs now"
        beyond = [*NOT_OURS, *LENT[: erased.is_lent], *copies_elsewhere, *await self._store.erasure.beyond()]
        beyond += [Beyond(logs.format("another home"), logs.format(home)) for home in at_rest]
        later = await self._overwrite_later(clock())  # the job may have run since it began
        receipt = {
            "person": ids[0],
            "resumed": begun.is_resumed,
            "rows": dict(erased.rows),
            "derived": dict(erased.derived),
            "portraits": msgspec.to_builtins(erased.portraits),
            "posts": msgspec.to_builtins(posts),
            "taken_down": len(erased.posts) - len(posts),
            "git": erased.versions,
            "logs": lines,
            "backups": copies,
            "kept": kept,
            "aside": aside,
            "verified": False,
            "later": later.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "left": left,
            "unsearched": unsearched,
            "not_ours": [one.where or one.kind for one in beyond],
            "beyond": [one.kind for one in beyond],
            "store": self._kind,
        }
        # Done, even where something is left that we may not delete: begun at each start, it took what was said since.
        self._ledger.keep_receipt(begun, receipt)
        self._ledger.done(sorted(self._ledger.hashes(ids)), now)
        log.info("somebody was forgotten", extra={"rows": dict(erased.rows), "left": left})
        return receipt

    async def _erase_rows(self, begun: Begun) -> Erased:
        ids, posts = begun.ids, dict.fromkeys(begun.posts)

        def keep(more: Sequence[Posted]) -> None:
            posts.update(dict.fromkeys(more))
            self._keep(replace(begun, posts=tuple(posts)))

        erased = await self._store.erasure.erase(ids, self._ledger.aliases(ids), self._voided, keep, begun.traces)
        erased = replace(erased, posts=tuple(dict.fromkeys((*posts, *erased.posts))))
        await sweep(self._store, self._home.database, begun.probes)
        for conversation in erased.conversations:
            await self._end_session(conversation)
        for audience in erased.audiences:
            self._forget_members(audience)
        for conversation in erased.conversations:
            self._wake(conversation)  # some is to be answered anew
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
                finally:
                    await copy.close(clean=False)
                if file != self._home.database:  # portraits beside a database are an export of it, with a history
                    await asyncio.to_thread(shutil.rmtree, file.with_name(self._home.memory.name), ignore_errors=True)
                erased.append(name)
            except (StoreError, OSError) as error:
                log.error("a copy that was set aside cannot be read", extra={"copy": name, "error": unquoted(error)})  # noqa: TRY400 - no trace
                unread.append(name)
        return erased, unread

    async def _copy_anew(self, probes: Probes, now: datetime) -> tuple[int, list[str]]:
        await sweep(self._store, self._home.database, probes)
        return await asyncio.to_thread(renew_backups, self._store, self._home, now)

    async def _found(self, probes: Probes, kept: Sequence[str]) -> dict[str, Any] | None:
        """Search everything, `git` for its objects too; None if the search did not come to its end."""
        home = self._home
        backups = [path for path in home.backups.iterdir() if is_ours(path.name)]
        places = (home.state, home.memory, home.logs, *backups, home.run, *home.sessions)
        return await searched(
            self._store, home.database, probes, places, self._archive.searched() if self._archive else None,
            [str(home.root / one) for one in kept] + [str(path) for path in home.state.glob("erasing-*.json")],
        )  # fmt: skip


def _verified(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """Return a receipt once what was deleted is overwritten. Pure."""
    return {**receipt, "later": None, "verified": not receipt["left"]}


def _refused(error: OSError) -> ClaudiusError:
    """Return what is said of an erasure that could not be recorded. Pure."""
    kind, why = (StoreFull, "the disk is full") if error.errno in _NO_ROOM else (ClaudiusError, error.strerror)
    return kind(f"{why}; {NOTHING_CHANGED}")
