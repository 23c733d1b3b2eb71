"""Tracks who can see a shared audience: asks the network before anything is shown, and forgets if it cannot tell.

If a network lists the members of a place, the list is stored; otherwise it is asked what the person spoken to can see.

Source: the security design, section 5: unknown members mean that only what was learned there may be shown there.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime
from time import monotonic

from msgspec import Struct

from claudius.errors import ClaudiusError
from claudius.foreign import unquoted
from claudius.memory.people import SeenPlaces
from claudius.memory.store import Store
from claudius.perception import TERMINAL, Perception, is_terminal, private, sees_everything
from claudius.runtime.adapter import Adapter, Sees

log = logging.getLogger(__name__)

FRESH_S = 600.0
"""For how long an answer of the network is valid."""
STALE_S = 86_400.0
"""For how long the last answer is valid while the network cannot be asked."""
PATIENCE_S = 2.0
"""How long a turn waits for the network's answer."""


class _Known(Struct, frozen=True):
    at_s: float
    is_known: bool


class Membership:
    """What is known of shared audiences, kept current in the store."""

    def __init__(
        self,
        store: Store,
        adapters: Mapping[str, Adapter],
        clock: Callable[[], datetime],
    ) -> None:
        """Ask `adapters` (by network), record in `store`, with `clock`'s time."""
        self._store, self._adapters, self._clock = store, adapters, clock
        self._asked: dict[str, _Known] = {}
        self._asking: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._changed: set[str] = set()
        """The audiences in which someone joined or left since the network was last asked."""

    def forget(self, audience: str) -> None:
        """Discard the answer, because someone joined or left; the next turn asks again."""
        self._discard(audience)
        self._store.leases.changed(audience)

    def _discard(self, audience: str) -> None:
        self._asked.pop(audience, None)
        self._changed.add(audience)

    async def look(self, perception: Perception) -> None:
        """Update who sees what, as far as the answer to a perception depends on it. Raises: StoreError."""
        for changed in self._store.leases.news():  # heard by any process
            self._discard(changed)
        audience = perception.audience
        if sees_everything(audience, is_owner=perception.is_owner):
            return
        if audience.startswith(private("")):
            await self.look_as(audience.removeprefix(private("")))
        elif audience.startswith("shared:") and not is_terminal(perception.conversation):
            await self._list(audience)
            asked = self._asked.get(audience)
            if perception.person and asked and asked.is_known:
                # the lists that contain a person who is present: nothing from other places is shown among them
                for sight in await self._store.people.sight(perception.person):
                    if sight.person.partition(":")[0] != TERMINAL:
                        await asyncio.gather(*map(self._list, sight.listed))

    async def look_as(self, person: str) -> None:
        """Update what one person sees, under each of their ids. Raises: StoreError."""
        for sight in await self._store.people.sight(person):
            network = sight.person.partition(":")[0]
            if network == TERMINAL:
                continue
            adapter: object = self._adapters.get(network)
            seen: frozenset[str] = frozenset()
            if not isinstance(adapter, Sees):
                await asyncio.gather(*map(self._list, (*sight.listed, *sight.unlisted)))
            elif sight.unlisted:
                seen = await _seen(adapter, sight)
            if seen != sight.seen:
                await self._store.people.know_sight(sight.person, sorted(seen))

    async def _list(self, audience: str) -> None:
        async with self._asking[audience]:  # whoever comes meanwhile finds the answer
            before = self._asked.get(audience)
            if before is None or monotonic() - before.at_s >= FRESH_S:
                self._changed.discard(audience)
                await self._ask(audience, before)

    async def _ask(self, audience: str, before: _Known | None) -> None:
        adapter = self._adapters.get(audience.split(":")[1])
        try:
            async with asyncio.timeout(PATIENCE_S):
                persons = await adapter.members(audience) if adapter else None
        except (ClaudiusError, TimeoutError, OSError) as error:
            log.info("members not known", extra={"audience": audience, "error": unquoted(error)})
            if before and before.is_known and monotonic() - before.at_s < STALE_S:
                return
            persons = None
        if persons is not None or before is None or before.is_known:
            await self._store.people.know_members(audience, persons, self._clock())
        # An answer that was on its way when someone joined or left is not kept: whoever looks next asks again.
        at_s = float("-inf") if audience in self._changed else monotonic()
        self._asked[audience] = _Known(at_s, is_known=persons is not None)


async def _seen(adapter: Sees, sight: SeenPlaces) -> frozenset[str]:
    """Return which unlisted places one id can see; none if the network does not tell."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            return frozenset(await adapter.sees(sight.person, sight.unlisted))
    except (ClaudiusError, TimeoutError, OSError) as error:
        log.info("not known who sees what", extra={"person": sight.person, "error": unquoted(error)})
        return frozenset()
