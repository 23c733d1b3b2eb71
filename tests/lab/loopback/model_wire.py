"""How a scripted reply looks on the wire: the events of an Anthropic or a chat-completions stream, as bytes."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from claudius.testing.model_calls import Reply
from lab.loopback.prompt_cache import Counted, tokens

Wire = Literal["anthropic", "openai", "ollama"]


def sse(name: str | None, data: Mapping[str, Any] | str) -> bytes:
    """Write one server-sent event."""
    body = data if isinstance(data, str) else json.dumps(data, separators=(",", ":"))
    return ((f"event: {name}\n" if name else "") + f"data: {body}\n\n").encode()


def anthropic_usage(reply: Reply, counted: Counted) -> dict[str, Any]:
    """Count as Anthropic does: `input_tokens` without what the cache read or wrote."""
    return {
        "input_tokens": counted.input_tokens,
        "cache_creation_input_tokens": counted.write_5m + counted.write_1h,
        "cache_read_input_tokens": counted.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": counted.write_5m,
            "ephemeral_1h_input_tokens": counted.write_1h,
        },
        "output_tokens": sum(tokens(piece) for piece in reply.pieces()),
        "service_tier": "standard",
    }


def anthropic_content(reply: Reply, number: int) -> list[dict[str, Any]]:
    """Give the content blocks of the whole message."""
    text = "".join(reply.pieces())
    blocks: list[dict[str, Any]] = []
    if reply.thinking:
        blocks.append({"type": "thinking", "thinking": reply.thinking, "signature": "c2lnbmVk"})
    if text:
        blocks.append({"type": "text", "text": text})
    if reply.tool:
        blocks.append({"type": "tool_use", "id": f"toolu_{number}", "name": reply.tool, "input": {**reply.args}})
    return blocks


def anthropic_message(reply: Reply, counted: Counted, model: str, number: int) -> dict[str, Any]:
    """Give the whole message, as a call without streaming gets it."""
    return {
        "id": f"msg_loopback_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": anthropic_content(reply, number),
        "stop_reason": "tool_use" if reply.tool else reply.stop_reason,
        "stop_sequence": None,
        "usage": anthropic_usage(reply, counted),
    }


def anthropic_events(reply: Reply, counted: Counted, model: str, number: int) -> Iterator[bytes]:
    """Stream a message: start, a block at a time, delta, stop."""
    whole = anthropic_message(reply, counted, model, number)
    first = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield sse("message_start", {"type": "message_start", "message": first})
    for index, block in enumerate(whole["content"]):
        yield sse(
            "content_block_start", {"type": "content_block_start", "index": index, "content_block": _opened(block)}
        )
        if not index:
            yield sse("ping", {"type": "ping"})
        for delta in _deltas(block, reply):
            yield sse("content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta})
        yield sse("content_block_stop", {"type": "content_block_stop", "index": index})
    yield sse(
        "message_delta",
        {
            "type": "message_delta",
            "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
            "usage": {"output_tokens": whole["usage"]["output_tokens"]},
        },
    )
    yield sse("message_stop", {"type": "message_stop"})


def _opened(block: Mapping[str, Any]) -> dict[str, Any]:
    empty = {"text": "", "thinking": "", "signature": "", "input": {}}
    return {key: empty.get(key, value) for key, value in block.items()}


def _deltas(block: Mapping[str, Any], reply: Reply) -> Iterator[dict[str, Any]]:
    match block["type"]:
        case "text":
            for piece in reply.pieces():
                yield {"type": "text_delta", "text": piece}
        case "thinking":
            yield {"type": "thinking_delta", "thinking": block["thinking"]}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case _:
            yield {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}


_FINISH = {
    "end_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
    "tool_use": "tool_calls",
}


def openai_usage(reply: Reply, prompt: int, cached: int) -> dict[str, Any]:
    """Count as OpenAI does: `prompt_tokens` with what was cached."""
    said = sum(tokens(piece) for piece in reply.pieces())
    return {
        "prompt_tokens": prompt,
        "completion_tokens": said,
        "total_tokens": prompt + said,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def openai_message(reply: Reply, usage: Mapping[str, Any], model: str, number: int) -> dict[str, Any]:
    """Give the whole completion, as a call without streaming gets it."""
    message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.pieces())}
    if reply.tool:
        message["tool_calls"] = [_tool_call(reply)]
    finish = _FINISH["tool_use" if reply.tool else reply.stop_reason]
    return {
        "id": f"chatcmpl-loopback-{number}",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": usage,
    }


def openai_events(reply: Reply, usage: Mapping[str, Any] | None, model: str, number: int) -> Iterator[bytes]:
    """Stream a completion: chunks, the finish reason, the usage where it was asked for, `[DONE]`."""
    head = {"id": f"chatcmpl-loopback-{number}", "object": "chat.completion.chunk", "created": 0, "model": model}

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        return sse(None, {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    if reply.thinking:
        yield chunk({"reasoning_content": reply.thinking})
    for piece in reply.pieces():
        yield chunk({"content": piece})
    if reply.tool:
        yield chunk({"tool_calls": [{"index": 0, **_tool_call(reply)}]})
    yield chunk({}, _FINISH["tool_use" if reply.tool else reply.stop_reason])
    if usage:
        yield sse(None, {**head, "choices": [], "usage": usage})
    yield sse(None, "[DONE]")


def _tool_call(reply: Reply) -> dict[str, Any]:
    return {
        "id": "call_loopback",
        "type": "function",
        "function": {"name": reply.tool, "arguments": json.dumps({**reply.args})},
    }
