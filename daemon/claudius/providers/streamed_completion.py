"""Read a streamed chat completion: the lines of the response, the chunks in them, the reply that they add up to.

Source: platform.openai.com/docs/api-reference/chat-streaming; docs.mistral.ai/capabilities/reasoning, where `content`
is a list of parts, one of which is the model's reasoning; docs.ollama.com/api/chat for Ollama's own lines.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import msgspec

from claudius.children import LINE_BYTES
from claudius.decoding import decoder, ready
from claudius.errors import Cut
from claudius.provider import Done, Event, Request, StopReason, Usage, estimate
from claudius.providers.enforced import JsonSections
from claudius.providers.local_server import NO_FACTS, Facts
from claudius.providers.replies import StreamedReply, by_kind, message_of, plain_name, priced

if TYPE_CHECKING:
    import httpx

NAME = "openai_compat"

_LINE_END = re.compile(rb"\r\n|\n|\r(?!\n|\Z)")
"""A trailing CR may be the first half of a CRLF."""
_STOP: dict[str | None, StopReason] = {"length": "max_tokens", "content_filter": "refusal"}

log = logging.getLogger(__name__)


class Function(msgspec.Struct, frozen=True):
    """The function that a tool call names."""

    name: str | None = None


class CalledTool(msgspec.Struct, frozen=True):
    """A call of a tool that nobody offered."""

    function: Function | None = None


class ContentPart(msgspec.Struct, frozen=True):
    """A part of a content list. Only text parts are used."""

    type: str = ""
    text: str = ""


class ChunkText(msgspec.Struct, frozen=True):
    """What a chunk adds to the reply. A separate reasoning field is ignored."""

    content: str | tuple[ContentPart, ...] | None = None
    tool_calls: tuple[CalledTool, ...] | None = None

    @property
    def text(self) -> str:
        """The text, without parts of any other kind."""
        if isinstance(self.content, tuple):
            return "".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class ChunkChoice(msgspec.Struct, frozen=True):
    """One of the replies. Only the first was requested."""

    index: int | None = 0
    delta: ChunkText | None = None
    message: ChunkText | None = None
    """The whole reply, from a server that does not stream."""
    finish_reason: str | None = None

    @property
    def words(self) -> ChunkText:
        """The content, from whichever field holds it."""
        return next((one for one in (self.delta, self.message) if one and (one.content or one.tool_calls)), ChunkText())


class Cached(msgspec.Struct, frozen=True):
    """How much of the prompt came from a cache."""

    cached_tokens: int | None = None


class Counts(msgspec.Struct, frozen=True):
    """The token counts of a call."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: Cached | None = None


class Chunk(msgspec.Struct, frozen=True):
    """One event of the stream."""

    choices: tuple[ChunkChoice, ...] | None = None
    model: str | None = None
    usage: Counts | None = None
    error: Any = None
    message: ChunkText | None = None
    """What Ollama's own interface adds to the reply."""
    done: bool = False
    done_reason: str | None = None
    prompt_eval_count: int | None = None
    eval_count: int | None = None

    @property
    def choice(self) -> ChunkChoice:
        """The requested reply. It is empty if the chunk holds no reply, or only others."""
        if self.message or self.done_reason:
            return ChunkChoice(message=self.message, finish_reason=self.done_reason)
        return next((one for one in self.choices or () if not one.index), ChunkChoice())


_CHUNK = decoder(Chunk)


def read_chunk(data: str) -> Chunk:
    """Parse one event. Pure. Raises: ValueError if it is no chunk."""
    try:
        try:
            return _CHUNK.decode(data)
        except ValueError:
            return msgspec.convert(json.loads(data), ready(Chunk))  # it accepts lone surrogates, which models do send
    except RecursionError as error:
        raise ValueError("nested too deep") from error


