"""One call of the model server, as it was received."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from claudius.testing.loopback.model_wire import Reply
from claudius.testing.loopback.prompt_cache import Counted


@dataclass(slots=True)
class Call:
    """One request as it was received, and what became of it."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    at: float
    """Seconds of the monotonic clock."""
    port: int = 0
    """The client's end of the connection."""
    reply: Reply | None = None
    counted: Counted | None = None
    borders: tuple[int, ...] = ()
    """Where the whole stream's events end, in bytes from its start."""
    finished: bool = False
    """False while it is answered, and for ever if the client went away."""
    gone: bool = False
    """The client went away before the answer's end."""

    @property
    def body(self) -> dict[str, Any]:
        """The JSON document; empty where there was none."""
        return json.loads(self.raw) if self.raw else {}

    @property
    def system(self) -> str:
        """The text of the system part."""
        if "system" in self.body:
            return _text(self.body["system"])
        return "\n".join(text for role, text in self.messages if role == "system")

    @property
    def messages(self) -> list[tuple[str, str]]:
        """Role and text of each message, oldest first."""
        return [(message["role"], _text(message["content"])) for message in self.body.get("messages", [])]

    @property
    def tail(self) -> str:
        """The text of the last user message."""
        return next((text for role, text in reversed(self.messages) if role == "user"), "")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content if isinstance(block, dict))
