"""The interface to every model: a request goes in; deltas and one `Done` come out, or a typed error is raised."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any, Literal, Protocol, cast, runtime_checkable

from msgspec import Struct, field

from claudius.errors import ProviderError

Role = Literal["user", "assistant"]
StopReason = Literal["end", "max_tokens", "refusal"]


class Message(Struct, frozen=True):
    """One history message, in the role that the model sees."""

    role: Role
    content: str


class Image(Struct, frozen=True):
    """An image that is sent with a request."""

    media_type: str
    data: bytes


Profile = Literal["full", "plain"]
Form = Literal["tags", "grammar", "json", "words"]
"""How a reply gets its sections: by instruction alone, or by a grammar or a JSON schema that the server enforces. With
`words` it has none, because only the words aloud are asked."""


class ModelLimits(Struct, frozen=True, kw_only=True):
    """What the model behind a provider can take. The default is that of a large model, for which nothing is counted."""

    profile: Profile = "full"
    form: Form = "tags"
    context_tokens: int = 0
    """The model's context; 0 = far more than any prompt."""
    chars_per_token: float = 4.0
    """How many characters of our prompts one token of this model holds."""
    slots: int = 0
    """How many calls its server answers at once; 0 = as many as there are."""
    reasons: bool = False
    """It thinks before its words, which takes room of the reply."""


class FormStep(Struct, frozen=True, kw_only=True):
    """One section that a reply is to have, for a server that can enforce it."""

    name: str
    value: str = "text"
    """What it holds: `text`, `bool`, `line`, `lines`, `markdown`, `portrait` (dashed lines), `acts` of a few kinds."""
    choices: tuple[str, ...] = ()
    """The only texts that it may hold; empty = any."""
    verbs: tuple[str, ...] = ()
    """The verbs from which it has one; empty = it has no verb."""
    check: str = ""
    """The step that must be true for this one to be written; empty = it is always written."""
    may_lack: bool = False
    """Whether the model may leave it out."""


class Request(Struct, frozen=True, kw_only=True):
    """One model call: the prompt's three parts and the options for answering it.

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
    """The key of the transport session that may be continued; empty = no session is kept."""
    keep_session: bool = True
    """False: the tail holds something that may be seen only once, so a transport drops its session after the reply."""
    purpose: str = "turn"
    model: str | None = None
    """None = the provider's default."""
    temperature: float | None = None
    is_first: bool = False
    """No call of this home was ever finished, so whoever answers may introduce itself."""
    known: Callable[[], str] = str
    """Returns who the speaker is to the soul, as `whoami` words it, for a voice that cannot read it out of a prompt."""
    images: tuple[Image, ...] = ()
    """Sent before the tail, in the order in which the tail numbers them; only by a provider whose `sees` is true."""
    form: tuple[FormStep, ...] = ()
    """The sections asked for, in order, for a server that enforces them; empty = the reply is free."""
    tries_now: bool = False
    """An owner spoke, who may have mended it: a provider that rests is asked, too."""


class Usage(Struct, frozen=True, kw_only=True):
    """Tokens of one call as the provider counts them; `input_tokens` excludes cache reads and writes."""

    input_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    """None = the model's price is unknown."""
    estimated: bool = False
    """True if the provider reported nothing and characters / 4 is used instead."""

    def __add__(self, other: Usage) -> Usage:
        known = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost_usd=sum(known) if known else None,
            estimated=self.estimated or other.estimated,
        )


def dollars(cost_usd: float | None, unpriced: int = 0) -> str:
    """Write what calls cost; `unpriced` of them have no known price. Pure."""
    if cost_usd is None:
        return "unknown"
    known = "under $0.0001" if 0 < cost_usd < 0.0001 else f"${cost_usd:.{2 if not cost_usd else 4}f}"
    return f"{known} + unknown" if unpriced else known


CHARS_PER_TOKEN = 4


def estimate(request: Request, text: str) -> Usage:
    """Estimate the usage of a call from its characters, marked as estimated. Pure."""
    asked = len(request.system) + len(request.tail) + sum([len(message.content) for message in request.history])
    return Usage(
        input_tokens=asked // CHARS_PER_TOKEN,
        output_tokens=len(text) // CHARS_PER_TOKEN,
        estimated=True,
    )


