"""Speaking what was committed: each part once, in order, and nothing sent blindly that may be visible already.

Source: the reliability design, sections 2 and 6.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from claudius.errors import DeliveryLater, DeliveryRefused, DeliveryUnknown
from claudius.memory.store import Delivery, Store
from claudius.runtime.adapter import Adapter
from claudius.runtime.failures import backoff_s

log = logging.getLogger("claudius.delivery")

CAP_S = 300.0


class Delivered:
    """How a round of delivery ended."""

    @dataclass(frozen=True, slots=True)
    class All:
        """Nothing is left to say, or nobody is there to hear it now."""

    @dataclass(frozen=True, slots=True)
    class Wait:
        """A part has to wait; what comes after it waits too."""

        seconds: float


async def deliver(
    conversation: str, store: Store, adapter: Adapter | None, clock: Callable[[], datetime]
) -> Delivered.All | Delivered.Wait:
    """Speak every committed part of a conversation, oldest first."""
    if adapter is None:
        return Delivered.All()
    for part in await store.deliveries(conversation):
        now = clock()
        if part.not_before and part.not_before > now:
            return Delivered.Wait((part.not_before - now).total_seconds())
        ended = await _part(part, store, adapter, clock)
        if ended is not None:
            return ended
    return Delivered.All()


async def _part(
    part: Delivery, store: Store, adapter: Adapter, clock: Callable[[], datetime]
) -> Delivered.All | Delivered.Wait | None:
    utterance = part.utterance
    try:
        receipt = await adapter.find(utterance) if part.state == "unknown_after_send" else None
        if receipt is None:
            if part.state != "taken":
                await store.attempt(utterance.key)
            receipt = await adapter.speak(utterance)
    except DeliveryRefused as error:
        log.warning("utterance refused", extra={"turn": utterance.turn, "code": error.code})
        await store.undeliverable(utterance.key, error.code)
        return None
    except DeliveryLater as error:
        if error.after_s is None:
            await store.delay(utterance.key, None, "nobody is there")
            return None
        await store.delay(utterance.key, clock() + timedelta(seconds=error.after_s), "later")
        return Delivered.Wait(error.after_s)
    except DeliveryUnknown as error:
        wait_s = backoff_s(part.attempts + 1, 1.0, cap_s=CAP_S)
        log.warning("utterance may be visible", extra={"turn": utterance.turn, "error": str(error)})
        await store.delay(utterance.key, clock() + timedelta(seconds=wait_s), "unknown", unknown=True)
        return Delivered.Wait(wait_s)
    await store.settle(utterance.key, receipt, clock())
    return None
