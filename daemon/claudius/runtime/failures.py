"""What follows a failed turn (a retry, or one typed apology), when a turn waits too long, and what follows a crash.

Source: the reliability design, section 7.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import cast

from msgspec import Struct
from msgspec.structs import replace

from claudius.cognition.mind import Mind
from claudius.errors import OverBudget, ProviderError, RowInvalid, TimedOut, TooLong
from claudius.intent import ApologyKind
from claudius.perception import Origin, Perception, is_terminal
from claudius.provider import Event, Failing, Provider, Request, Wrapped, patience_of

BASE_S, CAP_S = 1.0, 60.0
TERMINAL_S = 60.0
"""After how long without a sign of life from a model a terminal, which somebody watches, hears the apology."""


class Retry(Struct, frozen=True):
    """Try again after `after_s` seconds."""

    after_s: float


AGAIN = Retry(0.0)
"""Go on at once, even while the process ends."""


class Apologise(Struct, frozen=True):
    """Give up on this perception with an apology in character."""

    kind: ApologyKind


def backoff_s(attempt: int, chance: float, *, cap_s: float = CAP_S) -> float:
    """Return the wait before a retry: exponential, full jitter. `chance` is uniform in [0, 1). Pure."""
    return float(min(cap_s, BASE_S * 2**attempt)) * chance


def decide(
    error: BaseException, *, attempts: int, waited_s: float, patience_s: float, tries: int, chance: float
) -> Retry | Apologise:
    """Decide what follows a failed turn. Pure.

    `attempts` includes this one; `waited_s` is the time since the perception was heard.
    """
    match error:
        case RowInvalid():  # a retry would read the same damaged row
            return Apologise("unreadable")
        case OverBudget():
            return Apologise("over_budget")
        case TooLong():
            return Apologise("too_large")
        case ProviderError(retryable=True, after_s=after_s):
            wait = max(backoff_s(attempts, chance), after_s or 0.0)
            return Apologise("provider_down") if waited_s + wait >= patience_s else Retry(wait)
        case ProviderError():
            return Apologise("provider_down")
        case _:
            return Apologise("unreadable") if attempts >= tries else Retry(backoff_s(attempts, chance, cap_s=2.0))


def patience_s(mind: Mind, perception: Perception) -> float:
    """Return how long a message waits for a model before the apology; somebody watches a terminal, so it waits less."""
    config = mind.config()
    is_watched = is_terminal(perception.conversation) and perception.origin is Origin.EXTERNAL
    return min(config.runtime.patience_s, TERMINAL_S) if is_watched else config.runtime.patience_s


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


class TimedProvider(Wrapped):
    """A provider, with its retries and fallbacks, that is abandoned if it says nothing in time; for one turn.

    It stands for the patience of the person who waits. Source: the reliability design, section 7 (`runtime.patience_s`)
    and R12.
    """

    def __init__(self, inner: Provider, until: float, least_s: float) -> None:
        """Give up at `until`, an instant of the running loop; a call that begins late still has `least_s` seconds."""
        super().__init__(inner)
        self._until, self._least_s = until, least_s

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the reply. Raises: ProviderError; if nothing came in time, the last one met, or else TimedOut."""
        failed: ProviderError | None = None
        least_s = max(self._least_s, patience_of(self.inner, request))
        latest = max(self._until, asyncio.get_running_loop().time() + least_s)
        async with aclosing(cast(AsyncGenerator[Event, None], self.inner.complete(request))) as events:
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


CAREFUL_S = 60.0


class CrashRecovery:
    """Recovery after an unclean stop: turns run one at a time, each counted before it begins.

    On for 60 s or until the last process's backlog is done, and while a turn runs alone. Counting first means that even
    a perception that ends the process at once is counted; one that ended two processes is tried a third time, alone.
    Source: the reliability design, sections 4 and 7.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._until_s = 0.0
        self._backlog: set[str] = set()
        self._thinking = 0
        """Number of running turns."""
        self._alone = 0
        """Number of turns that run alone or wait to."""
        self._alone_until_s = 0.0
        """Until then, turns that run alone keep the others waiting."""
        self._changed = asyncio.Condition()

    def begin(self, conversations: Iterable[str]) -> None:
        """Switch the mode on until these conversations have nothing left to do."""
        self._backlog = set(conversations)
        self._until_s = self._monotonic() + CAREFUL_S

    @property
    def is_on(self) -> bool:
        """Whether turns run one at a time, each counted before it begins."""
        return bool(self._alone) or self._is_recovering

    @property
    def _is_recovering(self) -> bool:
        return bool(self._backlog) and self._monotonic() < self._until_s

    async def done(self, conversation: str) -> None:
        """Record that a conversation has nothing left to do."""
        if conversation in self._backlog:
            self._backlog.discard(conversation)
            await self._tell()

    @asynccontextmanager
    async def turn(self, *, alone: bool = False) -> AsyncIterator[bool]:
        """Run one turn; exclusively if it is `alone`, or while the mode is on. Yields whether it is on.

        Nobody waits longer than 60 s for that, neither this turn for the others nor the others for this one.
        """
        self._alone += alone
        try:
            if self._alone or self._backlog:
                await self._begin(alone=alone)
            self._thinking += 1
            try:
                yield bool(self._alone or self._backlog) and self.is_on
            finally:
                self._thinking -= 1
        finally:
            is_awaited = self._alone or self._backlog  # otherwise nobody waits for this turn to end
            self._alone -= alone
            if is_awaited:
                await self._tell()

    async def _begin(self, *, alone: bool) -> None:
        latest_s = self._monotonic() + CAREFUL_S
        if alone:
            self._alone_until_s = latest_s
        async with self._changed:
            while not self._may_begin(alone=alone):
                until_s = latest_s if alone else max(self._until_s, self._alone_until_s)
                if until_s <= self._monotonic():
                    break
                with suppress(TimeoutError):
                    async with asyncio.timeout(until_s - self._monotonic()):
                        await self._changed.wait()
            if alone:
                self._alone_until_s = self._monotonic() + CAREFUL_S

    def _may_begin(self, *, alone: bool) -> bool:
        if alone:
            return not self._thinking
        if self._alone and self._monotonic() < self._alone_until_s:
            return False
        return not self._thinking or not self._is_recovering

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()