class Delta(Struct, frozen=True):
    """A piece of the reply, in order."""

    text: str


class Reset(Struct, frozen=True):
    """Voids everything streamed so far: the transport retried by itself."""


class Done(Struct, frozen=True, kw_only=True):
    """The end of the reply. `text` is the whole reply; it equals the joined deltas since the last `Reset`."""

    text: str
    usage: Usage
    stop_reason: StopReason = "end"
    session: str | None = None
    provider: str = ""
    """Which provider answered, set by the provider itself, so that a caller of a chain knows which member it was."""
    model: str = ""


class Failing(Struct, frozen=True):
    """A provider failed, and the next one is asked, or it is asked again after a wait. Only a chain yields it."""

    error: ProviderError
    is_told: bool = True
    """Whether who waits hears of it: not where it is asked again at once."""


Event = Delta | Reset | Failing | Done


@runtime_checkable
class Provider(Protocol):
    """A model provider. It is built at start and lives as long as the daemon."""

    @property
    def name(self) -> str:
        """The name of the provider."""

    @property
    def model(self) -> str:
        """The name of the model."""

    def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the reply to `request`: deltas, perhaps resets, then one `Done`. Raises: ProviderError, typed.

        A chain of providers also yields a `Failing` if one is down, or asks for a wait, and a reply is still sought.

        Closing the iterator early cancels the call and frees its resources.
        """

    async def aclose(self) -> None:
        """Close clients and subprocesses."""


async def limits_of(provider: Provider) -> ModelLimits:
    """Return what the model behind a provider can take. One that does not say counts as a large model."""
    find = getattr(provider, "limits", None)
    found = await find() if find else None
    return found if isinstance(found, ModelLimits) else ModelLimits()


def patience_of(provider: Provider, request: Request) -> float:
    """Return the least time, in seconds, that a provider needs before the first byte of this reply; 0 = no more."""
    patience = getattr(provider, "patience_s", None)
    return float(patience(request)) if patience else 0.0


def reading_s(provider: Provider, request: Request) -> float:
    """Return about how long, in seconds, a model at home reads this prompt; 0 = no time worth telling."""
    reads = getattr(provider, "reading_s", None)
    return float(reads(request)) if reads else 0.0


async def prepare(provider: Provider) -> None:
    """Have a provider do now what its first call would wait for: imports, clients, what it asks its server once."""
    begin = getattr(provider, "prepare", None)
    if begin:
        await begin()


class Slot:
    """Who uses a model whose server answers one call at a time: turns first, then what thinks beside them."""

    def __init__(self) -> None:
        self._turns, self._one = 0, asyncio.Lock()
        self._wanted, self._quiet, self._left = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._quiet.set()
        self._left.set()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Think for somebody who waits: every other call is broken off first."""
        self._turns += 1
        self._quiet.clear()
        self._wanted.set()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(LEAVE_S):
                    await self._left.wait()
            yield
        finally:
            self._turns -= 1
            if not self._turns:
                self._wanted.clear()
                self._quiet.set()

    async def quiet(self) -> None:
        """Return when no turn is under way."""
        await self._quiet.wait()

    async def call(self, call: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Make one call of the second mind, when no other is made. Returns False if it was broken off for a turn."""
        async with self._one:
            await self._quiet.wait()
            self._left.clear()
            calling, wanted = asyncio.ensure_future(call()), asyncio.ensure_future(self._wanted.wait())
            try:
                await asyncio.wait((calling, wanted), return_when=asyncio.FIRST_COMPLETED)
                if calling.done():
                    calling.result()
                return calling.done()
            finally:
                for task in (calling, wanted):
                    task.cancel()
                await asyncio.gather(calling, wanted, return_exceptions=True)
                self._left.set()


LEAVE_S = 2.0
"""How long a turn waits for a call of the second mind to be broken off."""


class Wrapped:
    """A provider that stands for another, and changes how it is asked."""

    name: str
    model: str

    def __init__(self, inner: Provider) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        """Return what else the provider can, its name and its model as they are now."""
        return getattr(self.inner, name)

    async def aclose(self) -> None:
        """Close the provider."""
        await self.inner.aclose()


class SecondVoice(Wrapped):
    """The provider of what thinks beside the turns. Where its server has one slot, it is never asked while a turn runs.

    A call that a turn breaks off is made again, from its beginning, when none runs any more.
    """

    def __init__(self, inner: Provider, slot: Slot) -> None:
        super().__init__(inner)
        self._slot = slot

    async def quiet(self) -> None:
        """Return when it may be asked."""
        if (await limits_of(self.inner)).slots == 1:
            await self._slot.quiet()

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the reply. Raises: ProviderError."""
        is_alone = (await limits_of(self.inner)).slots == 1
        heard: asyncio.Queue[Event | None] = asyncio.Queue()

        async def listen() -> None:
            """Take every event of one call."""
            async with aclosing(cast(AsyncGenerator[Event, None], self.inner.complete(request))) as events:
                async for event in events:
                    heard.put_nowait(event)

        async def ask() -> None:
            """Make the call, again where it was broken off."""
            try:
                while is_alone:
                    if await self._slot.call(listen):
                        return
                    heard.put_nowait(Reset())
                await listen()
            finally:
                heard.put_nowait(None)

        asking = asyncio.ensure_future(ask())
        try:
            while (event := await heard.get()) is not None:
                yield event
            await asking
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)


