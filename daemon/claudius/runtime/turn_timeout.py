"""Limit how long one turn waits for its model: the person who waits has so much patience (`runtime.patience_s`)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import cast

from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.errors import TimedOut
from claudius.provider import Event, Provider, Request, limits_of, patience_of


def patient(mind: Mind, heard_s: float) -> Mind:
    """Return the mind for one turn, whose perception was heard at `heard_s`, an instant of the running loop.

    A perception that waited long before its turn still gets the time for one first byte.
    """
    config = mind.config()
    least_s = min(config.model.first_byte_s, config.runtime.patience_s)
    until = max(heard_s + config.runtime.patience_s, asyncio.get_running_loop().time() + least_s)
    voices = {
        name: replace(one, provider=TimedProvider(one.provider, until, least_s)) for name, one in mind.voices.items()
    }
    return replace(mind, provider=TimedProvider(mind.provider, until, least_s), voices=voices)


class TimedProvider:
    """A provider, with its retries and fallbacks, that is abandoned if it says nothing in time; for one turn.

    The person who waits has so much patience. Source: the reliability design, section 7 (`runtime.patience_s`) and R12.
    """

    def __init__(self, inner: Provider, until: float, least_s: float) -> None:
        """Give up at `until`, an instant of the running loop; a call that begins late still has `least_s` seconds."""
        self._inner, self._until, self._least_s = inner, until, least_s
        self.limits = partial(limits_of, inner)

    @property
    def name(self) -> str:
        """The provider's name."""
        return self._inner.name

    @property
    def model(self) -> str:
        """The provider's model."""
        return self._inner.model

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the reply. Raises: ProviderError; TimedOut if nothing came in time."""
        least_s = max(self._least_s, patience_of(self._inner, request))
        latest = max(self._until, asyncio.get_running_loop().time() + least_s)
        async with aclosing(cast(AsyncGenerator[Event, None], self._inner.complete(request))) as events:
            try:
                async with asyncio.timeout_at(latest):
                    first = await anext(events, None)
            except TimeoutError as error:
                raise TimedOut("the model said nothing in all the time there was", provider=self.name) from error
            if first is None:
                return
            yield first
            async for event in events:
                yield event

    async def aclose(self) -> None:
        """Do nothing: the provider belongs to whoever made it."""
