"""What the server writes down: every call, every delivery, and everything that people could see."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from lab.loopback.watch import Changes

EntryKind = Literal[
    "post", "edit", "delete", "react", "unreact", "join", "leave", "archive", "slash", "click",
    "ephemeral", "response", "status", "home", "unfurl",
]  # fmt: skip

ANSWERS: frozenset[str] = frozenset({"post", "ephemeral", "response"})
"""The kinds of entry that are a whole message of the app's."""


@dataclass(slots=True)
class Entry:
    """One thing that a person did and others could see."""

    n: int
    at: float
    by: Literal["person", "app"]
    kind: EntryKind
    channel: str
    ts: str = ""
    """The message that it is about."""
    thread_ts: str | None = None
    user: str = ""
    text: str = ""
    to: str = ""
    """The only person who saw it; empty = everybody in the conversation."""
    blocks: list[Any] = field(default_factory=list)
    metadata: dict[str, Any] | None = None
    raw: bytes = b""
    """The body of the request that caused it."""
    is_delivered: bool = True
    """False for what a person did and the network was told to lose."""


@dataclass(slots=True)
class Call:
    """One call of the Web API, as it was received, and what became of it."""

    n: int
    at: float
    method: str
    verb: str
    headers: dict[str, str]
    arguments: dict[str, Any]
    raw: bytes
    is_applied: bool = False
    """The service did what was asked, whatever the caller was told."""
    status: int = 0
    """0 = the caller never got an answer."""
    error: str = ""
    fault: str = ""


@dataclass(slots=True)
class Delivery:
    """One envelope."""

    n: int
    at: float
    envelope_id: str
    kind: str
    event: str
    """The event's type; for a command its name, for a button its action."""
    event_id: str
    channel: str
    ts: str
    attempt: int
    reason: str
    socket: int
    """0 = there was none."""
    fate: Literal["sent", "acked", "timeout", "offline", "lost"] = "sent"
    acked_at: float | None = None
    answer: dict[str, Any] | None = None
    """What came back with the ack."""


@dataclass(slots=True)
class Journal:
    """All records, oldest first; nothing is ever taken out but by `forget`."""

    now: Callable[[], float]
    trace: list[Entry] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    changes: Changes = field(default_factory=Changes)

    def enter(self, by: Literal["person", "app"], kind: EntryKind, channel: str, **facts: Any) -> Entry:
        """Write down what a person did."""
        entry = Entry(len(self.trace) + 1, self.now(), by, kind, channel, **facts)
        self.trace.append(entry)
        self.changes.happened()
        return entry

    def called(
        self, method: str, verb: str, headers: Mapping[str, str], arguments: Mapping[str, Any], raw: bytes
    ) -> Call:
        """Write down a call as it comes in."""
        call = Call(len(self.calls) + 1, self.now(), method, verb, dict(headers), dict(arguments), raw)
        self.calls.append(call)
        self.changes.happened()
        return call