class StreamedCompletion:
    """One reply as its chunks arrive."""

    def __init__(self, request: Request, model: str, facts: Facts = NO_FACTS) -> None:
        self.reply = StreamedReply()
        is_json = request.form and facts.enforces in ("format", "response_format")
        self._sections = JsonSections(request.form) if is_json else None
        self.model = model
        self.ended = self._is_finished = False
        self._request = request
        self._stop: str | None = None
        self._usage: Usage | None = None

    def hear(self, data: str) -> Event | None:
        """Process one chunk. Text becomes a delta. Raises: ProviderError for an error or an invalid chunk."""
        if data == "[DONE]":
            self.ended = True
            return None
        try:
            chunk = read_chunk(data)
        except ValueError as error:
            raise Cut("the model's stream is broken: not a chunk", provider=NAME) from error
        if chunk.error:
            kind, message = message_of({"error": chunk.error})
            raise by_kind(kind, message, provider=NAME)
        self.model = plain_name(chunk.model, self.model)
        own = Counts(prompt_tokens=chunk.prompt_eval_count, completion_tokens=chunk.eval_count)
        self._count(chunk.usage or (own if own.prompt_tokens else None))
        choice = chunk.choice
        self._stop = choice.finish_reason or self._stop
        words = choice.words
        if any(call.function and call.function.name for call in words.tool_calls or ()):
            log.warning("%s: a tool call that was never offered is refused", NAME)
        self.ended = self.ended or chunk.done
        self._is_finished = self._is_finished or bool(choice.finish_reason)
        text = words.text
        return self.reply.add(self._sections.feed(text) if self._sections else text)

    def rest(self) -> Event | None:
        """Return what the end of the reply adds, if its form was turned into sections."""
        return self.reply.add(self._sections.finish()) if self._sections else None

    def _count(self, counts: Counts | None) -> None:
        if not counts:
            return
        asked, cached = counts.prompt_tokens or 0, counts.prompt_tokens_details or Cached()
        read = min(asked, cached.cached_tokens or 0)
        self._usage = Usage(
            input_tokens=asked - read, cache_read_tokens=read, output_tokens=counts.completion_tokens or 0
        )

    def done(self, base_url: str) -> Done:
        """End the reply. Raises: Cut if the stream broke off before its end."""
        if not (self.ended or self._is_finished or self.reply.is_full):  # some servers send no [DONE]
            raise Cut("the model's stream ended before its end", provider=NAME)
        usage = self._usage or estimate(self._request, self.reply.text)
        return Done(
            text=self.reply.text,
            usage=priced(usage, self.model, base_url),
            stop_reason="max_tokens" if self.reply.is_full else _STOP.get(self._stop, "end"),
            provider=NAME,
            model=self.model,
        )


async def stream_data(response: httpx.Response) -> AsyncIterator[str]:
    """Yield the data of each server-sent event. A server that does not stream sends everything in one.

    Raises: Cut for an endless line.
    """
    if response.headers.get("content-type", "").startswith("application/json"):
        yield (await body_of(response)).decode("utf-8", "replace")
        yield "[DONE]"
        return
    data: list[str] = []
    if "ndjson" in response.headers.get("content-type", ""):
        async for line in _lines(response):
            if line.strip():
                yield line
        return
    async for line in _lines(response):
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line and data:
            yield "\n".join(data)
            data.clear()
    if data == ["[DONE]"]:
        yield data[0]


async def body_of(response: httpx.Response) -> bytes:
    """Read a body, up to the length limit of one line."""
    body = b""
    async for piece in response.aiter_bytes():
        body = (body + piece)[:LINE_BYTES]
        if len(body) == LINE_BYTES:
            break
    return body


async def _lines(response: httpx.Response) -> AsyncIterator[str]:
    rest = b""
    async for piece in response.aiter_bytes():
        *whole, rest = _LINE_END.split(rest + piece)
        if len(rest) > LINE_BYTES:
            raise Cut("the model's stream is broken: a line without end", provider=NAME)
        for line in whole:
            yield line.decode("utf-8", "replace")
    for line in rest.splitlines():
        yield line.decode("utf-8", "replace")
