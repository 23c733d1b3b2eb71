"""What Discord refuses, by its own codes, and who may do what where.

Source of the codes: docs.discord.com/developers/topics/opcodes-and-status-codes, "JSON Error Codes".
"""

from collections.abc import Mapping
from typing import Any

from lab.loopback.discord.permissions import BITS, Permission, granted, in_channel
from lab.loopback.discord.state import BOT_USER, Channel, Message, Space

_STATUS_AND_WORDS: Mapping[int, tuple[int, str]] = {
    10003: (404, "Unknown Channel"),
    10004: (404, "Unknown Guild"),
    10007: (404, "Unknown Member"),
    10008: (404, "Unknown Message"),
    10013: (404, "Unknown User"),
    10014: (400, "Unknown Emoji"),
    10015: (404, "Unknown Webhook"),
    10062: (404, "Unknown interaction"),
    10063: (404, "Unknown application command"),
    40060: (400, "Interaction has already been acknowledged."),
    50001: (403, "Missing Access"),
    50005: (403, "Cannot edit a message authored by another user"),
    50006: (400, "Cannot send an empty message"),
    50007: (403, "Cannot send messages to this user"),
    50008: (400, "Cannot send messages in a non-text channel"),
    50013: (403, "Missing Permissions"),
    50016: (400, "Provided too few or too many messages to delete."),
    50024: (400, "Cannot execute action on this channel type"),
    50027: (401, "Invalid Webhook Token"),
    50034: (400, "A message provided was too old to bulk delete"),
    50083: (400, "Thread is archived"),
    50109: (400, "The request body contains invalid JSON."),
    160002: (400, "Cannot reply without permission to read message history"),
    160004: (400, "A thread has already been created for this message"),
    160005: (403, "Thread is locked"),
}
"""The statuses are as people report them; where no report was found, our reading."""


class Refused(Exception):
    """The service says no: this status, with this code."""

    def __init__(self, code: int, *, status: int = 0, message: str = "", **facts: Any) -> None:
        super().__init__(code)
        known_status, words = _STATUS_AND_WORDS.get(code, (400, ""))
        self.code = code
        self.status = status or known_status
        self.body = {"message": message or words, "code": code, **facts}


def invalid(field: str, code: str, message: str) -> Refused:
    """Refuse a form for one of its fields. Source: docs.discord.com/developers/reference, "Error Messages"."""
    errors: dict[str, Any] = {"_errors": [{"code": code, "message": message}]}
    for name in reversed(field.split(".")):
        errors = {name: errors}
    return Refused(50035, message="Invalid Form Body", errors=errors)


UNAUTHORIZED = {"message": "401: Unauthorized", "code": 0}
NOT_FOUND = {"message": "404: Not Found", "code": 0}


def allowed(space: Space, user: str, channel: Channel) -> int:
    """Give what a person may do in a channel: all in a DM of his, nothing outside his guilds."""
    if channel.guild is None:
        return sum(BITS.values()) if user in channel.members else 0
    guild = space.guilds[channel.guild]
    member = guild.members.get(user)
    if member is None:
        return 0
    held = [guild.id, *member.roles]
    base = granted([guild.roles[role] for role in held if role in guild.roles], is_owner=guild.owner == user)
    home = space.channels.get(channel.parent or "", channel) if channel.is_thread else channel
    found = in_channel(base, user, guild.id, held, home.overwrites)
    if channel.kind == "private_thread" and user not in channel.members and not found & BITS["manage_threads"]:
        return 0
    return found


def may(space: Space, user: str, channel: Channel, permission: Permission) -> bool:
    """Say whether a person may do something in a channel that he sees."""
    found = allowed(space, user, channel)
    return bool(found & BITS["view_channel"] and found & BITS[permission])


def sees(space: Space, user: str, channel: Channel) -> bool:
    """Say whether a person sees a channel."""
    return may(space, user, channel, "view_channel")


def channel_of(space: Space, channel: str) -> Channel:
    """Find a channel that our bot sees. Raises: Refused: 10003, 50001."""
    found = space.channels.get(channel)
    if found is None:
        raise Refused(10003)
    if not sees(space, BOT_USER, found):
        raise Refused(50001)
    return found


def message_of(channel: Channel, message: str) -> Message:
    """Find a message of a channel. Raises: Refused: 10008."""
    found = channel.find(message)
    if found is None:
        raise Refused(10008)
    return found


def need(space: Space, channel: Channel, permission: Permission) -> None:
    """Insist that our bot may do something. Raises: Refused: 50013."""
    if not may(space, BOT_USER, channel, permission):
        raise Refused(50013)


def need_open(channel: Channel) -> None:
    """Insist that a thread is active. Raises: Refused: 50083."""
    if channel.is_archived:
        raise Refused(50083)
