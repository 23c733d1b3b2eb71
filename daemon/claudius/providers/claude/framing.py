"""What a child is told: the history as blocks where it has not seen it, then the tail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from claudius.provider import Request

OPENING = (
    "What follows, block by block and oldest first, is the conversation so far: [heard] is what was said to you, "
    "[you] is what you wrote. It is past. Answer only the last block."
)
LABELS = {"user": "[heard]", "assistant": "[you]"}


def user_message(request: Request, *, knows_history: bool) -> dict[str, Any]:
    """Compose one line of a child's input. Pure. `client_composed` makes the command send it verbatim."""
    content = [{"type": "text", "text": text} for text in _blocks(request, knows_history=knows_history)]
    return {
        "type": "user",
        "message": {"role": "user", "content": content},
        "parent_tool_use_id": None,
        "session_id": "",
        "client_composed": True,
    }


def _blocks(request: Request, *, knows_history: bool) -> Iterator[str]:
    past = [] if knows_history else [message for message in request.history if message.content.strip()]
    if past:
        yield OPENING
    for message in past:
        yield f"{LABELS[message.role]}\n{message.content}"
    yield request.tail
