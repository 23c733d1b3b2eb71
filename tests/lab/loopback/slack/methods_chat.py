"""chat.*: posting, changing, deleting.

Source: docs.slack.dev/reference/methods/<method>.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from lab.loopback.slack.lookup import channel_of, own_message
from lab.loopback.slack.records import Call
from lab.loopback.slack.rules import MARKDOWN_CHARS, MAX_BLOCKS, SECTION_CHARS, TEXT_CHARS, Arguments, Refused
from lab.loopback.slack.service import Service
from lab.loopback.slack.shapes import message_json
from lab.loopback.slack.state import BOT, BOT_TOKEN, BOT_USER, Channel, Message

_TS = re.compile(r"\d{1,12}\.\d{6}")


def post_message(service: Service, arguments: Arguments, call: Call) -> dict[str, Any]:
    """Post; a text that is too long is cut, with a warning."""
    channel = writable(service, arguments)
    text = content(arguments)
    message = Message(
        channel.id,
        service.space.next_ts(),
        text[:TEXT_CHARS],
        user=BOT_USER,
        thread_ts=thread(channel, arguments),
        bot_id=BOT,
        blocks=list(arguments.get("blocks") or []),
        attachments=list(arguments.get("attachments") or []),
        metadata=metadata(arguments),
    )
    service.publish(channel, message)
    service.journal.enter("app", "post", channel.id, **_entry(message, call))
    if service.settings.is_sparing:
        return {}
    answer = {"channel": channel.id, "ts": message.ts, "message": _shown(service, message)}
    return answer | ({"warnings": ["message_truncated"]} if len(text) > TEXT_CHARS else {})


def post_ephemeral(service: Service, arguments: Arguments, call: Call) -> dict[str, Any]:
    """Show something to one person; it is in no history."""
    channel = writable(service, arguments)
    if arguments.text("user") not in channel.members:
        raise Refused("user_not_in_channel")
    message = Message(channel.id, service.space.next_ts(), content(arguments), user=BOT_USER)
    message.thread_ts = thread(channel, arguments)
    entry = _entry(message, call) | {"to": arguments.text("user")}
    service.journal.enter("app", "ephemeral", channel.id, **entry)
    return {"message_ts": message.ts}


def update(service: Service, arguments: Arguments, call: Call) -> dict[str, Any]:
    """Change a message of ours. Without blocks those that it has are taken away. Source: …/methods/chat.update."""
    channel, message = own_message(service, arguments, error="cant_update_message")
    text, before = content(arguments), service.snapshot(message)
    message.text, message.blocks = text[:TEXT_CHARS], list(arguments.get("blocks") or [])
    service.changed(message, before)
    service.journal.enter("app", "edit", channel.id, **_entry(message, call))
    return {"channel": channel.id, "ts": message.ts, "text": message.text}


def delete(service: Service, arguments: Arguments, call: Call) -> dict[str, Any]:
    """Take a message of ours down."""
    channel, message = own_message(service, arguments, error="cant_delete_message")
    facts = {"ts": message.ts, "thread_ts": message.thread_ts, "user": BOT_USER, "raw": call.raw}
    service.remove(channel, message)
    service.journal.enter("app", "delete", channel.id, **facts)
    return {"channel": channel.id, "ts": facts["ts"]}


def writable(service: Service, arguments: Arguments) -> Channel:
    """Find the conversation to write in; a person's id means the DM with that person. Raises: Refused."""
    named = arguments.text("channel")
    if named in service.space.users and named != BOT_USER:
        return service.space.dm(named)
    channel = channel_of(service, arguments)
    if channel.is_archived:
        raise Refused("is_archived")
    if BOT_USER not in channel.members and "chat:write.public" not in service.space.tokens[BOT_TOKEN].scopes:
        raise Refused("not_in_channel")
    return channel


def thread(channel: Channel, arguments: Arguments) -> str | None:
    """Find the thread to reply in. Raises: Refused: no ts at all (Source: jenkinsci/slack-plugin#584).

    If the message is not there, the reply goes into the channel without a word. Source: slack-go#1571,
    python-slack-events-api#87. A reply's ts means its thread.
    """
    named = arguments.text("thread_ts")
    if not named:
        return None
    if not _TS.fullmatch(named):
        raise Refused("invalid_thread_ts", f"{named} is not a valid thread_ts")
    parent = channel.find(named)
    return (parent.thread_ts or parent.ts) if parent else None


def content(arguments: Arguments) -> str:
    """Give the text of a post. Raises: Refused: none, too long, or two that exclude each other.

    That a `markdown_text` stands in history as it was sent is our reading; the real one is turned into blocks.
    """
    text, markdown, blocks = arguments.text("text"), arguments.text("markdown_text"), arguments.get("blocks")
    if markdown and (text or blocks):
        raise Refused("markdown_text_conflict")
    if len(markdown) > MARKDOWN_CHARS:
        raise Refused(
            "msg_too_long", f"must be less than {MARKDOWN_CHARS + 1} characters [json-pointer:/markdown_text]"
        )
    if blocks:
        _check_blocks(blocks)
    has_else = blocks or arguments.get("attachments")
    if not (text.strip() or markdown.strip() or has_else):
        raise Refused("no_text")
    return text or markdown


def metadata(arguments: Arguments) -> dict[str, Any] | None:
    """Read metadata. Raises: Refused. Source: docs.slack.dev/messaging/message-metadata."""
    found = arguments.get("metadata")
    if not found:
        return None
    if not isinstance(found, dict) or not isinstance(found.get("event_type"), str):
        raise Refused("invalid_metadata_format")
    if not isinstance(found.get("event_payload"), dict):
        raise Refused("invalid_metadata_schema")
    return found


def _check_blocks(blocks: Any) -> None:
    if not isinstance(blocks, list) or not all(isinstance(block, dict) and block.get("type") for block in blocks):
        raise Refused("invalid_blocks_format")
    if len(blocks) > MAX_BLOCKS:
        raise Refused("invalid_blocks", "no more than 50 items allowed [json-pointer:/blocks]")
    sections = [block["text"].get("text", "") for block in blocks if isinstance(block.get("text"), dict)]
    if any(len(text) > SECTION_CHARS for text in sections):
        raise Refused("invalid_blocks", f"must be less than {SECTION_CHARS + 1} characters [json-pointer:/blocks/text]")
    markdown = sum(len(str(block.get("text", ""))) for block in blocks if block["type"] == "markdown")
    if markdown > MARKDOWN_CHARS:  # cumulative; Source: docs.slack.dev/reference/block-kit/blocks/markdown-block
        raise Refused("msg_blocks_too_long")


def _entry(message: Message, call: Call) -> dict[str, Any]:
    return {
        "ts": message.ts,
        "thread_ts": message.thread_ts,
        "user": message.user or message.bot_id or "",
        "text": message.text,
        "blocks": message.blocks,
        "metadata": message.metadata,
        "raw": call.raw,
    }


def _shown(service: Service, message: Message) -> dict[str, Any]:
    return message_json(service.space, message, url=service.url, has_metadata=True)


METHODS: Mapping[str, Callable[[Service, Arguments, Call], dict[str, Any]]] = {
    "chat.postMessage": post_message,
    "chat.postEphemeral": post_ephemeral,
    "chat.update": update,
    "chat.delete": delete,
}
