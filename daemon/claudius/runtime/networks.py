"""The networks of one process: starts an adapter for each, restarts those that fail, drops refused ones, closes them.

After every gap a network's history is read and takes the same path as live messages: acknowledgements alone cannot
guarantee that nothing is lost, because no network replays what nobody was there to receive.
Source: the reliability design, section 5.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from claudius.cognition.mind import Mind
from claudius.errors import AdapterRefused, ClaudiusError, DeliveryError, StoreError, StoreFull
from claudius.foreign import unquoted
from claudius.memory.database import EVERY_NETWORK
from claudius.runtime.adapter import Adapter, Gap
from claudius.runtime.health import Hearing
from claudius.runtime.intake import Intake
from claudius.runtime.lanes import Lanes
from claudius.runtime.roles import Role, Roles

log = logging.getLogger(__name__)

SHORT_GAP_S = 30.0
"""After a longer gap, a conversation waits for its own history before it is answered."""
PATIENCE_S = 30.0
"""The longest time that a conversation waits for its history."""
RECENT = timedelta(hours=72)
"""Threads with a turn since then are swept one by one."""
SWEEP_EVERY_S, JITTER = 3600.0, 0.1
"""Each network is swept once an hour, up to this share of it earlier, so that many souls do not sweep at once."""
AGAIN_S = 30.0
"""How long to wait before a failed sweep is tried again."""


class Sweeper:
    """Sweeps one network: one sweep at a time, and another if a gap opened meanwhile."""

    def __init__(self, adapter: Adapter, mind: Mind, lanes: Lanes, intake: Intake, chance: Callable[[], float]) -> None:
        """Read `adapter`'s history; `lanes` wait for it after a long gap, `intake` accepts what was missed."""
        self._adapter, self._mind, self._lanes, self._intake = adapter, mind, lanes, intake
        self._chance, self._hours = chance, mind.config().runtime.catch_up_hours
        self._missed, self._looks_back = asyncio.Event(), False
        self.next_at: datetime | None = None
        """When it sweeps next at the latest."""
        self.left_out = 0
        """Messages beyond the limits of a sweep, since the start."""

    def missed(self, gap_s: float | None) -> None:
        """Sweep soon. If the gap was long or unknown, lanes wait for their history."""
        if gap_s is None or gap_s > SHORT_GAP_S:
            self._lanes.hold(self._adapter.name)
            self._looks_back = True
        self._missed.set()

    async def run(self) -> None:
        """Sweep after each gap, and every hour, until cancelled. Raises: StoreError."""
        while True:
            wait_s = SWEEP_EVERY_S * (1 - JITTER * self._chance())
            self.next_at = self._mind.clock() + timedelta(seconds=wait_s)
            try:
                async with asyncio.timeout(wait_s):
                    await self._missed.wait()
            except TimeoutError:
                if not self._adapter.link.connected:
                    continue
            self._missed.clear()
            loop = asyncio.get_running_loop()
            opening = loop.call_later(PATIENCE_S, self._lanes.release, self._adapter.name)
            try:
                if not await self._sweep():
                    loop.call_later(AGAIN_S, self._missed.set)
            finally:
                opening.cancel()
                self._lanes.release(self._adapter.name)

    async def _sweep(self) -> bool:
        """Read the whole history. Returns False if it is to be read again soon.

        Either the network did not let us read to the end, or somebody in it is being erased just now. From their
        message on, no mark moves.
        """
        network, now = self._adapter.name, self._mind.clock()
        restored = (await self._mind.store.inbox.marks(EVERY_NETWORK)).get("")
        oldest = now - timedelta(hours=self._hours)
        since = max(oldest, datetime.fromisoformat(restored)) if restored else oldest
        gap = Gap(
            since=since,
            now=now,
            marks=await self._mind.store.inbox.marks(network),
            conversations=self._mind.store.turns.recent(network, now - RECENT),
            known=await self._mind.store.erasure.posts_since(since) if self._looks_back else (),
        )
        found, is_whole = 0, True
        try:
            async for swept in self._adapter.catch_up(gap):
                found += len(swept.perceptions)
                self.left_out += swept.left_out
                if swept.left_out:
                    log.warning("messages left out", extra={"channel": swept.channel, "count": swept.left_out})
                is_whole = await self._intake.hear(swept.perceptions) and is_whole
                if swept.position and is_whole:
                    await self._mind.store.inbox.swept(network, swept.channel, swept.position, self._mind.clock())
                if swept.conversation:
                    self._lanes.release(network, swept.conversation)
        except (DeliveryError, StoreFull, OSError, TimeoutError) as error:
            log.warning("history not read", extra={"network": network, "error": unquoted(error)})
            return False
        log.info("swept", extra={"network": network, "looked_at": found})
        self._looks_back = self._looks_back and not is_whole
        return is_whole


