"""Messages and reactions. Source: docs.discord.com/developers/resources/message."""

from collections.abc import Mapping
from typing import Any

from lab.loopback.discord import drafts, events, intents
from lab.loopback.discord.asking import Asking
from lab.loopback.discord.rules import Refused, channel_of, may, message_of, need, need_open
from lab.loopback.discord.state import BOT_USER, Channel, Message

PAGE = 100
EMPTY: tuple[int, Any] = (204, None)


def _place(asking: Asking) -> Channel:
    return channel_of(asking.service.space, asking.path["channel_id"])


def _found(asking: Asking) -> tuple[Channel, Message]:
    channel = _place(asking)
    return channel, message_of(channel, asking.path["message_id"])


def _shown(asking: Asking, message: Message) -> dict[str, Any]:
    """Write a message as the API gives it: what it says depends on the portal, not on the session's intents."""
    service = asking.service
    has_content = "message_content" in service.settings.privileges
    channel = service.space.channels[message.channel]
    return intents.shown(service.shapes.message(message), message, channel, has_content=has_content)


def create(asking: Asking) -> tuple[int, Any]:
    """Post a message; with `enforce_nonce`, the one that this nonce made before is given instead."""
    service, channel = asking.service, _place(asking)
    drafts.may_post(service.space, channel)
    nonce = drafts.nonce_of(asking.body)
    if nonce and asking.body.get("enforce_nonce") and service.settings.nonce == "honoured":
        before = service.nonces.get((BOT_USER, nonce))
        if before and service.space.clock.now() - before.at < service.settings.nonce_life_s:
            return 200, _shown(asking, before)
    message = drafts.drafted(asking, channel)
    if nonce:
        service.nonces[BOT_USER, nonce] = message
    service.publish(channel, message)
    service.journal.enter(
        "app",
        "post",
        channel.id,
        message=message.id,
        user=BOT_USER,
        text=message.content,
        pings=message.pings,
        flags=message.flags,
        reference=str((message.reference or {}).get("message_id", "")),
        nonce=nonce,
        raw=asking.call.raw,
    )
    return 200, _shown(asking, message)


def history(asking: Asking) -> tuple[int, Any]:
    """List messages, newest first; none at all without the permission to read them."""
    channel = _place(asking)
    if not may(asking.service.space, BOT_USER, channel, "read_message_history"):
        return 200, []
    count = asking.number("limit", 50, PAGE)
    query = {name: int(asking.query[name]) for name in ("before", "after") if asking.query.get(name)}
    messages = channel.messages
    if "after" in query:  # the oldest of those that come after, given newest first
        found = [message for message in messages if int(message.id) > query["after"]][:count]
    else:
        found = [message for message in messages if int(message.id) < query.get("before", 1 << 64)][-count:]
    return 200, [_shown(asking, message) for message in reversed(found)]


def get(asking: Asking) -> tuple[int, Any]:
    """Give one message."""
    channel = _place(asking)
    need(asking.service.space, channel, "read_message_history")
    return 200, _shown(asking, message_of(channel, asking.path["message_id"]))


def edit(asking: Asking) -> tuple[int, Any]:
    """Change a message of our own. Raises: Refused: 50005: it is another's."""
    channel, message = _found(asking)
    if message.author != BOT_USER:
        raise Refused(50005)
    drafts.fill(asking, message)
    message.edited_at = asking.service.space.clock.now()
    asking.service.changed(channel, message)
    _enter(asking, "edit", channel, message)
    return 200, _shown(asking, message)


def delete(asking: Asking) -> tuple[int, Any]:
    """Take a message down; another's only with permission."""
    channel, message = _found(asking)
    if message.author != BOT_USER:
        need(asking.service.space, channel, "manage_messages")
    asking.service.remove(channel, [message.id], is_bulk=False)
    _enter(asking, "delete", channel, message)
    return EMPTY


def react(asking: Asking) -> tuple[int, Any]:
    """Put a reaction on a message."""
    channel, message = _found(asking)
    need(asking.service.space, channel, "read_message_history")
    emoji = asking.path["emoji"]
    if emoji not in message.reactions:  # one that is there already may be joined without the permission
        need(asking.service.space, channel, "add_reactions")
    need_open(channel)
    if not emoji or (emoji.isascii() and ":" not in emoji):
        raise Refused(10014)
    asking.service.react(channel, message, BOT_USER, emoji, is_added=True)
    _enter(asking, "react", channel, message, emoji)
    return EMPTY


def unreact(asking: Asking) -> tuple[int, Any]:
    """Take our reaction off."""
    channel, message = _found(asking)
    asking.service.react(channel, message, BOT_USER, asking.path["emoji"], is_added=False)
    _enter(asking, "unreact", channel, message, asking.path["emoji"])
    return EMPTY


def typing(asking: Asking) -> tuple[int, Any]:
    """Show that our bot writes."""
    service, channel = asking.service, _place(asking)
    drafts.may_post(service.space, channel)
    service.post.bring([events.typing(service.shapes, channel, BOT_USER)])
    service.journal.enter("app", "typing", channel.id, user=BOT_USER)
    return EMPTY


def _enter(asking: Asking, kind: Any, channel: Channel, message: Message, text: str | None = None) -> None:
    asking.service.journal.enter(
        "app",
        kind,
        channel.id,
        message=message.id,
        user=BOT_USER,
        text=message.content if text is None else text,
        pings=message.pings if kind == "edit" else [],
        flags=message.flags,
        raw=asking.call.raw,
    )


ROUTES: Mapping[str, Any] = {
    "create_message": create, "get_channel_messages": history, "get_channel_message": get, "edit_message": edit,
    "delete_message": delete, "create_reaction": react, "delete_own_reaction": unreact,
    "trigger_typing_indicator": typing,
}  # fmt: skip
