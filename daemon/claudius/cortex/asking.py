"""Make one isolated model call (a system text and one document, no history, no session) and parse its answer.

The call has a deadline. An answer that is late or cannot be parsed is discarded whole.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, cast

from claudius.cortex.models import Answer, Output
from claudius.prompt import fence, nested_line
from claudius.provider import Delta, Done, Event, Provider, Request, Reset, Usage

MAX_TOKENS = 800
JOB = "cortex"
"""The job name under which usage is booked."""


def request(
    system: str, content: Mapping[str, Any], nonce: str, *, model: str = "", max_tokens: int = MAX_TOKENS
) -> Request:
    """Return the request for one isolated call. Pure."""
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
    """Return the complete answer. Raises: ProviderError, TimeoutError; a partial answer is discarded."""
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


MOST_CHARS = 65_536
SUMMARY_CHARS = 800
_FENCED = re.compile(r"```json[ \t]*\r?\n(.*?)```", re.DOTALL | re.IGNORECASE)
_LISTS = ("assessments", "beliefs", "directives")


class Unparsable(ValueError):
    """The answer is not what was asked for."""


def parse(text: str) -> Output:
    """Parse an answer: the whole text as JSON, else its first ```json fence. Pure. Raises: Unparsable."""
    found = read_object(text)
    summary = found.get("summary")
    if not isinstance(summary, str) or not summary.strip():
        raise Unparsable("it has no summary")
    dropped: list[str] = []
    lists = {name: _entries(name, found.get(name, []), dropped) for name in _LISTS}
    alignment = found.get("alignment")
    return Output(
        summary=one_line(summary)[:SUMMARY_CHARS],
        alignment=alignment if isinstance(alignment, dict) else {},
        dropped=tuple(dropped),
        **lists,
    )


def read_object(text: str) -> Mapping[str, Any]:
    """Parse the single JSON object in an answer. Pure. Raises: Unparsable."""
    if len(text) > MOST_CHARS:
        raise Unparsable(f"it is longer than {MOST_CHARS} characters")
    fenced = _FENCED.search(text)
    for body in (text, fenced[1] if fenced else ""):
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return found
        raise Unparsable("it is no JSON object")
    raise Unparsable("it is not JSON")


def _entries(name: str, found: Any, dropped: list[str]) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(found, list):
        raise Unparsable(f"{name} is no list")
    objects = tuple(entry for entry in found if isinstance(entry, dict))
    if len(objects) < len(found):
        dropped.append(f"{name}: {len(found) - len(objects)} that are no objects")
    if name == "assessments" and any("info_score" in entry for entry in objects):
        dropped.append("info_score: it is counted, never judged")
    return tuple({key: value for key, value in entry.items() if key != "info_score"} for entry in objects)


_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
)


def one_line(text: str) -> str:
    """Return a text as one line, without invisible characters. Pure."""
    return " ".join(_UNSEEN.sub(" ", text).split())
