"""Checks what the app wants to post, and makes a message of it."""

from typing import Any

from lab.loopback.discord.asking import Asking
from lab.loopback.discord.rules import Refused, invalid, may, need
from lab.loopback.discord.settings import Settings
from lab.loopback.discord.state import BOT_USER, EPHEMERAL, REPLY, SUPPRESS_EMBEDS, Channel, Message, Space

NONCE_CHARS = 25
SILENT = 1 << 12
MESSAGEABLE = frozenset(
    {"text", "announcement", "dm", "voice", "stage", "public_thread", "private_thread", "announcement_thread"}
)


def text_of(settings: Settings, body: dict[str, Any]) -> str:
    """Read the text as it will be shown. Raises: Refused: 50035: it is too long."""
    text = str(body.get("content") or "")
    text = text.strip() if settings.is_content_trimmed else text
    if len(text.encode("utf-16-le", "surrogatepass")) // 2 > settings.content_chars:
        raise invalid("content", "BASE_TYPE_MAX_LENGTH", f"Must be {settings.content_chars} or fewer in length.")
    return text


def fill(asking: Asking, message: Message) -> None:
    """Put text, embeds, components and flags of a call into a message. Raises: Refused."""
    body = asking.body
    content = text_of(asking.service.settings, body) if "content" in body else message.content
    embeds = list(body.get("embeds", message.embeds) or [])
    components = list(body.get("components", message.components) or [])
    if not (content or embeds or message.files or components):
        raise Refused(50006)
    message.content, message.embeds, message.components = content, embeds, components
    message.flags |= int(body.get("flags") or 0) & (SUPPRESS_EMBEDS | EPHEMERAL | SILENT)
    asking.service.mention(message, body.get("allowed_mentions"))


def reference_of(space: Space, channel: Channel, body: dict[str, Any]) -> dict[str, Any] | None:
    """Read which message is answered. Raises: Refused: 160002; 50035: there is none, and that matters."""
    wanted = body.get("message_reference")
    if not wanted:
        return None
    if not may(space, BOT_USER, channel, "read_message_history"):
        raise Refused(160002)
    message = str(wanted.get("message_id"))
    if channel.find(message) is None:
        if wanted.get("fail_if_not_exists", True):
            raise invalid("message_reference", "REPLIES_UNKNOWN_MESSAGE", "Unknown message")
        return None
    found = {"type": 0, "message_id": message, "channel_id": channel.id}
    return found | ({"guild_id": channel.guild} if channel.guild else {})


def may_post(space: Space, channel: Channel) -> None:
    """Insist that our bot may post in a channel that it sees. Raises: Refused."""
    if channel.kind not in MESSAGEABLE:
        raise Refused(50008)
    if channel.kind == "dm" and not all(space.users[user].takes_dms for user in channel.members):
        raise Refused(50007)
    need(space, channel, "send_messages_in_threads" if channel.is_thread else "send_messages")
    if channel.is_locked and not may(space, BOT_USER, channel, "manage_threads"):
        # Source: docs.discord.com/developers/topics/threads, "Active & Archived Threads": posting wakes an archived
        # thread unless it is locked. Which of the two codes comes is our reading.
        raise Refused(50083 if channel.is_archived else 160005)


def nonce_of(body: dict[str, Any]) -> str:
    """Read the nonce; empty where there is none. Raises: Refused: it is too long."""
    nonce = body.get("nonce")
    if nonce is None:
        return ""
    if len(str(nonce)) > NONCE_CHARS:
        raise invalid("nonce", "NONCE_TYPE_TOO_LONG", f"Must be {NONCE_CHARS} or fewer in length.")
    return str(nonce)


def drafted(asking: Asking, channel: Channel) -> Message:
    """Make the message that a call wants posted; it is not up yet. Raises: Refused."""
    service = asking.service
    reference = reference_of(service.space, channel, asking.body)
    message = service.compose(channel, BOT_USER, "", reference=reference, nonce=asking.body.get("nonce"))
    message.kind = REPLY if reference else message.kind
    fill(asking, message)
    message.flags &= ~EPHEMERAL  # only an answer to an interaction can be
    return message
