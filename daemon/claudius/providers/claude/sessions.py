"""Build a child's input, and keep the sessions that a later turn may continue.

A new session gets the history as blocks and then the tail. A continued one gets only the tail.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct

from claudius.provider import Message, Request

OPENING = (
    "What follows, block by block and oldest first, is the conversation so far: [heard] is what was said to you, "
    "[you] is what you wrote. It is past. Answer only the last block."
)
LABELS = {"user": "[heard]", "assistant": "[you]"}


def user_message(request: Request, *, knows_history: bool) -> dict[str, Any]:
    """Return one line of a child's input. `client_composed` makes the command send it verbatim. Pure."""
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


S = TypeVar("S")


class ShownHistory(Struct, frozen=True):
    """What a session was shown."""

    frame: str
    """Digest of what must not change within a session: system, model, longest reply."""
    length: int
    """The number of history messages."""
    history: str
    """Digest of those messages."""
    tail: frozenset[str]
    """The non-blank lines of the newest tail."""

    @classmethod
    def of(cls, request: Request) -> ShownHistory:
        """Return what a request shows. Pure."""
        return cls(_frame(request), len(request.history), _digest(request.history), frozenset(_lines(request.tail)))

    def leads_to(self, request: Request) -> bool:
        """Return whether `request` directly follows this one: the same history plus exactly that exchange. Pure.

        The exchange is one user message and one assistant message. All lines of the user message must be in the tail,
        so that it belongs to this tail and no other. Anything else, such as a voided reply, requires a new session.
        """
        past, new = request.history[: self.length], request.history[self.length :]
        return (
            self.frame == _frame(request)
            and [message.role for message in new] == ["user", "assistant"]
            and self.tail.issuperset(_lines(new[0].content))
            and self.history == _digest(past)
        )


def _frame(request: Request) -> str:
    return _hash([request.system, request.model or "", str(request.max_tokens)])


def _digest(messages: Sequence[Message]) -> str:
    return _hash([part for message in messages for part in (message.role, message.content)])


def _hash(parts: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


class SessionPool(Generic[S]):
    """Up to `size` sessions, one per conversation, the least recently used dropped first.

    The caller must end every session that is returned as dropped.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._held: OrderedDict[str, tuple[ShownHistory, S]] = OrderedDict()

    def take(self, request: Request) -> tuple[S | None, list[S]]:
        """Remove and return the session that `request` may continue, and the sessions to end.

        A session is used by one call at a time, so a second call meanwhile finds none.
        """
        if request.conversation not in self._held:
            return None, []
        seen, session = self._held.pop(request.conversation)
        return (session, []) if seen.leads_to(request) else (None, [session])

    def keep(self, request: Request, session: S) -> list[S]:
        """Put a session back after the reply to `request`. Returns the sessions to end."""
        if not request.conversation or not request.keep_session:
            return [session]
        ended = self.pop(request.conversation)
        self._held[request.conversation] = (ShownHistory.of(request), session)
        while len(self._held) > self._size:
            ended.append(self._held.popitem(last=False)[1][1])
        return ended

    def holds(self, session: S) -> bool:
        """Return whether a session is stored here rather than in use."""
        return any(held is session for _, held in self._held.values())

    def drop(self, session: S) -> None:
        """Remove a session from the pool, if it is stored here. The caller ends it."""
        self._held = OrderedDict((key, value) for key, value in self._held.items() if value[1] is not session)

    def pop(self, conversation: str) -> list[S]:
        """Remove and return a conversation's session."""
        return [self._held.pop(conversation)[1]] if conversation in self._held else []

    def empty(self) -> list[S]:
        """Remove and return all sessions."""
        held = [session for _, session in self._held.values()]
        self._held.clear()
        return held
