"""Run what this process has of a soul: roles (listening, the clock, the second mind, the archive), and lanes.

Where several processes share a store, each such role is a lease, like a conversation's; whoever has it does the work.
Where one process has a store to itself, it has every role from the start. Source: the scale design, section 2.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import signal
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct

from claudius.errors import StoreError
from claudius.foreign import unquoted
from claudius.memory.archive import GitFailed
from claudius.memory.leases import LeaseStore, may
from claudius.perception import Place
from claudius.runtime.lanes import Lanes

log = logging.getLogger(__name__)

AGAIN_S = 5.0
"""How long to wait before a role's work is begun again that the store has failed."""

END_S, GIVE_S = 3.0, 1.0
"""How long a role's work may take to end, and how long the store to note that it is given up."""


SPARE_S = 1.0
"""How far a network's clock may be from ours."""


class Role(Struct, frozen=True, eq=False):
    """One role, and its work."""

    name: str
    work: Callable[[], Coroutine[Any, Any, None]]
    """Called when this process gets the role; it runs until it is cancelled. One that returns gives the role up."""
    places: int = 0
    """How many processes may have it at once, `name/0`, `name/1` …, one place each; 0 = one, without a number."""


class Roles:
    """The roles of one process."""

    def __init__(self, share: LeaseStore, allowed: Sequence[str], failed: Callable[[StoreError], None]) -> None:
        """Take roles that are `allowed`, as `worker.roles` says; `failed` is called when the store fails."""
        self._share, self._shared, self._allowed, self._failed = share, share.roles, allowed, failed
        self._roles: list[Role] = []
        self._held: dict[str, tuple[Role, asyncio.Task[None]]] = {}
        self._renewed_s = 0.0
        self._alone: dict[str, tuple[float, float]] = {}
        """Roles with several places of which no other process was seen to have one: since when, and until when."""

    def add(self, role: Role) -> None:
        """Do a role's work as long as this process has it; without other processes, from now on."""
        if not self._share.is_shared:
            self._begin(role.name, role)
        elif may(role.name, self._allowed):
            self._roles.append(role)

    def has(self, name: str) -> bool:
        """Return whether this process has a role now, in whichever place."""
        return any(role.name == name for role, _ in self._held.values())

    def was_alone(self, name: str, ago_s: float) -> bool:
        """Return whether nobody else had a place of a role so many seconds ago; False where that is not known."""
        since_s, until_s = self._alone.get(name, (math.inf, -math.inf))
        return since_s + SPARE_S <= asyncio.get_running_loop().time() - ago_s <= until_s - SPARE_S

    async def run(self) -> None:
        """Look for roles that are free, and keep those that are held, until cancelled."""
        while True:
            await asyncio.sleep(self._share.times.look_s)
            await self.look()
            await self._end([one for one in self._held if not self._shared.is_held(one)], "its lease is past")

    async def look(self) -> None:
        """Take what is free now, and prolong what is held, if it is time."""
        try:
            await self._take_and_renew()
        except StoreError as error:
            self._failed(error)

    async def close(self, *named: str) -> None:
        """End the work of the roles that are `named` as in `worker.roles`, and give them up; without a name, of all.

        They are not taken again. It takes `END_S` and `GIVE_S` at most.
        """
        self._roles = [role for role in self._roles if not may(role.name, named or ("all",))]
        places = [place for place in self._held if may(place, named or ("all",))]
        await self._end(places, "")
        if places:
            with suppress(StoreError, TimeoutError):  # else they are free when their leases are past
                async with asyncio.timeout(GIVE_S):
                    await self._shared.give_back(places)

    async def _take_and_renew(self) -> None:
        ended = {place: role for place, (role, task) in self._held.items() if task.done()}
        if ended:
            for place, role in ended.items():
                del self._held[place]
                self._roles = [one for one in self._roles if one is not role]  # it cannot be done here
            await self._shared.give_back(list(ended))
        wanted = {place: role for role in self._roles if not self.has(role.name) for place in _places(role)}
        if wanted:
            taken = await self._shared.take(list(wanted))
            for place in taken:
                if wanted[place] in self._roles:  # else it was given up meanwhile
                    log.info("this process has a role", extra={"role": place})
                    self._begin(place, wanted[place])
            await self._shared.give_back([place for place in taken if place not in self._held])
        now_s = asyncio.get_running_loop().time()
        if self._held and now_s - self._renewed_s >= self._share.times.renew_s:
            await self._end(await self._shared.renew(list(self._held)), "another process has it")
            await self._look_for_others(now_s)
            self._renewed_s = now_s  # after a failure it is tried at the next look: two in a row would cost the lease

    async def _look_for_others(self, now_s: float) -> None:
        before, self._alone = self._alone, {}
        for name in [role.name for role, _ in self._held.values() if role.places > 1]:
            if not await self._shared.others(name):
                self._alone[name] = before.get(name, (now_s, now_s))[0], now_s

    def _begin(self, place: str, role: Role) -> None:
        task = asyncio.create_task(self._work(role), name=place)
        task.add_done_callback(ended_badly)
        self._held[place] = role, task
        self._alone.pop(role.name, None)

    async def _work(self, role: Role) -> None:
        while True:
            try:
                return await role.work()
            except StoreError as error:
                self._failed(error)
                await asyncio.sleep(AGAIN_S)

    async def _end(self, places: Sequence[str], why: str) -> None:
        tasks = []
        for place in places:
            _, task = self._held.pop(place, (None, None))
            if task is None:
                continue  # it was lost, or given up, meanwhile
            if why:
                log.warning("this process has a role no more", extra={"role": place, "reason": why})
            task.cancel()
            tasks.append(task)
        if tasks:
            await asyncio.wait(tasks, timeout=END_S)


