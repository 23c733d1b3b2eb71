"""The process that takes turns: it starts, hears, drains and stops. Read top to bottom, it is its biography."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import claudius
from claudius.cognition.mind import Mind
from claudius.cognition.turn import Turned
from claudius.errors import ClaudiusError, StoreError
from claudius.home import Home
from claudius.memory.archive import Archive, GitFailed
from claudius.memory.store import Waiting
from claudius.runtime.adapter import Adapter
from claudius.runtime.control import Connection, ControlSocket, Handler
from claudius.runtime.intake import Intake
from claudius.runtime.lanes import Lanes
from claudius.runtime.lock import HomeLock
from claudius.runtime.networks import Networks

log = logging.getLogger("claudius.server")

DRAIN_S = 8.0
ARCHIVE_AFTER_S = 2.0
"""The archive begins when the start is over: it is off every reply's path."""


class Server:
    """One home's soul, awake."""

    def __init__(
        self,
        home: Home,
        lock: HomeLock,
        mind: Mind,
        adapters: Mapping[str, Adapter],
        handlers: Mapping[str, Handler],
        *,
        chance: Callable[[], float],
        archive: Archive | None = None,
    ) -> None:
        """Wake `home`, whose `lock` is held, with `mind`; listen on `adapters`; `handlers` serve the control socket."""
        self._home, self._mind = home, mind
        self.boot = secrets.token_hex(8)
        self._lock = lock
        self._archive = archive
        self._lanes = Lanes(mind, adapters, chance=chance, fatal=self._fatal, committed=self._committed)
        self._control = ControlSocket(home.socket, {**handlers, "status": self._status})
        self._intake = Intake(mind, self._lanes.wake, self._lanes.forget_members)
        self._networks = Networks(adapters, mind, self._lanes, self._intake, self._fatal)
        self._archiving: asyncio.Task[None] | None = None
        self._started_at = mind.clock()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def start(self) -> Waiting:
        """Recover what an earlier process left, open the doors, and take up what waits."""
        now = self._mind.clock()
        self._lock.sign(self.boot, now)
        waiting = await self._mind.store.start(self.boot, now)
        self._networks.open()
        if self._archive:
            self._archiving = asyncio.create_task(self._archive_from_now_on(self._archive), name="archive")
        await asyncio.sleep(0)
        await self._control.open()
        for conversation in waiting.conversations:
            self._lanes.wake(conversation)
        log.info("awake", extra={"boot": self.boot, "waiting": len(waiting.conversations)})
        return waiting

    async def ready(self) -> None:
        """Return once every network is connected, or is known to be tried again later.

        Raises: AdapterRefused where every network refused us, StoreError.
        """
        trying = asyncio.create_task(self._networks.tried(), name="ready")
        await asyncio.wait((trying, self._ended), return_when=asyncio.FIRST_COMPLETED)
        trying.cancel()
        if self._ended.done():
            self._ended.result()

    def wake(self, conversation: str) -> None:
        """Have a conversation look at what waits: someone listens again."""
        self._lanes.wake(conversation)

    @property
    def busy(self) -> int:
        """How many conversations have something to do."""
        return self._lanes.busy

    async def wait(self) -> None:
        """Wait until something ends the process from inside. Raises: StoreError where the store is beyond use."""
        await self._ended

    async def stop(self, *, grace_s: float = DRAIN_S) -> None:
        """Stop hearing, let running turns end, close the store in good order, let the home go."""
        self._intake.shut()
        await self._lanes.drain(grace_s)
        await self._control.close()
        await self._networks.close()
        if self._archiving:
            self._archiving.cancel()
            await asyncio.gather(self._archiving, return_exceptions=True)
        await self._archive_what_is_left()
        await self._mind.provider.aclose()
        await self._mind.store.close(clean=True)
        self._lock.release()
        log.info("asleep", extra={"boot": self.boot})

    def _committed(self, turned: Turned) -> None:
        if self._archive and (turned.intent.model or turned.intent.state):
            self._archive.wake()

    async def _archive_from_now_on(self, archive: Archive) -> None:
        await asyncio.sleep(ARCHIVE_AFTER_S)
        await archive.run()

    async def _archive_what_is_left(self) -> None:
        if self._archive is None:
            return
        try:
            async with asyncio.timeout(DRAIN_S):
                if await self._mind.store.unarchived(1):
                    await self._archive.round()
        except (GitFailed, OSError, StoreError, TimeoutError) as error:
            log.warning("not archived yet", extra={"error": str(error)})
        await self._archive.close()

    def _fatal(self, error: ClaudiusError) -> None:
        log.critical("cannot go on", extra={"error": error.message})
        if not self._ended.done():
            self._ended.set_exception(error)

    async def _status(self, connection: Connection, _: Mapping[str, Any]) -> None:
        now = self._mind.clock()
        await connection.send(
            {
                "version": claudius.__version__,
                "uptime_s": round((now - self._started_at).total_seconds(), 1),
                "provider": {"name": self._mind.provider.name, "model": self._mind.provider.model},
                "adapters": self._networks.status(now),
                "busy": self.busy,
            }
        )
