"""Ask Claude through Anthropic's API: build the request, stream the reply, and classify failures."""

from __future__ import annotations

import base64
import importlib.util
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

import msgspec

from claudius.children import bounding
from claudius.config.load import Loaded
from claudius.config.schema import ModelSettings
from claudius.errors import Cut, ProviderError, TimedOut, Unavailable, Unreachable
from claudius.home import Home
from claudius.provider import Done, Event, Request, Role, StopReason, Usage, estimate
from claudius.providers.replies import (
    Clients,
    StreamedReply,
    by_kind,
    by_status,
    drain,
    message_of,
    plain_name,
    priced,
    retry_after_s,
    unreached,
)

OPENING = "(the conversation so far)"
"""Comes first if the history begins with the soul's own words, because the API requires a user message there."""


def messages(request: Request) -> Iterator[dict[str, Any]]:
    """Yield history and tail as messages of the API. Pure.

    Consecutive messages of one role become content blocks of one message, so that a longer history never changes the
    bytes of a shorter one. Cache breakpoints are set at the end of `history[:cached]` and at the end of the history.
    """
    marks = {request.cached - 1, len(request.history) - 1}
    parts: list[tuple[Role, Any]] = []
    if request.history and request.history[0].role == "assistant":
        parts.append(("user", {"type": "text", "text": OPENING}))
    for number, message in enumerate(request.history):
        if message.content.strip():
            parts.append((message.role, {"type": "text", "text": message.content}))
        if number in marks and parts:
            parts[-1][1]["cache_control"] = {"type": "ephemeral"}
    for image in request.images:
        source = {"type": "base64", "media_type": image.media_type, "data": base64.b64encode(image.data).decode()}
        parts.append(("user", {"type": "image", "source": source}))
    parts.append(("user", {"type": "text", "text": request.tail}))
    for role, group in groupby(parts, key=lambda part: part[0]):
        yield {"role": role, "content": [block for _, block in group]}


if TYPE_CHECKING:
    from ssl import SSLContext

    from anthropic import APIStatusError, AsyncAnthropic, AsyncStream

NAME = "anthropic_api"
BASE_URL = "https://api.anthropic.com"
CONNECT_S = 10.0

THINKING: tuple[dict[str, Any], ...] = (
    {"thinking": {"type": "disabled"}},
    {"thinking": {"type": "between_tools"}},
    {"output_config": {"effort": "low"}},
    {},
)
"""From least to most. The soul has a monologue of its own, so thinking would be paid for twice and count as reply
tokens. Models differ in what they accept (Sonnet 5 the first, Sonnet 5.5 the second, Opus 5.5 the third). Source:
platform.claude.com/docs/en/build-with-claude/thinking."""

_STOP: dict[str | None, StopReason] = {
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}

log = logging.getLogger(__name__)


class AnthropicApi:
    """The API under one key."""

    name = NAME
    sees = True
    """It accepts images."""

    def __init__(self, make: Callable[[], AsyncAnthropic], model: str, *, base_url: str = BASE_URL) -> None:
        self.model = model
        self._clients, self._base_url = Clients(make, lambda one: one.close()), base_url
        self._rung: dict[str, int] = {}

    async def complete(self, request: Request) -> AsyncIterator[Event]:
        """Stream the reply. Raises: ProviderError."""
        await self._clients.first()
        import anthropic  # noqa: PLC0415 - over a second to import, paid once, in the daemon
        import httpx2  # noqa: PLC0415 - the library's own HTTP client

        said = _Said(request, request.model or self.model)
        began = False
        try:
            async with self._clients.one() as client, await self._open(client, request) as stream:
                began = True
                async for event in stream:
                    if delta := said.hear(event):
                        yield delta
                    if said.ended or said.reply.is_full:
                        break
                if said.ended:
                    await drain(stream, anthropic.APIError, httpx2.HTTPError, httpx2.StreamError)
        except anthropic.APIStatusError as error:
            raise _status_error(error) from error
        except (anthropic.APITimeoutError, httpx2.TimeoutException) as error:
            raise TimedOut("the model's server fell silent", provider=NAME) from error
        except (anthropic.APIConnectionError, httpx2.HTTPError, httpx2.StreamError) as error:
            if began:
                raise Cut("the model's stream broke off", provider=NAME) from error
            detail = f"the model's server {unreached(error, self._base_url)}"
            raise Unreachable(detail, provider=NAME) from error
        except (ValueError, RecursionError) as error:  # RecursionError: the JSON is nested too deep
            raise Cut("the model's stream is broken: not JSON", provider=NAME) from error
        yield said.done()

    async def prepare(self) -> None:
        """Import the library and build the first client, in a thread."""
        await self._clients.first()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._clients.aclose()

    async def _open(self, client: AsyncAnthropic, request: Request) -> AsyncStream[object]:
        """Open a stream with the least thinking that the model accepts, found by trying."""
        import anthropic  # noqa: PLC0415 - as above

        model = request.model or self.model
        while True:
            rung = self._rung.get(model, 0)
            try:
                # not `messages.create`: it copies the body and builds a model of each event, a tenth of a turn's CPU
                return await client.post(
                    "/v1/messages",
                    cast_to=object,
                    content=msgspec.json.encode(self._body(request, model) | THINKING[rung]),
                    stream=True,
                    stream_cls=anthropic.AsyncStream[object],
                )
            except anthropic.BadRequestError as error:
                if "thinking" not in error.message or rung + 1 == len(THINKING):
                    raise
                self._rung[model] = max(rung + 1, self._rung.get(model, 0))

    def _body(self, request: Request, model: str) -> dict[str, Any]:
        """Return the request body. It omits `temperature`, which this version of the API refuses for every model."""
        system = {"type": "text", "text": request.system, "cache_control": {"type": "ephemeral", "ttl": "5m"}}
        return {
            "model": model,
            "max_tokens": request.max_tokens,
            **({"system": [system]} if request.system.strip() else {}),
            "messages": list(messages(request)),
            "stream": True,
        }


