"""What the providers share: a reply as it grows, its price, and the error that a server's answer means.

An error goes by status first, then by the server's words if they decide; its message is in ours, since theirs may quote
whoever was answered. After a reply, the body is drained, so that a call that
soon follows needs no new handshake. How long a connection is kept is left to the libraries (5 s): one kept longer may
be dead without a sign after a laptop slept or changed its network, and the next call would wait for it in vain.

Source: the reliability design, section 7; platform.claude.com/docs/en/api/errors.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import replace

from claudius.decoding import decoder
from claudius.errors import (
    AuthFailed,
    BadRequest,
    Overloaded,
    ProviderError,
    RateLimited,
    SpendLimit,
    TimedOut,
    TooLong,
    Unreachable,
)
from claudius.foreign import Foreign, listed, status_words
from claudius.provider import Delta, Usage
from claudius.proxies import named

MESSAGE_CHARS = 200
CODES = frozenset(
    {
        *("invalid_request_error", "authentication_error", "billing_error", "permission_error", "not_found_error"),
        *("request_too_large", "rate_limit_error", "api_error", "timeout_error", "overloaded_error"),
        *("insufficient_quota", "context_length_exceeded", "model_not_found", "invalid_api_key", "server_error"),
        *("rate_limit_exceeded", "content_filter", "content_policy_violation", "unsupported_parameter"),
        *("unsupported_value", "invalid_type", "billing_not_active", "string_above_max_length", "tokens", "requests"),
        *("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "UNAVAILABLE", "PERMISSION_DENIED", "UNAUTHENTICATED"),
        *("NOT_FOUND", "INTERNAL", "DEADLINE_EXCEEDED", "FAILED_PRECONDITION"),
    }
)
"""The kinds of error that vendors document, which may be told to anybody."""

_KINDS: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
}
"""Error kinds inside a stream that a retry cannot fix. All others are temporary."""

_SPENT = re.compile(
    r"credit balance|insufficient[_ ](?:quota|funds|credits)|spending? (?:limit|cap)|billing", re.IGNORECASE
)
_TOO_LONG = re.compile(
    r"(?<!\w)(?:prompt|inputs?|context|conversation)\b[^.;]{0,80}?"
    r"(?:too (?:long|large|many|big)|exceed|maximum|overflow|(?:greater|longer|larger) than"
    r"|must (?:be|have) (?:<|less|at most))"
    r"|(?:too (?:long|large|many)|exceed(?:s|ed)?|max(?:imum)?|(?:greater|longer|larger) than)\b[^.;]{0,60}?"
    r"\b(?:prompt|context|input)\b"
    r"|request (?:body )?(?:is )?(?:too large|exceeds)|too many (?:input )?tokens|reduce the (?:length|size) of"
    r"|(?<!\w|-)(?<!max )(?<!output )(?<!completion )tokens?\b(?! limit)[^.;]{0,40}?\bexceed|exceed\w* model token"
    r"|message\b[^.;]{0,40} too long|range of input length|context_length_exceeded",
    re.IGNORECASE,
)
_TOO_OFTEN = re.compile(r"rate.limit|\bper[- ](?:min|hour|day|month)|\bquota\b|\b(?:daily|monthly)\b", re.IGNORECASE)
"""A limit of a time, whose words are else those of a prompt that is too long: "request tokens has exceeded"."""
_MEANINGS = (
    (
        re.compile(r"more (?:system )?memory|out of memory|not enough memory", re.IGNORECASE),
        "its server has too little memory for the model",
    ),
    (re.compile(r"model\b.{0,200}\b(?:not found|does not exist)", re.IGNORECASE), "the model was not found"),
)
"""What a server may complain of that its owner can mend and time cannot, and our words for it."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,99}\Z")
DRAIN_S = 0.05
REPLY_CHARS = 1_048_576
"""Longest reply accepted from a transport, far above what `max_tokens` allows and what the parser reads."""


def by_status(
    status: int, message: str, *, provider: str, code: str = "", after_s: float | None = None
) -> ProviderError:
    """Return the error for a status, and the vendor's `code` for it. `x-should-retry` is ignored. Pure.

    `after_s` is its Retry-After in seconds.
    """
    kind: type[ProviderError]
    if status == 402 or (status in (400, 403, 429) and _SPENT.search(message)):
        kind = SpendLimit
    elif status == 429 and "request too large" in message.lower():  # more tokens than a minute has: no wait helps
        kind = TooLong
    elif status == 429:
        kind = SpendLimit if after_s is None else RateLimited
    elif status in (401, 403):
        kind = AuthFailed
    elif status == 413 or _is_too_long(f"{message} {code}"):
        kind = TooLong
    elif status == 408:
        kind = TimedOut
    elif status == 407:  # a proxy's
        kind = Unreachable
    else:
        kind = BadRequest if status < 500 or _complaint(message) else Overloaded
    facts = ", ".join(filter(None, (status_words(status), listed(code, CODES))))
    return refused(kind, said=message, facts=facts, provider=provider, after_s=after_s)


