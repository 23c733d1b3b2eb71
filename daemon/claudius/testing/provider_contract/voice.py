"""The building blocks of the cases: the provider under test, a rule, and helpers that all cases share."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from claudius.errors import ProviderError
from claudius.provider import Delta, Done, Event, Message, Provider, Request, Reset
from claudius.testing.model_calls import Call, Reply

TEXT = "one two three four five six seven eight nine ten"
PATIENCE_S = 30.0
"""How long a case waits for something that must happen by itself."""


class ModelDouble(Protocol):
    """A test's model server, as far as the contract uses it."""

    @property
    def asked(self) -> list[Call]:
        """Every call so far, oldest first."""
        ...


class NotClaimed(Exception):
    """This voice does not have what the case needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """A provider under test, and the server behind it."""

    make: Callable[[], Provider]
    """Creates a new provider; each case closes its own."""
    say: Callable[..., None] | None = None
    """Queues the next replies, as the loopback model's `Reply` or text; None = its replies cannot be set."""
    server: ModelDouble | None = None
    """The loopback model server that it calls; None = it calls none."""
    asks_again: bool = False
    """Whether its transport retries a failed call by itself, so a fault may appear as another error or be recovered."""
    is_exact: bool = True
    """Whether each message of the prompt is sent unchanged; False = a transport frames the history in its own way."""

    @property
    def has(self) -> frozenset[str]:
        """What a case may require of it."""
        return frozenset(
            name for name, there in (("say", self.say), ("server", self.server), ("exact", self.is_exact)) if there
        )


@dataclass(frozen=True, slots=True)
class Case:
    """One rule."""

    number: str
    rule: str
    needs: frozenset[str]
    run: Callable[[Voice], Awaitable[None]]

    def __str__(self) -> str:
        return f"{self.number} {self.rule}"


CASES: list[Case] = []


def case(number: str, rule: str, *needs: str) -> Callable[[Callable[[Voice], Awaitable[None]]], None]:
    """Add a rule to the contract under its number, with what it needs of a voice (`Voice.has`)."""

    def add(run: Callable[[Voice], Awaitable[None]]) -> None:
        CASES.append(Case(number, rule, frozenset(needs), run))

    return add


SYSTEM = "You are Claudius, and this is the contract."
ASK = Request(system=SYSTEM, history=(), tail="Well?", max_tokens=1000)


async def hear(provider: Provider, request: Request, into: list[Event] | None = None) -> list[Event]:
    """Ask once and return all events; `into` keeps what came before an error."""
    heard = [] if into is None else into
    async with aclosing(streaming(provider, request)) as events:
        async for event in events:
            heard.append(event)
    return heard


async def streaming(provider: Provider, request: Request) -> AsyncGenerator[Event, None]:
    """Stream a reply so that leaving it early also closes the provider's own stream."""
    events = provider.complete(request)
    try:
        async for event in events:
            yield event
    finally:
        close = getattr(events, "aclose", None)
        if close:
            await close()


def said(events: Sequence[Event]) -> str:
    """Join the deltas since the last reset."""
    texts: list[str] = []
    for event in events:
        if isinstance(event, Reset):
            texts.clear()
        elif isinstance(event, Delta):
            texts.append(event.text)
    return "".join(texts)


def ending(events: Sequence[Event]) -> Done:
    """Return the only Done, which must be last and equal what was streamed."""
    done = events[-1]
    assert isinstance(done, Done), f"the stream ended with {done!r}"
    assert not any(isinstance(event, Done) for event in events[:-1])
    assert done.text == said(events)
    return done


@asynccontextmanager
async def speaking(voice: Voice, *replies: Reply | str) -> AsyncIterator[Provider]:
    """Yield a new provider that will give these replies, and close it at the end."""
    if voice.say and replies:
        voice.say(*replies)
    provider = voice.make()
    try:
        yield provider
    finally:
        await provider.aclose()


async def until(what: Callable[[], bool]) -> None:
    """Wait until a condition holds. Raises: AssertionError after `PATIENCE_S`."""
    for _ in range(int(PATIENCE_S / 0.01)):
        if what():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to be")


def asked(voice: Voice) -> list[Call]:
    """Return the model calls so far."""
    assert voice.server
    return voice.server.asked


def whole(call: Call) -> str:
    """Return all text of a request in order, its parts separated by line feeds."""
    return "\n".join((call.system, *(text for _, text in call.messages)))


def in_order(parts: Sequence[str], text: str) -> bool:
    """Return whether the parts occur in the text one after the other."""
    at = 0
    for part in parts:
        at = text.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def after(request: Request, heard: str, reply: str, tail: str) -> Request:
    """Return the next request of a conversation: its history with one more exchange."""
    history = (*request.history, Message("user", heard), Message("assistant", reply))
    return replace(request, history=history, tail=tail, cached=len(request.history))


def children() -> set[int]:
    """Return the child processes of this one that still exist, zombies included."""
    found: set[int] = set()
    for listing in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        with suppress(FileNotFoundError):  # the thread has ended since
            found.update(map(int, listing.read_text("ascii").split()))
    return found


async def fails(provider: Provider, request: Request, into: list[Event] | None = None) -> ProviderError | None:
    """Ask once and return the error; None if the provider returned a reply. `into` keeps what came before."""
    try:
        await hear(provider, request, into)
    except ProviderError as error:
        return error
    return None
