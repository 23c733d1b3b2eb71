"""Choose the providers, and ask them in order, with retries, deadlines, and a pause for one whose account is shut.

    before the first delta   retryable   retried at most `retries` times, then the next provider
                             never       raised; a shut account is paused, so the next call goes to the next provider
    after the first delta    anything    raised as it is: the caller repairs what was said

Source: the reliability design, section 7.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import random
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any, cast

from claudius.config import Loaded, ModelSettings
from claudius.errors import (
    AuthFailed,
    ClaudiusError,
    Cut,
    ProviderError,
    RefusedReply,
    SpendLimit,
    TimedOut,
    TooLong,
    Unavailable,
)
from claudius.provider import (
    CallTally,
    Delta,
    Done,
    Event,
    Limits,
    Provider,
    Request,
    Reset,
    Resting,
    VoiceState,
    limits_of,
    patience_of,
)

AUTO = "auto"
OLLAMA_S = 0.2
"""How long a local Ollama may take to answer."""
BACKOFF_BASE_S = 0.5
BACKOFF_CAP_S = 8.0
PATIENCE_S = 60.0
"""A Retry-After beyond this means that the provider counts as down."""
REST_S = 600.0
"""How long a provider is paused after its account was refused."""
REHEARSAL = "rehearsal"

log = logging.getLogger(__name__)

_SHUT = (AuthFailed, SpendLimit, Unavailable)
_OF_THE_REQUEST = (TooLong, RefusedReply)
"""Errors that say something about the request, not about the provider."""


class Chain:
    """A provider that asks a list of providers: the first one answers, the others are its fallbacks.

    The rehearsal provider is asked only if it comes first, so that nobody takes it for a model that fell silent.
    """

    def __init__(
        self,
        providers: Sequence[Provider],
        settings: ModelSettings,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
        tally: CallTally | None = None,
    ) -> None:
        """Prepare the chain. `clock` returns seconds of any origin, `chance` numbers in [0, 1) for the jitter.

        `tally` counts replies and failures, also those of other chains.
        """
        if not providers:
            raise ValueError("a chain needs a provider")
        self.providers = tuple(providers)
        self.name, self.model = providers[0].name, providers[0].model
        self._settings, self._clock, self._sleep, self._chance = settings, clock, sleep, chance
        self._resting: dict[int, tuple[float, ProviderError]] = {}
        self._tally = tally or CallTally()
        self._last_error = ""

    @property
    def sees(self) -> bool:
        """Whether the first provider accepts images."""
        return bool(getattr(self.providers[0], "sees", False))

    async def limits(self) -> Limits:
        """Return what the model can take that will be asked next: the first that does not rest."""
        awake = (one for number, one in enumerate(self.providers) if not self._rest_of(number))
        return await limits_of(next(awake, self.providers[0]))

    def patience_s(self, request: Request) -> float:
        """Return the least time that the first byte may take, of the most patient provider."""
        return max(patience_of(one, request) for one in self.providers)

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the reply of the first provider that gives one. Raises: ProviderError, of the last provider asked."""
        failed: ProviderError | None = None
        for number, provider in enumerate(self.providers):
            if number and provider.name == REHEARSAL:
                continue
            if resting := self._rest_of(number):
                failed = failed or resting
                continue
            try:
                async with aclosing(self._persist(number, provider, request)) as events:
                    async for event in events:
                        yield event
            except _Down as down:
                failed = down.error
                log.warning("%s is down (%s: %s)", provider.name, type(failed).__name__, failed.message)
            else:
                self.model = self.providers[0].model
                return
        raise failed or Unavailable("no provider can be asked")

    async def forget(self, conversation: str) -> None:
        """End a conversation's session at every provider that keeps sessions, because what was said is to be erased."""
        for provider in self.providers:
            forget = getattr(provider, "forget", None)
            if forget:
                await forget(conversation)

    async def aclose(self) -> None:
        """Close every provider, even if closing one fails."""
        results = await asyncio.gather(*(provider.aclose() for provider in self.providers), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    def resting(self) -> dict[str, float]:
        """Return the names of the paused providers, with the seconds left."""
        now = self._clock()
        return {self.providers[number].name: until - now for number, (until, _) in self._resting.items() if until > now}

    def state(self) -> VoiceState:
        """Return how the last attempt went, and who rests."""
        now = self._clock()
        resting = [
            Resting(self.providers[number].name, until - now, error.message)
            for number, (until, error) in self._resting.items()
            if until > now
        ]
        return VoiceState(last_error=self._last_error, resting=tuple(resting))

    async def _persist(self, number: int, provider: Provider, request: Request) -> AsyncGenerator[Event, None]:
        """Ask one provider, with retries. Raises: _Down if the next one is to be asked."""
        for attempt in range(self._settings.retries + 1):
            spoke = False
            try:
                async with aclosing(self._timed(provider, request)) as events:
                    async for event in events:
                        spoke = spoke or isinstance(event, Delta)
                        if isinstance(event, Done):
                            self._last_error = ""
                            self._tally.answered(provider, request, event)
                        yield event
            except ProviderError as error:
                error.provider = error.provider or provider.name
                self._tally.failed(provider, error)
                if not isinstance(error, _OF_THE_REQUEST):
                    self._last_error = f"{provider.name}: {error.message}"
                if spoke:
                    raise
                self._rest(number, error)
                if not error.retryable:
                    raise
                wait_s = self._wait_s(attempt, error)
                if wait_s is None or attempt == self._settings.retries:
                    raise _Down(error) from error
                log.info("%s: %s, again in %.1f s", provider.name, type(error).__name__, wait_s)
                await self._sleep(wait_s)
            else:
                return

    async def _timed(self, provider: Provider, request: Request) -> AsyncGenerator[Event, None]:
        """Apply the deadlines to one call. Raises: TimedOut, or Cut if the provider ended without `Done`."""
        loop = asyncio.get_running_loop()
        reading_s = max(self._settings.first_byte_s, patience_of(provider, request))
        last = loop.time() + self._settings.total_s + reading_s - self._settings.first_byte_s
        next_by, which = loop.time() + reading_s, "first byte"
        events = provider.complete(request)
        try:
            while True:
                try:
                    async with asyncio.timeout_at(min(last, next_by)):
                        event = await anext(events)
                except TimeoutError as error:
                    which = "total" if loop.time() >= last else which
                    raise TimedOut(f"the model did not answer in time ({which})", provider=provider.name) from error
                except StopAsyncIteration as error:
                    raise Cut("the model ended without saying so", provider=provider.name) from error
                yield event
                if isinstance(event, Done):
                    return
                if not isinstance(event, Reset):
                    next_by, which = loop.time() + self._settings.idle_s, "idle"
        finally:
            close = getattr(events, "aclose", None)
            if close:  # an iterator that cannot be closed holds nothing
                with suppress(ProviderError):
                    await close()

    def _wait_s(self, attempt: int, error: ProviderError) -> float | None:
        """Return how long to wait before the next retry, or None if the provider counts as down."""
        backoff_s = self._chance() * min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2.0**attempt)
        asked_s = error.after_s or 0.0
        return None if asked_s > PATIENCE_S else max(asked_s, backoff_s)

    def _rest(self, number: int, error: ProviderError) -> None:
        if isinstance(error, _SHUT):
            rest_s = REST_S
            name = self.providers[number].name
            log.warning("%s rests for %.0f s: %s", name, rest_s, error.message)
        elif error.retryable and (error.after_s or 0.0) > PATIENCE_S:
            rest_s = error.after_s or 0.0
        else:
            return
        self._resting[number] = (self._clock() + rest_s, error)

    def _rest_of(self, number: int) -> ProviderError | None:
        if number not in self._resting:
            return None
        until, error = self._resting[number]
        left_s = until - self._clock()
        if left_s <= 0:
            del self._resting[number]
            return None
        return type(error)(error.message, provider=error.provider, after_s=left_s)


