"""Streaming: a message that grows until it is stopped, or is too old.

Source: docs.slack.dev/reference/methods/chat.startStream, .appendStream, .stopStream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from lab.loopback.slack.lookup import own_message
from lab.loopback.slack.methods_chat import metadata, thread, writable
from lab.loopback.slack.records import Call
from lab.loopback.slack.rules import MARKDOWN_CHARS, Arguments, Refused
from lab.loopback.slack.service import Service
from lab.loopback.slack.state import BOT, BOT_USER, Channel, Message, Stream

_CHUNKS = frozenset({"markdown_text", "task_update", "plan_update", "blocks"})


def start(service: Service, arguments: Arguments, call: Call) -> dict[str, Any]:
    """Begin a message; outside a DM it must be said for whom."""
    channel = writable(service, arguments)
    if channel.kind != "im":
        for name in ("recipient_team_id", "recipient_user_id"):
            if not arguments.text(name):
                raise Refused(f"missing_{name}")
    message = Message(channel.id, service.space.next_ts(), "", user=BOT_USER, bot_id=BOT)
    message.thread_ts = thread(channel, arguments)
    message.stream = Stream(service.space.clock.now())
    message.text = _added(message, arguments)
    service.publish(channel, message)
    _note(service, "stream_start", message, message.text, call)
    return {"channel": channel.id, "ts": message.ts}


def append(service: Service, arguments: Arguments, call: Call) -> dict[str, Any]:
    """Let a message grow."""
    channel, message = _streaming(service, arguments)
    more = _added(message, arguments)
    if not (more or arguments.get("chunks")):
        raise Refused("no_text")
    message.text += more
    _note(service, "stream_append", message, more, call)
    return {"channel": channel.id, "ts": message.ts}


def stop(service: Service, arguments: Arguments, call: Call) -> dict[str, Any]:
    """End a message; now it is as any other, and a change is told."""
    channel, message = _streaming(service, arguments)
    before = service.snapshot(message)
    message.text += _added(message, arguments)
    message.blocks += list(arguments.get("blocks") or [])
    message.metadata = metadata(arguments) or message.metadata
    message.stream = None
    service.changed(message, before)
    _note(service, "stream_end", message, message.text, call)
    shown = service.snapshot(message)
    return {"channel": channel.id, "ts": message.ts, "message": shown}


def _streaming(service: Service, arguments: Arguments) -> tuple[Channel, Message]:
    channel, message = own_message(service, arguments, error="message_not_owned_by_app")
    stream = message.stream
    if stream and service.space.clock.now() - stream.started_at > service.settings.stream_life_s:
        stream = message.stream = None
    if stream is None:
        raise Refused("message_not_in_streaming_state")
    if stream.is_stopped_by_user:
        raise Refused("stopped_by_user")
    return channel, message


def _added(message: Message, arguments: Arguments) -> str:
    """Give the text that a call adds. Raises: Refused.

    A stream keeps the form of its first text, `markdown_text` or chunks: `streaming_mode_mismatch` is an error that
    others measured at the real service and no page names.
    """
    text, chunks = arguments.text("markdown_text"), arguments.get("chunks") or []
    form: Literal["text", "chunks"] | None = "chunks" if chunks else "text" if text else None
    if message.stream and form:
        if message.stream.form not in (None, form):
            raise Refused("streaming_mode_mismatch")
        message.stream.form = form
    if not isinstance(chunks, list) or any(
        not isinstance(chunk, dict) or chunk.get("type") not in _CHUNKS for chunk in chunks
    ):
        raise Refused("invalid_chunks")
    texts = [text, *(str(chunk.get("text", "")) for chunk in chunks if chunk["type"] == "markdown_text")]
    if any(len(one) > MARKDOWN_CHARS for one in texts):
        raise Refused("msg_too_long")
    return "".join(texts)


def _note(
    service: Service,
    kind: Literal["stream_start", "stream_append", "stream_end"],
    message: Message,
    text: str,
    call: Call,
) -> None:
    facts: dict[str, Any] = {"ts": message.ts, "thread_ts": message.thread_ts, "user": BOT_USER, "text": text}
    chunks = call.arguments.get("chunks") or []
    facts |= {"blocks": message.blocks + chunks, "metadata": message.metadata, "raw": call.raw}
    service.journal.enter("app", kind, message.channel, **facts)


METHODS: Mapping[str, Callable[[Service, Arguments, Call], dict[str, Any]]] = {
    "chat.startStream": start,
    "chat.appendStream": append,
    "chat.stopStream": stop,
}
