"""One isolated call: a system text and one document, no history, no session, a deadline, and nothing half-read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, cast

from claudius.cortex.models import Answer
from claudius.prompt import fence, nested_line
from claudius.provider import Delta, Done, Event, Provider, Request, Reset, Usage

MAX_TOKENS = 800
JOB = "cortex"
"""What its calls are booked under."""


def request(
    system: str, content: Mapping[str, Any], nonce: str, *, model: str = "", max_tokens: int = MAX_TOKENS
) -> Request:
    """Return the request of one isolated call. Pure."""
    return Request(
        system=system,
        history=(),
        tail=fence(nested_line(content), nonce),
        max_tokens=max_tokens,
        keep_session=False,
        purpose=JOB,
        model=model or None,
    )


async def ask(provider: Provider, asked: Request, timeout_s: float) -> Answer:
    """Return the whole answer. Raises: ProviderError, TimeoutError; then nothing of it is used."""
    started = time.monotonic()
    text = ""
    done = Done(text="", usage=Usage())
    async with asyncio.timeout(timeout_s):
        async with aclosing(cast(AsyncGenerator[Event, None], provider.complete(asked))) as events:
            async for event in events:
                match event:
                    case Delta(piece):
                        text += piece
                    case Reset():
                        text = ""
                    case Done():
                        done = event
    return Answer(
        text=text or done.text,
        usage=done.usage,
        provider=done.provider or provider.name,
        model=done.model or provider.model,
        ms=round((time.monotonic() - started) * 1000),
    )
