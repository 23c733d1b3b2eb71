"""Called into the middle of a thread: what was said there before is read first, as overheard, owing nothing.

It is made durable like everything that is heard, under its own keys: so nothing that is known comes twice, and the
lane takes it before what called the soul, because it was said before. Source: the chat design, section 4.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from time import monotonic

from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.cognition.turn import SAYS
from claudius.errors import DeliveryError
from claudius.perception import Following, Kind, Perception, Place
from claudius.runtime.access import admit
from claudius.runtime.adapter import Adapter
from claudius.runtime.commands.words import is_command

log = logging.getLogger("claudius.hydrating")

MOST = 20
GAP_S = 600.0
"""After so long without a look, a thread is read again when the soul is called into it."""
PATIENCE_S = 10.0
"""A turn waits so long for what came before it."""
MOST_KNOWN = 10_000


class Hydration:
    """When each thread was last read, in this process."""

    def __init__(self, mind: Mind, now: Callable[[], float] = monotonic) -> None:
        """Keep what was said in `mind.store`; `now` gives monotonic seconds."""
        self._mind, self._now = mind, now
        self._read: dict[str, float] = {}

    async def read(self, perception: Perception, adapter: Adapter) -> bool:
        """Read what came before a call into a thread, or before the soul came into a channel.

        Tell whether something is to be taken first. Raises: StoreError.

        A network that does not let us read now holds nothing up.
        """
        place, now = Place.of(perception.conversation), self._now()
        is_call = perception.kind is Kind.MENTION and place.thread and not perception.position.endswith(place.thread)
        if not is_call and SAYS not in perception.extra:
            return False
        last = self._read.pop(perception.conversation, None)
        self._read[perception.conversation] = now
        if len(self._read) > MOST_KNOWN:
            del self._read[next(iter(self._read))]
        if last is not None and now - last < GAP_S:
            return False
        try:
            async with asyncio.timeout(PATIENCE_S):
                found = await adapter.context(perception, MOST)
        except (DeliveryError, OSError, TimeoutError) as error:
            log.info("a thread was not read", extra={"conversation": perception.conversation, "error": repr(error)})
            return False
        kept = await self._mind.store.accept(self._overheard(found), self._mind.clock())
        log.info("a thread was read", extra={"conversation": perception.conversation, "new": sum(kept)})
        return any(kept)

    def _overheard(self, found: Sequence[Perception]) -> list[Perception]:
        """Leave out what calls us: it is known, or a sweep finds it, and it is owed more than to be overheard.

        For the same reason the store decides of the rest: in a thread that the soul follows, it may owe a reply.
        """
        config = self._mind.config()
        said = (one for one in found if one.kind is Kind.MESSAGE and not is_command(one.text))
        admitted = (admit(one, config) for one in said)
        return [replace(one, following=Following.KEPT) for one in admitted if one]
