"""The door to every model: a request goes in, deltas and one `Done` come out, or a typed error is raised."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal, Protocol, runtime_checkable

from msgspec import Struct

Role = Literal["user", "assistant"]
StopReason = Literal["end", "max_tokens", "refusal"]


class Message(Struct, frozen=True):
    """One message of the history, in the role that the model sees."""

    role: Role
    content: str


class Image(Struct, frozen=True):
    """A picture that goes with what is asked."""

    media_type: str
    data: bytes


class Request(Struct, frozen=True, kw_only=True):
    """One model call: the prompt's three parts and how it is to be answered.

    The parts are sent in this order, `tail` as the last user message. Breakpoints for a provider with explicit
    caching: the end of `system`, the end of `history`, and `history[:cached]`, which the previous call already sent.
    """

    system: str
    history: tuple[Message, ...]
    tail: str
    max_tokens: int
    cached: int = 0
    """How many messages of the history the previous call of this conversation already held; 0 = none."""
    conversation: str = ""
    """Names the transport session that may be continued; empty = none is kept."""
    keep_session: bool = True
    """False: the tail holds what must be seen once only, so a transport drops its session after the reply."""
    purpose: str = "turn"
    model: str | None = None
    """None = the provider's own."""
    temperature: float | None = None
    images: tuple[Image, ...] = ()
    """Shown before the tail, in the order in which it counts them; by a provider whose `sees` is true."""


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one call as the provider counts them; `input_tokens` excludes what a cache read or wrote."""

    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """None = no price is known for the model."""
    estimated: bool = False
    """True where the provider reported nothing and characters / 4 stand in."""

    def __add__(self, other: Usage) -> Usage:
        """Sum two calls; an unknown price makes the sum's price what is known."""
        known = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=sum(known) if known else None,
            estimated=self.estimated or other.estimated,
        )


CHARS_PER_TOKEN = 4


def estimate(request: Request, text: str) -> Usage:
    """Count a call that nobody counted by its characters, marked as estimated. Pure."""
    asked = len(request.system) + len(request.tail) + sum(len(message.content) for message in request.history)
    return Usage(
        input_tokens=asked // CHARS_PER_TOKEN,
        output_tokens=len(text) // CHARS_PER_TOKEN,
        estimated=True,
    )


class Delta(Struct, frozen=True):
    """A piece of the reply, in order."""

    text: str


class Reset(Struct, frozen=True):
    """What was streamed so far is void: the transport asked again by itself."""


class Done(Struct, frozen=True, kw_only=True):
    """The reply's end. `text` is the whole reply; it equals the deltas since the last `Reset` joined."""

    text: str
    usage: Usage
    stop_reason: StopReason = "end"
    session: str | None = None
    provider: str = ""
    """Who answered: set by the provider itself, so a chain's caller knows which of its members spoke."""
    model: str = ""


Event = Delta | Reset | Done


@runtime_checkable
class Provider(Protocol):
    """A voice. One is built at start and lives as long as the daemon."""

    @property
    def name(self) -> str:
        """Who speaks."""
        ...

    @property
    def model(self) -> str:
        """Which model that is."""
        ...

    def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the reply to `request`: deltas, perhaps resets, then one `Done`. Raises: ProviderError, typed.

        Closing the iterator early cancels the call and frees what it holds.
        """
        ...

    async def aclose(self) -> None:
        """Free clients and subprocesses."""
        ...