FELL_S = 5.0
"""How long to wait before an adapter that failed is restarted."""


class Networks:
    """All networks of one process."""

    def __init__(
        self,
        adapters: Mapping[str, Adapter],
        mind: Mind,
        lanes: Lanes,
        intake: Intake,
        failed: Callable[[ClaudiusError], None],
        *,
        chance: Callable[[], float],
        roles: Roles,
        hold_back: Callable[[Sequence[str]], Awaitable[None]] | None = None,
    ) -> None:
        """Listen on `adapters`; `failed` is called if none of them can ever be heard, or the store fails.

        To listen to a distant one is one of the `roles`. Where others share the store, `hold_back` has all of them wait
        for the histories of networks.
        """
        self._adapters, self._mind, self._lanes, self._intake, self._failed = adapters, mind, lanes, intake, failed
        self._chance, self._roles, self._hold_back = chance, roles, hold_back
        self._distant = {name for name, adapter in adapters.items() if not adapter.link.connected}
        """Networks that have to be connected, and whose history may hold missed messages."""
        self._sweepers: dict[str, Sweeper] = {}
        """Those of the distant networks that this process listens to."""
        self._tasks: list[asyncio.Task[None]] = []
        self.refused: dict[str, AdapterRefused] = {}

    def open(self) -> None:
        """Listen on each network; the lanes of a distant one wait until its missed messages are read."""
        for name, adapter in self._adapters.items():
            adapter.follow(self._mind.config)
            if name not in self._distant:
                self._tasks.append(asyncio.create_task(self._listen(adapter), name=f"listen {name}"))
                continue
            places = adapter.places
            if self._hold_back:
                adapter.link.listeners = places
            if self._hold_back and places > 1:
                adapter.link.was_alone = partial(self._roles.was_alone, f"listen/{name}")
            if self._hold_back and adapter.logs_in:
                self._tasks.append(asyncio.create_task(self._persist(adapter, adapter.log_in), name=f"log in {name}"))
            self._roles.add(Role(f"listen/{name}", partial(self._hear, adapter), places))

    @property
    def spoken(self) -> Sequence[str]:
        """The networks to which this process can speak; not those of this machine alone."""
        return [
            name
            for name, adapter in self._adapters.items()
            if name in self._sweepers or (adapter.logs_in if name in self._distant else not self.is_local(name))
        ]

    def is_local(self, network: str) -> bool:
        """Return whether only whoever uses this machine hears a network."""
        return (adapter := self._adapters.get(network)) is not None and adapter.is_local

    async def tried(self) -> None:
        """Return once each is connected, refused, or known to be retried later."""
        alone = self._hold_back is None
        tried = [one.link.tried() for name, one in self._adapters.items() if alone or name in self.spoken]
        await asyncio.gather(*tried)

    async def close(self) -> None:
        """Disconnect from every network; leave no task behind."""
        await asyncio.gather(*(adapter.close() for adapter in self._adapters.values()))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def next_sweep(self) -> datetime | None:
        """Return when a history is read next on schedule, or None if no network has one."""
        return min((one.next_at for one in self._sweepers.values() if one.next_at), default=None)

    def status(self, now: datetime) -> list[dict[str, Any]]:
        """Return one record per network for `claudius status`."""
        heard = self._intake.last_at
        return [
            {
                "name": name,
                "connected": adapter.link.connected,
                "last_inbound_s": round((now - heard[name]).total_seconds(), 1) if name in heard else None,
                "reconnects": adapter.link.reconnects,
                "hears": adapter.link.hears,
                "detail": adapter.link.detail or (adapter.link.notice() if adapter.link.connected else ""),
                "last_error": adapter.link.last_error or None,
                "left_out": self._sweepers[name].left_out if name in self._sweepers else 0,
            }
            for name, adapter in self._adapters.items()
        ]

    def hearing(self, now: datetime) -> dict[str, Hearing]:
        """Return whether each network is heard; `now` is of the steady clock."""
        heard = self._intake.last_at
        return {
            name: Hearing(
                unheard_s=adapter.link.unheard_s(),
                detail=adapter.link.detail or ("messages are missed" if adapter.link.connected else ""),
                heard_s=(now - heard[name]).total_seconds() if name in heard else None,
                reconnects=adapter.link.reconnects,
            )
            for name, adapter in self._adapters.items()
            if self._hold_back is None or name in self._sweepers or name not in self._distant
        }

    def _refuse(self, adapter: Adapter, error: AdapterRefused) -> None:
        log.error("network refused", extra={"adapter": adapter.name, "error": error.message})
        self.refused[adapter.name] = error
        adapter.link.down(error.message)
        self._lanes.release(adapter.name)
        if self._distant <= set(self.refused):
            self._failed(error)

    async def _hear(self, adapter: Adapter) -> None:
        """Listen on a distant network, and read what was missed, until cancelled or refused."""
        name = adapter.name
        sweeper = self._sweepers[name] = Sweeper(adapter, self._mind, self._lanes, self._intake, self._chance)
        adapter.link.on_missed(sweeper.missed)
        self._lanes.hold(name)
        opening = asyncio.get_running_loop().call_later(PATIENCE_S, self._lanes.release, name)
        sweeping = asyncio.create_task(self._sweep(sweeper), name=f"sweep {name}")
        try:
            if self._hold_back:
                await self._hold_back(self._lanes.unread)
            adapter.link.listen()  # else one that was heard before it lost the role would never say that it is `up`
            await self._listen(adapter)
        finally:
            opening.cancel()
            sweeping.cancel()
            await asyncio.gather(sweeping, return_exceptions=True)
            adapter.link.on_missed(lambda _: None)
            self._lanes.release(name)
            del self._sweepers[name]

    async def _listen(self, adapter: Adapter) -> None:
        await self._persist(adapter, partial(adapter.listen, self._intake.accept))

    async def _persist(self, adapter: Adapter, work: Callable[[], Awaitable[None]]) -> None:
        """Do an adapter's work until it is done or the network refuses us; after any other failure it begins again."""
        while True:
            try:
                await work()
            except AdapterRefused as error:
                self._refuse(adapter, error)
                return
            except Exception:  # an adapter may be the owner's own code; its library's errors have no common base
                log.exception("an adapter crashed", extra={"adapter": adapter.name})
                adapter.link.down("it fell and is being started again")
                await asyncio.sleep(FELL_S)
            else:
                return

    async def _sweep(self, sweeper: Sweeper) -> None:
        while True:
            try:
                await sweeper.run()
            except StoreError as error:
                self._failed(error)
                await asyncio.sleep(FELL_S)
                sweeper.missed(None)  # what it was to read is still to be read
            except Exception:  # the same adapter, asked for what was missed
                log.exception("a sweep crashed")
                await asyncio.sleep(AGAIN_S)
                sweeper.missed(None)
