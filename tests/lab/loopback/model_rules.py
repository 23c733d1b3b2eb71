"""What the model server refuses, as the real services do.

Source: platform.claude.com/docs/en/api/errors and /api/versioning. That a history must begin with a user message is our
reading of older documentation; whether today's service insists on it was not asked.
"""

from collections.abc import Iterator
from typing import Any

from aiohttp import web

from claudius.testing.model_calls import Call
from lab.loopback.model_faults import refusal

VERSION = "anthropic-version"
SAMPLING_GONE = "2026-10-21"
"""The version of the API that takes no sampling parameters any more."""
BODY_LIMIT = 32 * 1024 * 1024
"""Bytes of a request (413)."""


def refused(call: Call, *, keys: frozenset[str] | None, thinking: frozenset[str]) -> web.Response | None:
    """Refuse a Messages request for the first rule that it breaks; None where it may be answered.

    `keys` are those let in (None = any, but one), `thinking` the kinds of thinking that the model can be asked for.
    """
    for status, kind, message in _broken(call, keys, thinking):
        return refusal(status, kind, message)
    return None


def _broken(call: Call, keys: frozenset[str] | None, thinking: frozenset[str]) -> Iterator[tuple[int, str, str]]:
    headers = {name.lower(): value for name, value in call.headers.items()}
    key = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
    if not key or (keys is not None and key not in keys):
        yield 401, "authentication_error", "invalid x-api-key"
    if VERSION not in headers:
        yield 400, "invalid_request_error", f"{VERSION}: header is required"
    if len(call.raw) > BODY_LIMIT:
        yield 413, "request_too_large", "Request exceeds the maximum size"
    for message in _wrong(call.body, headers.get(VERSION, ""), thinking):
        yield 400, "invalid_request_error", message


def _wrong(body: dict[str, Any], version: str, thinking: frozenset[str]) -> Iterator[str]:
    """Name what is wrong in a body; items of role `system` are right, as the Claude CLI sends them."""
    if not isinstance(body.get("max_tokens"), int) or not body.get("model") or not body.get("messages"):
        yield "model, max_tokens and messages: Field required"
        return
    if body["messages"][0]["role"] == "assistant":
        yield 'messages: first message must use the "user" role'
    for role, content in [("system", body.get("system") or "-"), *_items(body)]:
        if role not in ("user", "assistant", "system"):
            yield f"messages: unexpected role {role!r}"
        texts = [content] if isinstance(content, str) else [b["text"] for b in content if b.get("type") == "text"]
        if not content or not all(text.strip() for text in texts):
            yield "messages: text content blocks must contain non-whitespace text"
    kind = (body.get("thinking") or {}).get("type")
    if kind and kind not in thinking:
        yield f'"thinking.type.{kind}" is not supported for this model.'
    if version >= SAMPLING_GONE and (found := {"temperature", "top_p", "top_k"} & body.keys()):
        yield f"{min(found)}: Extra inputs are not permitted"


def _items(body: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(item["role"], item["content"]) for item in body["messages"]]