class _Said:
    """One reply as its events arrive."""

    def __init__(self, request: Request, model: str) -> None:
        self.reply = StreamedReply()
        self.ended = False
        self._request = request
        self._model = model
        self._stop: str | None = None
        self._usage: Usage | None = None
        self._write_1h = 0

    def hear(self, event: Any) -> Event | None:
        """Process one event. Text becomes a delta. Raises: Cut if it has a wrong shape, which the library lets pass."""
        try:
            match event["type"]:
                case "message_start":
                    self._model = plain_name(event["message"].get("model"), self._model)
                    self._count(event["message"].get("usage"))
                case "content_block_start":
                    if event["content_block"]["type"] not in ("text", "thinking", "redacted_thinking"):
                        log.warning("%s: a tool call that was never offered is refused", NAME)
                case "content_block_delta" if event["delta"]["type"] == "text_delta":
                    return self.reply.add(event["delta"]["text"])
                case "message_delta":
                    self._stop = _word(event["delta"].get("stop_reason"))
                    self._count(event.get("usage"))
                case "message_stop":
                    self.ended = True
        except (AttributeError, KeyError, TypeError) as error:
            raise Cut("the model's stream is broken: not an event", provider=NAME) from error
        return None

    def _count(self, usage: Any) -> None:
        """Keep the newest counts. They are cumulative, and an event may omit counts that did not change."""
        if usage is None:
            return
        known = self._usage or Usage()
        creation = usage.get("cache_creation")
        self._write_1h = _newest(creation and creation.get("ephemeral_1h_input_tokens"), self._write_1h)
        self._usage = Usage(
            input_tokens=_newest(usage.get("input_tokens"), known.input_tokens),
            cache_read_tokens=_newest(usage.get("cache_read_input_tokens"), known.cache_read_tokens),
            cache_write_tokens=_newest(usage.get("cache_creation_input_tokens"), known.cache_write_tokens),
            output_tokens=_newest(usage.get("output_tokens"), known.output_tokens),
        )

    def done(self) -> Done:
        """End the reply. Raises: Cut if the stream broke off before its end."""
        if not self.ended and not self.reply.is_full:
            raise Cut("the model's stream ended before its end", provider=NAME)
        usage = self._usage or estimate(self._request, self.reply.text)
        return Done(
            text=self.reply.text,
            usage=priced(usage, self._model, "anthropic", write_1h_tokens=self._write_1h),
            stop_reason="max_tokens" if self.reply.is_full else _STOP.get(self._stop, "end"),
            provider=NAME,
            model=self._model,
        )


def _word(given: object) -> str | None:
    return given if isinstance(given, str) else None


def _newest(given: object, known: int) -> int:
    return given if isinstance(given, int) else known


def _status_error(error: APIStatusError) -> ProviderError:
    kind, message = message_of(error.body)
    if error.status_code == 200:
        return by_kind(kind, message, provider=NAME)
    after_s = retry_after_s(error.response.headers, time.time())
    return by_status(error.status_code, message, provider=NAME, code=kind, after_s=after_s)


def build(loaded: Loaded, home: Home) -> AnthropicApi:
    """Build the provider. Raises: Unavailable without a key or without the library."""
    del home
    settings = loaded.config.anthropic
    key = loaded.secret("ANTHROPIC_API_KEY")
    if not key:
        raise Unavailable("no Anthropic API key: set ANTHROPIC_API_KEY in the environment or .env", provider=NAME)
    if importlib.util.find_spec("anthropic") is None:
        raise Unavailable("the anthropic library is not installed: pip install 'claudius-daemon[api]'", provider=NAME)
    base_url = settings.base_url or BASE_URL
    make = partial(_client, key, base_url, loaded.config.model, cache(_trusted))
    return AnthropicApi(make, settings.model, base_url=base_url)


def _trusted() -> SSLContext:
    """Read the certificates that are trusted: it takes 25 ms, and the clients of one provider share them."""
    import httpx2  # noqa: PLC0415 - as above

    return httpx2.create_ssl_context()


def _client(key: str, base_url: str, model: ModelSettings, trusted: Callable[[], SSLContext]) -> AsyncAnthropic:
    import anthropic  # noqa: PLC0415 - over a second to import, paid once, in the daemon
    import httpx2  # noqa: PLC0415 - the library's own HTTP client

    silence_s = 2 * max(model.first_byte_s, model.idle_s)
    http = anthropic.DefaultAsyncHttpxClient(
        verify=trusted(), follow_redirects=False, event_hooks={"response": [bounding()]}
    )
    return anthropic.AsyncAnthropic(
        api_key=key,
        base_url=base_url,
        max_retries=0,
        timeout=httpx2.Timeout(silence_s, connect=CONNECT_S),
        http_client=http,
    )
