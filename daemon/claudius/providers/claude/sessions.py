"""Build a child's input, read its messages, and keep the sessions that a later turn may continue.

A new session gets the history as blocks and then the tail. A continued one gets only the tail. `ClaudeReply` turns a
child's messages into a reply: its failures look like success, and it continues by itself when it should stop.

    stream_event   the model's own events: deltas; a second `message_start` voids what came before
    user           the child speaks in our place (a cut or limited reply is "resumed"): we stop there
    assistant      only its `error` field is read
    result         the end: with `is_error` it is never text

A reply with any other end than a plain `result` is complete for us at once, and its session is not continued.
"""

from __future__ import annotations

import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from claudius.errors import (
    AuthFailed,
    BadRequest,
    Cut,
    ProviderError,
    RateLimited,
    SessionGone,
    SpendLimit,
    TooLong,
    Unreachable,
)
from claudius.foreign import listed
from claudius.provider import Done, Event, Message, Request, Reset, StopReason, Usage
from claudius.providers.replies import StreamedReply, by_status, plain_name, priced, refused

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


log = logging.getLogger(__name__)

_STOP: Mapping[str, StopReason] = {
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
    "tool_use": "end",
}
"""Stop reasons after which the child would continue by itself."""
_TEXT_BLOCKS = ("text", "thinking", "redacted_thinking")
_KINDS: Mapping[str, type[ProviderError]] = {
    "authentication_failed": AuthFailed,
    "oauth_org_not_allowed": AuthFailed,
    "billing_error": SpendLimit,
    "rate_limit": RateLimited,
    "invalid_request": BadRequest,
    "model_not_found": BadRequest,
}
"""The child's own names for an error, used if it gives no status."""
GONE = "No conversation found"


class ClaudeReply:
    """One turn as its messages arrive."""

    def __init__(self, provider: str, model: str, *, wall: Callable[[], float] = time.time) -> None:
        """Begin a turn. `wall` returns seconds since 1970, for the time at which a limit ends."""
        self.provider, self.model = provider, model
        self.session: str | None = None
        self.is_clean = False
        """After `Done`: whether the session may be continued."""
        self.has_spoken = False
        """Whether a delta was returned."""
        self._wall = wall
        self._reply = StreamedReply()
        self._began = False
        self._usage = Usage()
        self._write_1h = 0
        self._output = 0
        self._error = ""
        self._resets_at: float | None = None

    def hear(self, message: Mapping[str, Any]) -> Event | None:
        """Process one message of the child. Raises: ProviderError."""
        match message.get("type"):
            case "stream_event" if not message.get("parent_tool_use_id"):
                return self._stream(message["event"])
            case "user" if self._began:
                raise Cut("the model's stream broke off", provider=self.provider)
            case "assistant":
                self._error = message.get("error") or self._error
            case "rate_limit_event":
                info = message.get("rate_limit_info") or {}
                self._resets_at = info.get("resetsAt") if info.get("status") == "rejected" else None
            case "result":
                return self._result(message)
        return None

    def _stream(self, event: Mapping[str, Any]) -> Event | None:
        if self._reply.is_full:
            return self._done("max_tokens")
        match event.get("type"):
            case "message_start":
                return self._start(event["message"])
            case "content_block_start" if event["content_block"]["type"] not in _TEXT_BLOCKS:
                log.warning("%s: a tool call that was never offered is refused", self.provider)
                return self._done("end")
            case "content_block_delta" if event["delta"].get("type") == "text_delta":
                delta = self._reply.add(event["delta"]["text"])
                self.has_spoken = self.has_spoken or delta is not None
                return delta
            case "message_delta":
                return self._stopped(event)
        return None

    def _start(self, message: Mapping[str, Any]) -> Event | None:
        usage = message.get("usage") or {}
        creation = usage.get("cache_creation") or {}
        self._usage += Usage(
            input_tokens=usage.get("input_tokens") or 0,
            cache_read_tokens=usage.get("cache_read_input_tokens") or 0,
            cache_write_tokens=usage.get("cache_creation_input_tokens") or 0,
            output_tokens=self._output,
        )
        self._write_1h += creation.get("ephemeral_1h_input_tokens") or 0
        self._output = usage.get("output_tokens") or 0
        self.model = plain_name(message.get("model"), self.model)
        self._began = True
        voided, self._reply = self._reply.chars, StreamedReply()
        return Reset() if voided else None

    def _stopped(self, event: Mapping[str, Any]) -> Event | None:
        self._output = (event.get("usage") or {}).get("output_tokens") or self._output
        reason = str((event.get("delta") or {}).get("stop_reason") or "")
        if reason in _STOP:
            return self._done(_STOP[reason])
        if reason and not self._reply.chars:
            return self._done("end")
        return None

    def _result(self, message: Mapping[str, Any]) -> Event:
        self.session = message.get("session_id") or self.session
        if message.get("is_error"):
            raise self._failure(message)
        if not self._began:
            raise BadRequest("Claude Code answered by itself, without asking a model", provider=self.provider)
        self.is_clean = True
        return self._done("end")

    def _done(self, stop_reason: StopReason) -> Done:
        usage = replace(self._usage, output_tokens=self._usage.output_tokens + self._output)
        return Done(
            text=self._reply.text,
            usage=priced(usage, self.model, "anthropic", write_1h_tokens=self._write_1h),
            stop_reason=stop_reason,
            session=self.session,
            provider=self.provider,
            model=self.model,
        )

    def _failure(self, message: Mapping[str, Any]) -> ProviderError:
        """Classify by the fields. The text is for people, and decides only if no field does."""
        errors = [str(error) for error in message.get("errors") or ()]
        said = "; ".join(errors) or str(message.get("result") or message.get("subtype") or "no reason given")
        status = message.get("api_error_status")
        if any(error.startswith(GONE) for error in errors):
            return SessionGone(provider=self.provider)
        if message.get("terminal_reason") == "prompt_too_long":
            return refused(TooLong, said=said, provider=self.provider)
        if self._resets_at is not None:
            after_s = max(0.0, self._resets_at - self._wall())
            return refused(RateLimited, said=said, provider=self.provider, after_s=after_s)
        if isinstance(status, int):
            # The child has already repeated a 429, and reports no Retry-After. 0 lets the chain retry at once.
            return by_status(status, said, provider=self.provider, after_s=0.0 if status == 429 else None)
        kind = _KINDS.get(self._error) or (Cut if self.has_spoken else Unreachable)
        return refused(kind, said=said, provider=self.provider, facts=listed(self._error, _KINDS))
