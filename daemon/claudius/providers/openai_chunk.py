"""One chunk of a chat-completions stream, checked before anything of it is believed.

Source: platform.openai.com/docs/api-reference/chat-streaming; docs.mistral.ai/capabilities/reasoning, where `content`
is a list of parts and thought is one of them.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec


class Function(msgspec.Struct, frozen=True):
    """What a tool call names."""

    name: str | None = None


class ToolCall(msgspec.Struct, frozen=True):
    """A call of a tool that nobody offered."""

    function: Function | None = None


class Part(msgspec.Struct, frozen=True):
    """A part of a content that comes in parts; only text is said."""

    type: str = ""
    text: str = ""


class Words(msgspec.Struct, frozen=True):
    """What a chunk adds to the reply; a model's reasoning beside it is not read."""

    content: str | tuple[Part, ...] | None = None
    tool_calls: tuple[ToolCall, ...] | None = None

    @property
    def text(self) -> str:
        """The text, without parts of any other kind."""
        if isinstance(self.content, tuple):
            return "".join(part.text for part in self.content if part.type == "text")
        return self.content or ""


class Choice(msgspec.Struct, frozen=True):
    """One of the replies; the first alone was asked for."""

    index: int | None = 0
    delta: Words | None = None
    message: Words | None = None
    """The whole of it, from a server that does not stream."""
    finish_reason: str | None = None

    @property
    def words(self) -> Words:
        """What it says, in whichever form."""
        return next((one for one in (self.delta, self.message) if one and (one.content or one.tool_calls)), Words())


class Cached(msgspec.Struct, frozen=True):
    """How much of the prompt a cache gave."""

    cached_tokens: int | None = None


class Counts(msgspec.Struct, frozen=True):
    """What a call took."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: Cached | None = None


class Chunk(msgspec.Struct, frozen=True):
    """One event of the stream."""

    choices: tuple[Choice, ...] | None = None
    model: str | None = None
    usage: Counts | None = None
    error: Any = None

    @property
    def choice(self) -> Choice:
        """The one reply that was asked for; an empty one where the chunk is of no reply, or of another."""
        return next((one for one in self.choices or () if not one.index), Choice())


def read_chunk(data: str) -> Chunk:
    """Read one event. Pure. Raises: ValueError where it is no chunk."""
    try:
        document = json.loads(data)  # it takes lone surrogates, which models do send
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    return msgspec.convert(document, Chunk)
