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

from claudius.cognition.reply.tags import ThoughtFilter
from claudius.config.load import Loaded, networks_on
from claudius.config.schema import ModelSettings
from claudius.errors import (
    AuthFailed,
    BadRequest,
    Cut,
    ProviderError,
    RefusedReply,
    SpendLimit,
    TimedOut,
    TooLong,
    Unavailable,
)
from claudius.failure import NOBODY, Failure, failure_of
from claudius.home import FILE_MODE, Home
from claudius.provider import (
    CallTally,
    Delta,
    Done,
    Event,
    Failing,
    ModelLimits,
    Provider,
    Request,
    Reset,
    Resting,
    Rests,
    VoiceState,
    limits_of,
    patience_of,
    prepare,
    reading_s,
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
NO_VOICE = NOBODY
"""The name of what speaks where `auto` found no model and the rehearsal voice may not speak."""
NO_MODEL = Unavailable(
    "no model was found",
    provider=NO_VOICE,
    fix="`claudius model get`, or start Ollama, or put ANTHROPIC_API_KEY into .env: the next message finds it; "
    "`claudius config set providers rehearsal` has the voice without a model speak",
)
OVERFLOW = "the model refused a prompt as too long, and was shown less of it"
OVERFLOW_TOLD_S = 3600.0
HAD_MODEL = "had_model"
"""The file in a home's state which says that a model answered there once."""

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
        rests: Rests | None = None,
        mark: str = "",
    ) -> None:
        """Prepare the chain. `clock` returns seconds of any origin, `chance` numbers in [0, 1) for the jitter.

        `tally` counts replies and failures, also those of other chains; `rests` holds who is not asked, also by chains
        of other processes with the same `mark`.
        """
        if not providers:
            raise ValueError("a chain needs a provider")
        self.providers = tuple(providers)
        self.name, self.model = providers[0].name, providers[0].model
        self._settings, self._clock, self._sleep, self._chance = settings, clock, sleep, chance
        self._rests, self._mark = rests or Rests(), mark
        self._resting = self._rests.now
        self._tally = tally or CallTally()
        self.last_error: ProviderError | None = NO_MODEL if self.name == NO_VOICE else None
        """Why the last call failed; None if it did not."""
        self._overflow: tuple[Failure, float] | None = None
        """That a prompt was too long for its model, and until when the owner is told so, by `clock`."""
        self._refused = ("", 0)
        """The last prompt that was refused for no known reason: its conversation, and how many messages it had."""

    @property
    def sees(self) -> bool:
        """Whether the first provider accepts images."""
        return bool(getattr(self.providers[0], "sees", False))

    async def limits(self) -> ModelLimits:
        """Return what the model can take that will be asked next: the first that does not rest."""
        awake = [one for one in self.providers if not (self._resting and self._rest_of(one))]
        return await limits_of((*awake, self.providers[0])[0])

    async def prepare(self) -> None:
        """Have the first provider do now what its first call would wait for."""
        await prepare(self.providers[0])

    def patience_s(self, request: Request) -> float:
        """Return the least time that the first byte may take, of the most patient provider."""
        return max([patience_of(one, request) for one in self.providers])

    def reading_s(self, request: Request) -> float:
        """Return about how long the first provider reads this prompt."""
        return reading_s(self.providers[0], request)

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the reply of the first provider that gives one. Raises: ProviderError, of the last provider asked."""
        failed: ProviderError | None = None
        for number, provider in enumerate(self.providers):
            if number and provider.name == REHEARSAL:
                continue
            resting = self._rest_of(provider) if self._resting else None
            if resting and not request.tries_now:
                failed = failed or resting
                continue
            try:
                async with aclosing(self._persist(provider, request)) as events:
                    async for event in events:
                        yield event
            except _Down as down:
                failed = down.error
                log.warning("%s is down (%s: %s)", provider.name, type(failed).__name__, failed.message)
                yield Failing(failed)
            else:
                self.model, self.last_error = self.providers[0].model, None
                return
        raise failed or Unavailable("no provider can be asked")

    def echoed(self, name: str, model: str) -> None:
        """Tell a provider that keeps it that its model repeated what it was to answer."""
        for one in self.providers:
            echoed = getattr(one, "echoed", None)
            if one.name == name and echoed:
                echoed(model)

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

    def state(self) -> VoiceState:
        """Return how the last attempt went, and who rests."""
        failed = None if isinstance(self.last_error, _OF_THE_REQUEST) else self.last_error
        why = f"{failed.provider or self.name}: {failed.message}" if failed else ""
        return VoiceState(last_error=why, resting=self.resting(), notices=tuple(self.notices()))

    def resting(self) -> tuple[Resting, ...]:
        """Return the paused providers, with the seconds left, and why."""
        now, names = self._clock(), {one.name for one in self.providers}
        return tuple(
            [
                Resting(name, until - now, error.message)
                for (mark, name), (until, error) in self._resting.items()
                if mark == self._mark and name in names and until > now
            ]
        )

    def notices(self) -> list[str]:
        """Return what the owner should know of the providers, one line each."""
        known = [notice for one in self.providers if (notice := getattr(one, "notice", ""))]
        return [*known, self._overflow[0].line] if self._overflow and self._clock() < self._overflow[1] else known

    async def _persist(self, provider: Provider, request: Request) -> AsyncGenerator[Event, None]:
        """Ask one provider, with retries. Raises: _Down if the next one is to be asked."""
        for attempt in range(self._settings.retries + 1):
            spoke, thoughts = False, ThoughtFilter(request.tail)  # a thought aloud is a sign of life, and is dropped
            try:
                async with aclosing(self._timed(provider, request)) as events:
                    async for told in events:
                        for event in thoughts.read(told):
                            spoke = spoke or isinstance(event, Delta)
                            if isinstance(event, Done):
                                self._answered(provider, request, event)
                            yield event
            except ProviderError as error:
                self._failed(provider, request, error)
                if spoke:
                    raise
                self._rest(provider, error)
                if not error.retryable:
                    raise
                wait_s = self._wait_s(attempt, error)
                if wait_s is None or attempt == self._settings.retries:
                    raise _Down(error) from error
                log.info("%s: %s, again in %.1f s", provider.name, type(error).__name__, wait_s)
                yield Failing(error, is_told=wait_s > BACKOFF_CAP_S)  # longer than anybody waits without a word
                await self._sleep(wait_s)
            else:
                return

    def _answered(self, provider: Provider, request: Request, done: Done) -> None:
        self.last_error = None
        talk, messages = self._refused
        if talk == request.conversation:
            self._refused = ("", 0)
            if messages > len(request.history):  # its server says it in words of its own
                self._overflows(provider)
        self._tally.answered(provider, request, done)
        account = (self._mark, provider.name)
        if self._resting and (rest := self._resting.pop(account, None)):
            self._rests.tell(account, 0.0, rest[1])

    def _failed(self, provider: Provider, request: Request, error: ProviderError) -> None:
        error.provider = error.provider or provider.name
        self._tally.failed(provider, error)
        self.last_error = error
        if isinstance(error, TooLong):
            self._overflows(provider)
        elif isinstance(error, BadRequest) and not (error.fix or request.images):
            self._refused = (request.conversation, len(request.history))

    def _overflows(self, provider: Provider) -> None:
        self._overflow = failure_of(TooLong(OVERFLOW, provider=provider.name)), self._clock() + OVERFLOW_TOLD_S
        self._refused = ("", 0)

    async def _timed(self, provider: Provider, request: Request) -> AsyncGenerator[Event, None]:
        """Apply the deadlines to one call. Raises: TimedOut, or Cut if the provider ended without `Done`."""
        loop, idle_s = asyncio.get_running_loop(), self._settings.idle_s
        reading_s = max(self._settings.first_byte_s, patience_of(provider, request))
        last = loop.time() + self._settings.total_s + reading_s - self._settings.first_byte_s
        next_by, which = loop.time() + reading_s, "first byte"
        waiting: asyncio.Task[object] | None = None
        is_over = False
        timer: asyncio.TimerHandle
        event: Event | None = None

        def look() -> None:  # a timer for each event would cost a tenth of a turn's CPU
            nonlocal is_over, timer
            left_s = min(last, next_by) - loop.time()
            if waiting and left_s <= 0 and not is_over:
                is_over = waiting.cancel()
            timer = loop.call_later(max(0.1, min(left_s, idle_s)), look)

        timer = loop.call_at(min(last, next_by, loop.time() + idle_s), look)
        events = provider.complete(request)
        try:
            while not isinstance(event, Done):
                task = waiting = asyncio.current_task()
                before = task.cancelling() if task else 0
                try:
                    event = await anext(events)
                except asyncio.CancelledError as error:
                    if not (is_over and task) or task.cancelling() > before + 1:  # somebody else ends it
                        raise
                    which = "total" if loop.time() >= last else which
                    raise TimedOut(f"the model did not answer in time ({which})", provider=provider.name) from error
                except StopAsyncIteration as error:
                    raise Cut("the model ended without saying so", provider=provider.name) from error
                finally:
                    if is_over and task:  # also where the provider made another error of it, or went on
                        task.uncancel()
                    waiting, is_over = None, False
                yield event
                if not isinstance(event, Reset):
                    next_by, which = loop.time() + idle_s, "idle"
        finally:
            timer.cancel()
            close = getattr(events, "aclose", None)
            if close:  # an iterator that cannot be closed holds nothing
                with suppress(ProviderError):
                    await close()

    def _wait_s(self, attempt: int, error: ProviderError) -> float | None:
        """Return how long to wait before the next retry, or None if the provider counts as down."""
        backoff_s = self._chance() * min(BACKOFF_CAP_S, BACKOFF_BASE_S * 2.0**attempt)
        asked_s = error.after_s or 0.0
        return None if asked_s > PATIENCE_S else max(asked_s, backoff_s)

    def _rest(self, provider: Provider, error: ProviderError) -> None:
        if isinstance(error, _SHUT):
            rest_s = error.after_s = REST_S
            log.warning("%s rests for %.0f s: %s", provider.name, rest_s, error.message)
        elif error.retryable and (error.after_s or 0.0) > PATIENCE_S:
            rest_s = error.after_s or 0.0
        else:
            return
        account = (self._mark, provider.name)
        self._resting[account] = (self._clock() + rest_s, error)
        self._rests.tell(account, rest_s, error)

    def _rest_of(self, provider: Provider) -> ProviderError | None:
        account = (self._mark, provider.name)
        if account not in self._resting:
            return None
        until, error = self._resting[account]
        left_s = until - self._clock()
        if left_s <= 0:
            del self._resting[account]
            return None
        return type(error)(error.message, provider=error.provider, after_s=left_s, fix=error.fix)


class _Down(Exception):
    """A provider is down and may answer later. The next one is asked now."""

    def __init__(self, error: ProviderError) -> None:
        super().__init__(error.message)
        self.error = error


class NoVoice:
    """Takes the place of a model where `auto` finds none: it never speaks, and each call says what is missing."""

    name, model = NO_VOICE, ""

    async def complete(self, request: Request) -> AsyncIterator[Event]:  # noqa: ARG002 - signature of every provider
        """Raise Unavailable, with what to do."""
        yield Failing(NO_MODEL)
        raise Unavailable(NO_MODEL.message, fix=NO_MODEL.fix)

    async def aclose(self) -> None:
        """Do nothing: it holds nothing."""


def choose(loaded: Loaded, home: Home) -> list[str]:
    """Return the providers' names in the order in which they are asked, `auto` resolved to the first available one.

    The order for `auto`: the Anthropic API with a key, Claude with a login, a chat-completions server that is set, a
    model of the home, a local Ollama, rehearsal, or `NO_VOICE` where that may not speak without being named.
    """
    names = [_first(loaded, home) if name == AUTO else name for name in loaded.config.providers]
    if not may_rehearse(loaded, home) and AUTO in loaded.config.providers and REHEARSAL not in loaded.config.providers:
        names = [NO_VOICE if name == REHEARSAL else name for name in names]
        names = [name for name in names if name != NO_VOICE] or [NO_VOICE]
    return list(dict.fromkeys(names))


def may_rehearse(loaded: Loaded, home: Home) -> bool:
    """Return whether `auto` may fall to the rehearsal voice: no model answered here yet, and no network is on.

    Whoever had a model, or speaks to others than the owner, would take the rehearsal voice for it.
    """
    return not (networks_on(loaded) or (home.state / HAD_MODEL).exists())


def met_model(home: Home) -> None:
    """Keep that a model answered here."""
    with suppress(OSError):  # a full or read-only disk is told elsewhere
        (home.state / HAD_MODEL).touch(mode=FILE_MODE)


def _first(loaded: Loaded, home: Home) -> str:
    if loaded.secret("ANTHROPIC_API_KEY") and _is_installed("anthropic"):
        return "anthropic_api"
    if _has_login(loaded):
        return "agent_sdk" if _is_installed("claude_agent_sdk") else "claude_cli"
    if loaded.config.openai.base_url:
        return "openai_compat"
    if _has_model(loaded, home):
        return "home"
    if _has_ollama():
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


def _has_model(loaded: Loaded, home: Home) -> bool:
    if not home.models.is_dir():
        return False
    from claudius.providers.home.models import can_think, in_use  # noqa: PLC0415 - as above

    return in_use(loaded, home) is not None and can_think()


def _has_ollama() -> bool:
    from claudius.providers.openai_compat import has_ollama  # noqa: PLC0415 - as above

    return has_ollama(OLLAMA_S)