class _Down(Exception):
    """A provider is down and may answer later. The next one is asked now."""

    def __init__(self, error: ProviderError) -> None:
        super().__init__(error.message)
        self.error = error


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

    async def limits(self) -> Limits:
        """Return what the first model of the current chain can take."""
        return await (await self._now()).limits()

    def patience_s(self, request: Request) -> float:
        """Return the least time that the first byte may take."""
        return self._chain.patience_s(request)

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

    def state(self) -> VoiceState:
        """Return how the last attempt of the current chain went, and who rests."""
        return self._chain.state()

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


def choose(loaded: Loaded) -> list[str]:
    """Return the providers' names in the order in which they are asked, `auto` resolved to the first available one.

    The order for `auto`: the Anthropic API with a key, Claude with a login, a chat-completions server, rehearsal.
    """
    names = [_first(loaded) if name == AUTO else name for name in loaded.config.providers]
    return list(dict.fromkeys(names))


def _first(loaded: Loaded) -> str:
    if loaded.secret("ANTHROPIC_API_KEY") and _is_installed("anthropic"):
        return "anthropic_api"
    if _has_login(loaded):
        return "agent_sdk" if _is_installed("claude_agent_sdk") else "claude_cli"
    if loaded.config.openai.base_url or _has_ollama():
        return "openai_compat"
    return "rehearsal"


def _is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def _has_login(loaded: Loaded) -> bool:
    from claudius.providers.claude import command  # noqa: PLC0415 - probes only when asked

    try:
        found = command.find(loaded.config.claude.cli_path)
    except Unavailable:
        return False
    return command.is_logged_in(found, command.child_env(loaded, os.environ, max_tokens=1))


def _has_ollama() -> bool:
    from claudius.providers.openai_compat import has_ollama  # noqa: PLC0415 - as above

    return has_ollama(OLLAMA_S)
