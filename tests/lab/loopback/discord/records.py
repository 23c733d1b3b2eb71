"""What the server writes down: every call, every event that was sent, and everything that people could see."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from lab.loopback.watch import Changes

EntryKind = Literal[
    "post", "edit", "delete", "react", "unreact", "unfurl", "typing", "thread", "archive", "unarchive", "rename",
    "join", "leave", "slash", "click", "press", "defer", "response", "failed",
]  # fmt: skip
By = Literal["person", "app"]
Fate = Literal["sent", "kept", "replayed", "offline", "lost", "deaf"]

ANSWERS: frozenset[str] = frozenset({"post", "response"})
"""The kinds of entry that are a whole message of the app's."""


@dataclass(slots=True)
class Entry:
    """One thing that a person did and others could see."""

    n: int
    at: float
    by: By
    kind: EntryKind
    channel: str
    """A thread is a channel of its own."""
    message: str = ""
    user: str = ""
    text: str = ""
    to: str = ""
    """The only person who saw it; empty = everybody in the channel."""
    pings: list[str] = field(default_factory=list)
    """The ids of those who were notified; `everyone` among them for a mention of all."""
    flags: int = 0
    reference: str = ""
    """The message that it answers."""
    nonce: str = ""
    raw: bytes = b""
    """The body of the request that caused it."""
    is_delivered: bool = True
    """False for what a person did and the network was told to lose."""


@dataclass(slots=True)
class Call:
    """One request of the API, as it was received, and what became of it."""

    n: int
    at: float
    route: str
    """The name that Discord's documentation gives it, as in `create_message`."""
    verb: str
    path: str
    where: dict[str, str]
    """The parameters of the path, and of the query."""
    headers: dict[str, str]
    raw: bytes
    body: Any = None
    is_applied: bool = False
    """The service did what was asked, whatever the caller was told."""
    status: int = 0
    """0 = the caller never got an answer."""
    code: int = 0
    """Discord's own, where it refused."""
    fault: str = ""


@dataclass(slots=True)
class Delivery:
    """One event on its way to one session. `kept`: the session had no working socket, and may get it by a RESUME."""

    n: int
    at: float
    event: str
    channel: str
    message: str
    session: str
    seq: int
    fate: Fate


@dataclass(slots=True)
class Journal:
    """All records, oldest first; nothing is ever taken out."""

    now: Callable[[], float]
    trace: list[Entry] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    changes: Changes = field(default_factory=Changes)

    def enter(self, by: By, kind: EntryKind, channel: str, **facts: Any) -> Entry:
        """Write down what a person did."""
        entry = Entry(len(self.trace) + 1, self.now(), by, kind, channel, **facts)
        self.trace.append(entry)
        self.changes.happened()
        return entry

    def note(self, event: str, channel: str, message: str, session: str, seq: int, fate: Fate) -> None:
        """Write down what became of an event."""
        number = len(self.deliveries) + 1
        self.deliveries.append(Delivery(number, self.now(), event, channel, message, session, seq, fate))
        self.changes.happened()
