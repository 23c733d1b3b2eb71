"""The chunks of a chat-completions stream, in every form in which servers send them, and of Ollama's own interface.

Source: platform.openai.com/docs/api-reference/chat-streaming; docs.mistral.ai/capabilities/reasoning, where `content`
is a list of parts, one of which is the model's reasoning; docs.ollama.com/api/chat.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec


class Function(msgspec.Struct, frozen=True):
    """The function that a tool call names."""

    name: str | None = None


class ToolCall(msgspec.Struct, frozen=True):
    """A call of a tool that nobody offered."""

    function: Function | None = None


class ContentPart(msgspec.Struct, frozen=True):
    """A part of a content list. Only text parts are used."""

    type: str = ""
    text: str = ""


class ChunkText(msgspec.Struct, frozen=True):
    """What a chunk adds to the reply. A separate reasoning field is ignored."""

    content: str | tuple[ContentPart, ...] | None = None
    tool_calls: tuple[ToolCall, ...] | None = None

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


def read_chunk(data: str) -> Chunk:
    """Parse one event. Pure. Raises: ValueError if it is no chunk."""
    try:
        document = json.loads(data)  # it accepts lone surrogates, which models do send
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    return msgspec.convert(document, Chunk)
