"""One call of a test's model server: the reply that it gives, and the request that it received."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import msgspec


class Reply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The server's answer to one call, and how it fails."""

    text: str = ""
    deltas: tuple[str, ...] = ()
    """Replaces `text`: exactly these pieces. Otherwise the text is sent word by word."""
    stop_reason: Literal["end_turn", "max_tokens", "refusal", "tool_use", "model_context_window_exceeded"] = "end_turn"
    tool: str = ""
    """A call of the tool of this name follows the text."""
    args: Mapping[str, str] = msgspec.field(default_factory=lambda: {"path": "/etc/passwd"})
    """What that tool is called with."""
    thinking: str = ""
    """A thinking block precedes the text."""
    fault: str = ""
    """One of `model.FAULTS`; empty = none."""
    status: int = 0
    """For the fault `status`."""
    message: str = ""
    """The error's text, for `status` and `error_event`; empty = the default one."""
    retry_after: float | None = None
    """Seconds, as a Retry-After header of the fault `status`."""
    headers: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    at: int | None = None
    """Where a fault breaks the stream: a byte for `truncate`, `eof`, `reset_mid`, `hang_mid`; an event for `bad_json`,
    `error_event`. None = in the middle.
    """
    megabytes: int = 100
    """For the fault `huge`."""
    delay_s: float = 0.0
    """Seconds before the answer."""
    gap_s: float = 0.0
    """Seconds before each event."""
    usage: bool = True
    """False: no usage is reported."""
    when: str = ""
    """Only for a request whose body contains this text; other requests skip it."""
    keep: bool = False
    """Whether it stays in the queue after it was given."""

    def pieces(self) -> tuple[str, ...]:
        """Return the text's deltas."""
        return self.deltas or tuple(re.findall(r"\s*\S+|\s+$", self.text))


@dataclass(slots=True)
class Call:
    """One request as it was received, and its outcome."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes
    at: float
    """Seconds of the monotonic clock."""
    port: int = 0
    """The client's port."""
    reply: Reply | None = None
    counted: Any = None
    """The server's token count for it."""
    borders: tuple[int, ...] = ()
    """Where the events of the complete stream end, in bytes from its start."""
    finished: bool = False
    """False while it is being answered, and permanently if the client disconnected."""
    gone: bool = False
    """Whether the client disconnected before the answer's end."""

    @property
    def body(self) -> dict[str, Any]:
        """The JSON document; empty if there was none."""
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
