"""Limit how long a turn waits for a model: a message's own time, less in a terminal, where somebody watches."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import partial
from typing import cast

from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.errors import ProviderError, TimedOut
from claudius.perception import Origin, Perception, is_terminal
from claudius.provider import Event, Failing, Provider, Request, limits_of, patience_of


def patience_s(mind: Mind, perception: Perception) -> float:
    """Return how long a message waits for a model before the apology; somebody watches a terminal, so it waits less."""
    config = mind.config()
    is_watched = is_terminal(perception.conversation) and perception.origin is Origin.EXTERNAL
    return min(config.runtime.patience_s, config.terminal.wait_s) if is_watched else config.runtime.patience_s


def patient(mind: Mind, perception: Perception, heard_s: float) -> Mind:
    """Return the mind for one turn, whose perception was heard at `heard_s`, an instant of the running loop.

    A perception that waited long before its turn still gets the time for one first byte.
    """
    most_s = patience_s(mind, perception)
    least_s = min(mind.config().model.first_byte_s, most_s)
    until = max(heard_s + most_s, asyncio.get_running_loop().time() + least_s)
    voices = {
        name: replace(one, provider=TimedProvider(one.provider, until, least_s)) for name, one in mind.voices.items()
    }
    return replace(mind, provider=TimedProvider(mind.provider, until, least_s), voices=voices)


class TimedProvider:
    """A provider, with its retries and fallbacks, that is abandoned if it says nothing in time; for one turn.

    It stands for the patience of the person who waits. Source: the reliability design, section 7 (`runtime.patience_s`)
    and R12.
    """

    def __init__(self, inner: Provider, until: float, least_s: float) -> None:
        """Give up at `until`, an instant of the running loop; a call that begins late still has `least_s` seconds."""
        self._inner, self._until, self._least_s = inner, until, least_s
        self.limits, self.patience_s = partial(limits_of, inner), partial(patience_of, inner)

    @property
    def name(self) -> str:
        """The provider's name."""
        return self._inner.name

    @property
    def model(self) -> str:
        """The provider's model."""
        return self._inner.model

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the reply. Raises: ProviderError; if nothing came in time, the last one met, or else TimedOut."""
        failed: ProviderError | None = None
        least_s = max(self._least_s, patience_of(self._inner, request))
        latest = max(self._until, asyncio.get_running_loop().time() + least_s)
        async with aclosing(cast(AsyncGenerator[Event, None], self._inner.complete(request))) as events:
            try:
                while True:
                    async with asyncio.timeout_at(latest):
                        first = await anext(events, None)
                    if not isinstance(first, Failing):
                        break
                    failed = first.error
                    yield first
            except TimeoutError as error:
                silent = TimedOut("the model said nothing in all the time there was", provider=self.name)
                raise failed or silent from error
            if first is None:
                return
            yield first
            async for event in events:
                yield event

    async def aclose(self) -> None:
        """Do nothing: the provider belongs to whoever made it."""
