"""Keep the chain of providers that the settings in force name: replace it when they change, and look for a model anew.

A replaced chain is closed when its last call has ended.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

from claudius.config.load import Loaded, Settings
from claudius.errors import ClaudiusError
from claudius.provider import Done, Event, Failing, ModelLimits, Request, VoiceState, Wrapped
from claudius.providers.chain import AUTO, NO_MODEL, NO_VOICE, REHEARSAL, Chain
from claudius.runtime.process_resources import Disk
from claudius.soul import Source

LOOK_AGAIN_S, LOOK_SHARE = 1.0, 20
"""How long after a search for a model the next one may begin: this long, and this many times as long as it took."""
LOOK_FOR_S = 3.0
"""How long a call waits for a model to appear, as while a machine starts."""
MODEL_KEYS = ("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDIUS_OPENAI_API_KEY", "GROQ_API_KEY")
"""The secrets that providers use: a change of one is taken at the next call."""
UNREAL = (REHEARSAL, "scripted", NO_VOICE, "")
"""Providers without a model."""

log = logging.getLogger(__name__)


class CurrentVoice(Wrapped):
    """The chain that the current settings name. A replaced chain is closed when its last call has ended.

    If no chain can be built from the settings, the last good one stays in use and `problem` holds the error. While
    `auto` has found no model, each call looks for one again.
    """

    inner: Chain
    """The chain in use."""

    def __init__(
        self,
        chain: Chain,
        loaded: Callable[[], Loaded],
        build: Callable[[Loaded], Chain],
        *,
        met: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Begin with `chain`, built from what `loaded` returns now. `build` makes another one, in a thread.

        `met` is called once when a model has answered; `clock` returns seconds of any origin.
        """
        super().__init__(chain)
        self._loaded, self._build = loaded, build
        self._met: Callable[[], None] | None = met
        self._clock, self._sleep, self._look_at = clock, sleep, clock() + LOOK_AGAIN_S
        self._asked = _named(loaded())
        self._calls: dict[Chain, int] = {}
        self._changing = asyncio.Lock()
        self.problem: ClaudiusError | None = None

    async def limits(self) -> ModelLimits:
        """Return what the first model of the current chain can take."""
        return await (await self._now()).limits()

    async def prepare(self) -> None:
        """Have the current chain do now what its first call would wait for."""
        await (await self._now()).prepare()

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the reply of the current chain. Raises: ProviderError."""
        chain, until = await self._now(), self._clock() + LOOK_FOR_S
        while chain.name == NO_VOICE and self._clock() < until:
            yield Failing(NO_MODEL)
            await self._sleep(LOOK_AGAIN_S)
            chain = await self._now()
        self._calls[chain] = self._calls.get(chain, 0) + 1
        try:
            async with aclosing(cast(AsyncGenerator[Event, None], chain.complete(request))) as events:
                async for event in events:
                    if self._met and isinstance(event, Done) and event.provider not in UNREAL:
                        self._met()
                        self._met = None
                    yield event
        finally:
            self._calls[chain] -= 1
            await self._let_go(chain)

    def state(self) -> VoiceState:
        """Return how the last attempt of the current chain went, and who rests."""
        return self.inner.state()

    async def aclose(self) -> None:
        """Close every open chain."""
        for chain in {self.inner, *self._calls}:
            await chain.aclose()

    async def _now(self) -> Chain:
        async with self._changing:
            loaded = self._loaded()
            asked = _named(loaded)
            is_search = asked == self._asked
            has_none = AUTO in loaded.config.providers and self.inner.name in (REHEARSAL, NO_VOICE)
            if is_search and not (has_none and self._clock() >= self._look_at):  # `auto` has found no model yet
                return self.inner
            began = self._clock()
            try:
                fresh = await asyncio.to_thread(self._build, loaded)
                self._asked = asked
            except ClaudiusError as error:
                self.problem, self._asked = error, asked
                log.warning("the voice stays as it was", extra={"problem": error.message})
                return self.inner
            finally:
                took_s = self._clock() - began
                self._look_at = self._clock() + max(LOOK_AGAIN_S, LOOK_SHARE * took_s)
            if is_search and fresh.name == self.inner.name:
                await fresh.aclose()
                return self.inner
            old, self.inner, self.problem = self.inner, fresh, None
            log.info("another voice speaks from now on", extra={"voice": fresh.name, "model": fresh.model})
        await self._let_go(old)
        return fresh

    async def _let_go(self, chain: Chain) -> None:
        if not self._calls.get(chain):
            self._calls.pop(chain, None)
            if chain is not self.inner:
                await chain.aclose()


def _named(loaded: Loaded) -> tuple[Any, ...]:
    """Return the settings and the keys that determine the chain. Pure."""
    config, keys = loaded.config, [loaded.secret(name) for name in MODEL_KEYS]
    return config.providers, config.anthropic, config.claude, config.openai, config.home, config.model, *keys


def mark_of(loaded: Loaded, part: str = "") -> str:
    """Return the mark of a chain: the same in every process with these settings and keys. Tells neither. Pure."""
    return hashlib.sha256(repr((part, *_named(loaded))).encode()).hexdigest()[:16]


def notices(voice: CurrentVoice, settings: Settings, soul: Source, disk: Disk, env_file: Path) -> list[str]:
    """Return what the owner should know, one line each: files not in force, providers that refused us."""
    resting = voice.inner.resting() if voice.inner.last_error is None else ()  # told with the failure otherwise
    refused = [
        f"{one.name} refused our key or account: correct it in {env_file}: your next message tries it"
        for one in resting
    ]
    in_soul, elsewhere = [
        [f"{one.message} (the last good version stays in use)" for one in problems if one]
        for problems in (soul.problems, (settings.problem, voice.problem))
    ]
    shut = [f"nothing new is accepted: {disk.shut.error.message}"] if disk.shut else []
    return [*shut, *in_soul, *refused, *voice.inner.notices(), *elsewhere]