def unreached(error: Exception, url: str) -> str:
    """Return in words why a call did not reach its server: the kind of error, and the proxy, if there is one. Pure."""
    inner = error.__cause__ or error
    status = str(inner)[:3]
    is_refused = type(inner).__name__ == "ProxyError" and status.isdecimal()
    why = f"{named(url)} refuses us: {status_words(int(status))}" if is_refused else type(error).__name__
    way = f", through {named(url)}" if named(url) and not is_refused else ""
    return f"cannot be reached ({why}{way})"


def by_kind(kind: str, message: str, *, provider: str) -> ProviderError:
    """Return the error for an error event inside a stream, which has a kind and no status. Pure."""
    if kind in _KINDS:
        return by_status(_KINDS[kind], message, provider=provider, code=kind)
    facts = ", ".join(filter(None, ("in the stream", listed(kind, CODES))))
    found = TooLong if _is_too_long(f"{message} {kind}") else Overloaded
    return refused(found, said=message, facts=facts, provider=provider)


def refused(
    kind: type[ProviderError],
    words: str = "",
    *,
    said: str,
    provider: str,
    facts: str = "",
    after_s: float | None = None,
) -> ProviderError:
    """Return an error whose message is in our words; empty `words` = those of its kind, or of what it complains of.

    `said` is what the other side wrote. Pure.
    """
    words = words or _complaint(said) or kind().message[0].lower() + kind().message[1:].rstrip(".")
    message = f"{words} ({facts})" if facts else words
    return kind(message, provider=provider, after_s=after_s, said=Foreign(one_line(said)))


def _is_too_long(said: str) -> bool:
    is_vetoed = "request too large" not in said.lower() and _TOO_OFTEN.search(said)
    return _TOO_LONG.search(said) is not None and not is_vetoed


def _complaint(said: str) -> str:
    return next((ours for pattern, ours in _MEANINGS if pattern.search(said)), "")


def plain_name(given: object, otherwise: str) -> str:
    """Return what a server calls a model, if it can be a name at all; otherwise the other one. Pure."""
    name = given.strip() if isinstance(given, str) else ""
    return name if _NAME.match(name) else otherwise


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Return Retry-After in seconds, or None without one. `now`: seconds since 1970, for a date in the header. Pure."""
    if milliseconds := headers.get("retry-after-ms"):
        return _number(milliseconds, 1000.0)
    given = headers.get("retry-after")
    if given is None:
        return None
    if (seconds := _number(given, 1.0)) is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - now)
    except (ValueError, OverflowError):
        return None


def _number(text: str, unit: float) -> float | None:
    try:
        return max(0.0, float(text) / unit)
    except ValueError:
        return None


def message_of(body: Any) -> tuple[str, str]:
    """Return kind and message of any vendor's error body. An HTML page has neither. Pure."""
    if isinstance(body, list):
        body = next(iter(body), "")
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, dict):
        kind, code = str(error.get("type") or error.get("status") or ""), error.get("code")
        message = str(error.get("message") or error.get("detail") or "")
        if isinstance(code, str) and code != kind and code not in message:
            message = f"{message} [{code}]".strip()
        return kind or str(code or ""), message
    text = error if isinstance(error, str) else ""
    return "", "" if text.lstrip().startswith("<") else text


def one_line(text: str) -> str:
    """Reduce a text to one printable line of at most `MESSAGE_CHARS` characters. Pure."""
    flat = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return flat if len(flat) <= MESSAGE_CHARS else flat[: MESSAGE_CHARS - 1] + "…"


class _Rates(msgspec.Struct, frozen=True, array_like=True):
    """Dollars a million tokens."""

    input: float
    output: float
    read: float
    write_5m: float
    write_1h: float


class _Place(msgspec.Struct, frozen=True):
    """A vendor: its URL as a pattern, and its prices by a model's exact name, or by the start of one as a pattern."""

    url: str
    named: dict[str, _Rates]
    like: dict[str, _Rates]


class _Prices(msgspec.Struct, frozen=True):
    places: dict[str, _Place]


