"""Backfill: when the soul is called into a thread, reads what was said there before, as overheard and owing no reply.

It is made durable like everything that is heard, under its own keys, so that nothing known is stored twice; the lane
takes it before the call, because it was said before. Source: the chat design, section 4.
"""

from __future__ import annotations

import asyncio
import logging
from time import monotonic

from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.errors import DeliveryError
from claudius.foreign import unquoted
from claudius.perception import Following, Kind, Perception, Place, internal
from claudius.runtime.adapter import Adapter
from claudius.runtime.commands.words import command_in
from claudius.runtime.intake import admit

log = logging.getLogger(__name__)

MOST = 20
GAP_S = 600.0
"""A thread that was not read for this long is read again when the soul is called into it."""
PATIENCE_S = 10.0
"""How long a turn waits for the earlier messages."""
MOST_KNOWN = 10_000


class ThreadBackfill:
    """When each thread was last read, in this process."""

    def __init__(self, mind: Mind) -> None:
        self._mind = mind
        self._read: dict[str, float] = {}

    async def read(self, perception: Perception, adapter: Adapter) -> bool:
        """Read what preceded a call into a thread, or the soul's arrival in a channel.

        Returns whether something is to be taken first. A network that cannot be read now delays nothing.

        Raises: StoreError.
        """
        place, now = Place.of(perception.conversation), monotonic()
        is_call = perception.kind is Kind.MENTION and place.thread and not perception.position.endswith(place.thread)
        if not is_call and internal(perception).says is None:
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
            log.info("a thread was not read", extra={"conversation": perception.conversation, "error": unquoted(error)})
            return False
        # Those that call us are known or found by a sweep, and are owed more than being overheard. The store decides
        # about the rest for the same reason: in a thread that the soul follows, it may owe a reply.
        config = self._mind.config()
        said = (one for one in found if one.kind is Kind.MESSAGE and not command_in(one.text))
        admitted = (admit(one, config) for one in said)
        overheard = [replace(one, following=Following.KEPT) for one in admitted if one]
        kept = await self._mind.store.inbox.accept(overheard, self._mind.clock())
        log.info("a thread was read", extra={"conversation": perception.conversation, "new": sum(kept)})
        return any(kept)
