"""Take lanes of a store that several processes share, keep their leases, and drop those that are lost."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress

from claudius.errors import StoreError
from claudius.foreign import unquoted
from claudius.memory.archive import GitFailed
from claudius.memory.leases import LeaseStore
from claudius.perception import Place
from claudius.runtime.lanes import Lanes

log = logging.getLogger(__name__)

AT_ONCE = 16
"""Lanes taken in one look, so that the others find some too."""

NONE = ("",)
"""The networks of a process that takes only what it wants."""


class Leasing:
    """Looks for lanes with something to do as long as the process takes turns."""

    def __init__(
        self,
        leases: LeaseStore,
        lanes: Lanes,
        failed: Callable[[StoreError], None],
        networks: Callable[[], Sequence[str]],
        *,
        is_paused: Callable[[], bool] = lambda: False,
        local: Collection[str],
        let_go: Callable[[LeaseStore], Awaitable[None]],
        leave: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGTERM),
    ) -> None:
        """Take lanes of what `networks` returns for `lanes`, and of those `local` to this machine if these want them.

        `failed` is called when the store fails. After each renewal `let_go` drops what is kept of whom another process
        erases. While this process reads a network's history, the others wait as well. If it is drained, `leave` ends
        it in good order. While this process `is_paused` by its own settings, it takes lanes of this machine and those
        of the commands that it heard.
        """
        self._leases, self._lanes, self._failed, self._networks = leases, lanes, failed, networks
        self._local, self._let_go, self._leave = local, let_go, leave
        self._is_paused, self._unread = is_paused, list[str]()
        self._wanted: set[str] = set()
        """Lanes of this machine that are wanted, and not held yet."""

    async def hold_back(self, networks: Sequence[str]) -> None:
        """Have every process wait while this one reads the histories of these networks. Raises: StoreError."""
        await self._leases.hold_back(networks, [one for one in self._unread if one not in networks])
        self._unread = list(networks)

    async def listen(self) -> None:
        """Look at once when another process says that there is something; until cancelled."""
        await self._leases.listen(self._told)

    def _told(self, about: Mapping[str, str]) -> None:
        for conversation, turn in about.items():
            if self._leases.is_held(conversation):
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
                stuck = self._lanes.stuck(self._leases.times.lease_s / 4)
                away = {Place.of(conversation).network for conversation in stuck}
                networks = [one for one in self._networks() if one not in away]
                if is_paused:
                    networks = [one for one in networks if one in self._local]
                found = await self._leases.take(networks or NONE, AT_ONCE, sorted(self._wanted))
                for conversation in found:
                    self._lanes.wake(conversation)
                if len(found) >= AT_ONCE:
                    self._lanes.looking.set()  # there may be more
                if elsewhere := {one: turn for one, turn in wanted.items() if not self._leases.is_held(one)}:
                    await self._leases.tell(elsewhere)
                if (now_s := loop.time()) - renewed_s >= self._leases.times.renew_s:
                    await self._renew(stuck)
                    renewed_s = now_s
            except StoreError as error:
                self._failed(error)
            wanted.clear()
            self._wanted = {one for one in self._wanted if not self._leases.is_held(one)}
            with suppress(TimeoutError):
                async with asyncio.timeout(min(self._leases.times.look_s, self._leases.times.renew_s)):
                    await self._lanes.looking.wait()

    async def _renew(self, stuck: Sequence[str]) -> None:
        for conversation in await self._leases.renew(stuck):
            self._lanes.lose(conversation)
            if Place.of(conversation).network in self._local:
                self._wanted.add(conversation)
        try:
            await self._let_go(self._leases)
        except (GitFailed, OSError) as error:  # the home cannot be written to: again at the next renewal
            log.error("a person is not let go yet", extra={"error": unquoted(error)})  # noqa: TRY400 - no trace
        if self._leases.is_draining:
            self._leave()
