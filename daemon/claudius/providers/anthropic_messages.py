"""History, pictures and tail in the shape of Anthropic's API. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from claudius.provider import Image, Request, Role

OPENING = "(the conversation so far)"
"""Stands first where history begins with the soul's own words: a user message must come first."""


def messages(request: Request) -> Iterator[dict[str, Any]]:
    """Give history and tail in the API's shape. Pure.

    Neighbours of one role become content blocks of one message, so that a longer history never changes the bytes of a
    shorter one. Breakpoints stand at the end of `history[:cached]` and at the end of the history.
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
    parts += [("user", _image(image)) for image in request.images]
    parts.append(("user", {"type": "text", "text": request.tail}))
    for role, group in groupby(parts, key=lambda part: part[0]):
        yield {"role": role, "content": [block for _, block in group]}


def _image(image: Image) -> dict[str, Any]:
    data = base64.b64encode(image.data).decode()
    return {"type": "image", "source": {"type": "base64", "media_type": image.media_type, "data": data}}
