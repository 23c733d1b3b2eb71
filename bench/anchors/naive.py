"""The anchor `naive`: the whole history re-sent uncached with each turn. Computed from the same script, in tokens."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

CHARS_PER_TOKEN = 4


def tokens(text: str) -> int:
    """Count as the loopback model does. Pure."""
    return max(1, len(text) // CHARS_PER_TOKEN)


def input_tokens(
    static: str, messages: Sequence[str], replies: Sequence[str], dynamic: int, count: Callable[[str], int] = tokens
) -> list[int]:
    """Return the input tokens of each turn: static part, all earlier messages and replies, dynamic part, message. Pure.

    `dynamic`: tokens a turn beside the message: state, user model and the asked steps.
    """
    found, history = [], 0
    for message, reply in zip(messages, replies, strict=True):
        found.append(count(static) + history + dynamic + count(message))
        history += count(message) + count(reply)
    return found


def whole(body: Mapping[str, Any]) -> str:
    """Return a request as one text, in the order in which a cache reads it. Pure."""
    parts = [body.get("tools") or [], body.get("system") or "", *body.get("messages", ())]
    return "".join(json.dumps(_bare(part), ensure_ascii=False) for part in parts)


def _bare(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _bare(value) for key, value in part.items() if key != "cache_control"}
    return [_bare(one) for one in part] if isinstance(part, list) else part


def common(one: str, other: str) -> int:
    """Return the length of the beginning that two texts share. Pure."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle_ = (low + high + 1) // 2
        low, high = (middle_, high) if one.startswith(other[:middle_]) else (low, middle_ - 1)
    return low
