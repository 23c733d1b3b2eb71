"""Keep the chain of providers in step with the settings: an edit takes effect at the next call, without a restart."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, cast

from claudius.config import Loaded
from claudius.errors import ClaudiusError
from claudius.provider import Event, Request
from claudius.providers.chain import Chain

log = logging.getLogger(__name__)


class CurrentVoice:
    """The chain that the current settings name. A replaced chain is closed when its last call has ended.

    If no chain can be built from the settings, the last good one stays in use and `problem` holds the error.
    """

    def __init__(self, chain: Chain, loaded: Callable[[], Loaded], build: Callable[[Loaded], Chain]) -> None:
        """Begin with `chain`, built from what `loaded` returns now. `build` makes another one, in a thread."""
        self._chain, self._loaded, self._build = chain, loaded, build
        self._asked = _named(loaded())
        self._calls: dict[Chain, int] = {}
        self._changing = asyncio.Lock()
        self.problem: ClaudiusError | None = None

    @property
    def name(self) -> str:
        """The name of the first provider."""
        return self._chain.name

    @property
    def model(self) -> str:
        """The first provider's model."""
        return self._chain.model

    @property
    def sees(self) -> bool:
        """Whether the first provider accepts images."""
        return self._chain.sees

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the reply of the current chain. Raises: ProviderError."""
        chain = await self._now()
        self._calls[chain] = self._calls.get(chain, 0) + 1
        try:
            async with aclosing(cast(AsyncGenerator[Event, None], chain.complete(request))) as events:
                async for event in events:
                    yield event
        finally:
            self._calls[chain] -= 1
            await self._let_go(chain)

    def resting(self) -> dict[str, float]:
        """Return the names of the paused providers, with the seconds left."""
        return self._chain.resting()

    async def forget(self, conversation: str) -> None:
        """Make every provider end what it keeps of a conversation."""
        await self._chain.forget(conversation)

    async def aclose(self) -> None:
        """Close every open chain."""
        for chain in {self._chain, *self._calls}:
            await chain.aclose()

    async def _now(self) -> Chain:
        async with self._changing:
            loaded = self._loaded()
            asked = _named(loaded)
            if asked == self._asked:
                return self._chain
            self._asked = asked
            try:
                fresh = await asyncio.to_thread(self._build, loaded)
            except ClaudiusError as error:
                self.problem = error
                log.warning("the voice stays as it was", extra={"problem": error.message})
                return self._chain
            old, self._chain, self.problem = self._chain, fresh, None
            log.info("another voice speaks from now on", extra={"voice": fresh.name, "model": fresh.model})
        await self._let_go(old)
        return fresh

    async def _let_go(self, chain: Chain) -> None:
        if not self._calls.get(chain):
            self._calls.pop(chain, None)
            if chain is not self._chain:
                await chain.aclose()


def _named(loaded: Loaded) -> tuple[Any, ...]:
    """Return the settings that determine the chain. Pure."""
    config = loaded.config
    return config.providers, config.anthropic, config.claude, config.openai, config.model