async def quiet(provider: Provider) -> None:
    """Return when a provider may be asked by what thinks beside the turns."""
    wait = getattr(provider, "quiet", None)
    if wait:
        await wait()


class Resting(Struct, frozen=True):
    """A provider that is not asked for a while, because its account was refused or it asked for a long wait."""

    name: str
    left_s: float
    why: str


Account = tuple[str, str]
"""A chain's mark, which grows from its settings and keys, and the name of one of its providers."""


class Rests:
    """Until when providers are not asked, and why: those of all chains of a process.

    Where several processes share a soul, `store.leases` makes what begins here known to the others, and theirs here.
    """

    def __init__(self) -> None:
        self.now: dict[Account, tuple[float, ProviderError]] = {}
        """Until when by the chain's clock, and the error that began it."""
        self.tell: Callable[[Account, float, ProviderError], None] = lambda *_: None
        """Called with each rest that begins here, and its seconds."""


class VoiceState(Struct, frozen=True, kw_only=True):
    """How the latest call of a chain of providers went, and which of them rest."""

    last_error: str = ""
    """How the last attempt failed; empty = it gave a reply, or nothing was asked since the start."""
    resting: tuple[Resting, ...] = ()
    notices: tuple[str, ...] = ()
    """What the owner should correct, though the model answers."""

    @property
    def is_well(self) -> bool:
        """Whether the last attempt did not fail, and no provider rests."""
        return not (self.last_error or self.resting)


@runtime_checkable
class TellsState(Protocol):
    """Optional ability of a provider: to say how its latest call went."""

    def state(self) -> VoiceState:
        """Return how the latest call went."""


class CallTally(Struct):
    """What all providers of one process did since it started, counted for the metrics."""

    answers: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Replies by provider, model and purpose."""
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Failed attempts by provider and class of the error."""
    tokens: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """Tokens by model, purpose and kind: input, cache_read, cache_write, output."""
    dollars: dict[tuple[str, str], float] = field(default_factory=dict)
    """Dollars by model and purpose, where the price is known."""

    def answered(self, provider: Provider, request: Request, done: Done) -> None:
        """Count a reply."""
        model, usage = done.model or request.model or provider.model, done.usage
        self.answers[done.provider or provider.name, model, request.purpose] += 1
        self.tokens[model, request.purpose, "input"] += usage.input_tokens
        self.tokens[model, request.purpose, "cache_read"] += usage.cache_read_tokens
        self.tokens[model, request.purpose, "cache_write"] += usage.cache_write_tokens
        self.tokens[model, request.purpose, "output"] += usage.output_tokens
        if usage.cost_usd is not None:
            key = (model, request.purpose)
            self.dollars[key] = self.dollars.get(key, 0.0) + usage.cost_usd

    def failed(self, provider: Provider, error: ProviderError) -> None:
        """Count a failed attempt."""
        self.failures[provider.name, type(error).__name__] += 1