def priced(usage: Usage, model: str, where: str, *, write_1h_tokens: int = 0) -> Usage:
    """Add the price in dollars, or None if the list lacks the model or the place, as for a server at home.

    `where` is a vendor's name in the list ("anthropic") or an API's URL. `write_1h_tokens` is the number of tokens
    written to the one-hour cache, which cost more.
    """
    if (rates := _rates(model.lower(), where)) is None:
        return replace(usage, cost_usd=None)
    millionths = (
        rates.input * usage.input_tokens
        + rates.output * usage.output_tokens
        + rates.read * usage.cache_read_tokens
        + rates.write_5m * (usage.cache_write_tokens - write_1h_tokens)
        + rates.write_1h * write_1h_tokens
    )
    return replace(usage, cost_usd=millionths / 1_000_000)


@lru_cache(maxsize=64)
def _rates(model: str, where: str) -> _Rates | None:
    """Look a price up in the list that `tests/price_table.py` makes: 2 ms, and the list is not kept."""
    places = decoder(_Prices).decode(Path(__file__).with_name("prices.json").read_bytes()).places
    by_url = (place for place in places.values() if re.match(place.url, where))
    place = next(by_url, None) if "://" in where else places.get(where)
    if place is None:
        return None
    return place.named.get(model) or next((rates for name, rates in place.like.items() if re.match(name, model)), None)


async def drain(rest: AsyncIterable[object], *faults: type[Exception]) -> None:
    """Read what follows a reply's end, because only a fully read body leaves its connection to the next call.

    A body that the server keeps open is given up, and errors at this point (`faults`, or invalid JSON) are ignored.
    """
    with suppress(TimeoutError, ValueError, RecursionError, *faults):
        async with asyncio.timeout(DRAIN_S):
            async for _ in rest:
                pass


class StreamedReply:
    """One reply as it grows."""

    __slots__ = ("_parts", "chars")

    def __init__(self) -> None:
        self._parts: list[str] = []
        self.chars = 0

    def add(self, text: str) -> Delta | None:
        """Add a piece, cut to the room left. Returns None if nothing was added."""
        kept = text[: REPLY_CHARS - self.chars]
        if not kept:
            return None
        self._parts.append(kept)
        self.chars += len(kept)
        return Delta(kept)

    @property
    def is_full(self) -> bool:
        """Whether the stream is to be broken off. The reply then counts as cut, as at `max_tokens`."""
        return self.chars >= REPLY_CHARS

    @property
    def text(self) -> str:
        """What was added so far."""
        return "".join(self._parts)


CALLS = 32
"""How many calls a client has at once, at most."""

C = TypeVar("C")


class Clients(Generic[C]):
    """As many clients as the calls under way need."""

    def __init__(self, make: Callable[[], C], close: Callable[[C], Awaitable[None]], *, first: C | None = None) -> None:
        """Build clients by `make`, in a thread, beside the `first` if there is one already."""
        self._make, self._close, self._first = make, close, first
        self._calls: dict[asyncio.Future[C], int] = {}
        """The calls under way of each client, oldest client first."""

    async def first(self) -> C:
        """Return the first client, which is built once, whoever waits for it."""
        return await asyncio.shield(next(iter(self._calls), None) or self._add())

    @asynccontextmanager
    async def one(self) -> AsyncIterator[C]:
        """Yield a client for one call: the oldest that has room, so that connections are used again."""
        client = next((one for one, calls in self._calls.items() if calls < CALLS), None) or self._add()
        self._calls[client] += 1
        try:
            yield await asyncio.shield(client)
        finally:
            if client in self._calls:
                self._calls[client] -= 1
            await self._shrink()

    async def aclose(self) -> None:
        """Close every client."""
        for client in [*self._calls]:
            await self._close(await client)

    async def _shrink(self) -> None:
        """Close the newest client while it is idle and the one before it has room for half of its calls."""
        while len(self._calls) > 1:
            (_, before), (newest, calls) = [*self._calls.items()][-2:]
            if calls or before > CALLS // 2 or not newest.done():  # one that is being built serves the next call
                return
            del self._calls[newest]
            await self._close(newest.result())

    def _add(self) -> asyncio.Future[C]:
        client: asyncio.Future[C] = asyncio.get_running_loop().create_future()
        if self._first is None or self._calls:
            client = asyncio.ensure_future(asyncio.to_thread(self._make))
            client.add_done_callback(self._drop_failed)
        else:
            client.set_result(self._first)
        self._calls[client] = 0
        return client

    def _drop_failed(self, client: asyncio.Future[C]) -> None:
        """Keep no client that could not be built: the next call has another try."""
        if client.cancelled() or client.exception():
            self._calls.pop(client, None)