def _places(role: Role) -> Sequence[str]:
    return [f"{role.name}/{n}" for n in range(role.places)] if role.places else [role.name]


def ended_badly(task: asyncio.Task[None]) -> None:
    """Report a task that ended with an error."""
    if not task.cancelled() and (error := task.exception()):
        log.error("a part of the process ended", extra={"part": task.get_name()}, exc_info=error)


AT_ONCE = 16
"""Lanes taken in one look, so that the others find some too."""

NONE = ("",)
"""The networks of a process that takes only what it wants."""


class Leasing:
    """Looks for lanes with something to do as long as the process takes turns."""

    def __init__(
        self,
        share: LeaseStore,
        lanes: Lanes,
        failed: Callable[[StoreError], None],
        networks: Callable[[], Sequence[str]],
        *,
        is_paused: Callable[[], bool] = lambda: False,
        local: Collection[str],
        let_go: Callable[[], Awaitable[None]],
    ) -> None:
        """Take lanes of what `networks` returns for `lanes`, and of those `local` to this machine if these want them.

        `failed` is called when the store fails. After each renewal `let_go` drops what is kept of whom another process
        erases. While this process reads a network's history, the others wait as well. Drained, it ends in good order.
        While this process `is_paused` by its own settings, it takes lanes of this machine and those of the commands
        that it heard.
        """
        self._share, self._lanes, self._failed, self._networks = share, lanes, failed, networks
        self._local, self._let_go = local, let_go
        self._is_paused, self._unread = is_paused, list[str]()
        self._wanted: set[str] = set()
        """Lanes of this machine that are wanted, and not held yet."""

    async def hold_back(self, networks: Sequence[str]) -> None:
        """Have every process wait while this one reads the histories of these networks. Raises: StoreError."""
        await self._share.hold_back(networks, [one for one in self._unread if one not in networks])
        self._unread = list(networks)

    async def listen(self) -> None:
        """Look at once when another process says that there is something; until cancelled."""
        await self._share.listen(self._told)

    def _told(self, about: Mapping[str, str]) -> None:
        for conversation, turn in about.items():
            if self._share.is_held(conversation):
                self._lanes.break_off(conversation, turn)
        self._lanes.looking.set()

    async def run(self) -> None:
        """Look when something is wanted, and every `look_s`; renew every `renew_s`; until cancelled.

        A lane in which a part does not get through is left to others, and no lane of its network is taken meanwhile.
        """
        loop = asyncio.get_running_loop()
        renewed_s = loop.time()
        while True:
            wanted = self._lanes.wanted()
            is_paused, places = self._is_paused(), {one: Place.of(one) for one in wanted}
            self._wanted |= {
                one
                for one, place in places.items()
                if place.network in self._local or (is_paused and place.is_for_commands)
            }
            try:
                if (unread := list(self._lanes.unread)) != self._unread:
                    await self.hold_back(unread)
                stuck = self._lanes.stuck(self._share.times.lease_s / 4)
                away = {Place.of(conversation).network for conversation in stuck}
                networks = [one for one in self._networks() if one not in away]
                if is_paused:
                    networks = [one for one in networks if one in self._local]
                found = await self._share.take(networks or NONE, AT_ONCE, sorted(self._wanted))
                for conversation in found:
                    self._lanes.wake(conversation)
                if len(found) >= AT_ONCE:
                    self._lanes.looking.set()  # there may be more
                if elsewhere := {one: turn for one, turn in wanted.items() if not self._share.is_held(one)}:
                    await self._share.tell(elsewhere)
                if (now_s := loop.time()) - renewed_s >= self._share.times.renew_s:
                    await self._renew(stuck)
                    renewed_s = now_s
            except StoreError as error:
                self._failed(error)
            wanted.clear()
            self._wanted = {one for one in self._wanted if not self._share.is_held(one)}
            with suppress(TimeoutError):
                async with asyncio.timeout(min(self._share.times.look_s, self._share.times.renew_s)):
                    await self._lanes.looking.wait()

    async def _renew(self, stuck: Sequence[str]) -> None:
        for conversation in await self._share.renew(stuck):
            self._lanes.lose(conversation)
            if Place.of(conversation).network in self._local:
                self._wanted.add(conversation)
        try:
            await self._let_go()
        except (GitFailed, OSError) as error:  # the home cannot be written to: again at the next renewal
            log.error("a person is not let go yet", extra={"error": unquoted(error)})  # noqa: TRY400 - no trace
        if self._share.is_draining:
            os.kill(os.getpid(), signal.SIGTERM)
