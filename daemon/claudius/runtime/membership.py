"""Who can see a shared audience now: asked of the network before a turn there, and forgotten where it cannot tell.

Source: the security design, section 5: unknown members mean that only what was learned there may be shown there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from time import monotonic

from claudius.errors import ClaudiusError
from claudius.memory.store import Store
from claudius.runtime.adapter import Adapter

log = logging.getLogger("claudius.membership")

FRESH_S = 600.0
"""An answer of the network counts for so long."""
STALE_S = 86_400.0
"""While the network cannot be asked, its last answer counts for so long."""
PATIENCE_S = 2.0
"""A turn waits so long for the network's answer."""


@dataclass(frozen=True, slots=True)
class _Known:
    at_s: float
    is_known: bool


class Membership:
    """What is known of shared audiences, kept current in the store."""

    def __init__(self, store: Store, clock: Callable[[], datetime], monotonic: Callable[[], float] = monotonic) -> None:
        """Record in `store`, with `clock`'s time; durations are measured with `monotonic`, in seconds."""
        self._store, self._clock, self._monotonic = store, clock, monotonic
        self._asked: dict[str, _Known] = {}

    def forget(self, audience: str) -> None:
        """Ask again before the next turn: someone joined or left."""
        self._asked.pop(audience, None)

    async def refresh(self, audience: str, adapter: Adapter) -> None:
        """Bring what the store knows of a shared audience up to date. Raises: StoreError."""
        before = self._asked.get(audience)
        if before and self._monotonic() - before.at_s < FRESH_S:
            return
        try:
            async with asyncio.timeout(PATIENCE_S):
                persons = await adapter.members(audience)
        except (ClaudiusError, TimeoutError, OSError) as error:
            log.info("members not known", extra={"audience": audience, "error": repr(error)})
            if before and before.is_known and self._monotonic() - before.at_s < STALE_S:
                return
            persons = None
        if persons is None and before and not before.is_known:
            return
        await self._store.know_members(audience, persons, self._clock())
        self._asked[audience] = _Known(self._monotonic(), is_known=persons is not None)
