"""Finds what a call names, or refuses it by the name of what is missing."""

import base64
from collections.abc import Sequence
from typing import TypeVar

from lab.loopback.slack.rules import Arguments, Refused
from lab.loopback.slack.service import Service
from lab.loopback.slack.state import BOT_TOKEN, BOT_USER, Channel, Message

T = TypeVar("T")


def channel_of(service: Service, arguments: Arguments, name: str = "channel") -> Channel:
    """Find a conversation that our app may know of. Raises: Refused.

    A private one without us is `channel_not_found`. Source: docs.slack.dev/reference/methods/chat.postMessage.
    """
    channel = service.space.channels.get(arguments.text(name))
    if channel is None or not service.space.sees(channel):
        raise Refused("channel_not_found")
    return channel


def require_scope(service: Service, scope: str) -> None:
    """Refuse where the bot's token lacks a scope that depends on the conversation. Raises: Refused."""
    scopes = service.space.tokens[BOT_TOKEN].scopes
    if scope not in scopes:
        raise Refused("missing_scope", needed=scope, provided=",".join(sorted(scopes)))


def own_message(service: Service, arguments: Arguments, *, error: str) -> tuple[Channel, Message]:
    """Find a message of our app's. Raises: Refused: not there, or another's (`error`)."""
    channel = channel_of(service, arguments)
    message = channel.find(arguments.text("ts"))
    if message is None:
        raise Refused("message_not_found")
    if message.user != BOT_USER and message.bot_id != service.space.users[BOT_USER].bot_id:
        raise Refused(error)
    return channel, message


def page(items: Sequence[T], arguments: Arguments, *, default: int, most: int) -> tuple[Sequence[T], str]:
    """Give one page and the cursor of the next; empty = this is the last. Raises: Refused.

    Source: docs.slack.dev/apis/web-api/pagination. That cursors count is our way; real ones are opaque too.
    """
    limit = arguments.number("limit", default)
    if not 1 <= limit <= most:
        raise Refused("invalid_limit")
    cursor = arguments.text("cursor")
    try:
        start = int(base64.b64decode(cursor, validate=True).decode().removeprefix("next:")) if cursor else 0
    except ValueError:
        raise Refused("invalid_cursor") from None
    end = start + limit
    following = base64.b64encode(f"next:{end}".encode()).decode() if end < len(items) else ""
    return items[start:end], following
